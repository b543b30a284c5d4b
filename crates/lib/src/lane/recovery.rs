//! Recovery before a command: of operations that crashed processes left, and of events.

use std::time::Duration;

use proq_base::explain::describe_with_causes;
use proq_store::locks::merge_queue;

use crate::lane::worktree::detached_worktree;
use crate::lane::{Error, Project};
use crate::operation::recovery::{claim_orphans, recover_operations};

/// Maximum time that a command which only reads waits for a process that may hold a lock of a killed one.
const MAX_WAIT_BEFORE_READING: Duration = Duration::from_millis(500);

/// Recovers everything as [`recover`] does, before a command that only reads. A failure is a warning, and a lock
/// that a living process may hold is soon left to the next command.
pub fn recover_before_reading(project: &Project) {
    let limit = project.settings.lock_timeout.min(MAX_WAIT_BEFORE_READING);
    project.repo.set_lock_wait_limit(limit);
    let recovered = recover(project);
    project.repo.set_lock_wait_limit(project.settings.lock_timeout);
    match recovered {
        Ok(()) => {}
        Err(Error::RecoveryFailed { interrupted_command, source }) => project.listener.warn(format!(
            "cannot recover the interrupted command `{interrupted_command}`: {}",
            describe_with_causes(&*source)
        )),
        Err(e) => project.listener.warn(describe_with_causes(&e)),
    }
}

/// Recovers everything that crashed processes left. Costs a listing of three folders if there is nothing.
pub fn recover(project: &Project) -> Result<(), Error> {
    project.store.record_clock();
    // The place of a crashed process in the landing queue blocks nobody; a process that cannot remove it
    // leaves it to the next.
    drop(merge_queue::remove_stale_tickets(project.store.locks()));
    // A process killed while delivering events blocks nobody either.
    project.deliver_events();
    project.repo.remove_settings_leftovers();
    detached_worktree::sweep_detached_worktrees(project);
    recover_operations(project, claim_orphans(project)?)
}
