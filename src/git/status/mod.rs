//! Status of a worktree: changed, untracked and ignored files.

pub(crate) mod diff;
pub(crate) mod folder_stamps;
pub(crate) mod ignore_rules;
pub(crate) mod included_files;
pub(crate) mod local_changes;
pub(crate) mod local_state;
pub(crate) mod scope;
pub(crate) mod special_files;
pub(crate) mod staged_commit;
pub(crate) mod stat_scan;
pub(crate) mod status_query;
pub(crate) mod status_walk;
pub(crate) mod untracked;
pub(crate) mod untracked_folders;
pub(crate) mod worktree_scan;
pub(crate) mod worktree_status;
