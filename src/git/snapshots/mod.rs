//! Snapshots of a worktree with its index, and their restoration.

pub(crate) mod clear;
pub(crate) mod ignored_obstructions;
pub(crate) mod late_writes;
pub(crate) mod recovery;
pub(crate) mod restore;
pub(crate) mod restore_forecast;
pub(crate) mod restored_index;
pub(crate) mod restored_stamps;
pub(crate) mod snapshot;
pub(crate) mod snapshot_compare;
pub(crate) mod snapshot_tree_writer;
pub(crate) mod truncated_files;
pub(crate) mod unmerged_paths;
pub(crate) mod verbatim_restore;
pub(crate) mod worktree_tree;
