//! Undo of logged operations, newest first, as one new operation: all of them are undone, or nothing is
//! changed.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::auto_merge;
use super::op_log_view::{self, OpLog, moved_branch};
use super::operate::{operate, operate_with_header};
use super::operation::Operation;
use super::remove::remove_locked;
use super::symbolic_branch::branch_to_move;
use super::undo_forecast::UndoForecast;
use super::{
    Error, Project, RemovalEvidence, RemovalReason, UndoError, gather_evidence, recover, refuse_removal,
};
use crate::fail_points;
use crate::git::{Head, LocalState, Oid, RefMove, WorktreeList};
use crate::store::records::{AnyLane, LaneRecord, PreviewRecord, Step};
use crate::store::{LockGuard, OperationEntry, OperationHeader, Record, new_id};

/// Selection of the operations to undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UndoTarget {
    /// The last operation in effect. A given number must be the number of that operation.
    Last(Option<u64>),
    /// Every operation after the one with this number.
    After(u64),
    /// The last undo, which is redone.
    LastUndo,
}

/// Plan of an undo: the selected operations.
#[derive(Debug, Clone)]
#[must_use]
pub(crate) struct UndoPlan {
    /// Numbers of the operations, newest first.
    pub(crate) numbers: Vec<u64>,
    /// Command line of the newest operation.
    pub(crate) command: String,
    /// Whether all of the operations were started in this terminal session.
    pub(crate) is_own_session: bool,
    target: UndoTarget,
}

/// Plans an undo.
///
/// # Errors
/// [`UndoError::NothingToUndo`], [`UndoError::NotLast`], [`UndoError::NoOperation`].
pub(crate) fn plan(project: &Project, target: UndoTarget) -> Result<UndoPlan, Error> {
    plan_from_log(&OpLog::read(project), target)
}

fn plan_from_log(log: &OpLog, target: UndoTarget) -> Result<UndoPlan, Error> {
    let numbers: Vec<u64> = match target {
        UndoTarget::Last(requested) => {
            let last = log.active_operations().next().map(|l| l.number);
            if let Some(requested) = requested {
                op_log_view::require(log, requested)?;
                if last != Some(requested) {
                    return Err(UndoError::NotLast { requested, last }.into());
                }
            }
            log.last_command_numbers()
        }
        UndoTarget::After(number) => {
            if number > 0 {
                op_log_view::require(log, number)?;
            }
            log.active_operations().map(|l| l.number).filter(|n| *n > number).collect()
        }
        UndoTarget::LastUndo => log.redoable_undo().map(|l| l.number).into_iter().collect(),
    };
    let newest = numbers.first().and_then(|n| log.find(*n));
    let command = newest
        .map(|l| l.entry.header.command.clone())
        .ok_or(UndoError::NothingToUndo { redo: target == UndoTarget::LastUndo })?;
    let is_own_session =
        numbers.iter().filter_map(|n| log.find(*n)).all(|l| l.entry.header.is_from_this_session());
    Ok(UndoPlan { numbers, command, is_own_session, target })
}

impl UndoPlan {
    /// Returns the command that undoes exactly these operations with force; `None` for a redo, which has no
    /// such command.
    pub(crate) fn forced_command(&self) -> Option<String> {
        match self.target {
            UndoTarget::Last(_) => {
                self.numbers.first().map(|number| format!("git proq undo {number} --force"))
            }
            UndoTarget::After(number) => Some(format!("git proq op restore {number} --force")),
            UndoTarget::LastUndo => None,
        }
    }

    /// Refuses the plan if other operations were logged after planning, during a prompt or while waiting for
    /// a lock.
    fn require_newest(&self, log: &OpLog) -> Result<(), Error> {
        if plan_from_log(log, self.target)?.numbers == self.numbers {
            return Ok(());
        }
        let requested = self.numbers.first().copied().unwrap_or_default();
        let last = log.active_operations().next().map(|last| last.number);
        Err(UndoError::NotLast { requested, last }.into())
    }

    /// Wraps the reason why operation `number` cannot be undone, with the command that would force it.
    fn refusal(&self, number: u64, source: Error) -> Error {
        let (source, redo) = (Box::new(source), self.target == UndoTarget::LastUndo);
        Error::CannotUndo { number, redo, forced_command: self.forced_command(), source }
    }
}

