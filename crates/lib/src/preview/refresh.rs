//! Update of an open preview to the current tip of its lane.

use proq_base::lane_name::LaneName;
use proq_git::CommitId;
use proq_git::base::head::RefMove;
use proq_store::records::preview::PreviewRecord;

use super::enter::require_lane_tip;
use super::main_checkout::MainCheckoutHead;
use super::{Error, main_checkout};
use crate::event::log;
use crate::lane::Project;
use crate::operation::run_operation::operate;

/// Result of refreshing a preview.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct RefreshResult {
    /// Name of the lane that the preview shows.
    pub lane: LaneName,
    /// Commit that was shown.
    pub old_commit: CommitId,
    /// Commit that is shown now.
    pub new_commit: CommitId,
    /// Whether changes of the user are parked until the preview ends.
    pub has_parked_changes: bool,
}

/// Moves the preview to its lane's tip. Uncommitted edits in files that do not change remain; edits in files
/// that change refuse the move, with their paths.
pub fn refresh_preview(project: &Project) -> Result<RefreshResult, Error> {
    operate(project, "preview --refresh", |op| {
        let main = project.repo.require_main()?.to_owned();
        let _checkout = op.lock_worktree(&main)?;
        let mut preview = main_checkout::load_preview(&project.store)?.ok_or(Error::NoOpenPreview)?;
        let current = MainCheckoutHead::read(project, &main)?;
        main_checkout::require_shown(&project.repo, &preview, &current)?;
        let lane = project.lane(&preview.lane)?;
        let (from, tip) = (current.commit, refresh_target(project, &preview, &current)?);
        let has_parked_changes = preview.parked_snapshot.is_some();
        let result =
            RefreshResult { lane: lane.name.clone(), old_commit: from, new_commit: tip, has_parked_changes };
        if tip == from {
            return Ok(result);
        }
        preview.dropped_state.record_lost_modes(&project.repo, &main, from, tip)?;
        op.revert_transition(
            &main,
            (from, tip),
            RefMove::Branch(preview.branch.clone()),
            &preview.dropped_state,
            &[],
        )?;
        preview.tip = tip;
        main_checkout::save_preview_record(op, &preview)?;
        op.defer(move |project| main_checkout::run_post_checkout_hook(project, &main, from, tip));
        let message = format!("the main checkout shows a newer commit of lane '{}'", lane.name);
        op.emit(log::EventName::PreviewMoved, Some(&lane), message);
        Ok(result)
    })
}

/// Returns the lane's tip, to which a refresh moves a shown preview.
///
/// # Errors
/// Fails when the preview has commits that the lane's tip does not contain.
pub(super) fn refresh_target(
    project: &Project,
    preview: &PreviewRecord,
    current: &MainCheckoutHead,
) -> Result<CommitId, Error> {
    let lane = project.lane(&preview.lane)?;
    let (from, tip) = (current.commit, require_lane_tip(&project.repo, &lane)?);
    if from == preview.tip || project.repo.is_ancestor(from, tip)? {
        return Ok(tip);
    }
    match project.repo.is_ancestor(tip, from)? {
        true => Err(Error::PreviewAhead { lane: lane.name }),
        false => Err(Error::Diverged { lane: lane.name }),
    }
}

/// Refreshes the preview of a lane if the lane has only advanced, and returns whether it did. No preview, or
/// a preview of another lane, is left as it is.
///
/// # Errors
/// Fails as [`refresh_preview`] does; nothing was changed then.
pub fn refresh_if_lane_advanced(project: &Project, lane: &LaneName) -> Result<bool, Error> {
    let Some(preview) = main_checkout::load_preview(&project.store)?.filter(|open| open.lane == *lane) else {
        return Ok(false);
    };
    let tip = require_lane_tip(&project.repo, &project.lane(lane)?)?;
    if tip == preview.tip || !project.repo.is_ancestor(preview.tip, tip)? {
        return Ok(false);
    }
    Ok(refresh_preview(project)?.new_commit == tip)
}
