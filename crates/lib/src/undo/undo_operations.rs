//! Undo of logged operations, newest first, as one new operation: all of them are undone, or nothing is
//! changed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proq_base::fail_points;
use proq_base::lane_name::LaneName;
use proq_git::CommitId;
use proq_git::base::head::RefMove;
use proq_git::worktrees::worktree::WorktreeList;
use proq_store::base::id::new_id;
use proq_store::base::operation_number::OperationNumber;
use proq_store::operations::operation_entry::OperationHeader;
use proq_store::records::step::Step;

use super::entry_revert::{EntryRevert, count_steps_before_creation};
use super::undo_forecast::UndoForecast;
use super::undo_plan::{UndoPlan, UndoTarget};
use crate::lane::context::symbolic_branch::branch_to_move;
use crate::lane::errors::undo_error::UndoError;
use crate::lane::execution::run_operation::{operate, operate_with_header};
use crate::lane::inspection::evidence::gather as gather_evidence;
use crate::lane::operation::journaled_operation::Operation;
use crate::lane::operation::op_log_view::{OpLog, moved_branch};
use crate::lane::removal::remove_lane::{RemovalReason, refuse_removal, remove_locked};
use crate::lane::{Error, Project};
use crate::run::auto_merge;

/// Refuses the plans that [`undo`] would refuse, as far as that is known without undoing the newer
/// operations. Changes nothing.
///
/// # Errors
/// The errors of [`undo`].
pub fn check_undoable(project: &Project, planned: &UndoPlan, force: bool) -> Result<(), Error> {
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
pub fn undo(project: &Project, planned: &UndoPlan, force: bool) -> Result<(), Error> {
    let mut header = OperationHeader::new(match planned.target {
        UndoTarget::Last(_) => "undo",
        UndoTarget::After(_) => "op restore",
        UndoTarget::LastUndo => "op redo",
    });
    match planned.target {
        UndoTarget::LastUndo => header.reverted_undo = planned.numbers.first().copied(),
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
                .revert()
                .and_then(|()| auto_merge::disable_undone_auto_merge(op, entry.applied_steps()))
                .map_err(|e| planned.refusal(number, e))
        });
        run_locks.into_inner().into_values().for_each(|lock| op.hold(lock));
        result
    })
}

/// Locks the worktrees that the operations changed until this operation finishes, so that nothing lands on
/// their branches concurrently.
fn lock_worktrees(op: &Operation<'_>, log: &OpLog, numbers: &[OperationNumber]) -> Result<(), Error> {
    for (_, entry) in log.effective_entries(numbers)? {
        for dir in
            entry.applied_steps().filter_map(Step::changed_worktree).filter(|dir| dir.join(".git").exists())
        {
            op.lock_worktree(dir)?;
        }
    }
    Ok(())
}

impl EntryRevert<'_, '_> {
    /// Reverts the operation: removes the lanes that it created, and reverts its other steps, newest first.
    fn revert(&self) -> Result<(), Error> {
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
                    let _checkout = self.op.lock_worktree(dir)?;
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

    /// Removes a lane that the operation created. Refuses if the lane has later work, unless forced.
    fn remove_created_lane(&self, name: &LaneName) -> Result<(), Error> {
        let (lane, lock) = self.lock_created_lane(name)?;
        self.run_locks.borrow_mut().insert(name.clone(), lock);
        let mut evidence =
            gather_evidence(self.op.project, &lane, &WorktreeList::read(&self.op.project.repo)?)?;
        self.discount_initial_commits(&lane, &mut evidence)?;
        refuse_removal(&lane, &evidence, self.force)?;
        remove_locked(self.op, &lane, RemovalReason::Discard, true).map(drop)
    }

    /// Moves a branch back, together with every worktree that is on it now, even if that worktree was
    /// elsewhere when the branch moved.
    fn move_branch_back(&self, branch: &str, old: CommitId, new: CommitId) -> Result<(), Error> {
        let repo = &self.op.project.repo;
        let branch = &branch_to_move(self.op.project, branch);
        let Some(tip) = repo.branch_tip(branch)? else {
            return Err(UndoError::BranchGone { branch: branch.to_owned(), last_tip: new }.into());
        };
        if tip == old {
            // The user has already reverted everything with git, except for empty folders.
            for worktree in WorktreeList::read(repo)?.on_branch(branch) {
                let state = self.dropped_state(&worktree.path, new);
                self.op.lock_worktree(&worktree.path)?.create_folders(&state.empty_dirs);
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
        let _main = repo.main_worktree().map(|dir| self.op.lock_worktree(dir)).transpose()?;
        let worktrees = WorktreeList::read(repo)?;
        let dirs: Vec<PathBuf> = worktrees.on_branch(branch).map(|w| w.path.clone()).collect();
        let Some((first, others)) = dirs.split_first() else {
            let name = format!("refs/heads/{branch}");
            return self.op.perform(Step::MoveRef { name, old: Some(tip), new: Some(old) }).map(drop);
        };
        for dir in others {
            self.op.lock_worktree(dir)?.check_undo_transition(tip, old, &self.dropped_state(dir, new))?;
        }
        let revert_worktree = |dir: &Path, mv| {
            self.op.revert_transition(dir, (tip, old), mv, &self.dropped_state(dir, new), &[])
        };
        revert_worktree(first, RefMove::Branch(branch.to_owned()))?;
        others.iter().try_for_each(|dir| revert_worktree(dir, RefMove::Nothing))
    }
}
