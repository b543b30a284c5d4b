//! Removal of a lane that the main checkout may be showing: its preview is left first, or nothing is done.

use proq_base::lane_name::LaneName;
use proq_git::worktrees::worktree::WorktreeList;
use proq_store::locks::lock::LockName;
use proq_store::records::lane::LaneRecord;

use super::leave::{LeaveResult, leave_preview_of};
use super::{Error, main_checkout};
use crate::lane;
use crate::lane::Project;
use crate::lane::inspection::evidence;
use crate::lane::removal::remove_lane;
use crate::lane::removal::remove_lane::{RemovalReason, RemovedLane};
use crate::lane::state::lane_state::effective_state;
use crate::operation::journaled_operation::Operation;

/// Result of removing a lane.
#[derive(Debug)]
#[must_use]
pub struct RemoveResult {
    /// Saved work of the removed lane: its name in the history, its saved commits and its trash entry.
    pub removed: RemovedLane,
    /// Result of leaving the lane's preview, if it was open.
    pub left_preview: Option<LeaveResult>,
}

/// Removes a lane, leaving its preview first if it is open. The lane's agent must have finished.
///
/// # Errors
/// [`lane::Error::RemovalRefused`] when the lane is kept. The lane is examined before its preview is left, so
/// nothing has changed then.
pub fn remove_previewed_lane(
    op: &Operation<'_>,
    name: &LaneName,
    reason: RemovalReason,
    force: bool,
) -> Result<RemoveResult, Error> {
    let project = op.project;
    let lane = project.lane(name)?;
    // Otherwise the removal examines the lane itself, under its lock, before it changes anything.
    let is_previewed = main_checkout::load_preview(&project.store)?.is_some_and(|open| open.lane == *name);
    let is_contended =
        lane.status.run.is_claimed() || project.store.locks().is_held(&LockName::Run(name.clone()))?;
    if is_previewed || is_contended || effective_state(project, &lane)?.0.is_busy() {
        refuse_before_leaving(project, &lane, force)?;
    }
    let left_preview = leave_preview_of(op, name)?;
    // The lane is read again under the lock: leaving the preview may have moved commits or edits to it.
    let (lane, lock) = project.lock_idle_record(&lane)?;
    let removed = remove_lane::remove(op, &lane, lock, reason, force)?;
    Ok(RemoveResult { removed, left_preview })
}

/// Refuses a removal before the lane's preview is left.
fn refuse_before_leaving(project: &Project, lane: &LaneRecord, force: bool) -> Result<(), Error> {
    let gather = |lane: &LaneRecord| -> Result<_, Error> {
        Ok(evidence::gather(project, lane, &WorktreeList::read(&project.repo)?)?)
    };
    let evidence = gather(lane).or_else(|_| {
        // Another process may be removing the lane now: once its lock is free, the lane is gone or intact.
        let (lane, _lock) = project.lock_idle_record(lane)?;
        gather(&lane)
    })?;
    remove_lane::refuse_removal(lane, &evidence, force)?;
    let reasons = main_checkout::work_only_in_preview(project, &lane.name)?;
    if reasons.is_empty() || force {
        return Ok(());
    }
    let name = lane.name.clone();
    Err(lane::Error::RemovalRefused { name, reasons, busy: false, force_helps: true, hint: None }.into())
}
