//! Last step of a landing: everything is checked again under the lock, then the base moves by one
//! compare-and-swap.

use std::path::{Path, PathBuf};
use std::time::Duration;

use proq_base::explain::shell_quote_path;
use proq_git as git;
use proq_git::base::head::RefMove;
use proq_git::hooks::hook::run_hook;
use proq_git::repository::objects::TempObjectStore;
use proq_git::repository::open_operation::find_open_git_operation;
use proq_git::worktrees::worktree::WorktreeList;
use proq_git::{CommitId, Repo};
use proq_store as store;
use proq_store::locks::lock::{LockName, WaitLimit};
use proq_store::records::lane::LaneRecord;

use super::autostash;
use crate::lane;
use crate::lane::Project;
use crate::lane::context::head_ownership;
use crate::lane::state::lane_state::effective_state;
use crate::lane::steps::move_ref::move_ref_step;
use crate::merge::Error;
use crate::merge::stack::lane_stack::Stack;
use crate::merge::types::candidate::Candidate;
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::BoxedStep;

/// Time to wait for a lane's run lock, which a process that only reads the lane or finishes its run holds
/// briefly.
const RUN_LOCK_WAIT: WaitLimit = WaitLimit::AtMost(Duration::from_millis(250));

/// Outcome of one attempt to move a base.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub(crate) enum LandAttempt {
    /// The base is at the stack's tip.
    Landed,
    /// The base or a lane moved concurrently, or a lock was held, with the message of git or the holder: the
    /// stack must be built again.
    Outdated(Option<String>),
}

/// Whether a move of the base can be undone within its operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reversibility {
    /// The move is never undone, and the steps after it are completed even if one fails.
    Irreversible,
    /// The move is undone if the operation fails: another base may not be movable.
    Reversible,
}

/// How a base is moved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MoveMode {
    /// Whether the move can be undone within its operation.
    pub reversibility: Reversibility,
    /// Whether changes in the way are saved, and restored after the move.
    pub autostash: bool,
}

/// Moves the base of a stack to its tip, if the base and the lanes are where they were when the stack was
/// built. `record_steps` returns the steps to perform after the move; it is called once no lane can change
/// any more.
///
/// # Errors
/// Fails when a worktree on the base has changes in the way or is in the middle of a rebase of it; nothing
/// was moved then.
pub(crate) fn land_stack(
    op: &Operation<'_>,
    stack: &Stack,
    record_steps: impl FnOnce() -> Result<Vec<BoxedStep>, Error>,
    mode: MoveMode,
) -> Result<LandAttempt, Error> {
    let project = op.project;
    let _lock = project.store.locks().acquire(&LockName::Merge)?;
    if project.repo.branch_tip(&stack.onto)? != Some(stack.base) {
        return Ok(LandAttempt::Outdated(None));
    }
    // The commits of a part do not depend on the lane's current tip.
    let full_lanes =
        || stack.applied_lanes.iter().map(|step| &step.candidate).filter(|lane| lane.part.is_none());
    // The lock of the main checkout is held until the operation ends. A lane that has moved must be checked
    // again without that lock.
    for lane in full_lanes() {
        if !is_ready(project, lane)? {
            return Ok(LandAttempt::Outdated(None));
        }
    }
    // Taken before the lanes' locks: a process that leaves the preview of a lane to remove it takes the two
    // locks in this order.
    let _main = project.repo.main_worktree().map(|dir| op.lock_worktree(dir)).transpose()?;
    let mut run_locks = Vec::new();
    for lane in full_lanes() {
        match project.store.locks().acquire_within(&LockName::Run(lane.lane.name.clone()), RUN_LOCK_WAIT) {
            Ok(lock) => run_locks.push(lock),
            Err(store::Error::Locked { resource: what, holder, .. }) => {
                return Ok(LandAttempt::Outdated(Some(format!("{what} is held by {holder}"))));
            }
            Err(e) => return Err(e.into()),
        }
        if !is_unmoved(project, lane)? {
            return Ok(LandAttempt::Outdated(None));
        }
    }
    op.set_reflog_message(reflog_message(stack));
    move_branch(op, BranchMove::from_stack(stack), record_steps()?, mode)
        .map_err(|e| explain_lane_on_base(project, &stack.onto, e))
}

/// Returns whether a lane exists, no agent runs in it or is being started, and its branch is where it was when
/// the lane was stacked.
fn is_ready(project: &Project, candidate: &Candidate) -> Result<bool, Error> {
    let Some(current) = find_current_record(project, &candidate.lane)? else { return Ok(false) };
    Ok(!effective_state(project, &current)?.0.is_busy() && is_at_tip(project, candidate)?)
}

