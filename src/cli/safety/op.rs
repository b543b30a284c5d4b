//! The `git proq op` command: the operation log.

use std::fmt::Display;

use clap::{Args, Subcommand};
use proq_lib::ops::operation_log;
use proq_lib::ops::operation_log::OperationDetail;
use proq_lib::ops::undo::UndoRequest;
use proq_lib::types::{OperationNumber, UndoTarget, now};

use super::undo_operations::undo_operations;
use crate::cli::arguments::numbers::operation_number;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::terminal::{table, ui};

/// Look at what git-proq did, and go back to any point of it
///
/// Every command that changed something is one operation. `git proq undo` takes the last one back.
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
    pub(crate) command: OpCommand,
}

/// What can be done with the log.
#[derive(Debug, Subcommand)]
pub(crate) enum OpCommand {
    /// List the operations, newest first
    Log {
        /// Only the last N
        #[arg(long, value_name = "N")]
        last: Option<usize>,
    },
    /// Show what one did: refs before and after, worktrees, snapshots, trash
    Show {
        /// The operation
        #[arg(value_name = "OP", value_parser = operation_number(), required_unless_present = "trace")]
        operation: Option<OperationNumber>,
        /// Show the trace of one that failed: what ran, and how long; without OP, of the last that left nothing
        #[arg(long)]
        trace: bool,
    },
    /// Take back everything that came after an operation
    Restore {
        /// The operation that stands last afterwards; 0 for none
        #[arg(value_name = "OP", value_parser = operation_number())]
        operation: OperationNumber,
        /// Also when somebody built on it or it was pushed; what came after is kept under a ref
        #[arg(long, short)]
        force: bool,
        /// Say what would be taken back, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Take the last undo back
    Redo {
        /// Say what would be done, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
}

pub(crate) fn run(context: &CommandContext, args: &Op) -> CommandResult {
    let undo = |target, force, dry_run| {
        undo_operations(context, &UndoRequest { target, force, is_named: true }, dry_run)
    };
    match &args.command {
        OpCommand::Log { last } => print_log(context, *last),
        OpCommand::Show { operation: Some(operation), trace: false } => print_operation(context, *operation),
        OpCommand::Show { operation, .. } => print_trace(context, *operation),
        OpCommand::Restore { operation, force, dry_run } => {
            undo(UndoTarget::After(*operation), *force, *dry_run)
        }
        OpCommand::Redo { dry_run } => undo(UndoTarget::LastUndo, false, *dry_run),
    }
}

fn print_log(context: &CommandContext, last: Option<usize>) -> CommandResult {
    context.show(operation_log::list(&context.project()?, last), |context, list| {
        let rows = list.operations.into_iter().map(|row| {
            let state = match (row.undone, row.recovered) {
                (true, _) => "undone",
                (false, true) => "cut short",
                (false, false) => "",
            };
            let age = ui::short_duration(now().duration_since(row.started_at));
            vec![row.operation.to_string(), age, state.to_owned(), row.command, row.effect]
        });
        let head = ["OP", "AGE", "STATE", "COMMAND", "WHAT IT DID"];
        table::print(context.ui, &head, rows.collect(), "nothing was done yet");
    })
}

fn print_trace(context: &CommandContext, number: Option<OperationNumber>) -> CommandResult {
    let found = operation_log::trace(&context.project()?, number)?;
    context.show(&found, |context, found| context.ui.print_each("", &found.trace))
}

fn print_operation(context: &CommandContext, number: OperationNumber) -> CommandResult {
    context.show(&operation_log::show(&context.project()?, number)?, |context, detail| {
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
            print_field("how", &"cut short, and put right by a later command");
        }
        print_field("what", &row.effect);
        context.ui.print_each("  ", detail.steps.iter().filter_map(|step| step.log_line()));
    })
}
