//! Undo of operations, shared by `git proq undo` and `git proq op`, and its output.

use proq_base::explain::Exit;
use proq_lib::errors::undo_error;
use proq_lib::lane::Project;
use proq_lib::swarm::batch::error::BatchError;
use proq_lib::swarm::landing::{batch_landing, landed_marks};
use proq_lib::undo::undo_plan;
use proq_lib::undo::undo_plan::{UndoPlan as Plan, UndoTarget};
use proq_lib::{lane, swarm};
use proq_store::base::operation_number::OperationNumber;
use serde::Serialize;

use crate::cli::invocation::caller;
use crate::cli::invocation::confirm::{cannot_prompt_user, require_confirmation};
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::usage_error::UsageError;
use crate::cli::terminal::ui;

#[derive(Serialize)]
struct UndoOutput {
    /// Numbers of the operations that were, or would be, undone, newest first.
    operations: Vec<OperationNumber>,
    /// Command line of the newest of these operations.
    command: String,
    dry_run: bool,
    /// Files and folders that mark the tasks of undone landings as done, in no commit; git-proq leaves them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "still_noted")]
    uncommitted_marks: Vec<String>,
}

/// Undoes operations and prints the result. `is_named` means that the user named the operation; otherwise
/// operations of another terminal need a confirmation.
pub(crate) fn undo_operations(
    context: &CommandContext,
    target: UndoTarget,
    force: bool,
    dry_run: bool,
    is_named: bool,
) -> CommandResult {
    let project = context.project_for_write()?;
    caller::refuse_lane_agent(dry_run)?;
    let plan = undo_plan::plan(&project, target).map_err(|e| explain_not_last(&project, e))?;
    if !is_named && !plan.is_same_terminal {
        confirm_undo(context, &plan, dry_run)?;
    }
    let records = undo_plan::written_records(&project, &plan);
    batch_landing::refuse_if_built_on(&project.store, &records, (force, plan.forced_command()))?;
    if dry_run {
        proq_lib::undo::undo_operations::check_undoable(&project, &plan, force)?;
    } else {
        proq_lib::undo::undo_operations::undo(&project, &plan, force)?;
    }
    // Files that are in no commit are the user's and may have been changed since.
    let uncommitted_marks = if target == UndoTarget::LastUndo {
        Vec::new()
    } else {
        landed_marks::uncommitted_marks(&project.store, &records)
    };
    if context.ui.json {
        let (operations, command) = (plan.numbers, plan.newest_command);
        context.ui.print_json(UndoOutput { operations, command, dry_run, uncommitted_marks });
        return Ok(Exit::Success);
    }
    let verb = match (target, dry_run) {
        (UndoTarget::LastUndo, false) => "took back the undo",
        (UndoTarget::LastUndo, true) => "would take back the undo",
        (_, false) => "undid",
        (_, true) => "would undo",
    };
    let description = match plan.numbers.as_slice() {
        [number] => format!("operation {number}: {}", plan.newest_command),
        numbers => {
            format!(
                "{}, the last of them: {}",
                ui::pluralize(numbers.len(), "operation"),
                plan.newest_command
            )
        }
    };
    context.ui.print_line(format!("{verb} {description}"));
    let state_text = if dry_run { "would still be" } else { "are still" };
    for path in uncommitted_marks {
        context
            .ui
            .warn(format!("tasks {state_text} noted as done in {path}, which git-proq does not change back"));
    }
    if !dry_run && target != UndoTarget::LastUndo {
        context.ui.hint("go forward again: git proq op redo");
    }
    Ok(Exit::Success)
}

/// Returns the error to report if planning an undo failed. If the operation is not the last one and an
/// unfinished batch landed tasks since, undoing all later operations would be refused too: the error then
/// names that batch.
fn explain_not_last(project: &Project, e: lane::Error) -> Failure {
    let lane::Error::Undo(undo_error::UndoError::NotLast { requested: asked, .. }) = &e else {
        return e.into();
    };
    let later_undo = undo_plan::plan(project, UndoTarget::After(asked.previous()));
    let landed_records =
        later_undo.map(|plan| undo_plan::written_records(project, &plan)).unwrap_or_default();
    match batch_landing::first_dependent_batch(&project.store, &landed_records, false) {
        Ok(Some((id, runs))) => {
            swarm::Error::from(BatchError::LandedSince { operation: *asked, id, runs }).into()
        }
        _ => e.into(),
    }
}

/// Prompts before an operation of another terminal or of another program is undone. With `dry_run` it only
/// prints that it would prompt.
fn confirm_undo(context: &CommandContext, plan: &Plan, dry_run: bool) -> Result<(), Failure> {
    let description = format!(
        "operation {} was started in another terminal or by another program: {}",
        plan.numbers[0], plan.newest_command
    );
    if cannot_prompt_user(context) {
        return Err(UsageError::ConfirmationRequired { subject: description, number: plan.numbers[0] }.into());
    }
    if dry_run {
        context.ui.status(format!("{description}\nwould ask whether to undo it"));
        return Ok(());
    }
    require_confirmation(&format!("{description}\nundo it? [y/N] "))
}
