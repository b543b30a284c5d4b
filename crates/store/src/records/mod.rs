//! Definitions of all records on disk.

pub mod agent;
pub mod approval;
pub mod baseline;
pub mod batched;
pub mod check;
pub mod conflict;
pub mod draft;
pub mod git_guard;
pub mod lane;
pub mod lane_state;
pub mod message;
pub mod ports;
pub mod preview;
pub mod pull_request;
pub mod run;
pub mod snapshot;
pub mod step_run;
pub mod task_loop;
pub mod trash;
