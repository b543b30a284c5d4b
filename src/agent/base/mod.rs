//! Errors about agents, limits of runs, and what supervisors and clients of agents share.

pub(crate) mod error;
pub(crate) mod limits;
pub(crate) mod outbox;
pub(crate) mod shutdown_signals;
