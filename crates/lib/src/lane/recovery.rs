//! Recovery before a command: of operations that crashed processes left, and of events.

use proq_store::locks::merge_queue;

use crate::lane::worktree::detached_worktree;
use crate::lane::{Error, Project};
use crate::operation::recovery::{claim_orphans, recover_operations};

/// Recovers everything that crashed processes left. Costs a listing of two folders if there is nothing.
pub fn recover(project: &Project) -> Result<(), Error> {
    project.store.record_clock();
    // The place of a crashed process in the landing queue blocks nobody; a process that cannot remove it
    // leaves it to the next.
    drop(merge_queue::remove_stale_tickets(project.store.locks()));
    // A process killed while delivering events blocks nobody either.
    project.deliver_events();
    detached_worktree::sweep_detached_worktrees(project);
    recover_operations(project, claim_orphans(project)?)
}
