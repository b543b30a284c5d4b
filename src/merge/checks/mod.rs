//! Check commands, the worktree that they run in, and the search for the lane that breaks them.

pub(crate) mod check_commands;
pub(crate) mod check_environment;
pub(crate) mod check_runs;
pub(crate) mod check_worktree;
pub(crate) mod culprit_search;
pub(crate) mod verification;