/// Refuses the plans that [`undo`] would refuse, as far as that is known without undoing the newer
/// operations. Changes nothing.
///
/// # Errors
/// The errors of [`undo`].
pub(crate) fn check_undoable(project: &Project, planned: &UndoPlan, force: bool) -> Result<(), Error> {
    let log = OpLog::read(project);
    operate(project, "undo", |op| {
        let run_locks = RefCell::new(BTreeMap::new());
        let mut forecast = UndoForecast::default();
        log.effective_entries(&planned.numbers)?.into_iter().enumerate().try_for_each(
            |(index, (number, entry))| {
                let revert = EntryRevert { op, entry, number, force, run_locks: &run_locks };
                revert.check_revert(&mut forecast, index == 0).map_err(|e| planned.refusal(number, e))
            },
        )
    })
}

/// Undoes the planned operations. With `force`, also undoes operations that later commits build on; a ref
/// then keeps those commits. Uncommitted changes in the way always refuse the undo.
///
/// # Errors
/// [`Error::CannotUndo`] with the reason; then nothing was changed.
pub(crate) fn undo(project: &Project, planned: &UndoPlan, force: bool) -> Result<(), Error> {
    let mut header = OperationHeader::new(match planned.target {
        UndoTarget::Last(_) => "undo",
        UndoTarget::After(_) => "op restore",
        UndoTarget::LastUndo => "op redo",
    });
    match planned.target {
        UndoTarget::LastUndo => header.redoes = planned.numbers.first().copied(),
        _ => header.undoes.clone_from(&planned.numbers),
    }
    fail_points::hit("undo.chosen");
    operate_with_header(project, header, |op| {
        lock_worktrees(op, &OpLog::read(project), &planned.numbers)?;
        let log = OpLog::read(project);
        planned.require_newest(&log)?;
        let run_locks = RefCell::new(BTreeMap::new());
        let result = log.effective_entries(&planned.numbers)?.into_iter().try_for_each(|(number, entry)| {
            let revert = EntryRevert { op, entry, number, force, run_locks: &run_locks };
            revert
                .run()
                .and_then(|()| auto_merge::disable_auto_merge(op, entry.applied_steps()))
                .map_err(|e| planned.refusal(number, e))
        });
        run_locks.into_inner().into_values().for_each(|lock| op.hold(lock));
        result
    })
}

/// Locks the worktrees that the operations changed until this operation finishes, so that nothing lands on
/// their branches concurrently.
fn lock_worktrees(op: &Operation<'_>, log: &OpLog, numbers: &[u64]) -> Result<(), Error> {
    for (_, entry) in log.effective_entries(numbers)? {
        for dir in
            entry.applied_steps().filter_map(Step::changed_worktree).filter(|dir| dir.join(".git").exists())
        {
            op.checkout(dir)?;
        }
    }
    Ok(())
}

/// Returns the records that the planned operations wrote, as paths below `proq/`.
pub(crate) fn written_records(project: &Project, planned: &UndoPlan) -> Vec<PathBuf> {
    let log = OpLog::read(project);
    let steps = planned
        .numbers
        .iter()
        .filter_map(|number| log.effective_entry(*number))
        .flat_map(OperationEntry::applied_steps);
    let path = |step: &Step| match step {
        Step::WriteRecord { path, .. } => Some(path.clone()),
        _ => None,
    };
    steps.filter_map(path).collect()
}

/// Returns the number of steps before those that create lanes. The creation starts with the branch of the
/// first lane.
pub(super) fn count_steps_before_creation(steps: &[&Step]) -> usize {
    let first_worktree =
        steps.iter().position(|step| matches!(step, Step::CreateWorktree { .. })).unwrap_or_default();
    let is_branch = |step: &&Step| matches!(moved_branch(step), Some((_, None, Some(_))));
    steps[..first_worktree].iter().rposition(is_branch).unwrap_or_default()
}

pub(super) struct EntryRevert<'a, 'p> {
    pub(super) op: &'a Operation<'p>,
    pub(super) entry: &'a OperationEntry,
    number: u64,
    pub(super) force: bool,
    /// Run locks of lanes. They are shared, since many operations may concern one lane.
    run_locks: &'a RefCell<BTreeMap<String, LockGuard>>,
}

