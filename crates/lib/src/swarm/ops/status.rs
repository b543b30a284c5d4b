//! Progress of one batch or of all.

use super::batch_lookup::{read_progress, unfinished_batches};
use crate::lane::Project;
use crate::swarm::Error;
use crate::swarm::batch::create;
use crate::swarm::batch::record::BatchRecord;
use crate::swarm::status::progress::BatchProgress;

/// Which batches are shown.
#[derive(Debug, Clone, Default)]
pub struct StatusRequest {
    /// Id of one batch or a prefix of it.
    pub batch_name: Option<String>,
    /// Whether all batches are shown, where none is named. Otherwise it is the only unfinished one, or the only
    /// one at all.
    pub all: bool,
}

/// How far the batches are.
pub enum StatusOutcome {
    /// One batch.
    One(Box<BatchStatus>),
    /// All batches, oldest first.
    All(Vec<BatchProgress>),
}

/// How far one batch is.
pub struct BatchStatus {
    /// The batch's record.
    pub batch: BatchRecord,
    /// The batch's progress.
    pub progress: BatchProgress,
    /// Whether the batch has criteria whose verification is not complete.
    pub has_unverified_criteria: bool,
}

/// Reads how far the requested batches are.
///
/// # Errors
/// Fails when a batch cannot be found or read.
pub fn read(project: &Project, request: &StatusRequest) -> Result<StatusOutcome, Error> {
    let batch = if let Some(name) = &request.batch_name {
        create::find_batch(project, name)?
    } else {
        let mut batches = unfinished_batches(project);
        if batches.len() != 1 || request.all {
            batches = create::list_batches(project, true);
        }
        if batches.len() != 1 || request.all {
            let progress = batches.iter().map(|batch| read_progress(project, &batch.id));
            return Ok(StatusOutcome::All(progress.collect::<Result<_, _>>()?));
        }
        batches.swap_remove(0)
    };
    let progress = read_progress(project, &batch.id)?;
    let has_unverified_criteria = batch.has_unverified_criteria(&project.store);
    Ok(StatusOutcome::One(Box::new(BatchStatus { batch, progress, has_unverified_criteria })))
}
