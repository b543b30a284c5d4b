//! Batches by name and by state.

use proq_plan::schedule::action::BatchOutcome;
use proq_store::Store;
use proq_store::base::batch_id::BatchId;

use crate::lane::Project;
use crate::swarm::Error;
use crate::swarm::batch::error::BatchError;
use crate::swarm::batch::record::{Batch, BatchRecord};
use crate::swarm::batch::{create, scheduler};
use crate::swarm::status::progress::BatchProgress;

/// Final outcome of a batch, and a word for its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchState {
    /// The final outcome; none while the batch is unfinished.
    pub outcome: Option<BatchOutcome>,
    /// The state in a word: `new`, `running`, `pausing`, `paused`, `stopping`, `over`.
    pub word: &'static str,
}

impl BatchState {
    /// Reads the state of a batch from its log.
    ///
    /// # Errors
    /// Fails when the batch cannot be read.
    pub fn read(store: &Store, id: &BatchId) -> Result<BatchState, Error> {
        let loaded = Batch::load(store, id)?;
        let state = loaded.fold_state(&loaded.read_log_lines(store)?);
        Ok(BatchState { outcome: state.final_outcome(), word: state.status_word() })
    }

    /// Returns whether the batch can continue: it is unfinished, aborted or was stopped by a failure.
    pub fn is_open(self) -> bool {
        !matches!(self.outcome, Some(BatchOutcome::Complete | BatchOutcome::Partial))
    }
}

/// Returns the batches that can continue, oldest first. Batches that cannot be read are left out.
pub fn unfinished_batches(project: &Project) -> Vec<BatchRecord> {
    let is_open =
        |batch: &BatchRecord| BatchState::read(&project.store, &batch.id).is_ok_and(BatchState::is_open);
    create::list_batches(project, false).into_iter().filter(is_open).collect()
}

/// Returns the batch with this id or prefix of an id or, without a name, the only unfinished one. `command` is
/// the command for the hint if the batch is ambiguous.
///
/// # Errors
/// [`BatchError::UnknownBatch`], [`BatchError::NoOpenBatch`], [`BatchError::AmbiguousBatch`]; [`BatchError::CleanedUp`] for a batch whose
/// lanes are gone.
pub fn find_batch_to_control(
    project: &Project,
    name: Option<&str>,
    command: &'static str,
) -> Result<BatchRecord, Error> {
    let batch = if let Some(name) = name {
        create::find_batch(project, name)?
    } else {
        let mut candidates = unfinished_batches(project);
        match (candidates.len(), candidates.pop()) {
            (1, Some(batch)) => batch,
            (0, _) => return Err(BatchError::NoOpenBatch.into()),
            (_, last) => {
                let open = candidates.into_iter().chain(last).map(|batch| batch.id).collect();
                return Err(BatchError::AmbiguousBatch { open, command }.into());
            }
        }
    };
    match batch.cleaned {
        Some(_) => Err(BatchError::CleanedUp { id: batch.id }.into()),
        None => Ok(batch),
    }
}

/// Reads how far a batch is, from its log.
///
/// # Errors
/// Fails when the batch cannot be read.
pub fn read_progress(project: &Project, id: &BatchId) -> Result<BatchProgress, Error> {
    let has_scheduler = scheduler::is_running(&project.store, id)?;
    let loaded = Batch::load(&project.store, id)?;
    Ok(BatchProgress::read(project, &loaded, &loaded.read_log_lines(&project.store)?, has_scheduler))
}
