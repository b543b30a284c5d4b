//! Tests of the scheduler: scenarios written by hand, and random batches in a simulation.

pub(crate) mod batch_case;
pub(crate) mod batch_driver;
pub(crate) mod batch_simulation;
pub(crate) mod cost;
pub(crate) mod failure_policies;
pub(crate) mod late_events;
pub(crate) mod oracle;
pub(crate) mod plan_stages;
pub(crate) mod properties;
pub(crate) mod reference_model;
pub(crate) mod scenarios;
