//! Batches: how far each is, and the report on one.

use proq_base::usage::Cost;
use serde::Serialize;

use super::cost;
use crate::lane::Project;
use crate::ops::error::Error;
use crate::swarm;
use crate::swarm::batch::error::BatchError;
use crate::swarm::batch::record::{Batch, BatchRecord};
use crate::swarm::batch::{create, scheduler};
use crate::swarm::ops::batch_lookup::{read_progress, unfinished_batches};
use crate::swarm::status::batch_history::BatchHistory;
use crate::swarm::status::progress::BatchProgress;

/// Batches, each with its progress.
#[derive(Debug, Serialize)]
pub struct BatchList {
    /// Progress of each batch, oldest first.
    pub batches: Vec<BatchProgress>,
}

/// Progress of the batch that the user named, or of all batches.
#[derive(Debug)]
pub enum BatchStatus {
    /// One batch in full.
    One(Box<BatchRecord>, Box<BatchProgress>),
    /// A line for each batch.
    All(BatchList),
}

/// Report on one batch.
#[derive(Debug, Serialize)]
pub struct BatchReport {
    /// Everything on record about the batch.
    #[serde(flatten)]
    pub history: BatchHistory,
    /// Cost of all runs per line that landed on the batch's branch; none if nothing has landed or no agent
    /// reports its cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_line: Option<Cost>,
}

/// Reads how far batches are: the one that `name_prefix` names by its id or a prefix of it; otherwise the only
/// unfinished one, or the only one; otherwise, and with `list_all`, every batch.
///
/// # Errors
/// Fails when `name_prefix` names no batch, and when a batch cannot be read.
pub fn batch_status(
    project: &Project,
    name_prefix: Option<&str>,
    list_all: bool,
) -> Result<BatchStatus, Error> {
    let one = |batch: BatchRecord| {
        let progress = read_progress(project, &batch.id)?;
        Ok(BatchStatus::One(Box::new(batch), Box::new(progress)))
    };
    if let Some(name_prefix) = name_prefix {
        return one(create::find_batch(project, name_prefix)?);
    }
    let mut unfinished = unfinished_batches(project);
    if unfinished.len() == 1 && !list_all {
        return one(unfinished.remove(0));
    }
    let mut batches = create::list_batches(project, true);
    if batches.len() == 1 && !list_all {
        return one(batches.remove(0));
    }
    let progress = batches.iter().map(|batch| read_progress(project, &batch.id));
    Ok(BatchStatus::All(BatchList { batches: progress.collect::<Result<_, _>>()? }))
}

/// Reads the history of the batch that `name_prefix` names by its id or a prefix of it; without one, of the
/// latest batch.
///
/// # Errors
/// Fails when there is no such batch, and when it cannot be read.
pub fn batch_history(project: &Project, name_prefix: Option<&str>) -> Result<BatchHistory, Error> {
    let record = match name_prefix {
        Some(prefix) => create::find_batch(project, prefix)?,
        None => create::list_batches(project, true)
            .pop()
            .ok_or_else(|| swarm::Error::from(BatchError::NoBatches))?,
    };
    let scheduler = scheduler::is_running(&project.store, &record.id)?;
    let batch = Batch::load(&project.store, &record.id)?;
    let lines = batch.read_log_lines(&project.store)?;
    Ok(BatchHistory::from_log(project, &batch, &lines, scheduler))
}

impl BatchReport {
    /// Adds the cost per line, which compares all files that the batch changed.
    #[must_use]
    pub fn new(project: &Project, history: BatchHistory) -> BatchReport {
        let is_partial = history.runs.iter().any(|run| run.ended.is_some() && run.cost.is_none());
        let cost = history.cost.filter(|_| history.tip != history.start);
        let cost_per_line = cost.and_then(|cost| {
            let lines = cost::changed_lines(&project.repo, history.start, history.tip)?;
            cost::per_line(Cost { estimated: cost.estimated || is_partial, ..cost }, lines)
        });
        BatchReport { history, cost_per_line }
    }
}
