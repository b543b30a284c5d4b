//! Validity of a lane's recorded conflict or failed check: the branches may have moved since it was recorded.

use proq_git::Repo;
use proq_git::merge::tree_merge;
use proq_git::repository::objects::TempObjectStore;
use proq_store::paths::layout::Layout;
use proq_store::records::conflict::ConflictRecord;
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::LaneState;

use super::state_records::StateRecords;
use crate::lane::{Error, Project};

/// Returns whether the sides of a recorded conflict are unchanged: the tip of the lane's branch and the tip
/// of its base.
pub fn is_conflict_current(repo: &Repo, branch: &str, conflict: &ConflictRecord) -> Result<bool, Error> {
    let (tip, base) = (repo.branch_tip(branch)?, repo.branch_tip(&conflict.onto)?);
    match base {
        Some(base) if (tip, base) == (Some(conflict.theirs), conflict.base_tip_after_landing) => {
            // An older record names the base as it was before other lanes landed with this conflict.
            Ok(repo.is_ancestor(conflict.ours, base)?)
        }
        _ => Ok(false),
    }
}

/// Returns whether the branches have moved since `state` was recorded, so that the lane is done: its conflict
/// would now merge cleanly, or its branch has moved since its checks failed. Where that cannot be determined,
/// the recorded state counts. `records` are those of the lane.
pub(crate) fn is_landing_outdated(
    project: &Project,
    lane: &AnyLane,
    records: &StateRecords,
    state: LaneState,
) -> bool {
    let is_outdated = match state {
        LaneState::Conflict => is_conflict_over(project, lane, records),
        LaneState::CheckFailed => has_moved_since_check(project, lane, records),
        _ => Ok(false),
    };
    is_outdated.unwrap_or(false)
}

/// Returns whether the lane's branch has moved since its checks failed.
fn has_moved_since_check(project: &Project, lane: &AnyLane, records: &StateRecords) -> Result<bool, Error> {
    let (Some(branch), Some(check)) = (lane.branch(), records.failed_check.get()) else { return Ok(false) };
    Ok(project.repo.branch_tip(branch)?.is_some_and(|tip| tip != check.lane_tip))
}

/// Returns whether the lane would merge with its base without a conflict, as both branches are now. False
/// while the conflict is being resolved, and while both branches are as recorded.
fn is_conflict_over(project: &Project, lane: &AnyLane, records: &StateRecords) -> Result<bool, Error> {
    let (repo, layout) = (&project.repo, project.store.layout());
    let Some(branch) = lane.branch().filter(|_| !layout.resolution_record(&lane.name).exists()) else {
        return Ok(false);
    };
    let Some(conflict) = records.conflict.get() else { return Ok(false) };
    if is_conflict_current(&project.repo, branch, conflict)? {
        return Ok(false);
    }
    let (Some(tip), Some(base)) = (repo.branch_tip(branch)?, repo.branch_tip(&conflict.onto)?) else {
        return Ok(false);
    };
    let scratch = layout.create_scratch()?;
    let temp_objects = TempObjectStore::new(repo, &Layout::scratch_objects(scratch.path()))?;
    Ok(!tree_merge::would_conflict(repo, base, tip, scratch.path(), &temp_objects)?)
}
