//! Storage of snapshots, and local changes that an operation moves out of the way.

pub mod park_changes;
pub mod snapshot_match;
pub mod snapshot_store;
pub mod undo_restore;