/// Returns whether a lane exists, has had no other run, has the base and checks that it was stacked and checked
/// with, and its branch is where it was then. The caller holds the lane's run lock, and the lock of landings,
/// under which an edit changes base and checks.
fn is_unmoved(project: &Project, candidate: &Candidate) -> Result<bool, Error> {
    let stacked = &candidate.lane;
    let is_same = find_current_record(project, stacked)?.is_some_and(|current| {
        (current.last_run, &current.base, &current.checks)
            == (stacked.last_run, &stacked.base, &stacked.checks)
    });
    Ok(is_same && is_at_tip(project, candidate)?)
}

fn is_at_tip(project: &Project, candidate: &Candidate) -> Result<bool, Error> {
    Ok(project.repo.branch_tip(&candidate.lane.kind.branch)? == Some(candidate.tip))
}

/// Returns the current record of a lane; none if it was removed, even if a new lane has its name.
pub(crate) fn find_current_record(project: &Project, lane: &LaneRecord) -> Result<Option<LaneRecord>, Error> {
    match project.lane(&lane.name) {
        Ok(current) => Ok(Some(current).filter(|current| current.created == lane.created)),
        Err(lane::Error::UnknownLane { .. } | lane::Error::NoLaneBranch { .. }) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Move of a branch to a descendant commit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BranchMove<'a> {
    /// Branch to move.
    pub onto: &'a str,
    /// Current tip.
    pub from: CommitId,
    /// New tip.
    pub to: CommitId,
}

impl BranchMove<'_> {
    /// Returns the move of a stack's base to the stack's tip.
    fn from_stack(stack: &Stack) -> BranchMove<'_> {
        BranchMove { onto: &stack.onto, from: stack.base, to: stack.tip() }
    }
}

/// Checks that the lowest `lane_count` lanes of a stack could land now, without changing anything. The merge
/// commits may exist in `temp_objects` only. With `autostash`, changes that can be saved are no obstacle.
///
/// # Errors
/// Fails as `land_stack` would.
pub fn preflight(
    op: &Operation<'_>,
    stack: &Stack,
    lane_count: usize,
    temp_objects: Option<&TempObjectStore>,
    autostash: bool,
) -> Result<(), Error> {
    let project = op.project;
    let new_tip = stack.applied_lanes[..lane_count].last().map_or(stack.base, |step| step.commit);
    let onto = &project.repo.resolve_symbolic_branch(&stack.onto);
    let branch_move = BranchMove { onto, to: new_tip, ..BranchMove::from_stack(stack) };
    let worktrees = WorktreeList::read(&project.repo)?;
    require_no_git_operation(&project.repo, branch_move.onto, &worktrees)?;
    for (n, worktree) in worktrees.on_branch(branch_move.onto).enumerate() {
        let preconditions = match autostash && n == 0 {
            true => autostash::changes_to_save(
                op,
                &worktree.path,
                (branch_move.from, branch_move.to),
                temp_objects,
            )
            .map(drop),
            false => op
                .with_locked_worktree(&worktree.path, |tree| {
                    tree.check_transition_to_temp(branch_move.from, branch_move.to, temp_objects)
                })
                .map_err(Error::from),
        };
        preconditions.map_err(|e| explain_lane_on_base(project, branch_move.onto, e))?;
    }
    Ok(())
}

/// Converts an error of a landing to [`Error::LaneOnBase`] if the local changes are in the worktree of a
/// lane. The usual hint, to commit them, would there commit to the base without a landing.
fn explain_lane_on_base(project: &Project, onto: &str, e: Error) -> Error {
    use proq_git::Error::{LocalChanges, Obstructed};
    let Error::Lane(lane::Error::Git(LocalChanges { dir, .. } | Obstructed { dir, .. })) = &e else {
        return e;
    };
    let lanes = project.owned_lanes().unwrap_or_default();
    let lane_on_base = lanes.iter().find(|lane| lane.path == *dir && lane.kind.branch != onto);
    match lane_on_base.map(|lane| (lane, head_ownership::find_off_branch(project, lane))) {
        Some((lane, Ok(Some(other_branch)))) => Error::LaneOnBase {
            lane: lane.name.clone(),
            onto: onto.to_owned(),
            reason: e.to_string(),
            switch_command: other_branch.return_command,
        },
        _ => e,
    }
}

