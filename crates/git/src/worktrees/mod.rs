//! Linked worktrees: creation, population, checks, reset and sparse checkout.

pub mod align_mtimes;
pub mod broken_worktree;
pub mod health_probe;
pub mod lane_submodules;
pub mod lfs_pointers;
pub mod misplaced;
pub mod nested_repo;
pub mod new_worktree;
pub mod populate;
pub mod push;
pub mod rename_worktree;
pub mod sparse_checkout;
pub mod unfinished_worktree;
pub mod verify_worktree;
pub mod worktree;
pub mod worktree_reset;
pub mod worktree_stamp;
