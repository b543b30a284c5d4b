//! Events, progress and failures of a run, which the parsers of all dialects write to.

pub mod client_line;
pub mod collector;
pub mod event;
pub mod failure_kind;
pub mod json;
pub mod limit_reset;
pub mod lines;
pub mod parser;
pub mod price;
pub mod progress;
pub mod run_end;
