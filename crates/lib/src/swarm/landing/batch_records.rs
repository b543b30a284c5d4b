//! Rules that batches impose on the removal of their lanes and on undo.

use std::path::PathBuf;

use proq_store::Store;
use proq_store::base::batch_id::BatchId;
use proq_store::base::operation_number::OperationNumber;

use super::batch_landing::first_dependent_batch;
use super::landed_marks;
use crate::lane::Project;
use crate::ops::batch_rules::BatchRules;
use crate::ops::error::Error;
use crate::swarm;
use crate::swarm::batch::create;
use crate::swarm::batch::error::BatchError;

/// The batches on record.
#[derive(Debug, Clone, Copy, Default)]
pub struct BatchRecords;

impl BatchRules for BatchRecords {
    fn keeps_own_lanes(&self, project: &Project, id: &BatchId) -> bool {
        create::find_batch(project, id.as_str()).is_ok_and(|batch| batch.cleaned.is_none())
    }

    fn refuse_undo(
        &self,
        store: &Store,
        landed_records: &[PathBuf],
        force: bool,
        forced_command: Option<String>,
    ) -> Result<(), Error> {
        match first_dependent_batch(store, landed_records, force)? {
            Some((id, runs)) => {
                let error = BatchError::BatchBuildsOn { id, runs, force_command: forced_command };
                Err(swarm::Error::from(error).into())
            }
            None => Ok(()),
        }
    }

    fn later_landing_error(
        &self,
        store: &Store,
        landed_records: &[PathBuf],
        operation: OperationNumber,
    ) -> Option<Error> {
        let (id, runs) = first_dependent_batch(store, landed_records, false).ok().flatten()?;
        Some(swarm::Error::from(BatchError::LandedSince { operation, id, runs }).into())
    }

    fn uncommitted_marks(&self, store: &Store, landed_records: &[PathBuf]) -> Vec<String> {
        landed_marks::uncommitted_marks(store, landed_records)
    }
}
