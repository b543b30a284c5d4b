//! Owns whether it is sure enough that lanes land for a list to promise it, by what is quick to find out: nothing is merged for it.

use std::collections::BTreeSet;
use std::path::Path;

use super::Error;
use super::git_options::verifies_signatures;
use super::land::refuse_in_use;
use super::request::Request;
use super::unfit::{brings_markers, deletes_too_much};
use crate::git::{self, Change, RepoPath, WorktreeList, open_operation};
use crate::lane::{self, Project};
use crate::store::records::{LaneRecord, Strategy};

/// Whether a landing of these lanes, which do not conflict, is known to land them all: nothing in them or in a checkout of their bases
/// is in its way, and no command is to be run on what would land.
pub(crate) fn is_sure_to_land(project: &Project, lanes: &[LaneRecord]) -> bool {
    // What cannot be read is not sure.
    lanes.iter().all(|lane| lane.checks.is_empty()) && is_free(project, lanes).unwrap_or(false)
}

fn is_free(project: &Project, lanes: &[LaneRecord]) -> Result<bool, Error> {
    let worktrees = WorktreeList::read(&project.repo)?;
    let bases: BTreeSet<&str> = lanes.iter().map(|lane| lane.base.as_str()).collect();
    for base in bases {
        if !project.checks_on(base)?.commands.is_empty() {
            return Ok(false);
        }
        let mut changes = Vec::new();
        for lane in lanes.iter().filter(|lane| lane.base == base) {
            let Some(more) = changes_of(project, lane, &worktrees)? else { return Ok(false) };
            changes.extend(more);
        }
        if !is_base_free(project, base, &changes, &worktrees)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What a lane changes; none where a landing may refuse it.
fn changes_of(
    project: &Project,
    lane: &LaneRecord,
    worktrees: &WorktreeList,
) -> Result<Option<Vec<Change>>, Error> {
    let (repo, branch) = (&project.repo, &lane.place.branch);
    let (Some(tip), Some(base)) = (repo.branch_tip(branch)?, repo.branch_tip(&lane.base)?) else {
        return Ok(None);
    };
    let on_own = worktrees.at(&lane.path).is_some_and(|worktree| worktree.is_on(branch));
    let git_dir = repo.git_dir_of(&lane.path)?;
    if !on_own || open_operation(&git_dir).is_some() || !repo.own_submodule_commits(&git_dir).is_empty() {
        return Ok(None);
    }
    let Some(ancestor) = repo.merge_base(base, tip)? else { return Ok(None) };
    let changes = git::tree_changes(repo, ancestor, tip)?;
    // Commits that come to nothing are refused by some strategies.
    let refused = changes.is_empty()
        || changes.iter().any(|change| brings_markers(repo, change))
        || deletes_too_much(repo, &lane.name, (&lane.base, base), &changes)?.is_some();
    Ok((!refused).then_some(changes))
}

/// Whether a base may move, and every checkout of it can follow.
fn is_base_free(
    project: &Project,
    base: &str,
    changes: &[Change],
    worktrees: &WorktreeList,
) -> Result<bool, Error> {
    let repo = &project.repo;
    let strategy = Request::of(&[]).strategy(&project.settings);
    lane::refuse_move_beside_in_place(project, base)?;
    refuse_in_use(project, base, worktrees)?;
    // A rebase goes commit by commit: one of them may conflict where the whole does not, and a merge among them is refused.
    if strategy == Strategy::Rebase || verifies_signatures(repo, base, strategy)? {
        return Ok(false);
    }
    for dir in worktrees.on_branch(base).map(|worktree| &worktree.path) {
        let git_dir = repo.git_dir_of(dir)?;
        // Hidden edits are seen by no status.
        if open_operation(&git_dir).is_some() || repo.has_flags(dir, &git_dir)? {
            return Ok(false);
        }
        let local = git::status(repo, dir, true)?.paths();
        if changes.iter().any(|change| is_met(dir, change, &local)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether something local stands where a change belongs, ignored files too.
fn is_met(dir: &Path, change: &Change, local: &[RepoPath]) -> bool {
    let path = &change.path;
    let is_below = |below: &RepoPath, above: &RepoPath| below.parents().any(|up| up == *above);
    let is_new = change.old.is_none();
    let stands_above =
        || path.parents().any(|up| up.under(dir).symlink_metadata().is_ok_and(|m| !m.is_dir()));
    (is_new && (path.under(dir).symlink_metadata().is_ok() || stands_above()))
        || local.iter().any(|own| own == path || is_below(own, path) || is_below(path, own))
}
