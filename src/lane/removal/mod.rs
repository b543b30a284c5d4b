//! Removal of lanes and of data that has expired.

pub(crate) mod expire;
pub(crate) mod op_log_expiry;
pub(crate) mod remove_lane;
pub(crate) mod saved_refs;
pub(crate) mod temp_cleanup;
pub(crate) mod trash_contents;
pub(crate) mod unrecorded_worktree;
pub(crate) mod verify_cache_expiry;
