//! Steps of operations applied to lanes, and recovery of interrupted operations.

pub(crate) mod interrupted_revert;
pub(crate) mod missing_worktree;
pub(crate) mod recovery;
pub(crate) mod run_operation;
pub(crate) mod steps;
