//! Unfinished batches, the progress of a batch, and control requests to its scheduler.

use proq_lib::lane::Project;
use proq_lib::swarm::batch::control_request::ControlRequestKind;
use proq_lib::swarm::batch::record::{Batch, BatchRecord};
use proq_lib::swarm::batch::{create, scheduler};
use proq_lib::swarm::run::control_requests;
use proq_lib::swarm::status::progress::BatchProgress;
use proq_plan::schedule::action::BatchOutcome;
use proq_store::base::batch_id::BatchId;

use crate::cli::invocation::failure::Failure;

/// Returns the unfinished batches, each with its state. Batches that were aborted or stopped count as
/// unfinished.
pub(crate) fn unfinished_batches(project: &Project) -> Vec<(BatchRecord, &'static str)> {
    let mut out = Vec::new();
    for batch in create::list_batches(project, false) {
        let Ok(loaded) = Batch::load(&project.store, &batch.id) else { continue };
        let Ok(lines) = loaded.read_log_lines(&project.store) else { continue };
        let state = loaded.fold_state(&lines);
        match state.final_outcome() {
            None | Some(BatchOutcome::Aborted | BatchOutcome::Stopped) => {
                out.push((batch, state.status_word()));
            }
            Some(BatchOutcome::Complete | BatchOutcome::Partial) => {}
        }
    }
    out
}

/// Reads how far a batch is, from its log.
pub(crate) fn batch_progress(project: &Project, batch: &BatchRecord) -> Result<BatchProgress, Failure> {
    let scheduler = scheduler::is_running(&project.store, &batch.id)?;
    let loaded_batch = Batch::load(&project.store, &batch.id)?;
    Ok(BatchProgress::read(project, &loaded_batch, &loaded_batch.read_log_lines(&project.store)?, scheduler))
}

/// Sends a control request to a batch, and returns once the scheduler has received it.
pub(crate) fn send_control_request(
    project: &Project,
    id: &BatchId,
    kind: ControlRequestKind,
) -> Result<(), Failure> {
    Ok(control_requests::submit_requests(project, id, vec![kind])?)
}
