//! Access to git: the gix library for reading, the git program for changes.

mod align_mtimes;
mod attributes;
mod broken_worktree;
mod clear;
mod command;
mod command_environment;
mod commit;
mod commit_description;
mod commit_graph;
mod connectivity;
mod deletions;
mod diff;
mod equivalent_changes;
mod error;
mod error_hints;
mod exact_merge;
mod failed_program;
mod fast_checkout;
mod file_copy;
mod file_modes;
mod folder_stamps;
mod folders;
mod forecast;
mod fork_points;
mod fsync;
mod full_index;
mod git_dir;
mod git_forecast;
mod graph;
mod head;
mod head_file;
mod health_probe;
mod hook;
mod hook_output;
mod hook_repo;
mod identity;
mod ignore_rules;
mod ignored_obstructions;
mod included_files;
mod index;
mod index_flags;
mod injected_config;
mod lane_submodules;
mod late_writes;
mod lfs_pointers;
mod local_changes;
mod local_changes_hint;
mod local_state;
mod lock_file;
mod loose_objects;
mod main_checkout;
mod merge_drivers;
mod merge_rules;
mod misplaced;
mod nested_repo;
mod new_branch;
mod new_worktree;
mod no_conversion;
mod objects;
mod obstructions;
mod oid;
mod open_operation;
mod open_settings;
mod ownership;
mod parallel;
mod partial_clone;
mod patch_id;
mod path;
mod path_list;
mod pick;
mod populate;
mod preconditions;
mod preflight;
mod push;
mod quarantine;
mod raw_index;
mod rebuilt_files;
mod recovery;
mod ref_transaction;
mod reflog;
mod refresh_index;
mod refs;
mod repo;
mod repo_sync;
mod resolve;
mod restore;
mod restore_forecast;
mod restored_index;
mod restored_stamps;
mod scope;
mod settings;
mod shared_repository;
mod signature;
mod snapshot;
mod snapshot_compare;
mod snapshot_tree_writer;
mod sparse_checkout;
mod sparse_entries;
mod sparse_patterns;
mod special_files;
mod staged_commit;
mod staged_entries;
mod stale_locks;
mod stat_scan;
mod status;
mod status_walk;
mod submodule;
#[cfg(test)]
mod test_repo;
mod text_merge;
mod touched_paths;
mod transition;
mod tree_diff;
mod tree_edit;
mod tree_merge;
mod tree_reader;
mod truncated_files;
mod uncommitted;
mod unfinished_worktree;
mod unmerged_paths;
mod untracked;
mod untracked_folders;
mod unusable;
mod verbatim_restore;
mod verify_worktree;
mod version;
mod watchdog;
mod worktree;
mod worktree_context;
mod worktree_reset;
mod worktree_scan;
mod worktree_stamp;
mod worktree_tree;

