//! The `git proq op` command: the operation log.

use std::fmt::Display;

use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use proq_lib::ops::operation_log;
use proq_lib::ops::operation_log::OperationDetail;
use proq_lib::ops::undo::UndoRequest;
use proq_lib::types::{OperationNumber, UndoTarget, now};

use super::undo_operations::undo_operations;
use crate::cli::arguments::candidates::operation_numbers;
use crate::cli::arguments::numbers::operation_number;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::table::Column;
use crate::cli::terminal::{page, ui};

/// Work with the operation log
///
/// Every command that changes something is one operation. `git proq undo` undoes the last one. Without a
/// subcommand, lists the operations.
///
/// Examples:
///     git proq op log
///     git proq op show 12
///     git proq op restore 11
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Op {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Option<OpCommand>,
}

/// What can be done with the log.
#[derive(Debug, Subcommand)]
pub(crate) enum OpCommand {
    /// List operations, newest first
    Log {
        /// Only the last N operations
        #[arg(long, value_name = "N")]
        last: Option<usize>,
    },
    /// Show an operation: refs before and after, worktrees, snapshots
    Show {
        /// Operation number
        #[arg(value_name = "OP", value_parser = operation_number(), add = ArgValueCompleter::new(operation_numbers),
              required_unless_present = "trace")]
        operation: Option<OperationNumber>,
        /// Show the trace of a failed operation
        ///
        /// Each step and its duration. Without OP, of the latest failed operation that has no number.
        #[arg(long)]
        trace: bool,
    },
    /// Restore the state after an operation
    Restore {
        /// Number of the operation to return to (0 = before all)
        #[arg(value_name = "OP", value_parser = operation_number(), add = ArgValueCompleter::new(operation_numbers))]
        operation: OperationNumber,
        /// Restore even if later work builds on it or it was pushed
        ///
        /// Later work is kept under a ref.
        #[arg(long, short_alias = 'f')]
        force: bool,
        /// Show what would be done, without doing it
        #[arg(long)]
        dry_run: bool,
    },
    /// Redo the last undone operation
    Redo {
        /// Show what would be done, without doing it
        #[arg(long)]
        dry_run: bool,
    },
}

pub(crate) fn run(context: &CommandContext, args: &Op) -> CommandResult {
    let undo = |target, force, dry_run| {
        undo_operations(context, &UndoRequest { target, force, is_named: true }, dry_run)
    };
    if matches!(args.command, None | Some(OpCommand::Log { .. } | OpCommand::Show { .. })) {
        page::begin();
    }
    match args.command.as_ref().unwrap_or(&OpCommand::Log { last: None }) {
        OpCommand::Log { last } => print_log(context, *last),
        OpCommand::Show { operation: Some(operation), trace: false } => print_operation(context, *operation),
        OpCommand::Show { operation, .. } => print_trace(context, *operation),
        OpCommand::Restore { operation, force, dry_run } => {
            undo(UndoTarget::After(*operation), *force, *dry_run)
        }
        OpCommand::Redo { dry_run } => undo(UndoTarget::LastUndo, false, *dry_run),
    }
}

/// Columns of the operation log.
const LOG_COLUMNS: [Column; 4] = [
    Column::number("OP"),
    Column::new("WHEN").hidden_at(2),
    Column::text("COMMAND", 14).hidden_at(1),
    Column::text("EFFECT", 16).hidden_at(1),
];

fn print_log(context: &CommandContext, last: Option<usize>) -> CommandResult {
    context.show(operation_log::list(&context.project_to_read()?, last), |context, list| {
        let rows = list.operations.into_iter().map(|row| {
            let effect = match (row.undone, row.recovered) {
                (true, _) => console::style(format!("undone: {}", row.effect)).dim().to_string(),
                (false, true) => format!("recovered: {}", row.effect),
                (false, false) => row.effect,
            };
            vec![row.operation.to_string(), ui::age(row.started_at), row.command, effect]
        });
        context.ui.print_table(&LOG_COLUMNS, rows.collect(), "no operations yet");
    })
}

fn print_trace(context: &CommandContext, number: Option<OperationNumber>) -> CommandResult {
    let found = operation_log::trace(&context.project_to_read()?, number)?;
    context.show(&found, |context, found| context.ui.print_each("", &found.trace))
}

fn print_operation(context: &CommandContext, number: OperationNumber) -> CommandResult {
    context.show(&operation_log::show(&context.project_to_read()?, number)?, |context, detail| {
        let OperationDetail { row, pid, host, .. } = detail;
        let print_field =
            |key: &str, value: &dyn Display| context.ui.print_line(format!("{key:<10} {value}"));
        let undone_suffix = if row.undone { " (undone)" } else { "" };
        print_field("operation", &format!("{number}{undone_suffix}"));
        print_field("command", &row.command);
        let age = ui::short_duration(now().duration_since(row.started_at));
        print_field("when", &format!("{}, {age} ago", row.started_at));
        print_field("who", &format!("process {pid} on {host}"));
        if let Some(via) = row.via.as_ref().filter(|via| *via != "terminal") {
            print_field("via", via);
        }
        if row.recovered {
            print_field("how", &"interrupted; recovered by a later command");
        }
        print_field("what", &row.effect);
        context.ui.print_each("  ", detail.steps.iter().filter_map(|step| step.log_line()));
    })
}
