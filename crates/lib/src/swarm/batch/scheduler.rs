//! Process that schedules a batch: its record, and waking it.

use proq_base::process::{identity, wake};
use proq_store::base::batch_id::BatchId;
use proq_store::base::record::Record;
use proq_store::locks::lock::LockName;
use proq_store::{Error, Store};
use serde::{Deserialize, Serialize};

/// The process that schedules a batch. The record is valid while that process holds the batch's lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SchedulerRecord {
    pub pid: u32,
    /// The start time of the process, which distinguishes it from a later process with the same pid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "birth")]
    pub start_time: Option<String>,
}

impl Record for SchedulerRecord {
    const FORMAT: u32 = 1;
}

/// Returns whether a scheduler is running the batch.
///
/// # Errors
/// Fails when the batch's lock cannot be read.
pub fn is_running(store: &Store, id: &BatchId) -> Result<bool, Error> {
    store.locks().is_held(&LockName::Batch(id.clone()))
}

/// Wakes the scheduler of a batch to process pending work. A scheduler that cannot be woken finds the work
/// when it starts.
pub(crate) fn wake_scheduler(store: &Store, id: &BatchId) {
    let Ok(Some(scheduler)) = SchedulerRecord::load_if_exists(&store.layout().batch_scheduler_record(id))
    else {
        return;
    };
    if identity::is_process_running(scheduler.pid, scheduler.start_time.as_deref()) {
        wake::wake(scheduler.pid);
    }
}

/// Wakes the schedulers of all other batches, because a released task or a free run slot may be theirs now.
pub(crate) fn wake_other_schedulers(store: &Store, id: &BatchId) {
    for other_id in store.layout().batch_ids() {
        if other_id != *id && is_running(store, &other_id).unwrap_or(false) {
            wake_scheduler(store, &other_id);
        }
    }
}
