//! Snapshots of lanes and checkouts: views, restoration, automatic snapshots.

pub(crate) mod auto_snapshot;
pub(crate) mod ignored_files;
pub(crate) mod lost_changes;
pub(crate) mod retention;
pub(crate) mod snap_restore;
pub(crate) mod snap_view;
