//! Owns the last moments of a landing: everything checked again under the lock, then one compare-and-swap.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Error;
use super::request::Candidate;
use super::stack::Stack;
use crate::explain::quoted_path;
use crate::git::{self, Oid, RefMove, ThrowAway, WorktreeList, open_operation, run_hook};
use crate::lane::{self, Operation, Project, effective_state};
use crate::store::records::{LaneRecord, Step};
use crate::store::{self, Limit, LockName};

/// How long somebody who only looks at a lane, or ends its run, may take to let go of it.
const MOMENT: Limit = Limit::For(Duration::from_millis(250));

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub(super) enum Landing {
    /// The base is at the stack's tip.
    Done,
    /// The base or a lane moved meanwhile, or a ref was locked, as git says then: stack again.
    Moved(Option<String>),
}

/// Whether there is a way back once the base has moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// None: what follows from it follows whatever comes.
    Forward,
    /// As long as the operation goes on: another base may not be able to.
    Back,
}

/// Moves the base of a stack to its tip, if base and lanes are where they were when it was made. `rest` finds out what is written
/// down then, whatever comes, once no lane can change any more.
///
/// # Errors
/// When a worktree on the base has changes in the way, or is in the middle of a rebase of it: nothing was moved.
pub(super) fn land(
    op: &Operation<'_>,
    stack: &Stack,
    rest: impl FnOnce() -> Result<Vec<Step>, Error>,
    way: Way,
) -> Result<Landing, Error> {
    let project = op.project;
    let _lock = project.store.locks().take(&LockName::Merge)?;
    if project.repo.branch_tip(&stack.onto)? != Some(stack.base) {
        return Ok(Landing::Moved(None));
    }
    // The commits of a part are what they are, wherever its lane has gone on to.
    let whole = || stack.steps.iter().map(|step| &step.candidate).filter(|lane| lane.part.is_none());
    // The lock of the main checkout is held until the operation ends: a lane that has gone on is to be checked again without it.
    for lane in whole() {
        if !is_ready(project, lane)? {
            return Ok(Landing::Moved(None));
        }
    }
    // Before the lanes: whoever leaves the preview of a lane to remove it takes the two locks in this order.
    let _main = project.repo.main_worktree().map(|dir| op.checkout(dir)).transpose()?;
    let mut held = Vec::new();
    for lane in whole() {
        match project.store.locks().take_within(&LockName::Run(lane.lane.name.clone()), MOMENT) {
            Ok(lock) => held.push(lock),
            Err(store::Error::Locked { what, holder, .. }) => {
                return Ok(Landing::Moved(Some(format!("{what} is held by {holder}"))));
            }
            Err(e) => return Err(e.into()),
        }
        if !is_unmoved(project, lane)? {
            return Ok(Landing::Moved(None));
        }
    }
    op.set_why(why(stack));
    advance(op, Move::of(stack), rest()?, way).map_err(|e| by_lane_on_base(project, &stack.onto, e))
}

/// Whether a lane is there and as it was when it was stacked, and no agent is at work in it.
fn is_ready(project: &Project, candidate: &Candidate) -> Result<bool, Error> {
    let Some(lane) = same_lane(project, &candidate.lane)? else { return Ok(false) };
    Ok(!effective_state(project, &lane)?.0.is_busy() && is_unmoved(project, candidate)?)
}

/// Whether a lane is there and its branch is where it was when it was stacked.
fn is_unmoved(project: &Project, candidate: &Candidate) -> Result<bool, Error> {
    let is_there = same_lane(project, &candidate.lane)?.is_some();
    Ok(is_there && project.repo.branch_tip(&candidate.lane.place.branch)? == Some(candidate.tip))
}

/// A lane as it is now; none if it was removed, though another one may have its name.
pub(super) fn same_lane(project: &Project, lane: &LaneRecord) -> Result<Option<LaneRecord>, Error> {
    match project.lane(&lane.name) {
        Ok(now) => Ok(Some(now).filter(|now| now.created == lane.created)),
        Err(lane::Error::Unknown { .. } | lane::Error::NoTree { .. }) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// A branch that goes on to a commit which has all of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Move<'a> {
    /// The branch.
    pub(super) onto: &'a str,
    /// Where it is.
    pub(super) from: Oid,
    /// Where it goes.
    pub(super) to: Oid,
}

impl Move<'_> {
    fn of(stack: &Stack) -> Move<'_> {
        Move { onto: &stack.onto, from: stack.base, to: stack.tip() }
    }
}

