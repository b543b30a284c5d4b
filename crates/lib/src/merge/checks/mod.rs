//! Check commands, the worktree that they run in, and the search for the lane that breaks them.

pub mod check_commands;
pub mod check_environment;
pub mod check_runs;
pub mod check_worktree;
pub mod culprit_search;
pub mod verification;
