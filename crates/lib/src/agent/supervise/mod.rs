//! Supervisor of a lane's runs: the verdict on each run, retries and what follows.

pub mod already_done;
pub mod answer;
pub mod auto_snapshots;
pub mod classify;
pub mod follow_up;
pub mod retry_policy;
pub mod supervisor;
pub mod supervisor_start;
