//! Ownership of the commit that a lane's worktree is at. Agents detach HEAD, create branches and check out
//! other branches: commits that they made there belong to the lane, commits that existed before do not.

use std::path::Path;
use std::time::{Duration, SystemTime};

use proq_base::explain::shell_quote_path;
use proq_base::lane_name::LaneName;
use proq_git::base::error_hints::broken_ref_removal_command;
use proq_git::history::tree_diff::tree_changes;
use proq_git::status::status_query::status;
use proq_git::worktrees::worktree::{Worktree, WorktreeList};
use proq_git::{CommitId, Repo};
use proq_store::base::id::new_id;
use proq_store::records::lane::LaneRecord;

use super::symbolic_branch::find_symbolic_branch;
use crate::lane::{Error, Project};

/// Maximum difference between the times of git's log entries for one command.
const MAX_LOG_SKEW: Duration = Duration::from_secs(1);

/// Moves the lane's branch to the HEAD of its worktree, where HEAD is work of the lane on top of the branch.
/// Returns the problem when it cannot: the worktree is missing, or there are commits that are not on top of
/// the branch.
///
/// # Errors
/// Fails when git cannot be queried, or when another process moves the branch.
pub(crate) fn move_branch_to_head(project: &Project, lane: &LaneRecord) -> Result<Option<String>, Error> {
    let repo = &project.repo;
    let worktrees = WorktreeList::read(repo)?;
    let Some(worktree) = worktrees.with_top_folder(&lane.path).filter(|_| lane.path.exists()) else {
        return Ok(Some("its worktree is missing".to_owned()));
    };
    if let Some(symbolic) = find_symbolic_branch(repo, lane)? {
        return Ok(Some(format!(
            "{}; make it a regular branch: {}",
            symbolic.describe(),
            symbolic.repair_command()
        )));
    }
    let (Some(head), Some(tip)) = (worktree.head(repo)?, repo.branch_tip(&lane.kind.branch)?) else {
        return Ok(None);
    };
    if is_on_lane_branch(worktree, lane) || repo.is_ancestor(head, tip)? || !is_lane_work(repo, lane, head)? {
        return Ok(None);
    }
    let other_lane = find_lane_with_commits(project, lane, (tip, head))?;
    if other_lane.is_none() && repo.is_ancestor(tip, head)? {
        let name = format!("refs/heads/{}", lane.kind.branch);
        repo.swap_ref(&name, head, tip, "git-proq: follow HEAD")?;
        return Ok(None);
    }
    let owner_note = other_lane.map(|other| format!(" with those of lane '{other}'")).unwrap_or_default();
    Ok(Some(format!("commits{owner_note} on {}, not on {}", describe_head(worktree, head), lane.kind.branch)))
}

/// Returns the last commit of a lane's branch from its worktree's log of HEAD: git keeps no log of a deleted
/// branch.
pub(crate) fn last_branch_commit(project: &Project, lane: &LaneRecord) -> Option<CommitId> {
    let last = last_commit_on_branch(&read_head_log(project, lane)?, &lane.kind.branch)?;
    project.repo.has_object(last).then_some(last)
}

/// Returns the new name of a lane's branch that was renamed; none where the rename is not known, or the
/// renamed branch is missing, too.
pub(crate) fn find_renamed_branch(project: &Project, lane: &LaneRecord) -> Option<String> {
    let rename_prefix = format!("Branch: renamed refs/heads/{} to refs/heads/", lane.kind.branch);
    let log = read_head_log(project, lane)?;
    let new_name =
        log.lines().rev().find_map(|line| line.split_once('\t')?.1.strip_prefix(&rename_prefix))?;
    project.repo.branch_tip(new_name).ok()?.map(|_| new_name.to_owned())
}

