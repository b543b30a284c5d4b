//! Progress and history of batches, and simulation of a plan.

pub mod batch_history;
pub mod manual_repairs;
pub mod progress;
pub mod simulation;
pub mod undone_landings;
