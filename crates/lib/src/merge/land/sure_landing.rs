//! Quick test whether lanes are certain to land, so that a list may state it. Nothing is merged for it.

use std::collections::BTreeSet;
use std::path::Path;

use proq_git::history::tree_diff;
use proq_git::history::tree_diff::TreeChange;
use proq_git::repository::open_operation::find_open_git_operation;
use proq_git::status::status_query;
use proq_git::worktrees::worktree::WorktreeList;
use proq_git::{Repo, RepoPath};
use proq_store::records::lane::{LaneRecord, MergeStrategy};

use super::branch_move::require_no_git_operation;
use crate::lane::Project;
use crate::lane::state::in_place_guard;
use crate::merge::Error;
use crate::merge::selection::lane_refusal::{adds_conflict_markers, mass_deletion_refusal};
use crate::merge::stack::git_options::requires_signatures;
use crate::merge::types::options::LandingOptions;

/// Returns whether these lanes, which do not conflict, are certain to land. Nothing in the lanes or in a
/// checkout of their bases may be an obstacle, and no command may have to run on what would land.
pub fn is_sure_to_land(project: &Project, lanes: &[LaneRecord]) -> bool {
    // If something cannot be read, the landing is not certain.
    lanes.iter().all(|lane| lane.checks.is_empty()) && has_no_obstacle(project, lanes).unwrap_or(false)
}

/// Returns whether no check of a base has to run, and nothing in the lanes or in checkouts of their bases may
/// be in the way.
fn has_no_obstacle(project: &Project, lanes: &[LaneRecord]) -> Result<bool, Error> {
    let worktrees = WorktreeList::read(&project.repo)?;
    let bases: BTreeSet<&str> = lanes.iter().map(|lane| lane.base.as_str()).collect();
    for base in bases {
        if !project.landing_checks(base)?.commands.is_empty() {
            return Ok(false);
        }
        let mut changes = Vec::new();
        for lane in lanes.iter().filter(|lane| lane.base == base) {
            let Some(lane_changes) = landable_changes(&project.repo, lane, &worktrees)? else {
                return Ok(false);
            };
            changes.extend(lane_changes);
        }
        if !can_base_move(project, base, &changes, &worktrees)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the changes of a lane; none if a landing may refuse the lane.
fn landable_changes(
    repo: &Repo,
    lane: &LaneRecord,
    worktrees: &WorktreeList,
) -> Result<Option<Vec<TreeChange>>, Error> {
    let branch = &lane.kind.branch;
    let (Some(tip), Some(base)) = (repo.branch_tip(branch)?, repo.branch_tip(&lane.base)?) else {
        return Ok(None);
    };
    let is_on_branch =
        worktrees.with_top_folder(&lane.path).is_some_and(|worktree| worktree.is_on_branch(branch));
    let git_dir = repo.worktree_git_dir(&lane.path)?;
    if !is_on_branch
        || find_open_git_operation(&git_dir).is_some()
        || !repo.submodules_with_own_commits(&git_dir).is_empty()
    {
        return Ok(None);
    }
    let Some(ancestor) = repo.merge_base(base, tip)? else { return Ok(None) };
    let changes = tree_diff::tree_changes(repo, ancestor, tip)?;
    // Some strategies refuse commits without changes.
    let is_refused = changes.is_empty()
        || changes.iter().any(|change| adds_conflict_markers(repo, change))
        || mass_deletion_refusal(repo, &lane.name, &lane.base, base, &changes)?.is_some();
    Ok((!is_refused).then_some(changes))
}

/// Returns whether a base may move and every checkout of it can follow.
fn can_base_move(
    project: &Project,
    base: &str,
    changes: &[TreeChange],
    worktrees: &WorktreeList,
) -> Result<bool, Error> {
    let repo = &project.repo;
    let strategy = LandingOptions::default().strategy(&project.settings);
    in_place_guard::require_branch_not_in_place(project, base)?;
    require_no_git_operation(repo, base, worktrees)?;
    // A rebase goes commit by commit. One commit may conflict where all together do not, and merge commits
    // are refused.
    if strategy == MergeStrategy::Rebase || requires_signatures(repo, base, strategy)? {
        return Ok(false);
    }
    for dir in worktrees.on_branch(base).map(|worktree| &worktree.path) {
        let git_dir = repo.worktree_git_dir(dir)?;
        // Status does not show edits of files with an `assume-unchanged` or `skip-worktree` flag.
        if find_open_git_operation(&git_dir).is_some() || repo.has_flagged_entries(dir, &git_dir)? {
            return Ok(false);
        }
        let local_paths = status_query::status(repo, dir, true)?.paths();
        if changes.iter().any(|change| is_obstructed(dir, change, &local_paths)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns whether a local file, even an ignored one, is in the way of a change.
fn is_obstructed(dir: &Path, change: &TreeChange, local_paths: &[RepoPath]) -> bool {
    let path = &change.path;
    let is_below = |below: &RepoPath, above: &RepoPath| below.parents().any(|parent| parent == *above);
    let is_new = change.old.is_none();
    let has_file_above =
        || path.parents().any(|parent| parent.to_fs_path(dir).symlink_metadata().is_ok_and(|m| !m.is_dir()));
    (is_new && (path.to_fs_path(dir).symlink_metadata().is_ok() || has_file_above()))
        || local_paths
            .iter()
            .any(|local_path| local_path == path || is_below(local_path, path) || is_below(path, local_path))
}
