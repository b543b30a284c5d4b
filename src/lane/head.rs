//! Owns whose work it is that a lane's worktree is at. Agents detach HEAD, make branches of their own, and look at those of
//! others: what they made there is the lane's, what was there before is not.

use std::path::Path;

use super::{Error, Project, alias};
use crate::explain::quoted_path;
use crate::git::{Oid, Worktree, WorktreeList, ref_removal, status, tree_changes};
use crate::store::new_id;
use crate::store::records::LaneRecord;

/// By how many seconds git's notes of one command may differ.
const TOGETHER: i64 = 1;

/// Brings the lane's branch to its worktree's HEAD, where that is work of the lane's on top of the branch. Returns what is
/// wrong when it cannot be: the worktree is gone, or there are commits that do not fit on the branch.
///
/// # Errors
/// When git cannot be asked, or the branch moves meanwhile.
pub(crate) fn follow_head(project: &Project, lane: &LaneRecord) -> Result<Option<String>, Error> {
    let repo = &project.repo;
    let worktrees = WorktreeList::read(repo)?;
    let Some(worktree) = worktrees.at(&lane.path).filter(|_| lane.path.exists()) else {
        return Ok(Some("its worktree is gone".to_owned()));
    };
    if let Some(found) = alias(project, lane)? {
        return Ok(Some(format!("{}; make it a branch of its own: {}", found.in_words(), found.help())));
    }
    let (Some(head), Some(tip)) = (worktree.head(repo)?, repo.branch_tip(&lane.place.branch)?) else {
        return Ok(None);
    };
    if is_on_own(worktree, lane) || repo.is_ancestor(head, tip)? || !is_own(project, lane, head)? {
        return Ok(None);
    }
    let strange = strangers(project, lane, (tip, head))?;
    if strange.is_none() && repo.is_ancestor(tip, head)? {
        let name = format!("refs/heads/{}", lane.place.branch);
        repo.swap_ref(&name, head, tip, "git-proq: follow HEAD")?;
        return Ok(None);
    }
    let with = strange.map(|other| format!(" with those of lane '{other}'")).unwrap_or_default();
    Ok(Some(format!("commits{with} on {}, not on {}", place(worktree, head), lane.place.branch)))
}

/// The last commit of a lane's branch, as its worktree's log of HEAD has it: git keeps no log of a branch that is gone.
pub(crate) fn last_commit(project: &Project, lane: &LaneRecord) -> Option<Oid> {
    let last = last_on(&log_of_head(project, lane)?, &lane.place.branch)?;
    project.repo.has_object(last).then_some(last)
}

/// What a lane's branch, which is gone, is called since somebody renamed it. None where that is not known, or that branch is gone, too.
pub(crate) fn renamed_to(project: &Project, lane: &LaneRecord) -> Option<String> {
    let renamed = format!("Branch: renamed refs/heads/{} to refs/heads/", lane.place.branch);
    let log = log_of_head(project, lane)?;
    let note = log.lines().rev().find_map(|line| line.split_once('\t')?.1.strip_prefix(&renamed))?;
    project.repo.branch_tip(note).ok()?.map(|_| note.to_owned())
}

/// The command that makes a lane's branch again, which is gone: as what it was renamed to, or at its last commit. Where git has no log
/// of that any more, what its worktree is at counts.
pub(crate) fn branch_again(project: &Project, lane: &LaneRecord) -> Option<String> {
    let branch = &lane.place.branch;
    // The names are an agent's choice, and this is for a shell.
    let quoted = |name: &str| quoted_path(Path::new(name));
    let now = renamed_to(project, lane);
    let head = || project.repo.head_of(&lane.path).ok().flatten();
    let again = match &now {
        Some(now) => format!("git branch -m {} {branch}", quoted(now)),
        None => format!("git branch {branch} {}", last_commit(project, lane).or_else(head)?.short()),
    };
    // Git makes no branch of a name that others begin with: those have to make way.
    let below = project.repo.refs_below(&format!("refs/heads/{branch}/")).unwrap_or_default();
    let names = below.iter().filter_map(|(name, _)| name.strip_prefix("refs/heads/"));
    let in_the_way = names.filter(|name| now.as_deref() != Some(*name));
    let prefix = format!("{}/", project.settings.prefix);
    let free = |name: &str| {
        let outside = name.strip_prefix(&prefix).unwrap_or(name);
        format!("git branch -m {} {}", quoted(name), quoted(outside))
    };
    let file = project.repo.is_broken(branch).then(|| ref_removal(&format!("refs/heads/{branch}")));
    Some(in_the_way.map(free).chain(file).chain([again]).collect::<Vec<_>>().join(" && "))
}

