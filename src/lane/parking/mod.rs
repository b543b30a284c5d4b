//! Storage of snapshots, and local changes that an operation moves out of the way.

pub(crate) mod park_changes;
pub(crate) mod snapshot_match;
pub(crate) mod snapshot_store;
pub(crate) mod undo_restore;
