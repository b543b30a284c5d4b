//! Tests of the scheduler: scenarios written by hand, and random batches in a simulation.

pub mod batch_case;
pub mod batch_driver;
pub mod batch_simulation;
pub mod cost;
pub mod failure_policies;
pub mod late_events;
pub mod oracle;
pub mod plan_stages;
pub mod properties;
pub mod reference_model;
pub mod scenarios;