/// What git noted of the commits and branches that a lane's worktree was on.
fn log_of_head(project: &Project, lane: &LaneRecord) -> Option<String> {
    let admin = project.repo.admin_dir_of(&lane.path)?;
    let scratch = project.store.layout().scratch().ok()?;
    project.repo.head_log(&admin, lane.start, scratch.path())
}

/// Where a log of HEAD, which begins on a branch, last has that branch.
fn last_on(log: &str, branch: &str) -> Option<Oid> {
    let (leaves, enters) = (format!("checkout: moving from {branch} to "), format!(" to {branch}"));
    let (mut last, mut is_on) = (None, true);
    for line in log.lines() {
        let (head, note) = line.split_once('\t').unwrap_or((line, ""));
        let mut ids = head.split(' ').map(|id| Oid::from_hex(id.as_bytes()));
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

/// Why what is uncommitted in a lane must not be committed where its worktree is: the commit would go to a branch of
/// somebody else's, or on top of somebody else's work. None when it is the lane's own place.
pub(crate) fn not_own_place(project: &Project, lane: &LaneRecord) -> Result<Option<String>, Error> {
    let repo = &project.repo;
    let worktrees = WorktreeList::read(repo)?;
    let Some(worktree) = worktrees.at(&lane.path) else { return Ok(None) };
    if let Some(found) = alias(project, lane)? {
        return Ok(Some(found.in_words()));
    }
    // A commit on a branch that is gone would begin a history of its own.
    let Some(tip) = repo.branch_tip(&lane.place.branch)? else {
        return Ok(Some(format!("its branch {} is gone", lane.place.branch)));
    };
    if is_on_own(worktree, lane) {
        return Ok(None);
    }
    let Some(head) = worktree.head(repo)? else {
        return Ok(Some(format!("HEAD is not on {}", lane.place.branch)));
    };
    let made_here = match &worktree.branch {
        // A commit on a symbolic ref is one on the branch that it leads to.
        Some(branch) => {
            repo.alias_of(branch)?.is_none()
                && !is_known(project, &worktrees, lane, branch)?
                && is_made_here(project, lane, branch)?
        }
        None => true,
    };
    let fits = head == tip
        || (repo.is_ancestor(tip, head)?
            && is_own(project, lane, head)?
            && strangers(project, lane, (tip, head))?.is_none());
    let why = || format!("HEAD is on {}, not on {}", place(worktree, head), lane.place.branch);
    Ok((!made_here || !fits).then(why))
}

/// A worktree of a lane that is not on the lane's branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OffBranch {
    /// What it is on: another branch, or a detached HEAD.
    pub(crate) place: String,
    /// Whether what is committed there comes to the lane's branch all the same.
    pub(crate) may_commit: bool,
    /// The command that brings it back, with what is uncommitted in it.
    pub(crate) back: String,
}

/// Where the worktree of a lane is, and the command that brings it back to the lane's branch; none where it is there, or one of the
/// two is gone.
///
/// # Errors
/// When git cannot be asked.
pub(crate) fn off_branch(project: &Project, lane: &LaneRecord) -> Result<Option<OffBranch>, Error> {
    let repo = &project.repo;
    let worktrees = WorktreeList::read(repo)?;
    let Some(worktree) = worktrees.at(&lane.path).filter(|worktree| !is_on_own(worktree, lane)) else {
        return Ok(None);
    };
    let Some(tip) = repo.branch_tip(&lane.place.branch)? else { return Ok(None) };
    let git = format!("git -C {}", quoted_path(&lane.path));
    // A worktree that is on the branch by now keeps others from it.
    let taken = worktrees.on_branch(&lane.place.branch).find(|other| other.path != worktree.path);
    let free = |other: &Worktree| format!("git -C {} switch --detach && ", quoted_path(&other.path));
    let free = taken.map(free).unwrap_or_default();
    let switch = format!("{free}{git} switch {}", lane.place.branch);
    let Some(head) = worktree.head(repo)? else {
        let place = worktree.branch.clone().unwrap_or_else(|| "no commit".to_owned());
        return Ok(Some(OffBranch { place, may_commit: false, back: switch }));
    };
    // Git takes along what is uncommitted, but for files that the two commits have differently.
    let changed = tree_changes(repo, head, tip)?;
    let dirty = status(repo, &lane.path, true)?.paths();
    let is_met = changed.iter().any(|change| dirty.contains(&change.path));
    let back = match is_met && !repo.index_has(&lane.path, head, tip)? {
        true => format!("{git} stash push --include-untracked && {switch} && {git} stash pop"),
        false => switch,
    };
    let may_commit = not_own_place(project, lane)?.is_none();
    Ok(Some(OffBranch { place: place(worktree, head), may_commit, back }))
}

/// Keeps the commit that the worktree of a lane was at last, whose branch is gone, if nothing but the log of its HEAD leads there. Returns
/// the commit then.
///
/// # Errors
/// When the ref that keeps it cannot be made.
pub(crate) fn keep_last_commit(project: &Project, lane: &LaneRecord) -> Result<Option<Oid>, Error> {
    let repo = &project.repo;
    let Some(last) = last_commit(project, lane) else { return Ok(None) };
    if repo.is_reached_by_others(last, &format!("refs/heads/{}", lane.place.branch))? {
        return Ok(None);
    }
    let name = format!("refs/proq/saved/{}-{}", lane.name, new_id());
    repo.create_ref(&name, last, "git-proq: the branch is gone")?;
    Ok(Some(last))
}

fn is_on_own(worktree: &Worktree, lane: &LaneRecord) -> bool {
    worktree.is_on(&lane.place.branch)
}

fn place(worktree: &Worktree, head: Oid) -> String {
    worktree.branch.clone().unwrap_or_else(|| format!("a detached HEAD ({})", head.short()))
}

/// Whether a commit was made in the lane's worktree, or is nowhere else.
fn is_own(project: &Project, lane: &LaneRecord, head: Oid) -> Result<bool, Error> {
    let moves = project.repo.moves(&lane.path, "HEAD")?;
    if moves.iter().any(|step| step.to == head && step.made()) {
        return Ok(true);
    }
    let own = format!("refs/heads/{}", lane.place.branch);
    Ok(!project.repo.is_reached_by_others(head, &own)?)
}

/// Whether a branch is a base or another lane's, or some other worktree shows it.
fn is_known(
    project: &Project,
    worktrees: &WorktreeList,
    lane: &LaneRecord,
    branch: &str,
) -> Result<bool, Error> {
    let mut others = worktrees.iter().filter(|worktree| worktree.path != lane.path);
    let shown = others.any(|worktree| worktree.branch.as_deref() == Some(branch));
    Ok(shown || project.lanes()?.iter().any(|other| other.base == branch || other.place.branch == branch))
}

/// Whether a branch came to be when the lane's worktree went to it.
fn is_made_here(project: &Project, lane: &LaneRecord, branch: &str) -> Result<bool, Error> {
    let born = project.repo.moves(&lane.path, &format!("refs/heads/{branch}"))?.last().map(|first| first.at);
    let moves = project.repo.moves(&lane.path, "HEAD")?;
    let came = |born: i64| moves.iter().any(|step| step.enters(branch) && (step.at - born).abs() <= TOGETHER);
    Ok(born.is_some_and(came))
}

/// A lane whose commits, not on the base yet, are among those between the lane's tip and HEAD.
fn strangers(project: &Project, lane: &LaneRecord, (tip, head): (Oid, Oid)) -> Result<Option<String>, Error> {
    let repo = &project.repo;
    let mut from = vec![tip];
    from.extend(repo.branch_tip(&lane.base)?);
    let all = repo.ahead_of_all(head, &from)?;
    for other in project.lanes()?.iter().filter(|other| other.name != lane.name) {
        let Some(theirs) = repo.branch_tip(&other.place.branch)? else { continue };
        if repo.ahead_of_all(head, &[&from[..], &[theirs]].concat())? < all {
            return Ok(Some(other.name.clone()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_commit_of_a_branch_is_read_from_the_log_of_head() {
        let id = |digit: u8| (digit as char).to_string().repeat(40);
        let line = |old, new, note: &str| format!("{} {} A <a@b> 1 +0000\t{note}\n", id(old), id(new));
        let begin = line(b'0', b'1', "") + &line(b'1', b'2', "commit: x");
        let last = |log: &str| last_on(log, "proq/x").map(|id| id.to_string());
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
