//! Definitions of all records on disk.

pub(crate) mod agent;
pub(crate) mod approval;
pub(crate) mod baseline;
pub(crate) mod batched;
pub(crate) mod check;
pub(crate) mod conflict;
pub(crate) mod draft;
pub(crate) mod git_guard;
pub(crate) mod lane;
pub(crate) mod lane_state;
pub(crate) mod message;
pub(crate) mod ports;
pub(crate) mod preview;
pub(crate) mod run;
pub(crate) mod snapshot;
pub(crate) mod step;
pub(crate) mod step_run;
pub(crate) mod task_loop;
pub(crate) mod trash;
