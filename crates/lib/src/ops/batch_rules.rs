//! Rules that batches impose on lanes and operations. Batches are known to a higher room only, which
//! implements them.

use std::path::PathBuf;

use proq_store::Store;
use proq_store::base::batch_id::BatchId;
use proq_store::base::operation_number::OperationNumber;

use super::error::Error;
use crate::lane::Project;

/// Rules of the batches on record. `landed_records` are the landing records that the operations of an undo
/// wrote, as paths below `proq/`.
pub trait BatchRules {
    /// Returns whether a batch decides itself which of its lanes are removed: it is on record and not cleaned
    /// up yet.
    fn keeps_own_lanes(&self, project: &Project, id: &BatchId) -> bool;

    /// Refuses to undo landings that a batch builds on: while the batch runs and, without `force`, as long as
    /// it may continue. `forced_command` undoes them all the same, if there is such a command.
    ///
    /// # Errors
    /// An error that names the batch.
    fn refuse_undo(
        &self,
        store: &Store,
        landed_records: &[PathBuf],
        force: bool,
        forced_command: Option<String>,
    ) -> Result<(), Error>;

    /// Returns the error for an undo of `operation`, which is not the last one, if a batch that may continue
    /// landed tasks since.
    fn later_landing_error(
        &self,
        store: &Store,
        landed_records: &[PathBuf],
        operation: OperationNumber,
    ) -> Option<Error>;

    /// Returns the files and folders that mark the tasks of these landings as done, in no commit. No undo
    /// changes them.
    fn uncommitted_marks(&self, store: &Store, landed_records: &[PathBuf]) -> Vec<String>;
}
