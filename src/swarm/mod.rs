//! Plans of dependent tasks and the batches that run them: plan sources and formats, dependencies, file
//! overlaps, and scheduling.

pub(crate) mod batch;
pub(crate) mod landing;
pub(crate) mod planner;
pub(crate) mod plans;
pub(crate) mod run;
pub(crate) mod schedule;
pub(crate) mod status;

pub(crate) use crate::swarm::batch::error::Error;
