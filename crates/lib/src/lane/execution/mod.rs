//! Steps of operations applied to lanes, and recovery of interrupted operations.

pub mod interrupted_revert;
pub mod missing_worktree;
pub mod recovery;
pub mod run_operation;
pub mod steps;
