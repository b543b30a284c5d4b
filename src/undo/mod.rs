//! Undo and redo of operations: plan, forecast, refusals and execution.

pub(crate) mod entry_revert;
pub(crate) mod preview_return;
pub(crate) mod undo_forecast;
pub(crate) mod undo_operations;
pub(crate) mod undo_plan;
pub(crate) mod undo_refusals;
