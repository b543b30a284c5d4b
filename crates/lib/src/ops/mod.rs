//! Use cases: what a person can do with lanes, each as a request, a plan and an outcome.
//!
//! A module per use case. Its request is plain data; `plan` reads the repository, changes nothing, and
//! returns the changes to be made or the refusal; `execute` makes exactly these changes, refuses if the
//! repository has moved since, and returns the outcome, which serializes to the command's JSON output.

pub mod approvals;
pub mod auto_merge;
pub mod batch_rules;
pub mod cleanup;
pub mod demo;
pub mod discard;
pub mod edit;
pub mod error;
pub mod follow_run;
pub mod gc;
pub mod lane_removal;
pub mod launch_checks;
pub mod merge;
pub mod operation_log;
pub mod pick;
pub mod preview;
pub mod redispatch;
pub mod refusal;
pub mod removal;
pub mod reporter;
pub mod resolve;
pub mod run;
pub mod send;
pub mod snapshot;
pub mod spawn;
pub mod spawn_guest;
pub mod stop;
pub mod undo;
pub mod wait;
pub mod waiting_merges;
