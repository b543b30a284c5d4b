//! Owns whether the conflict or the failed check on record of a lane is one still: it may have moved since that was written down.

use super::{Error, Project};
use crate::git::{self, ThrowAway};
use crate::store::Record;
use crate::store::records::{AnyLane, CheckRecord, ConflictRecord, LaneState};

/// Whether the sides of a conflict on record are as they were: the tip of the lane's branch, and its base.
pub(crate) fn conflict_stands(
    project: &Project,
    branch: &str,
    found: &ConflictRecord,
) -> Result<bool, Error> {
    let repo = &project.repo;
    let (tip, base) = (repo.branch_tip(branch)?, repo.branch_tip(&found.onto)?);
    match base {
        Some(base) if (tip, base) == (Some(found.theirs), found.base_tip) => {
            // An older record names the base as it was before other lanes landed with this conflict.
            Ok(repo.is_ancestor(found.ours, base)?)
        }
        _ => Ok(false),
    }
}

/// State and detail of a lane, as they are given; a lane whose conflict is over because a side has moved is done, and so is one that
/// has other commits than those whose checks failed. Where that cannot be found out, what is on record stays.
pub(super) fn judged_anew(
    project: &Project,
    lane: &AnyLane,
    now: (LaneState, Option<String>),
) -> (LaneState, Option<String>) {
    let over = match now.0 {
        LaneState::Conflict => is_over(project, lane),
        LaneState::CheckFailed => has_moved_since_check(project, lane),
        _ => Ok(false),
    };
    if over.unwrap_or(false) { (LaneState::Done, None) } else { now }
}

/// Whether the lane's branch is elsewhere than when its checks failed.
fn has_moved_since_check(project: &Project, lane: &AnyLane) -> Result<bool, Error> {
    let found = CheckRecord::find(&project.store.layout().check(&lane.name))?;
    let (Some(found), Some(branch)) = (found, lane.branch()) else { return Ok(false) };
    Ok(project.repo.branch_tip(branch)?.is_some_and(|tip| tip != found.theirs))
}

/// Whether the lane would merge with its base as both are now. A conflict that is laid out to be resolved is none that is over.
fn is_over(project: &Project, lane: &AnyLane) -> Result<bool, Error> {
    let (repo, layout) = (&project.repo, project.store.layout());
    let Some(branch) = lane.branch().filter(|_| !layout.resolve(&lane.name).exists()) else {
        return Ok(false);
    };
    let Some(found) = ConflictRecord::find(&layout.conflict(&lane.name))? else { return Ok(false) };
    if conflict_stands(project, branch, &found)? {
        return Ok(false);
    }
    let (Some(tip), Some(base)) = (repo.branch_tip(branch)?, repo.branch_tip(&found.onto)?) else {
        return Ok(false);
    };
    let scratch = layout.scratch()?;
    let aside = ThrowAway::new(repo, &scratch.path().join("objects"))?;
    Ok(!git::would_conflict(repo, base, tip, scratch.path(), &aside)?)
}