impl EntryRevert<'_, '_> {
    /// Returns the names of the lanes that the operation created.
    pub(super) fn created_lanes(&self) -> Vec<&String> {
        let created = self.entry.applied_steps().filter_map(|step| match step {
            Step::CreateWorktree { lane, .. } => Some(lane),
            _ => None,
        });
        created.collect()
    }

    /// Locks the lanes whose records are restored or removed.
    pub(super) fn lock_moved_lanes(&self) -> Result<(), Error> {
        for name in self.moved_lanes() {
            if !self.run_locks.borrow().contains_key(&name) {
                let lock = recover::run_lock_after_recovery(self.op.project, &name, None)?;
                self.run_locks.borrow_mut().insert(name, lock);
            }
        }
        Ok(())
    }

    fn run(&self) -> Result<(), Error> {
        let mut steps: Vec<&Step> = self.entry.applied_steps().collect();
        let created = self.created_lanes();
        for lane in created.iter().rev() {
            // Later changes in the lane are checked as for any removal.
            self.remove_created_lane(lane)?;
        }
        if created.is_empty() {
            self.lock_moved_lanes()?;
        } else {
            // The steps before the creation concern an older lane of that name, which was removed for the new
            // one.
            steps.truncate(count_steps_before_creation(&steps));
        }
        self.refuse_new_work()?;
        for step in steps.into_iter().rev() {
            match (step, moved_branch(step)) {
                (_, Some((branch, Some(old), Some(new)))) => self.move_branch_back(branch, old, new)?,
                // These worktrees follow their branch.
                (Step::Checkout { ref_move: RefMove::Nothing, .. }, _) => {}
                (Step::Checkout { dir, ref_move: RefMove::Switch { from, .. }, .. }, _) => {
                    // The lock is held until the operation finishes, so that nothing lands on the branch
                    // concurrently.
                    let _checkout = self.op.checkout(dir)?;
                    self.refuse_edits(dir)?;
                    self.refuse_moved_branches(step)?;
                    self.require_preview_return(step)?;
                    self.refuse_missing_branch(step, |branch| {
                        Ok(self.op.project.repo.branch_tip(branch)?)
                    })?;
                    // The user may have switched back by hand.
                    if !self.has_head(dir, from)? {
                        self.op.invert(step)?;
                    }
                }
                _ => self.op.invert(step)?,
            }
        }
        Ok(())
    }

    /// Returns the names of the lanes whose records are restored or removed. No run may start in them, and
    /// their trash entries must not be deleted concurrently.
    fn moved_lanes(&self) -> BTreeSet<String> {
        let lanes = self.op.project.store.layout().lanes();
        let lane_name = |path: &Path| {
            let is_lane = path.parent() == Some(&lanes);
            path.file_name().filter(|_| is_lane).map(|name| name.to_string_lossy().into_owned())
        };
        let open_lanes = self.op.project.lanes().unwrap_or_default();
        // Files of a lane that stays.
        let lane_containing = |path: &Path| {
            let lane = open_lanes.iter().find(|lane| path.starts_with(&lane.path) && *path != *lane.path);
            lane.map(|lane| lane.name.clone())
        };
        let step_lane = |step: &Step| match step {
            Step::MovePath { from, to } => lane_name(from)
                .or_else(|| lane_name(to))
                .or_else(|| lane_containing(from))
                .or_else(|| lane_containing(to)),
            _ => None,
        };
        self.entry.applied_steps().filter_map(step_lane).collect()
    }

    pub(super) fn has_head(&self, dir: &Path, head: &Head) -> Result<bool, Error> {
        Ok(self.op.project.repo.worktree_head(dir)?.as_ref() == Some(head))
    }

    /// Returns a lane that the operation created, with its run lock. Fails if the lane is busy, shown in the
    /// open preview, or missing.
    pub(super) fn lock_created_lane(&self, name: &str) -> Result<(LaneRecord, LockGuard), Error> {
        let project = self.op.project;
        let path = project.store.layout().lane_record(name);
        if AnyLane::load_if_exists(&path)?.is_none() {
            return Err(Error::UnknownLane { name: name.to_owned(), similar: None });
        }
        let open = PreviewRecord::load_if_exists(&project.store.layout().preview_record())?;
        if open.is_some_and(|open| open.lane == name) {
            return Err(UndoError::LanePreviewed { name: name.to_owned() }.into());
        }
        // A later operation may concern this lane too, and this process would block on its own lock.
        drop(self.run_locks.borrow_mut().remove(name));
        project.lock_idle_lane(name)
    }

