//! Errors about agents, limits of runs, and what supervisors and clients of agents share.

pub mod error;
pub mod limits;
pub mod outbox;
pub mod shutdown_signals;