/// Refuses what stands in the way of landing the lowest `lanes` of a stack before it moves anything, and changes nothing. What was
/// merged may lie in `into` only.
///
/// # Errors
/// As those of a landing.
pub(super) fn foresee(
    op: &Operation<'_>,
    stack: &Stack,
    lanes: usize,
    into: Option<&ThrowAway>,
) -> Result<(), Error> {
    let project = op.project;
    let to = stack.steps[..lanes].last().map_or(stack.base, |step| step.commit);
    let onto = &project.repo.branch_behind(&stack.onto);
    let mv = Move { onto, to, ..Move::of(stack) };
    let worktrees = WorktreeList::read(&project.repo)?;
    refuse_in_use(project, mv.onto, &worktrees)?;
    for worktree in worktrees.on_branch(mv.onto) {
        let free = op.with_checkout(&worktree.path, |tree| tree.require_free_for(mv.from, mv.to, into));
        free.map_err(|e| by_lane_on_base(project, mv.onto, e.into()))?;
    }
    Ok(())
}

/// An error of a landing, which says so where what is in the way is in the worktree of a lane: a commit of it there, as it helps in a
/// checkout of the user's, would be one on the base that nobody landed.
fn by_lane_on_base(project: &Project, onto: &str, e: Error) -> Error {
    use git::Error::{Obstructed, Overlap};
    let Error::Lane(lane::Error::Git(Overlap { dir, .. } | Obstructed { dir, .. })) = &e else { return e };
    let lanes = project.lanes().unwrap_or_default();
    let found = lanes.iter().find(|lane| lane.path == *dir && lane.place.branch != onto);
    match found.map(|lane| (lane, lane::off_branch(project, lane))) {
        Some((lane, Ok(Some(off)))) => Error::LaneOnBase {
            lane: lane.name.clone(),
            onto: onto.to_owned(),
            why: e.to_string(),
            back: off.back,
        },
        _ => e,
    }
}

/// Moves a branch, with every worktree that is on it; the landing lock is held. `rest` is what is written down then.
///
/// # Errors
/// As those of a landing.
pub(super) fn advance(op: &Operation<'_>, mv: Move<'_>, rest: Vec<Step>, way: Way) -> Result<Landing, Error> {
    let project = op.project;
    let mv = Move { onto: &project.repo.branch_behind(mv.onto), ..mv };
    // A preview that came or went between the look at who is on the base and the last of them having followed would take
    // an index that is still behind for the user's own changes.
    let _main = project.repo.main_worktree().map(|dir| op.checkout(dir)).transpose()?;
    let worktrees = WorktreeList::read(&project.repo)?;
    refuse_in_use(project, mv.onto, &worktrees)?;
    project.repo.require_connected(mv.to, mv.from)?;
    let on_base: Vec<PathBuf> = worktrees.on_branch(mv.onto).map(|w| w.path.clone()).collect();
    if let Some(absent) = on_base.iter().find(|path| !path.exists()) {
        return Err(lane::Error::Expired { path: absent.clone() }.into());
    }
    // Every checkout of the base must be able to follow, before the first one moves.
    for path in on_base.iter().skip(1) {
        op.checkout(path)?.require_free(mv.from, mv.to)?;
    }
    let all = steps(op, mv, &on_base, rest);
    let moved = match way {
        Way::Forward => op.forward(all).map(drop),
        Way::Back => all.into_iter().try_for_each(|step| op.perform(step).map(drop)),
    };
    match moved {
        // That worktree is on something else by now, or somebody holds its HEAD: look again.
        Err(lane::Error::Git(git::Error::RefMoved { why, .. })) if !on_base.is_empty() => {
            return Ok(Landing::Moved(Some(why)));
        }
        Err(lane::Error::Git(git::Error::RefLocked { lock, .. })) if !on_base.is_empty() => {
            return Ok(Landing::Moved(Some(format!("another git command holds {}", lock.display()))));
        }
        other => other?,
    }
    if let Err(e) = follow(op, mv, &on_base) {
        project.listener.warn(format!("other worktrees on '{}' could not be looked at: {e}", mv.onto));
    }
    Ok(Landing::Done)
}

/// The base moves with the first worktree that is on it, or alone; the other worktrees follow, and the rest is written.
fn steps(op: &Operation<'_>, mv: Move<'_>, on_base: &[PathBuf], rest: Vec<Step>) -> Vec<Step> {
    let (from, to) = (mv.from, mv.to);
    let tree = |dir: &PathBuf, mv: RefMove| op.tree_step(dir, from, to, mv);
    let mut all = match on_base.split_first() {
        None => {
            vec![Step::Ref { name: format!("refs/heads/{}", mv.onto), old: Some(from), new: Some(to) }]
        }
        Some((first, others)) => std::iter::once(tree(first, RefMove::Branch(mv.onto.to_owned())))
            .chain(others.iter().map(|dir| tree(dir, RefMove::Nothing)))
            .collect(),
    };
    all.extend(rest);
    all
}