    fn remove_created_lane(&self, name: &str) -> Result<(), Error> {
        let (lane, lock) = self.lock_created_lane(name)?;
        self.run_locks.borrow_mut().insert(name.to_owned(), lock);
        let mut evidence =
            gather_evidence(self.op.project, &lane, &WorktreeList::read(&self.op.project.repo)?)?;
        self.discount_initial_commits(&lane, &mut evidence)?;
        refuse_removal(&lane, &evidence, self.force)?;
        remove_locked(self.op, &lane, RemovalReason::Discard, true).map(drop)
    }

    /// Ignores commits in the evidence that the lane was created with and that another branch has too: they
    /// stay reachable.
    pub(super) fn discount_initial_commits(
        &self,
        lane: &LaneRecord,
        evidence: &mut RemovalEvidence,
    ) -> Result<(), Error> {
        let branch = format!("refs/heads/{}", lane.kind.branch);
        let initial_tip = self.entry.applied_steps().find_map(|step| match step {
            Step::MoveRef { name, old: None, new } if *name == branch => *new,
            _ => None,
        });
        if let Some(tip) = evidence.tip
            && initial_tip == Some(tip)
            && self.op.project.repo.is_in_other_ref(tip, &branch)?
        {
            evidence.unlanded_commits = 0;
        }
        Ok(())
    }

    /// Moves a branch back, together with every worktree that is on it now, even if that worktree was
    /// elsewhere when the branch moved.
    fn move_branch_back(&self, branch: &str, old: Oid, new: Oid) -> Result<(), Error> {
        let repo = &self.op.project.repo;
        let branch = &branch_to_move(self.op.project, branch);
        let Some(tip) = repo.branch_tip(branch)? else {
            return Err(UndoError::BranchGone { branch: branch.to_owned(), tip: new }.into());
        };
        if tip == old {
            // The user has already reverted everything with git, except for empty folders.
            for worktree in WorktreeList::read(repo)?.on_branch(branch) {
                let state = self.dropped_state(&worktree.path, new);
                self.op.checkout(&worktree.path)?.create_folders(&state.empty_dirs);
            }
            return Ok(());
        }
        self.require_unshared(branch, tip, old, new)?;
        if !repo.is_ancestor(tip, new)? {
            // The branch has the user's own commits, not only a landing that can be redone.
            self.op.anchor(&format!("refs/proq/saved/{}-{}", branch.replace('/', "-"), new_id()), tip)?;
        }
        self.op.retain_commit(new)?;
        self.op.set_reflog_message(format!("git-proq: operation {} undone", self.number));
        // No preview may be opened or left from here until this operation finishes or has been reverted.
        // Otherwise the main checkout could be on the branch without following its move.
        let _main = repo.main_worktree().map(|dir| self.op.checkout(dir)).transpose()?;
        let worktrees = WorktreeList::read(repo)?;
        let dirs: Vec<PathBuf> = worktrees.on_branch(branch).map(|w| w.path.clone()).collect();
        let Some((first, others)) = dirs.split_first() else {
            let name = format!("refs/heads/{branch}");
            return self.op.perform(Step::MoveRef { name, old: Some(tip), new: Some(old) }).map(drop);
        };
        for dir in others {
            self.op.checkout(dir)?.check_undo_transition(tip, old, &self.dropped_state(dir, new))?;
        }
        let revert_worktree = |dir: &Path, mv| {
            self.op.revert_transition(dir, (tip, old), mv, &self.dropped_state(dir, new), &[])
        };
        revert_worktree(first, RefMove::Branch(branch.to_owned()))?;
        others.iter().try_for_each(|dir| revert_worktree(dir, RefMove::Nothing))
    }

    /// Returns the empty folders and index flags that the worktree at `dir` lost when this operation moved it
    /// to `commit`; empty if no step did.
    pub(super) fn dropped_state(&self, dir: &Path, commit: Oid) -> LocalState {
        let step_state = |step: &Step| match step {
            Step::Checkout { dir: step_dir, to, dropped_state: drops, .. }
                if step_dir == dir && *to == commit =>
            {
                Some(drops.clone())
            }
            _ => None,
        };
        self.entry.applied_steps().find_map(step_state).unwrap_or_default()
    }
}
