//! Storage of snapshots, and local changes that an operation moves out of the way.

pub mod autostash;
pub mod clear_worktree;
pub mod locked_snapshots;
pub mod park_changes;
pub mod pre_restore_state;
pub mod restore_snapshot;
pub mod snap_view;
pub mod snapshot_match;
pub mod snapshot_store;
pub mod stash_method;
pub mod take_snapshot;
pub mod undo_forecast;
pub mod undo_restore;
