//! Lanes of coding agents: creation, runs, previews, landings and batches.

pub mod agent;
pub mod board;
pub mod errors;
pub mod event;
pub mod facade;
pub mod health;
pub mod lane;
pub mod merge;
pub mod operation;
pub mod ops;
pub mod preview;
pub mod probe;
pub mod project;
pub mod run;
pub mod session;
pub mod snapshot;
pub mod step_kinds;
pub mod swarm;
#[cfg(test)]
mod tests;
pub mod types;
pub mod watch;
