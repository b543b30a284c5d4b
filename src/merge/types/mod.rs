//! Options, outcomes and errors of landings.

pub(crate) mod candidate;
pub(crate) mod error;
pub(crate) mod options;
pub(crate) mod outcome;
pub(crate) mod resolve_error;
pub(crate) mod resolver;