/// Returns the command that recreates a lane's missing branch: from the branch that it was renamed to, or at
/// its last commit. Where git has no log of that commit, the commit of the worktree's HEAD is used.
pub fn recreate_branch_command(project: &Project, lane: &LaneRecord) -> Option<String> {
    let branch = &lane.kind.branch;
    // An agent chose these names, and the command is for a shell.
    let quoted = |name: &str| shell_quote_path(Path::new(name));
    let new_name = find_renamed_branch(project, lane);
    let head = || project.repo.head_commit(&lane.path).ok().flatten();
    let recreate = match &new_name {
        Some(new_name) => format!("git branch -m {} {branch}", quoted(new_name)),
        None => format!(
            "git branch {branch} {}",
            last_branch_commit(project, lane).or_else(head)?.short_in_command()
        ),
    };
    // Git creates no branch whose name is a parent of other branches, so those are renamed first.
    let below = project.repo.refs_with_prefix(&format!("refs/heads/{branch}/")).unwrap_or_default();
    let names = below.iter().filter_map(|(name, _)| name.strip_prefix("refs/heads/"));
    let blocking = names.filter(|name| new_name.as_deref() != Some(*name));
    let prefix = format!("{}/", project.settings.branch_prefix);
    let rename_away = |name: &str| {
        let unprefixed = name.strip_prefix(&prefix).unwrap_or(name);
        format!("git branch -m {} {}", quoted(name), quoted(unprefixed))
    };
    let remove_file = project
        .repo
        .is_broken_branch(branch)
        .then(|| broken_ref_removal_command(&format!("refs/heads/{branch}")));
    Some(blocking.map(rename_away).chain(remove_file).chain([recreate]).collect::<Vec<_>>().join(" && "))
}

/// Returns git's log of HEAD of a lane's worktree, which names the commits and branches that it was on.
fn read_head_log(project: &Project, lane: &LaneRecord) -> Option<String> {
    let admin = project.repo.worktree_admin_dir(&lane.path)?;
    let scratch = project.store.layout().create_scratch().ok()?;
    project.repo.head_log(&admin, lane.start, scratch.path())
}

/// Returns the last commit that `branch` had, from a log of HEAD that begins while HEAD is on `branch`.
fn last_commit_on_branch(log: &str, branch: &str) -> Option<CommitId> {
    let (leaves, enters) = (format!("checkout: moving from {branch} to "), format!(" to {branch}"));
    let (mut last, mut is_on) = (None, true);
    for line in log.lines() {
        let (head, note) = line.split_once('\t').unwrap_or((line, ""));
        let mut ids = head.split(' ').map(|id| CommitId::from_hex(id.as_bytes()));
        let (old, new) = (ids.next().flatten(), ids.next().flatten());
        if note.starts_with(&leaves) {
            (last, is_on) = (old, note.ends_with(&enters));
        } else if note.starts_with("checkout: ") {
            is_on = note.ends_with(&enters);
        }
        // An entry that deletes the branch has no commit.
        if is_on && let Some(new) = new.filter(|new| !new.is_null()) {
            last = Some(new);
        }
    }
    last
}

/// Returns why uncommitted changes of a lane must not be committed at the worktree's HEAD: the commit would
/// go to a branch that is not the lane's, or on top of foreign work. None when HEAD belongs to the lane.
pub(crate) fn head_commit_refusal(project: &Project, lane: &LaneRecord) -> Result<Option<String>, Error> {
    let repo = &project.repo;
    let worktrees = WorktreeList::read(repo)?;
    let Some(worktree) = worktrees.with_top_folder(&lane.path) else { return Ok(None) };
    if let Some(symbolic) = find_symbolic_branch(repo, lane)? {
        return Ok(Some(symbolic.describe()));
    }
    // A commit on a missing branch would start a history without parents.
    let Some(tip) = repo.branch_tip(&lane.kind.branch)? else {
        return Ok(Some(format!("its branch {} is missing", lane.kind.branch)));
    };
    if is_on_lane_branch(worktree, lane) {
        return Ok(None);
    }
    let Some(head) = worktree.head(repo)? else {
        return Ok(Some(format!("HEAD is not on {}", lane.kind.branch)));
    };
    let is_own_branch = match &worktree.branch {
        // A commit on a symbolic ref is a commit on its target branch.
        Some(branch) => {
            repo.symbolic_target(branch)?.is_none()
                && !is_branch_used_elsewhere(project, &worktrees, lane, branch)?
                && is_created_here(repo, lane, branch)?
        }
        None => true,
    };
    let is_lane_head = head == tip
        || (repo.is_ancestor(tip, head)?
            && is_lane_work(repo, lane, head)?
            && find_lane_with_commits(project, lane, (tip, head))?.is_none());
    let reason = || format!("HEAD is on {}, not on {}", describe_head(worktree, head), lane.kind.branch);
    Ok((!is_own_branch || !is_lane_head).then(reason))
}

