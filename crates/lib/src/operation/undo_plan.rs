//! Plan of an undo or redo: which logged operations it concerns.

use std::path::PathBuf;

use proq_base::explain::{Exit, Explain};
use proq_store::base::operation_number::OperationNumber;

use super::journaled_operation::step::OperationEntry;
use super::op_log_view::{self, OpLog};
use crate::errors::Error;
use crate::errors::undo_error::UndoError;
use crate::project::Project;

/// Selection of the operations to undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoTarget {
    /// The last operation in effect. A given number must be the number of that operation.
    Last(Option<OperationNumber>),
    /// Every operation after the one with this number.
    After(OperationNumber),
    /// The last undo, which is redone.
    LastUndo,
}

/// Plan of an undo: the selected operations.
#[derive(Debug, Clone)]
#[must_use]
pub struct UndoPlan {
    /// Numbers of the operations, newest first.
    pub numbers: Vec<OperationNumber>,
    /// Command line by which the newest of the operations was started.
    pub newest_command: String,
    /// Numbers of the operations whose effects the plan changes, newest first: those of `numbers`, or those that
    /// the undo had undone which is redone.
    pub changed_numbers: Vec<OperationNumber>,
    /// Command line by which the newest of `changed_numbers` was started.
    pub changed_command: String,
    /// Kind of the newest of `changed_numbers`, such as `merge`.
    pub changed_kind: String,
    /// Whether all of the operations were started in this terminal session.
    pub is_same_terminal: bool,
    /// Selection by which the operations were chosen.
    pub target: UndoTarget,
}

/// Plans an undo.
///
/// # Errors
/// [`UndoError::NothingToUndo`], [`UndoError::NotLast`], [`UndoError::NotInEffect`],
/// [`UndoError::NoOperation`].
pub fn plan(project: &Project, target: UndoTarget) -> Result<UndoPlan, Error> {
    plan_from_log(&OpLog::read(project), target)
}

/// Selects the operations of an undo from the log.
fn plan_from_log(log: &OpLog, target: UndoTarget) -> Result<UndoPlan, Error> {
    let numbers: Vec<OperationNumber> = match target {
        UndoTarget::Last(requested) => {
            let last = log.active_operations().next().map(|l| l.number);
            if let Some(requested) = requested {
                op_log_view::require_operation(log, requested)?;
                if last != Some(requested) {
                    return Err(not_last_error(log, requested).into());
                }
            }
            log.last_command_numbers()
        }
        UndoTarget::After(number) => {
            // The state before the oldest operation of the log can be restored, although the operation that
            // made it is unknown.
            let is_before_known = log.operations.iter().any(|l| l.number.previous() == number);
            if !is_before_known && number != OperationNumber::NONE {
                op_log_view::require_operation(log, number)?;
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
        numbers.iter().filter_map(|n| log.find(*n)).all(|l| l.entry.header.is_from_this_terminal());
    let redone = newest.map(|l| l.entry.header.undoes.clone()).filter(|_| target == UndoTarget::LastUndo);
    let changed_numbers = redone.filter(|redone| !redone.is_empty()).unwrap_or_else(|| numbers.clone());
    let changed = changed_numbers.first().and_then(|n| log.find(*n)).or(newest).map(|l| &l.entry.header);
    Ok(UndoPlan {
        changed_command: changed.map(|header| header.command.clone()).unwrap_or_default(),
        changed_kind: changed.map(|header| header.kind.clone()).unwrap_or_default(),
        changed_numbers,
        numbers,
        newest_command: command,
        is_same_terminal: is_own_session,
        target,
    })
}

/// Returns the reason why an operation is not the one that an undo would undo.
fn not_last_error(log: &OpLog, requested: OperationNumber) -> UndoError {
    if log.active_operations().any(|active| active.number == requested) {
        let last = log.active_operations().next().map(|last| last.number);
        return UndoError::NotLast { requested, last };
    }
    let is_undone = log.find(requested).is_some_and(|logged| logged.is_undone);
    UndoError::NotInEffect { requested, is_undone }
}

impl UndoPlan {
    /// Returns the command that undoes exactly these operations with force; `None` for a redo, which has no
    /// such command.
    pub fn forced_command(&self) -> Option<String> {
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
    pub(crate) fn require_newest(&self, log: &OpLog) -> Result<(), Error> {
        if plan_from_log(log, self.target)?.numbers == self.numbers {
            return Ok(());
        }
        let requested = self.numbers.first().copied().unwrap_or_default();
        Err(not_last_error(log, requested).into())
    }

    /// Wraps the reason why operation `number` cannot be undone, with the command that would force it. An
    /// interrupt is no such reason.
    pub fn refusal(&self, number: OperationNumber, source: Error) -> Error {
        if matches!(source.exit(), Exit::Signal(_)) {
            return source;
        }
        let (source, redo) = (Box::new(source), self.target == UndoTarget::LastUndo);
        Error::CannotUndo { number, redo, forced_command: self.forced_command(), source }
    }
}

/// Returns the records that the planned operations wrote, as paths below `proq/`.
pub fn written_records(project: &Project, planned: &UndoPlan) -> Vec<PathBuf> {
    let log = OpLog::read(project);
    let steps = planned
        .numbers
        .iter()
        .filter_map(|number| log.effective_entry(*number))
        .flat_map(OperationEntry::applied_steps);
    steps.filter_map(|step| Some(step.written_record()?.path.to_owned())).collect()
}
