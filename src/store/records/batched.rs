//! Owns the form of what ties lanes and runs to a batch.

use serde::{Deserialize, Serialize};

use crate::store::Record;

/// The branches of a batch, as its record has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BatchBranches {
    /// The branch that all of it is for.
    pub(crate) base: String,
    /// The branch that its tasks land on.
    pub(crate) branch: String,
}

impl Record for BatchBranches {
    const FORMAT: u32 = 1;
}

/// The place of a lane in a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InBatch {
    /// The batch.
    pub(crate) batch: String,
    /// Which of its lanes it is, from 0.
    pub(crate) lane: usize,
    /// The task that is done in it, or was last, as `area/ID`.
    pub(crate) task: String,
}

/// What a run is for. A further run of the same, as of one whose service would not serve it, has the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ForTask {
    /// The batch.
    pub(crate) batch: String,
    /// The task's number in it, from 0.
    pub(crate) number: usize,
    /// Its name, `area/ID`.
    pub(crate) task: String,
    /// Which of the task's runs in this batch it is, from 1.
    pub(crate) attempt: u32,
}
