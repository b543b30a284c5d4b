//! Owns removing a lane that the main checkout may be showing: the preview is left first, or nothing is done.

use super::desk;
use super::{Back, Error, leave_for};
use crate::git::WorktreeList;
use crate::lane::{self, Operation, Removed, Why};
use crate::store::records::LaneRecord;

/// What removing a lane did.
#[derive(Debug)]
#[must_use]
pub(crate) struct Retired {
    /// What is left of the lane.
    pub(crate) removed: Removed,
    /// The preview of it that was left.
    pub(crate) back: Option<Back>,
}

/// Removes a lane, leaving its preview first if it has one. Its agent must have ended.
///
/// # Errors
/// When the lane is kept, by [`lane::Error::Kept`]: it is looked at before its preview is left, so nothing has changed.
pub(crate) fn retire(op: &Operation<'_>, name: &str, why: Why, force: bool) -> Result<Retired, Error> {
    let project = op.project;
    let look = |lane: &LaneRecord| -> Result<_, Error> {
        Ok(lane::gather_evidence(project, lane, &WorktreeList::read(&project.repo)?)?)
    };
    let lane = project.lane(name)?;
    let found = look(&lane).or_else(|_| {
        // Somebody may be removing it just now: once its name is free it is gone, or there as a whole.
        let (lane, _lock) = project.hold_idle(name)?;
        look(&lane)
    })?;
    lane::refuse(&lane, &found, force)?;
    let why_not = desk::made_in_preview(project, name)?;
    if !why_not.is_empty() && !force {
        let (name, why) = (name.to_owned(), why_not);
        return Err(lane::Error::Kept { name, why, busy: false, force_helps: true, help: None }.into());
    }
    let back = leave_for(op, name)?;
    // As it is under the lock: leaving the preview may have brought commits or edits to it.
    let (lane, lock) = project.hold_idle(name)?;
    let removed = lane::remove(op, &lane, lock, why, force)?;
    Ok(Retired { removed, back })
}
