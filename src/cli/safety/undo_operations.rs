//! Undo of operations, shared by `git proq undo` and `git proq op`, and its output.

use proq_base::hint;
use proq_lib::ops::undo;
use proq_lib::ops::undo::{UndoOutcome, UndoRequest};
use proq_lib::swarm::landing::batch_records::BatchRecords;
use proq_lib::types::UndoTarget;

use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::ui;

/// Undoes operations and prints the result.
pub(crate) fn undo_operations(
    context: &CommandContext,
    request: &UndoRequest,
    dry_run: bool,
) -> CommandResult {
    let project = context.project_to_recover()?;
    caller::refuse_lane_agent(dry_run)?;
    let plan = undo::plan(&project, request, &BatchRecords)?;
    let outcome = if dry_run { plan.forecast(&project, context)? } else { plan.execute(&project, context)? };
    context.show(&outcome, |context, outcome| {
        let UndoOutcome { changed_operations, changed_command, uncommitted_marks, .. } = outcome;
        let verb = match (request.target, dry_run) {
            (UndoTarget::LastUndo, false) => "redid",
            (UndoTarget::LastUndo, true) => "would redo",
            (_, false) => "undid",
            (_, true) => "would undo",
        };
        let which = match changed_operations.as_slice() {
            [number] => format!("operation {number}"),
            numbers => format!("{}, the last of them", ui::pluralize(numbers.len(), "operation")),
        };
        context.ui.print_line(format!("{verb} {which}: {changed_command}"));
        let are = if dry_run { "would still be" } else { "are still" };
        for path in uncommitted_marks {
            context.ui.warn(format!("tasks {are} marked as done in {path}, which git-proq does not revert"));
        }
        for url in &outcome.remaining_requests {
            context.ui.warn(format!("the pull request stays open, and the branch pushed: {url}"));
        }
        if !dry_run && request.target != UndoTarget::LastUndo {
            context.ui.hint(hint!("redo it: git proq redo"));
        }
    })
}
