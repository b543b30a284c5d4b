//! The operation engine: journaled steps, their plans, and the operation log.

pub mod journaled_operation;
pub mod locked_worktree;
pub mod op_log_view;
pub mod record_steps;
pub mod step_plans;