pub(crate) use crate::explain::shell_quote_bytes;
pub(crate) use align_mtimes::align_mtimes;
pub(crate) use broken_worktree::WorktreeDefect;
pub(crate) use clear::{clear_worktree, copy_filtered_files, copy_untracked_files};
pub(crate) use command::{Command, PrintChunk, Program};
pub(crate) use commit::NewCommit;
pub(crate) use deletions::{MIN_FILES_FOR_MASS_DELETION, detect_mass_deletion};
pub(crate) use diff::{DiffWorktree, FileLineCounts};
pub(crate) use error::{Error, list_paths};
pub(crate) use error_hints::abort_command;
pub(crate) use error_hints::ref_removal_command;
pub(crate) use folders::{remove_empty_parked_dir, remove_if_empty};
pub(crate) use forecast::PathConflict;
pub(crate) use forecast::{MergeInput, forecast_environment, forecast_merges};
pub(crate) use fork_points::{BranchFork, CommonAncestor, ForkPoints};
pub(crate) use fsync::sync_file_system;
pub(crate) use git_forecast::{GitForecast, forecast_with_git, write_temporary_commit};
pub(crate) use graph::Distance;
pub use head::Head;
pub(crate) use head::RefMove;
pub(crate) use health_probe::{WorktreeRegistration, installed_git, is_in_repository, lock_owner_pid};
pub(crate) use hook::run_hook;
pub(crate) use hook_repo::{HookRepo, find_repo_hook};
pub(crate) use ignored_obstructions::IgnoredFile;
pub(crate) use included_files::{
    IncludePatterns, IncludeSource, IncludedPath, exclude_line, is_ignored, list_folder,
};
pub(crate) use index_flags::{
    has_manual_flags, has_only_known_flags, has_same_flags, has_same_manual_flags, hidden_changes,
    hidden_edits, keeps_manual_flags, split_flagged_edits,
};
pub(crate) use injected_config::{CONFIG_VARIABLE as HOOKS_VARIABLE, hooks_path_parameter, user_parameters};
pub(crate) use late_writes::capture_late_writes;
pub use local_changes_hint::LocalChangesHint;
pub(crate) use local_state::LocalState;
pub(crate) use misplaced::WorktreeId;
pub(crate) use nested_repo::NestedRepo;
pub(crate) use objects::TempObjectStore;
pub use oid::Oid;
pub(crate) use open_operation::{find_open_operation, has_autostash};
pub use path::RepoPath;
pub(crate) use pick::{CommitWithParents, PickOutcome, pick};
pub(crate) use populate::{
    BlobSizes, OnProgress, PopulateOutcome, PopulateProgress, RetiredWorktree, ReusePlan,
};
pub(crate) use preconditions::{require_unobstructed, require_unobstructed_when_clean};
pub(crate) use push::PushFailure;
pub(crate) use quarantine::{matches_blob, restore_parked_files};
pub(crate) use recovery::{
    RecoveredStep, is_partial_copy, record_deletions, recover_clear, recover_deletion_locks,
    recover_private_ref_lock, recover_ref_locks, recover_restore, recover_transition,
    recover_without_worktree, release_step_locks,
};
pub(crate) use reflog::ReflogEntry;
pub(crate) use repo::Repo;
pub(crate) use resolve::{WorktreeContents, capture_worktree_contents};
pub(crate) use restore::{RestoreOutcome, restore};
pub(crate) use restore_forecast::{forecast_restore, foreign_staged_paths};
pub(crate) use restored_stamps::is_unchanged_since_restore;
pub(crate) use scope::Scope;
pub(crate) use snapshot::{
    Snapshot, capture as take_snapshot, capture_unchanged, capture_unmerged, save_index_commit,
    write_tracked_tree,
};
pub(crate) use sparse_entries::deviates_from_patterns;
pub(crate) use special_files::{UncapturedPath, unreadable_paths};
pub(crate) use staged_commit::{commit_staged, stage_and_commit, stage_paths};
pub(crate) use staged_entries::StagedEntries;
pub(crate) use status::{
    ScanRequest, StatusEntry, StatusKind, WorktreeStatus, query_statuses, scan_statuses, status,
};
pub(crate) use text_merge::LineRange;
pub(crate) use touched_paths::{TouchedPaths, touched_paths};
pub(crate) use transition::transition;
pub(crate) use tree_diff::{Change, TreeFile, tree_changes, tree_files, tree_paths};
pub(crate) use tree_edit::TreeEdit;
pub(crate) use tree_merge::{
    TreeMergeOutcome, UnmergedStage, exact_merge_tree, merge_commits, merge_trees, merge_with_diff3_markers,
    would_conflict,
};
pub(crate) use truncated_files::{WorktreeStep, repair_truncated_files, sync_written_files};
pub(crate) use uncommitted::{UncommittedWorktree, write_uncommitted_trees};
pub(crate) use untracked_folders::empty_folders;
pub use unusable::UnusableError;
pub(crate) use worktree::{Worktree, WorktreeList};
pub(crate) use worktree_context::WorktreeContext;
pub(crate) use worktree_scan::WorktreeScan;
pub(crate) use worktree_stamp::WorktreeStamp;
