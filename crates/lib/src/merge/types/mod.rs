//! Options, outcomes and errors of landings.

pub mod autostash;
pub mod candidate;
pub mod error;
pub mod options;
pub mod outcome;
pub mod resolve_error;
pub mod resolver;
