//! Report on one batch.

use crate::lane::Project;
use crate::swarm::Error;
use crate::swarm::batch::error::BatchError;
use crate::swarm::batch::record::Batch;
use crate::swarm::batch::{create, scheduler};
use crate::swarm::status::batch_history::BatchHistory;

/// Reads the history of the batch with this id or prefix of an id; without one, of the latest batch.
///
/// # Errors
/// Fails when there is no such batch, or it cannot be read.
pub fn read(project: &Project, batch_name: Option<&str>) -> Result<BatchHistory, Error> {
    let record = match batch_name {
        Some(name) => create::find_batch(project, name)?,
        None => create::list_batches(project, true).pop().ok_or(BatchError::NoBatches)?,
    };
    let has_scheduler = scheduler::is_running(&project.store, &record.id)?;
    let batch = Batch::load(&project.store, &record.id)?;
    let lines = batch.read_log_lines(&project.store)?;
    Ok(BatchHistory::from_log(project, &batch, &lines, has_scheduler))
}
