//! Supervisor of a lane's runs: the verdict on each run, retries and what follows.

pub(crate) mod already_done;
pub(crate) mod answer;
pub(crate) mod auto_snapshots;
pub(crate) mod classify;
pub(crate) mod follow_up;
pub(crate) mod retry_policy;
pub(crate) mod supervisor;
pub(crate) mod supervisor_start;
