//! Arguments that several commands share, and completion values for them.

pub(crate) mod candidates;
pub(crate) mod numbers;
pub(crate) mod parse_error;
pub(crate) mod plan_source;
pub(crate) mod run_args;
pub(crate) mod user_files;
