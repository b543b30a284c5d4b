//! Undo of logged operations, newest first, as one new operation: all of them are undone, or nothing is
//! changed.

use proq_base::fail_points;
use proq_store::base::operation_number::OperationNumber;
use proq_store::operations::operation_entry::OperationHeader;

use super::journaled_operation::Operation;
use super::journaled_operation::step::undo::{StepUndo, UndoForecast, UndoProgress};
use super::journaled_operation::step::{BoxedStep, registry};
use super::op_log_view::OpLog;
use super::run_operation::{operate, operate_with_header};
use super::undo_plan::{UndoPlan, UndoTarget};
use crate::errors::Error;
use crate::project::Project;

/// Refuses the plans that [`undo`] would refuse, as far as that is known without undoing the newer
/// operations. Changes nothing.
///
/// # Errors
/// The errors of [`undo`].
pub fn check_undoable(project: &Project, planned: &UndoPlan, force: bool) -> Result<(), Error> {
    let log = OpLog::read(project);
    operate(project, "undo", |op| {
        let mut forecast = UndoForecast::default();
        log.effective_entries(&planned.numbers)?.into_iter().enumerate().try_for_each(
            |(index, (number, entry))| {
                forecast.is_newest = index == 0;
                let undo = StepUndo { op, entry, number, force };
                undo.check(&mut forecast).map_err(|e| planned.refusal(number, e))
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
        log.effective_entries(&planned.numbers)?.into_iter().try_for_each(|(number, entry)| {
            StepUndo { op, entry, number, force }.run().map_err(|e| planned.refusal(number, e))
        })
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

impl<'a> StepUndo<'a, '_> {
    /// Checks whether the operation can be undone, with the refusals of the real undo, and records the
    /// effects in `forecast`.
    fn check(&self, forecast: &mut UndoForecast) -> Result<(), Error> {
        let [covering, others] = self.steps_newest_first();
        covering.into_iter().try_for_each(|step| step.check_undo(self, forecast))?;
        if forecast.is_newest {
            self.prepare()?;
        }
        others.into_iter().try_for_each(|step| step.check_undo(self, forecast))
    }

    /// Undoes the operation.
    fn run(&self) -> Result<(), Error> {
        let [covering, others] = self.steps_newest_first();
        let undo_step = |step: &BoxedStep| match step.undo(self)? {
            UndoProgress::Invert => self.op.invert(&**step),
            UndoProgress::Finished => Ok(()),
        };
        covering.into_iter().try_for_each(undo_step)?;
        self.prepare()?;
        others.into_iter().try_for_each(undo_step)?;
        self.entry.applied_steps().try_for_each(|step| step.finish_undo(self))
    }

    /// Returns the steps whose undo takes back other steps too, and the steps that none of these covers.
    fn steps_newest_first(&self) -> [Vec<&'a BoxedStep>; 2] {
        let covering = self.covering_steps();
        let uncovered = covering.first().map_or(usize::MAX, |(first, _)| *first);
        let mut others: Vec<&BoxedStep> = self.entry.applied_steps().take(uncovered).collect();
        others.reverse();
        [covering.into_iter().rev().map(|(_, step)| step).collect(), others]
    }

    fn prepare(&self) -> Result<(), Error> {
        registry().kinds.iter().try_for_each(|kind| (kind.prepare_undo)(self))
    }
}
