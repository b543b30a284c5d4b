//! Tests of the scheduler: scenarios written by hand, and random batches in a simulation.

mod batch_case;
mod batch_driver;
mod batch_simulation;
mod cost;
mod failure_policies;
mod late_events;
mod oracle;
mod plan_stages;
mod properties;
mod reference_model;
mod scenarios;