/// Moves a branch with every worktree that is on it, and performs `record_steps`. The caller holds the
/// landing lock.
///
/// # Errors
/// Fails as `land_stack` does.
pub(crate) fn move_branch(
    op: &Operation<'_>,
    branch_move: BranchMove<'_>,
    record_steps: Vec<BoxedStep>,
    mode: MoveMode,
) -> Result<LandAttempt, Error> {
    let project = op.project;
    let branch_move =
        BranchMove { onto: &project.repo.resolve_symbolic_branch(branch_move.onto), ..branch_move };
    // Held so that no preview starts or ends between listing the worktrees on the base and updating the last
    // of them. The preview would take an index that is still at the old tip for the user's own changes.
    let _main = project.repo.main_worktree().map(|dir| op.lock_worktree(dir)).transpose()?;
    let worktrees = WorktreeList::read(&project.repo)?;
    require_no_git_operation(&project.repo, branch_move.onto, &worktrees)?;
    project.repo.require_connected(branch_move.to, branch_move.from)?;
    let on_base: Vec<PathBuf> = worktrees.on_branch(branch_move.onto).map(|w| w.path.clone()).collect();
    if let Some(missing) = on_base.iter().find(|path| !path.exists()) {
        return Err(lane::Error::PathMissing { path: missing.clone() }.into());
    }
    // Every checkout of the base must be able to follow before the first one moves.
    for path in on_base.iter().skip(1) {
        op.lock_worktree(path)?.check_transition(branch_move.from, branch_move.to)?;
    }
    let result = op.attempt_or_revert(|| move_saving_changes(op, branch_move, &on_base, record_steps, mode));
    match result {
        // That worktree has switched to another branch, or another process holds its HEAD: the stack must be
        // built again.
        Err(Error::Lane(lane::Error::Git(git::Error::RefNotMoved { reason: why, .. })))
            if !on_base.is_empty() =>
        {
            return Ok(LandAttempt::Outdated(Some(why)));
        }
        Err(Error::Lane(lane::Error::Git(git::Error::RefLocked { lock, .. }))) if !on_base.is_empty() => {
            return Ok(LandAttempt::Outdated(Some(format!("another git command holds {}", lock.display()))));
        }
        other => other?,
    }
    if let Err(e) = update_late_worktrees(op, branch_move, &on_base) {
        project.listener.warn(format!("cannot inspect other worktrees on '{}': {e}", branch_move.onto));
    }
    Ok(LandAttempt::Landed)
}

/// Moves a branch with the worktrees `on_base`, and performs `record_steps`. Changes in the first of them that are
/// in the way are saved before, if `mode` requires it, and restored after the move by a step that always runs.
fn move_saving_changes(
    op: &Operation<'_>,
    branch_move: BranchMove<'_>,
    on_base: &[PathBuf],
    record_steps: Vec<BoxedStep>,
    mode: MoveMode,
) -> Result<(), Error> {
    let saved = match on_base.first().filter(|_| mode.autostash) {
        Some(first) => {
            autostash::save_changes(op, first, branch_move.onto, (branch_move.from, branch_move.to))?
        }
        None => None,
    };
    let restore_step = saved.as_ref().map(|saved| saved.restore_step(branch_move.to));
    let following_steps = restore_step.into_iter().chain(record_steps).collect();
    let all_steps = landing_steps(op, branch_move, on_base, following_steps);
    match mode.reversibility {
        Reversibility::Irreversible => drop(op.perform_irreversibly(all_steps)?),
        Reversibility::Reversible => all_steps.into_iter().try_for_each(|step| op.perform(step).map(drop))?,
    }
    if let Some(saved) = saved {
        saved.report(op, branch_move.onto);
    }
    Ok(())
}

/// Returns the steps of a landing: the base moves with the first worktree that is on it, or alone; then the
/// other worktrees follow, and `following_steps` are performed.
fn landing_steps(
    op: &Operation<'_>,
    branch_move: BranchMove<'_>,
    on_base: &[PathBuf],
    following_steps: Vec<BoxedStep>,
) -> Vec<BoxedStep> {
    let (from, to) = (branch_move.from, branch_move.to);
    let checkout_step =
        |dir: &PathBuf, ref_move: RefMove| BoxedStep::from(op.transition_step(dir, from, to, ref_move));
    let mut all_steps = match on_base.split_first() {
        None => {
            let name = format!("refs/heads/{}", branch_move.onto);
            vec![move_ref_step(name, Some(from), Some(to))]
        }
        Some((first, others)) => {
            std::iter::once(checkout_step(first, RefMove::Branch(branch_move.onto.to_owned())))
                .chain(others.iter().map(|dir| checkout_step(dir, RefMove::Nothing)))
                .collect()
        }
    };
    all_steps.extend(following_steps);
    all_steps
}

/// Refuses while a worktree is in the middle of a git operation that will move `base`. A worktree in
/// mid-rebase counts as detached, and its branch moves when the rebase ends.
///
/// # Errors
/// [`Error::GitOperationInProgress`].
pub(crate) fn require_no_git_operation(
    repo: &Repo,
    base: &str,
    worktrees: &WorktreeList,
) -> Result<(), Error> {
    for worktree in worktrees.iter().filter(|w| w.prunable_reason.is_none() && !w.bare) {
        let Ok(git_dir) = repo.worktree_git_dir(&worktree.path) else { continue };
        if let Some(operation) = find_open_git_operation(&git_dir)
            && operation.branches.iter().any(|b| b == base)
        {
            return Err(Error::GitOperationInProgress {
                base: base.to_owned(),
                operation: operation.command,
                worktree: worktree.path.display().to_string(),
            });
        }
    }
    Ok(())
}

