//! Operations: every change of a command is in effect at its end, or none is. Knows no kind of step.

pub mod interrupted_revert;
pub mod journaled_operation;
pub mod locked_worktree;
pub mod op_log_view;
pub mod recovery;
pub mod run_operation;
pub mod undo_operations;
pub mod undo_plan;
