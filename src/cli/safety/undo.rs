//! The commands `git proq undo` and `git proq redo`.

use clap::Args;
use proq_lib::ops::undo::UndoRequest;
use proq_lib::types::{OperationNumber, UndoTarget};

use super::undo_operations::undo_operations;
use crate::cli::arguments::numbers::operation_number;
use crate::cli::invocation::context::{CommandContext, CommandResult};

/// Take the last operation back
///
/// Refs, worktrees, files and records become what they were before it; removed lanes come back with everything that was in
/// them. Either all of it, or nothing and the reason. Again takes the one before back; `git proq op redo` goes forward.
///
/// With a number, only if that is the last operation that stands.
///
/// Examples:
///     git proq undo
///     git proq undo --dry-run
///     git proq op log
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Undo {
    /// The operation, as `git proq op log` numbers it; needed for one of another terminal when nobody can be asked
    #[arg(value_name = "OP", value_parser = operation_number())]
    pub(crate) operation: Option<OperationNumber>,
    /// Also when somebody built on it or it was pushed; what came after is kept under a ref
    #[arg(long, short)]
    pub(crate) force: bool,
    /// Show what would be taken back, or why it cannot be, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Redo what the last undo took back
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
