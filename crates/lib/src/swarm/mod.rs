//! Plans of dependent tasks and the batches that run them: plan sources and formats, dependencies, file
//! overlaps, and scheduling.

pub mod batch;
pub mod landing;
pub mod ops;
pub mod planner;
pub mod run;
pub mod status;

pub use crate::swarm::batch::error::Error;
