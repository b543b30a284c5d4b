//! The commands `git proq undo` and `git proq redo`.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use proq_lib::ops::undo::UndoRequest;
use proq_lib::types::{OperationNumber, UndoTarget};

use super::undo_operations::undo_operations;
use crate::cli::arguments::candidates::operation_numbers;
use crate::cli::arguments::numbers::operation_number;
use crate::cli::invocation::context::{CommandContext, CommandResult};

/// Undo the last operation
///
/// Refs, worktrees, files and records return to their state before the operation; removed lanes return with
/// everything that was in them. Undo is all or nothing: if it is refused, it gives the reason and changes
/// nothing. Another undo undoes the operation before; `git proq redo` redoes one.
///
/// With a number, undoes the operation only if it is the last one.
///
/// Examples:
///     git proq undo
///     git proq undo --dry-run
///     git proq op log
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Undo {
    /// Operation number (see `git proq op log`)
    ///
    /// Needed for an operation of another terminal if git-proq cannot ask.
    #[arg(value_name = "OP", value_parser = operation_number(), add = ArgValueCompleter::new(operation_numbers))]
    pub(crate) operation: Option<OperationNumber>,
    /// Undo even if later work builds on it or it was pushed
    ///
    /// Later work is kept under a ref.
    #[arg(long, short_alias = 'f')]
    pub(crate) force: bool,
    /// Show what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Redo what the last undo reverted
///
/// Undo it again to go back; `git proq op log` shows every step.
///
/// Examples:
///     git proq redo
///     git proq redo --dry-run
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Redo {
    /// Show what would be done, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Takes the last undo back.
pub(crate) fn redo(context: &CommandContext, args: &Redo) -> CommandResult {
    let request = UndoRequest { target: UndoTarget::LastUndo, force: false, is_named: true };
    undo_operations(context, &request, args.dry_run)
}

pub(crate) fn run(context: &CommandContext, args: &Undo) -> CommandResult {
    let (target, is_named) = (UndoTarget::Last(args.operation), args.operation.is_some());
    undo_operations(context, &UndoRequest { target, force: args.force, is_named }, args.dry_run)
}
