//! Snapshots of lanes and checkouts: views, restoration, automatic snapshots.

pub mod auto_snapshot;
pub mod ignored_files;
pub mod lost_changes;
pub mod retention;
pub mod snap_restore;

pub use crate::lane::parking::snap_view;