/// A lane's worktree that is not on the lane's branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OffBranch {
    /// Branch or detached HEAD that the worktree is on.
    pub current_head: String,
    /// Whether commits made there still become part of the lane's branch.
    pub(crate) commits_reach_lane: bool,
    /// Command that returns the worktree to the lane's branch, with its uncommitted changes.
    pub(crate) return_command: String,
}

/// Returns where the worktree of a lane is, and the command that returns it to the lane's branch. None where
/// it is on the branch, or where worktree or branch is missing.
///
/// # Errors
/// Fails when git cannot be queried.
pub(crate) fn find_off_branch(project: &Project, lane: &LaneRecord) -> Result<Option<OffBranch>, Error> {
    let repo = &project.repo;
    let worktrees = WorktreeList::read(repo)?;
    let Some(worktree) =
        worktrees.with_top_folder(&lane.path).filter(|worktree| !is_on_lane_branch(worktree, lane))
    else {
        return Ok(None);
    };
    let Some(tip) = repo.branch_tip(&lane.kind.branch)? else { return Ok(None) };
    let git = format!("git -C {}", shell_quote_path(&lane.path));
    // Another worktree on the branch prevents git from switching to it.
    let branch_user = worktrees.on_branch(&lane.kind.branch).find(|other| other.path != worktree.path);
    let detach_command =
        |other: &Worktree| format!("git -C {} switch --detach && ", shell_quote_path(&other.path));
    let detach_prefix = branch_user.map(detach_command).unwrap_or_default();
    let switch = format!("{detach_prefix}{git} switch {}", lane.kind.branch);
    let Some(head) = worktree.head(repo)? else {
        let location = worktree.branch.clone().unwrap_or_else(|| "no commit".to_owned());
        return Ok(Some(OffBranch {
            current_head: location,
            commits_reach_lane: false,
            return_command: switch,
        }));
    };
    // Git keeps uncommitted changes on a switch, except in files that differ between the two commits.
    let changed = tree_changes(repo, head, tip)?;
    let dirty = status(repo, &lane.path, true)?.paths();
    let has_dirty_changes = changed.iter().any(|change| dirty.contains(&change.path));
    let return_command = match has_dirty_changes && !repo.index_includes(&lane.path, head, tip)? {
        true => format!("{git} stash push --include-untracked && {switch} && {git} stash pop"),
        false => switch,
    };
    let can_commit = head_commit_refusal(project, lane)?.is_none();
    Ok(Some(OffBranch {
        current_head: describe_head(worktree, head),
        commits_reach_lane: can_commit,
        return_command,
    }))
}

/// Saves the last commit of a lane whose branch is missing under a ref, if only the log of its worktree's
/// HEAD references the commit. Returns the commit then.
///
/// # Errors
/// Fails when the ref cannot be created.
pub(crate) fn save_last_commit(project: &Project, lane: &LaneRecord) -> Result<Option<CommitId>, Error> {
    let repo = &project.repo;
    let Some(last) = last_branch_commit(project, lane) else { return Ok(None) };
    if repo.is_in_other_ref(last, &format!("refs/heads/{}", lane.kind.branch))? {
        return Ok(None);
    }
    let name = format!("refs/proq/saved/{}-{}", lane.name, new_id());
    repo.create_ref(&name, last, "git-proq: the branch is gone")?;
    Ok(Some(last))
}