/// A worktree in mid-rebase shows as detached, and its branch moves when the rebase ends.
pub(super) fn refuse_in_use(project: &Project, base: &str, worktrees: &WorktreeList) -> Result<(), Error> {
    for worktree in worktrees.iter().filter(|w| w.prunable.is_none() && !w.bare) {
        let Ok(git_dir) = project.repo.git_dir_of(&worktree.path) else { continue };
        if let Some(open) = open_operation(&git_dir)
            && open.branches.iter().any(|b| b == base)
        {
            return Err(Error::InUse {
                base: base.to_owned(),
                what: open.what,
                dir: worktree.path.display().to_string(),
            });
        }
    }
    Ok(())
}

/// Brings files and index of every worktree that came to the base meanwhile over: with the old index its next commit would
/// revert the landing. Looked for again after the swap, since plain git honours no lock of ours.
fn follow(op: &Operation<'_>, mv: Move<'_>, done: &[PathBuf]) -> Result<(), Error> {
    let project = op.project;
    let worktrees = WorktreeList::read(&project.repo)?;
    for worktree in worktrees.on_branch(mv.onto) {
        let dir = &worktree.path;
        // Something may be staged there that has nothing to do with it.
        if done.first() == Some(dir) || project.repo.index_has(dir, mv.from, mv.to)? {
            continue;
        }
        // Whoever was there before could not follow. Another try says why, or has waited long enough.
        let moved = match project.repo.index_lock(dir).filter(|_| done.contains(dir)) {
            Some(locked) => Err(locked.into()),
            None => op.transition(dir, mv.from, mv.to, RefMove::Nothing),
        };
        if let Err(e) = moved {
            project.listener.warn(format!(
                "{} is on '{}' too and could not follow: {e}; before you commit there: {}",
                dir.display(),
                mv.onto,
                catch_up(&e, dir, mv)
            ));
        }
    }
    Ok(())
}

/// The command with which a worktree follows that could not because of `e`.
fn catch_up(e: &lane::Error, dir: &Path, Move { onto, from, to }: Move<'_>) -> String {
    let (git, from, to) = (format!("git -C {}", quoted_path(dir)), from.short(), to.short());
    let follow = format!("{git} read-tree -m -u {from} {to}");
    // HEAD at the commit that index and files are of makes an ordinary checkout of it.
    let back = format!("{git} update-ref --no-deref HEAD {from}");
    let again = format!("{git} checkout --ignore-other-worktrees {onto}");
    match e {
        e if e.is_stuck() => "git proq doctor".to_owned(),
        lane::Error::Git(git::Error::IndexLocked { lock, .. }) => {
            format!("rm {} && {follow}", quoted_path(lock))
        }
        // A stash would destroy an edit that git was told not to look at.
        lane::Error::Git(git::Error::Overlap { remedy, .. }) if remedy.is_flagged() => {
            remedy.stash(dir).into_owned()
        }
        lane::Error::Git(git::Error::Overlap { .. } | git::Error::Raced { .. }) => {
            format!("{back} && {git} stash && {again} && {git} stash pop")
        }
        lane::Error::Git(git::Error::Unusable(_)) => format!("{back} && {git} reset -q && {again}"),
        _ => follow,
    }
}

/// Runs the repository's post-merge hook where the base is checked out, once no lock is held.
pub(super) fn after_landing(project: &Project, onto: &str) -> Result<(), Error> {
    for worktree in WorktreeList::read(&project.repo)?.on_branch(onto) {
        if let Err(e) = run_hook(&project.repo, &worktree.path, "post-merge", &["0"]) {
            project.listener.warn(format!("the repository's post-merge hook failed: {e}"));
        }
    }
    Ok(())
}

/// Every landed lane's change must be on the base. This is the last look before anything is cleaned up.
pub(super) fn audit(project: &Project, stack: &Stack) -> Result<(), Error> {
    let commits: Vec<Oid> = stack.steps.iter().map(|step| step.commit).collect();
    let outside = match project.repo.branch_tip(&stack.onto)? {
        Some(now) => project.repo.outside(&commits, now, stack.base)?,
        None => commits,
    };
    // All of a lane is in its commit: the stack was made of it.
    match stack.steps.iter().find(|step| outside.contains(&step.commit)) {
        None => Ok(()),
        Some(step) => Err(Error::Audit { lane: step.candidate.lane.name.clone(), base: stack.onto.clone() }),
    }
}

/// The reflog's message.
fn why(stack: &Stack) -> String {
    let names: Vec<&str> = stack.steps.iter().map(|s| s.candidate.lane.name.as_str()).collect();
    format!("git-proq merge: {}", names.join(", "))
}
