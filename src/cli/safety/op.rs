//! The `git proq op` command: the operation log.

use clap::{Args, Subcommand};
use proq_base::config::settings::Settings;
use proq_base::explain::Exit;
use proq_lib::operation::journaled_operation::step::{BoxedStep, RefChange};
use proq_lib::operation::op_log_view;
use proq_lib::operation::op_log_view::{LoggedOperation, OpLog};
use proq_lib::undo::undo_plan::UndoTarget;
use proq_store::base::clock::{Moment, now};
use proq_store::base::operation_number::OperationNumber;
use serde::Serialize;

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
        #[arg(value_name = "OP", value_parser = operation_number())]
        operation: OperationNumber,
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

#[derive(Serialize)]
struct OperationRow {
    operation: OperationNumber,
    /// Time at which the operation started.
    #[serde(rename = "at")]
    started_at: Moment,
    kind: String,
    command: String,
    /// What the operation did, in a few words.
    #[serde(rename = "did")]
    effect: String,
    /// Whether the operation was undone later.
    undone: bool,
    /// Whether the operation's process crashed and another process completed or undid the operation.
    recovered: bool,
    /// Numbers of the operations that this one undoes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    undoes: Vec<OperationNumber>,
    /// Number of the undo that this operation takes back.
    #[serde(skip_serializing_if = "Option::is_none")]
    redoes: Option<OperationNumber>,
}

#[derive(Serialize)]
struct OperationList {
    operations: Vec<OperationRow>,
}

#[derive(Serialize)]
struct OperationDetail {
    #[serde(flatten)]
    row: OperationRow,
    pid: u32,
    host: String,
    refs: Vec<RefChange>,
    steps: Vec<BoxedStep>,
}

pub(crate) fn run(context: &CommandContext, args: &Op) -> CommandResult {
    match &args.command {
        OpCommand::Log { last } => print_log(context, *last),
        OpCommand::Show { operation } => print_operation(context, *operation),
        OpCommand::Restore { operation, force, dry_run } => {
            undo_operations(context, UndoTarget::After(*operation), *force, *dry_run, true)
        }
        OpCommand::Redo { dry_run } => undo_operations(context, UndoTarget::LastUndo, false, *dry_run, true),
    }
}

fn operation_row(settings: &Settings, logged: &LoggedOperation) -> OperationRow {
    let (header, entry) = (&logged.entry.header, &logged.entry);
    OperationRow {
        operation: logged.number,
        started_at: header.started_at,
        kind: header.kind.clone(),
        command: header.command.clone(),
        effect: op_log_view::summarize_entry(entry, &settings.branch_prefix),
        undone: logged.is_undone,
        recovered: entry.end_and_recovered.is_some_and(|(_, recovered)| recovered),
        undoes: header.undoes.clone(),
        redoes: header.reverted_undo,
    }
}

fn print_log(context: &CommandContext, last: Option<usize>) -> CommandResult {
    let project = context.project()?;
    let op_log = OpLog::read(&project);
    let rows = op_log
        .operations
        .iter()
        .rev()
        .take(last.unwrap_or(usize::MAX))
        .map(|l| operation_row(&project.settings, l));
    let operations: Vec<OperationRow> = rows.collect();
    if context.ui.json {
        context.ui.print_json(OperationList { operations });
        return Ok(Exit::Success);
    }
    if operations.is_empty() {
        context.ui.status("nothing was done yet");
        return Ok(Exit::Success);
    }
    let rows = operations.iter().map(|row| {
        let state = match (row.undone, row.recovered) {
            (true, _) => "undone",
            (false, true) => "cut short",
            (false, false) => "",
        };
        vec![
            row.operation.to_string(),
            ui::short_duration(now().duration_since(row.started_at)),
            state.to_owned(),
            row.command.clone(),
            row.effect.clone(),
        ]
    });
    context.ui.print_line(table::render(&["OP", "AGE", "STATE", "COMMAND", "WHAT IT DID"], rows.collect()));
    Ok(Exit::Success)
}

fn print_operation(context: &CommandContext, number: OperationNumber) -> CommandResult {
    let project = context.project()?;
    let op_log = OpLog::read(&project);
    let logged = op_log_view::require_operation(&op_log, number)?;
    let steps: Vec<BoxedStep> = logged.entry.applied_steps().cloned().collect();
    let row = operation_row(&project.settings, logged);
    if context.ui.json {
        let header = &logged.entry.header;
        let refs = steps.iter().filter_map(|step| step.moved_ref()).collect();
        context.ui.print_json(OperationDetail {
            row,
            pid: header.pid,
            host: header.host.clone(),
            refs,
            steps,
        });
        return Ok(Exit::Success);
    }
    let ui = context.ui;
    ui.print_line(format!("operation  {number}{}", if row.undone { " (undone)" } else { "" }));
    ui.print_line(format!("command    {}", row.command));
    ui.print_line(format!(
        "when       {}, {} ago",
        row.started_at,
        ui::short_duration(now().duration_since(row.started_at))
    ));
    ui.print_line(format!("who        process {} on {}", logged.entry.header.pid, logged.entry.header.host));
    if row.recovered {
        ui.print_line("how        cut short, and put right by a later command");
    }
    ui.print_line(format!("what       {}", row.effect));
    for step in &steps {
        if let Some(line) = step.log_line() {
            ui.print_line(format!("  {line}"));
        }
    }
    Ok(Exit::Success)
}
