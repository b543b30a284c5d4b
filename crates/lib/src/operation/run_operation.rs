//! Operations of commands: all changes of the work are in effect at the end, or none.

use proq_base::interrupt;
use proq_base::interrupt::Interrupted;
use proq_store::base::operation_number::OperationNumber;
use proq_store::operations::operation_entry::OperationHeader;

use super::journaled_operation::Operation;
use crate::errors::Error;
use crate::event::log::{EndedOperation, Event, EventName, OperationOutcome};
use crate::project::Project;

/// Runs `work` as an operation. If it succeeds, the operation is added to the operation log. If it fails, all
/// its changes are reverted; the error of one that was stopped names what could not be. The event of its end
/// comes before those that the work emits.
pub fn operate<'p, T, E: From<Error>>(
    project: &'p Project,
    kind: &str,
    work: impl FnOnce(&Operation<'p>) -> Result<T, E>,
) -> Result<T, E> {
    operate_with_header(
        project,
        OperationHeader { command_group: project.undo_group.clone(), ..OperationHeader::new(kind) },
        work,
    )
}

/// Runs `work` as an operation with the given journal header.
pub(crate) fn operate_with_header<'p, T, E: From<Error>>(
    project: &'p Project,
    header: OperationHeader,
    work: impl FnOnce(&Operation<'p>) -> Result<T, E>,
) -> Result<T, E> {
    project.repo.require_writable().map_err(Error::from)?;
    let op = Operation::new(project, header, None);
    match work(&op).and_then(|output| Ok((output, op.finish(false)?))) {
        Ok((output, number)) => {
            let actions = op.deferred_actions.take();
            emit_end(op, number, OperationOutcome::Done);
            for action in actions {
                action(project);
            }
            Ok(output)
        }
        Err(e) => {
            let number = op.revert_and_end();
            let is_reverted = number.is_none() && !op.is_unfinished.get();
            emit_end(op, number, OperationOutcome::Failed);
            if is_reverted || interrupt::has_no_signal() {
                return Err(e);
            }
            let stop = Interrupted::with_remainder(number.map(OperationNumber::get));
            Err(Error::from(stop).into())
        }
    }
}

/// Releases the locks of an operation that has ended, and emits the event of its end. An operation without a
/// number in the log has changed nothing, and no event reports it.
pub(super) fn emit_end(op: Operation<'_>, number: Option<OperationNumber>, outcome: OperationOutcome) {
    let (project, header) = (op.project, op.header.borrow().clone());
    drop(op);
    let Some(number) = number else { return };
    let OperationHeader { kind, via, undoes, reverted_undo: redoes, .. } = header;
    let suffix = match outcome {
        OperationOutcome::Done => "",
        OperationOutcome::Failed => " failed, and part of it is in effect",
        OperationOutcome::Recovered => " was interrupted and recovered",
    };
    let mut event = Event::new(EventName::OperationEnded, format!("operation {number}: {kind}{suffix}"));
    event.operation = Some(EndedOperation { number, kind, via, outcome, undoes, redoes });
    project.emit_event(event);
}
