//! Linked worktrees: creation, population, checks, reset and sparse checkout.

pub(crate) mod align_mtimes;
pub(crate) mod broken_worktree;
pub(crate) mod health_probe;
pub(crate) mod lane_submodules;
pub(crate) mod lfs_pointers;
pub(crate) mod misplaced;
pub(crate) mod nested_repo;
pub(crate) mod new_worktree;
pub(crate) mod populate;
pub(crate) mod push;
pub(crate) mod sparse_checkout;
pub(crate) mod unfinished_worktree;
pub(crate) mod verify_worktree;
pub(crate) mod worktree;
pub(crate) mod worktree_reset;
pub(crate) mod worktree_stamp;
