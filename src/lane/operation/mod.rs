//! The operation engine: journaled steps, their plans, and the operation log.

pub(crate) mod journaled_operation;
pub(crate) mod locked_worktree;
pub(crate) mod op_log_view;
pub(crate) mod record_steps;
pub(crate) mod step_plans;
