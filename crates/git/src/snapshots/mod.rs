//! Snapshots of a worktree with its index, and their restoration.

pub mod clear;
pub mod ignored_obstructions;
pub mod late_writes;
pub mod recovery;
pub mod restore;
pub mod restore_forecast;
pub mod restored_index;
pub mod restored_stamps;
pub mod snapshot;
pub mod snapshot_compare;
pub mod snapshot_tree_writer;
pub mod truncated_files;
pub mod unmerged_paths;
pub mod verbatim_restore;
pub mod worktree_tree;
