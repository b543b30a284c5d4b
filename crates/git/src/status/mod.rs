//! Status of a worktree: changed, untracked and ignored files.

pub mod diff;
pub mod folder_stamps;
pub mod ignore_rules;
pub mod included_files;
pub mod local_changes;
pub mod local_state;
pub mod patch;
pub mod scope;
pub mod special_files;
pub mod staged_commit;
pub mod stat_scan;
pub mod status_query;
pub mod status_walk;
pub mod untracked;
pub mod untracked_folders;
pub mod word_ranges;
pub mod worktree_scan;
pub mod worktree_status;
