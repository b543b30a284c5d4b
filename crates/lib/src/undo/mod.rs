//! Undo and redo of operations: plan, forecast, refusals and execution.

pub mod entry_revert;
pub mod undo_forecast;
pub mod undo_operations;
pub mod undo_plan;
