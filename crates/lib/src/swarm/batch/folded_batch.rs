//! Batches with the state that follows from their logs.

use std::cell::OnceCell;

use proq_git::CommitId;
use proq_plan::schedule::state::State;
use proq_store::Store;

use super::create::list_batches;
use super::log::LogLine;
use super::log_summary::LogSummary;
use super::record::{Batch, BatchRecord};
use crate::lane::Project;
use crate::swarm::Error;

/// A batch with its log and its state.
#[derive(Debug)]
pub struct FoldedBatch {
    /// The batch with its tasks.
    pub batch: Batch,
    /// All lines of the log.
    pub lines: Vec<LogLine>,
    /// State that follows from the log.
    pub state: State,
}

impl FoldedBatch {
    /// Reads the tasks and the log of a batch.
    ///
    /// # Errors
    /// Fails when a file cannot be read.
    pub fn load(store: &Store, record: &BatchRecord) -> Result<FoldedBatch, Error> {
        let batch = Batch::from_record(store, record.clone())?;
        let lines = batch.read_log_lines(store)?;
        let state = batch.fold_state(&lines);
        Ok(FoldedBatch { batch, lines, state })
    }

    /// Returns the last tip of the batch's branch that the log has; none for an unknown one.
    pub(crate) fn last_tip(&self) -> Option<CommitId> {
        LogSummary::from_lines(&self.batch, &self.lines).branch_tips.last().copied()
    }
}

/// A batch whose tasks and log are read when they are first needed, and at most once.
#[derive(Debug)]
pub struct ListedBatch {
    /// The settings of the batch, as stored in `batch.toml`.
    pub record: BatchRecord,
    folded: OnceCell<Option<FoldedBatch>>,
}

impl ListedBatch {
    /// Returns the batches that were not cleaned up, oldest first. A batch that cannot be read gives a warning
    /// and is left out.
    pub fn list(project: &Project) -> Vec<ListedBatch> {
        let listed = |record| ListedBatch { record, folded: OnceCell::new() };
        list_batches(project, false).into_iter().map(listed).collect()
    }

    /// Returns the batch with its log and its state; none if they cannot be read.
    pub fn folded(&self, store: &Store) -> Option<&FoldedBatch> {
        self.folded.get_or_init(|| FoldedBatch::load(store, &self.record).ok()).as_ref()
    }
}
