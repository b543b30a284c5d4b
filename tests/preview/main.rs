//! Previews, snapshots and undo: the user's own work in the main checkout.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod auto_snapshots;
mod clean_filters;
mod external_changes;
#[cfg(target_os = "linux")]
mod file_modes;
mod gc;
#[cfg(target_os = "linux")]
#[cfg(debug_assertions)]
mod index_flags;
mod index_flags_undo;
mod local_changes;
mod preview;
mod preview_empty_folders;
mod preview_manual_git;
mod preview_obstacles;
mod preview_parity;
mod preview_round_trip;
mod preview_settings;
mod preview_special_files;
mod property;
mod restore_races;
mod snap;
mod snap_expiry;
mod snap_ids;
mod snapshot_setups;
mod snapshots;
mod undo;
mod undo_numbers;
