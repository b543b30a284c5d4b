//! Owns starting the process that goes on with a batch.

use std::fs::File;
use std::path::Path;

use crate::agent;
use crate::lane::Project;
use crate::process::{MARK, OF_A_RUN, Start};
use crate::store::{Guard, LockName};
use crate::swarm::{BatchError, Error};

/// Whether somebody had to be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resumed {
    /// Another process goes on with it already.
    GoesOn,
    /// One was started.
    Begun,
}

/// Starts the process that goes on with a batch, `exe` being this program, and returns once it does. `lock` is the batch's; it
/// goes to that process, without a gap.
///
/// # Errors
/// When it could not be started.
pub(crate) fn start(project: &Project, id: &str, lock: Guard, exe: &Path) -> Result<(), Error> {
    let log = project.store.layout().batch_errors(id);
    let start = Start::new(exe, project.repo.home())
        .args(["_swarm", "--batch", id])
        .without(OF_A_RUN)
        .env(MARK, "")
        .stdin(lock.into_file())
        .errors(File::options().append(true).create(true).open(&log).ok());
    match agent::hear_start(start, &log, "scheduler") {
        None => Ok(()),
        Some(why) => Err(BatchError::NotStarted { id: id.to_owned(), why }.into()),
    }
}

/// The same for a batch that somebody may go on with.
///
/// # Errors
/// As [`start`].
pub(crate) fn resume(project: &Project, id: &str, exe: &Path) -> Result<Resumed, Error> {
    match project.store.locks().try_take(&LockName::Batch(id.to_owned()))? {
        None => Ok(Resumed::GoesOn),
        Some(lock) => start(project, id, lock, exe).map(|()| Resumed::Begun),
    }
}
