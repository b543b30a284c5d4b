//! Owns who goes on with a batch, and waking them.

use serde::{Deserialize, Serialize};

use crate::lane::Project;
use crate::process;
use crate::store::{Error, LockName, Record};

/// The process that goes on with a batch, for as long as it holds the batch's lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SchedulerRecord {
    /// Its number.
    pub(crate) pid: u32,
    /// What tells it from a later process of the same number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) birth: Option<String>,
}

impl Record for SchedulerRecord {
    const FORMAT: u32 = 1;
}

/// Whether somebody goes on with a batch.
///
/// # Errors
/// When its lock cannot be looked at.
pub(crate) fn runs(project: &Project, id: &str) -> Result<bool, Error> {
    project.store.locks().is_held(&LockName::Batch(id.to_owned()))
}

/// Wakes whoever goes on with a batch: there is something to see to. One that cannot be woken looks by itself when it begins.
pub(crate) fn wake(project: &Project, id: &str) {
    let Ok(Some(who)) = SchedulerRecord::find(&project.store.layout().batch_scheduler(id)) else { return };
    if process::lives(who.pid, who.birth.as_deref()) {
        process::wake(who.pid);
    }
}

/// Wakes those that go on with other batches: a task, or room for a run, may be theirs now.
pub(crate) fn wake_others(project: &Project, id: &str) {
    for other in project.store.layout().names_in("batches") {
        if other != id && runs(project, &other).unwrap_or(false) {
            wake(project, &other);
        }
    }
}
