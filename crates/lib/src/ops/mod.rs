//! Use cases: what a person can do with lanes, each as a request, a plan and an outcome.
//!
//! A module per use case. Its request is plain data; `plan` reads the repository, changes nothing, and
//! returns the changes to be made or the refusal; `execute` makes exactly these changes, refuses if the
//! repository has moved since, and returns the outcome, which serializes to the command's JSON output.

pub mod approvals;
pub mod batch_rules;
pub mod demo;
pub mod edit;
pub mod error;
pub mod follow_run;
pub mod land;
pub mod lane_removal;
pub mod open;
pub mod operation_log;
pub mod preview;
pub mod pull_request;
pub mod refusal;
pub mod remove;
pub mod reporter;
pub mod send;
pub mod settings;
pub mod snapshot;
pub mod start;
pub mod stop;
pub mod supervise;
pub mod undo;
pub mod wait;
