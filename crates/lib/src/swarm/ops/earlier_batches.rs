//! Earlier batches of a plan, because of which it does not start again.

use proq_plan::schedule::action::BatchOutcome;

use crate::lane::Project;
use crate::lane::inspection::evidence;
use crate::ops::error::Error;
use crate::swarm;
use crate::swarm::batch::error::BatchError;
use crate::swarm::batch::record::{Batch, BatchRecord};
use crate::swarm::batch::task::BatchTask;
use crate::swarm::batch::{create, scheduler};
use crate::swarm::landing::batch_landing;

/// Returns the batches of the plan that has these tasks, the latest first. Another milestone of the same
/// roadmap is another plan.
fn batches_of_plan<'a>(project: &'a Project, tasks: &'a [BatchTask]) -> impl Iterator<Item = Batch> + 'a {
    let has_same_files = move |batch: &BatchRecord| tasks.iter().any(|task| batch.files.contains(&task.file));
    let milestone = |tasks: &[BatchTask]| tasks.first().map(|task| task.milestone.clone());
    let candidates = create::list_batches(project, false).into_iter().rev().filter(has_same_files);
    let loaded_batches = candidates.filter_map(move |batch| Batch::load(&project.store, &batch.id).ok());
    loaded_batches.filter(move |batch| milestone(&batch.tasks) == milestone(tasks))
}

/// Returns the latest unfinished batch of the plan that has these tasks, and a word for its state.
pub(super) fn find_unfinished_batch(
    project: &Project,
    tasks: &[BatchTask],
) -> Option<(BatchRecord, &'static str)> {
    batches_of_plan(project, tasks).find_map(|batch| {
        let state = batch.fold_state(&batch.read_log_lines(&project.store).ok()?);
        let state_word = match state.final_outcome() {
            Some(BatchOutcome::Complete | BatchOutcome::Partial) => return None,
            Some(BatchOutcome::Aborted) => "aborted",
            Some(BatchOutcome::Stopped) => "stopped",
            // The log shows the batch as running, but no scheduler process works on it.
            None if state.status_word() != "paused"
                && !scheduler::is_running(&project.store, batch.id()).ok()? =>
            {
                "interrupted"
            }
            None => state.status_word(),
        };
        Some((batch.record, state_word))
    })
}

/// Returns the error that refuses a plan with an unfinished batch, whose state is a word.
pub(super) fn unfinished_error(batch: &BatchRecord, state: &str) -> BatchError {
    BatchError::PlanBatchUnfinished { id: batch.id.clone(), state: state.to_owned() }
}

/// Refuses a plan whose last batch is done and has not landed: all of it would be done, and paid for, again.
pub(super) fn require_last_batch_landed(project: &Project, tasks: &[BatchTask]) -> Result<(), Error> {
    let Some(Batch { record: last_batch, .. }) = batches_of_plan(project, tasks).next() else {
        return Ok(());
    };
    let tip = if last_batch.auto_merge { None } else { project.repo.branch_tip(&last_batch.branch)? };
    let (Some(tip), Some(base)) = (tip, project.repo.branch_tip(&last_batch.base)?) else {
        return Ok(());
    };
    if tip == last_batch.start || evidence::is_contained(project, tip, base)? {
        return Ok(());
    }
    let hint = batch_landing::landing_hint(project, &last_batch, "merge it");
    let BatchRecord { id, base, .. } = last_batch;
    Err(swarm::Error::from(BatchError::PreviousBatchUnlanded { hint, id, base }).into())
}
