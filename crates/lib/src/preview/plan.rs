//! Plan of a preview: what it would do, without doing it.

use std::collections::HashSet;

use proq_base::lane_name::LaneName;
use proq_git as git;
use proq_git::base::head::Head;
use proq_git::history::tree_diff;
use proq_git::status::status_query;
use proq_git::status::worktree_status::WorktreeStatus;
use proq_git::{CommitId, RepoPath};
use proq_store::records::lane::LaneRecord;
use proq_store::records::preview::PreviewRecord;

use super::enter::require_lane_tip;
use super::leave::require_origin_free;
use super::main_checkout::{MainCheckoutHead, PreviewState};
use super::{Error, main_checkout, refresh};
use crate::lane::Project;
use crate::lane::state::in_place_guard;
use crate::operation::locked_worktree::LockedWorktree;

/// Action to plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreviewAction<'a> {
    /// Show this lane.
    Show(&'a LaneRecord),
    /// Update the open preview to the tip of its lane.
    Refresh,
    /// Leave the open preview.
    Leave,
}

/// Planned changes of the main checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct PreviewPlan {
    /// Lane that would be shown; none when the preview is left.
    pub lane: Option<LaneName>,
    /// Branch, commit or preview that the main checkout is on.
    pub current_head: String,
    /// Branch or commit that the main checkout would be on.
    pub target_head: String,
    /// Number of tracked files that would change.
    pub changed_files: usize,
    /// Paths of changes that would be parked.
    pub parked_paths: Vec<RepoPath>,
    /// Whether the user's own changes are parked until the preview ends.
    pub has_parked_changes: bool,
    /// Whether the parked changes may conflict when they are restored, because the branch has moved.
    pub may_conflict: bool,
}

/// Plans showing a lane, or refreshing or leaving the open preview.
///
/// # Errors
/// Fails as the action itself would.
pub fn plan_preview(project: &Project, action: PreviewAction<'_>) -> Result<PreviewPlan, Error> {
    let main = project.repo.require_main()?.to_owned();
    in_place_guard::require_no_in_place_run(project)?;
    project.repo.require_index(&main)?;
    let checkout = LockedWorktree::lock(project, &main)?;
    let main_checkout = MainCheckoutHead::read(project, &main)?;
    let preview = main_checkout::load_preview(&project.store)?;
    let (lane, to, target) = find_target(project, action, preview.as_ref(), &main_checkout)?;
    let status = status_query::status(&project.repo, &main, true)?;
    if action == PreviewAction::Refresh {
        if main_checkout.commit != target {
            checkout.check_transition(main_checkout.commit, target)?;
        }
    } else if is_single_transition(action, preview.as_ref(), &main_checkout) {
        require_unobstructed(&checkout, (main_checkout.commit, target), &status, preview.as_ref())?;
    }
    let current = match &preview {
        Some(preview) if main_checkout.head == Head::Branch(preview.branch.clone()) => {
            format!("the preview of '{}'", preview.lane)
        }
        _ => main_checkout.head.to_string(),
    };
    let parked_paths = if action == PreviewAction::Refresh { Vec::new() } else { status.paths() };
    let may_conflict = match &preview {
        // The snapshot of the parked changes keeps that commit.
        Some(preview) if action == PreviewAction::Leave && preview.parked_snapshot.is_some() => {
            project.repo.tree_of(preview.previous_commit)? != project.repo.tree_of(target)?
        }
        _ => false,
    };
    Ok(PreviewPlan {
        lane,
        current_head: current,
        target_head: to,
        changed_files: tree_diff::tree_changes(&project.repo, main_checkout.commit, target)?.len(),
        parked_paths,
        has_parked_changes: preview.is_some_and(|open| open.parked_snapshot.is_some()),
        may_conflict,
    })
}

/// Returns the lane that would be shown, the name of what the checkout would be on, and its commit.
fn find_target(
    project: &Project,
    action: PreviewAction<'_>,
    preview: Option<&PreviewRecord>,
    main_checkout: &MainCheckoutHead,
) -> Result<(Option<LaneName>, String, CommitId), Error> {
    if let PreviewAction::Show(lane) = action {
        let tip = require_lane_tip(&project.repo, lane)?;
        if let Some(preview) = preview
            .filter(|preview| main_checkout::preview_state(preview, main_checkout) == PreviewState::Elsewhere)
        {
            return Err(main_checkout::switched_error(&project.repo, preview, main_checkout));
        }
        return Ok((Some(lane.name.clone()), lane.kind.branch.clone(), tip));
    }
    let preview = preview.ok_or(Error::NoOpenPreview)?;
    if action == PreviewAction::Refresh {
        main_checkout::require_shown(&project.repo, preview, main_checkout)?;
        let lane = project.lane(&preview.lane)?;
        let tip = refresh::refresh_target(project, preview, main_checkout)?;
        return Ok((Some(lane.name), lane.kind.branch, tip));
    }
    if main_checkout::preview_state(preview, main_checkout) == PreviewState::Elsewhere {
        return Err(main_checkout::switched_error(&project.repo, preview, main_checkout));
    }
    if main_checkout::preview_state(preview, main_checkout) == PreviewState::Shown {
        require_origin_free(&project.repo, preview)?;
    }
    Ok((None, preview.previous_head.to_string(), main_checkout::origin_commit(&project.repo, preview)?))
}

/// Returns whether the checkout moves to its target by a single transition. A checkout that was switched back
/// by hand first gets its parked changes back.
fn is_single_transition(
    action: PreviewAction<'_>,
    preview: Option<&PreviewRecord>,
    main_checkout: &MainCheckoutHead,
) -> bool {
    let Some(preview) = preview else { return true };
    let is_shown = main_checkout::preview_state(preview, main_checkout) == PreviewState::Shown;
    is_shown && !matches!(action, PreviewAction::Show(lane) if lane.name == preview.lane)
}

/// Refuses files that are in the way once the uncommitted changes are parked.
fn require_unobstructed(
    checkout: &LockedWorktree<'_>,
    (from, to): (CommitId, CommitId),
    status: &WorktreeStatus,
    preview: Option<&PreviewRecord>,
) -> Result<(), Error> {
    let unmerged = status.unmerged();
    if !unmerged.is_empty() {
        return Err(git::Error::Unmerged { dir: checkout.dir().to_owned(), unmerged_paths: unmerged }.into());
    }
    let excluded_paths = preview.map(|open| open.excluded_paths(checkout.dir())).unwrap_or_default();
    let is_ignored = |path: &RepoPath| {
        excluded_paths.contains(path) || path.parents().any(|parent| excluded_paths.contains(&parent))
    };
    let parked_entries = status.untracked().filter(|entry| !entry.is_nested_repo && !is_ignored(&entry.path));
    let parked_paths: HashSet<RepoPath> = parked_entries.map(|entry| entry.path.clone()).collect();
    Ok(checkout.check_transition_once_parked((from, to), &parked_paths)?)
}
