//! Records that connect lanes and runs to a batch.

use serde::{Deserialize, Serialize};

use crate::base::batch_id::BatchId;
use crate::base::record::Record;

/// Branches of a batch, as stored in the batch record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchBranches {
    /// Branch that the entire batch is for.
    pub base: String,
    /// Branch that the tasks of the batch land on.
    pub branch: String,
}

impl Record for BatchBranches {
    const FORMAT: u32 = 1;
}

/// Use of a lane in a batch: the batch, the number of the lane in it, and its task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchLane {
    /// Id of the batch.
    pub batch: BatchId,
    /// Number of the lane in the batch, from 0.
    pub lane: usize,
    /// Current or last task of the lane, as `area/ID`.
    pub task: String,
}

/// Task of a batch that a run works on. A repeated run, such as one after a rate limit, has the same value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunTask {
    /// Id of the batch.
    pub batch: BatchId,
    /// Number of the task in the batch, from 0.
    #[serde(rename = "number")]
    pub task_number: usize,
    /// Name of the task, `area/ID`.
    pub task: String,
    /// Number of the task's attempt in this batch, from 1.
    pub attempt: u32,
}
