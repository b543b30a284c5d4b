//! Progress and history of batches, and simulation of a plan.

pub(crate) mod batch_history;
pub(crate) mod manual_repairs;
pub(crate) mod progress;
pub(crate) mod simulation;
pub(crate) mod undone_landings;
