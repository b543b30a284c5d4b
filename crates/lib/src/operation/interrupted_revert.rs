//! Recovery of an interrupted reversal: steps that are already reverted, and what it left.

use proq_store::operations::operation_entry::{JournalLine, StepStatus};

use super::journaled_operation::Operation;
use crate::errors::Error;

/// Marks each step as reverted whose inverse has happened, even if a killed process did not record that.
pub(crate) fn mark_reverted_steps(op: &Operation<'_>) -> Result<(), Error> {
    let Some(entry) = op.journal_entry() else { return Ok(()) };
    for planned in entry.steps.iter().filter(|p| p.status == StepStatus::Done) {
        if let Some(target) = planned.reverted_step
            && entry.steps[target].status == StepStatus::Done
            && entry.steps[target].step.is_reverted_by(&*planned.step)
        {
            entry.steps[target].step.finish_inverse(op)?;
            let _ = op.record_line(JournalLine::Undone(target));
        }
    }
    Ok(())
}

/// Removes what only holds leftovers of an earlier, killed attempt to revert, and no change of the user.
pub(crate) fn remove_redundant_steps(op: &Operation<'_>) -> Result<(), Error> {
    let Some(entry) = op.journal_entry() else { return Ok(()) };
    for planned in entry.steps.iter().filter(|p| p.status == StepStatus::Done) {
        if let Some(target) = planned.reverted_step {
            planned.step.remove_redundant(op, &*entry.steps[target].step, target)?;
        }
    }
    Ok(())
}