/// Updates files and index of every worktree that switched to the base concurrently: with the old index its
/// next commit would revert the landing. The worktrees are listed again after the swap, because plain git
/// ignores git-proq's locks.
fn update_late_worktrees(
    op: &Operation<'_>,
    branch_move: BranchMove<'_>,
    known_worktrees: &[PathBuf],
) -> Result<(), Error> {
    let project = op.project;
    let worktrees = WorktreeList::read(&project.repo)?;
    for worktree in worktrees.on_branch(branch_move.onto) {
        let dir = &worktree.path;
        // Unrelated changes may be staged there.
        if known_worktrees.first() == Some(dir)
            || project.repo.index_includes(dir, branch_move.from, branch_move.to)?
        {
            continue;
        }
        // A worktree that was listed before could not follow. Another attempt returns the reason, or has
        // waited long enough.
        let result = match project.repo.index_lock_error(dir).filter(|_| known_worktrees.contains(dir)) {
            Some(locked) => Err(locked.into()),
            None => op.transition(dir, branch_move.from, branch_move.to, RefMove::Nothing),
        };
        if let Err(e) = result {
            project.listener.warn(format!(
                "{} is on '{}' too and was not updated: {e}; before you commit there: {}",
                dir.display(),
                branch_move.onto,
                catch_up_command(&e, dir, branch_move)
            ));
        }
    }
    Ok(())
}

/// Returns the command with which you update a worktree that could not follow because of `e`.
fn catch_up_command(e: &lane::Error, dir: &Path, BranchMove { onto, from, to }: BranchMove<'_>) -> String {
    let (git, from, to) =
        (format!("git -C {}", shell_quote_path(dir)), from.short_in_command(), to.short_in_command());
    let read_tree = format!("{git} read-tree -m -u {from} {to}");
    // With HEAD at the commit that index and files have, an ordinary checkout of the base works.
    let detach = format!("{git} update-ref --no-deref HEAD {from}");
    let checkout = format!("{git} checkout --ignore-other-worktrees {onto}");
    match e {
        e if e.is_stuck() => "git proq doctor".to_owned(),
        lane::Error::Git(git::Error::IndexLocked { lock, .. }) => {
            format!("rm {} && {read_tree}", shell_quote_path(lock))
        }
        // A stash would destroy an edit of a file with an `assume-unchanged` or `skip-worktree` flag.
        lane::Error::Git(git::Error::LocalChanges { hint: remedy, .. }) if remedy.has_flag_hidden_files() => {
            remedy.hint_without_commit(dir).to_string()
        }
        lane::Error::Git(git::Error::LocalChanges { .. } | git::Error::Raced { .. }) => {
            format!("{detach} && {git} stash && {checkout} && {git} stash pop")
        }
        lane::Error::Git(git::Error::Unusable(_)) => format!("{detach} && {git} reset -q && {checkout}"),
        _ => read_tree,
    }
}

/// Runs the repository's post-merge hook in every worktree on the base, once no lock is held.
pub(crate) fn run_post_merge_hooks(project: &Project, onto: &str) -> Result<(), Error> {
    for worktree in WorktreeList::read(&project.repo)?.on_branch(onto) {
        if let Err(e) = run_hook(&project.repo, &worktree.path, "post-merge", &["0"]) {
            project.listener.warn(format!("the repository's post-merge hook failed: {e}"));
        }
    }
    Ok(())
}

/// Refuses if the commit of a landed lane is not on the base. This is the last test before anything is
/// cleaned up.
///
/// # Errors
/// [`Error::LandingLost`].
pub(crate) fn require_landed(repo: &Repo, stack: &Stack) -> Result<(), Error> {
    let commits: Vec<CommitId> = stack.applied_lanes.iter().map(|step| step.commit).collect();
    let missing = match repo.branch_tip(&stack.onto)? {
        Some(tip) => repo.commits_missing_from(&commits, tip, stack.base)?,
        None => commits,
    };
    // The commit of a lane contains all of the lane, because the stack was built from it.
    match stack.applied_lanes.iter().find(|step| missing.contains(&step.commit)) {
        None => Ok(()),
        Some(step) => {
            Err(Error::LandingLost { lane: step.candidate.lane.name.clone(), base: stack.onto.clone() })
        }
    }
}

/// Returns the reflog message of a landing.
fn reflog_message(stack: &Stack) -> String {
    let names: Vec<&str> = stack.applied_lanes.iter().map(|s| s.candidate.lane.name.as_str()).collect();
    format!("git-proq merge: {}", names.join(", "))
}