/// Returns whether HEAD of the worktree names the lane's branch.
fn is_on_lane_branch(worktree: &Worktree, lane: &LaneRecord) -> bool {
    worktree.is_on_branch(&lane.kind.branch)
}

/// Returns the branch of a worktree, or "a detached HEAD" with the short id of `head`.
fn describe_head(worktree: &Worktree, head: CommitId) -> String {
    worktree.branch.clone().unwrap_or_else(|| format!("a detached HEAD ({})", head.short()))
}

/// Returns whether a commit was created in the lane's worktree, or is reachable from no other ref.
fn is_lane_work(repo: &Repo, lane: &LaneRecord, head: CommitId) -> Result<bool, Error> {
    let moves = repo.reflog(&lane.path, "HEAD")?;
    if moves.iter().any(|step| step.new_id == head && step.creates_commit()) {
        return Ok(true);
    }
    let lane_ref = format!("refs/heads/{}", lane.kind.branch);
    Ok(!repo.is_in_other_ref(head, &lane_ref)?)
}

/// Returns whether a branch is a base or belongs to another lane, or is checked out in another worktree.
fn is_branch_used_elsewhere(
    project: &Project,
    worktrees: &WorktreeList,
    lane: &LaneRecord,
    branch: &str,
) -> Result<bool, Error> {
    let mut others = worktrees.iter().filter(|worktree| worktree.path != lane.path);
    let shown = others.any(|worktree| worktree.branch.as_deref() == Some(branch));
    Ok(shown
        || project.owned_lanes()?.iter().any(|other| other.base == branch || other.kind.branch == branch))
}

/// Returns whether a branch was created when the lane's worktree switched to it.
fn is_created_here(repo: &Repo, lane: &LaneRecord, branch: &str) -> Result<bool, Error> {
    let created_at = repo.reflog(&lane.path, &format!("refs/heads/{branch}"))?.last().map(|first| first.time);
    let moves = repo.reflog(&lane.path, "HEAD")?;
    let entered_on_creation = |created_at: SystemTime| {
        let skew = |time: SystemTime| time.duration_since(created_at).unwrap_or_else(|e| e.duration());
        moves.iter().any(|step| step.is_checkout_to(branch) && skew(step.time) <= MAX_LOG_SKEW)
    };
    Ok(created_at.is_some_and(entered_on_creation))
}

/// Returns the name of another lane whose commits, not on the base yet, are among those between the lane's
/// tip and HEAD.
fn find_lane_with_commits(
    project: &Project,
    lane: &LaneRecord,
    (tip, head): (CommitId, CommitId),
) -> Result<Option<LaneName>, Error> {
    let repo = &project.repo;
    let mut excluded = vec![tip];
    excluded.extend(repo.branch_tip(&lane.base)?);
    let count = repo.count_ahead_of_all(head, &excluded)?;
    for other in project.owned_lanes()?.iter().filter(|other| other.name != lane.name) {
        let Some(theirs) = repo.branch_tip(&other.kind.branch)? else { continue };
        if repo.count_ahead_of_all(head, &[&excluded[..], &[theirs]].concat())? < count {
            return Ok(Some(other.name.clone()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_last_branch_commit_from_head_log() {
        let id = |digit: u8| (digit as char).to_string().repeat(40);
        let line = |old, new, note: &str| format!("{} {} A <a@b> 1 +0000\t{note}\n", id(old), id(new));
        let begin = line(b'0', b'1', "") + &line(b'1', b'2', "commit: x");
        let last = |log: &str| last_commit_on_branch(log, "proq/x").map(|id| id.to_string());
        assert_eq!(last(&begin), Some(id(b'2')));
        let away = begin
            + &line(b'2', b'1', "checkout: moving from proq/x to main")
            + &line(b'1', b'3', "commit: y");
        assert_eq!(last(&away), Some(id(b'2')));
        let back = away + &line(b'3', b'4', "checkout: moving from main to proq/x");
        assert_eq!(last(&back), Some(id(b'4')));
        assert_eq!(last(""), None);
    }
}
