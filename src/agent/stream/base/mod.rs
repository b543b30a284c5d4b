//! Events, progress and failures of a run, which the parsers of all dialects write to.

pub(crate) mod client_line;
pub(crate) mod collector;
pub(crate) mod event;
pub(crate) mod failure_kind;
pub(crate) mod json;
pub(crate) mod limit_reset;
pub(crate) mod lines;
pub(crate) mod parser;
pub(crate) mod price;
pub(crate) mod progress;
pub(crate) mod run_end;
