//! Removal of lanes and of data that has expired.

pub mod expire;
pub mod op_log_expiry;
pub mod remove_lane;
pub mod saved_refs;
pub mod temp_cleanup;
pub mod trash_contents;
pub mod unrecorded_worktree;
pub mod verify_cache_expiry;
