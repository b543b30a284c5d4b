//! Undo of logged operations, newest first, as one new operation: all of them are undone, or nothing is
//! changed.

use std::cell::RefCell;
use std::collections::BTreeMap;

use proq_base::fail_points;
use proq_base::lane_name::LaneName;
use proq_git::worktrees::worktree::WorktreeList;
use proq_store::base::operation_number::OperationNumber;
use proq_store::operations::operation_entry::OperationHeader;

use super::entry_revert::{EntryRevert, count_steps_before_creation};
use super::undo_plan::{UndoPlan, UndoTarget};
use crate::lane::inspection::evidence::gather as gather_evidence;
use crate::lane::removal::remove_lane::{RemovalReason, refuse_removal, remove_locked};
use crate::lane::{Error, Project};
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::BoxedStep;
use crate::operation::journaled_operation::step::undo::{UndoForecast, UndoProgress};
use crate::operation::op_log_view::OpLog;
use crate::operation::run_operation::{operate, operate_with_header};
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
                forecast.is_newest = index == 0;
                revert.check_revert(&mut forecast).map_err(|e| planned.refusal(number, e))
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
        for dir in entry
            .applied_steps()
            .filter_map(|step| step.changed_worktree())
            .filter(|dir| dir.join(".git").exists())
        {
            op.lock_worktree(dir)?;
        }
    }
    Ok(())
}

impl EntryRevert<'_, '_> {
    /// Reverts the operation: removes the lanes that it created, and reverts its other steps, newest first.
    fn revert(&self) -> Result<(), Error> {
        let mut steps: Vec<&BoxedStep> = self.entry.applied_steps().collect();
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
        let undo = self.step_undo();
        for step in steps.into_iter().rev() {
            if step.undo(&undo)? == UndoProgress::Invert {
                self.op.invert(&**step)?;
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
}
