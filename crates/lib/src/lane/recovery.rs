//! Recovery before a command: of operations that crashed processes left, of events, and of a lane's run lock.

use std::path::Path;

use proq_base::lane_name::LaneName;
use proq_store::locks::lock::{LockGuard, LockName};
use proq_store::locks::merge_queue;

use crate::lane::worktree::detached_worktree;
use crate::lane::{Error, Project};
use crate::operation::recovery::{claim_orphans, lock_after_recovery, recover_operations};

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

/// Acquires the run lock of the lane `name` after recovery, like [`lock_after_recovery`]. `path` is
/// the lane's worktree, or `None` for the path on record.
pub(crate) fn run_lock_after_recovery(
    project: &Project,
    name: &LaneName,
    path: Option<&Path>,
) -> Result<LockGuard, Error> {
    let record_dir = project.store.layout().lane(name);
    let path = path.map(Path::to_owned).or_else(|| project.any_lane(name).ok().map(|lane| lane.path));
    let is_lane_path =
        |moved_path: &Path| moved_path == record_dir || path.as_ref().is_some_and(|path| moved_path == path);
    lock_after_recovery(project, &LockName::Run(name.clone()), |step| {
        step.created_lane() == Some(name)
            || step.moved_path().is_some_and(|path| is_lane_path(path.from) || is_lane_path(path.to))
    })
}
