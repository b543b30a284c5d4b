//! Lanes: names, states, creation and removal, worktree set-up, snapshots, trash, and the operations that
//! change them.

mod attached_files;
mod attempts;
mod auto_merge;
mod auto_snapshot;
mod base;
mod broken_lane;
mod broken_lane_error;
mod checkout_mode;
mod checks_dir;
mod commit_graph;
mod conflict_validity;
mod crash_reason;
mod create;
mod create_many;
mod delivered_messages;
mod detached_worktree;
mod entry_revert;
mod error;
mod error_hints;
mod evidence;
mod expire;
mod expiry_item;
mod head_ownership;
mod idle_lane;
mod ignored_files;
mod in_place;
mod in_place_baseline;
mod in_place_commit;
mod in_place_finish;
mod in_place_guard;
mod inbox;
mod interrupted_revert;
mod journaled_operation;
mod landing_checks;
mod lane_costs;
mod lane_records;
mod lane_state;
mod lanes_folder;
mod leftovers;
mod list;
mod location;
mod location_error;
mod locked_worktree;
mod lost_changes;
mod misplaced;
mod missing_worktree;
mod name;
mod op_log_expiry;
mod op_log_view;
mod park_changes;
mod pool;
mod populate;
mod populate_lanes;
mod ports;
mod preview_return;
mod project;
mod read_only;
mod record_steps;
mod recovery;
mod remove_lane;
mod report;
mod resident_processes;
mod resolve_worktree;
mod rewind;
mod rollback_create;
mod run_lock;
mod run_operation;
mod saved_refs;
mod scope_overlap;
mod set_up;
mod set_up_error;
mod shared_state;
mod snap_restore;
mod snap_view;
mod snapshot_error;
mod snapshot_match;
mod snapshot_store;
mod status_cache;
mod step_plans;
mod steps;
mod symbolic_branch;
mod symbolic_branch_error;
mod sync_files;
mod temp_cleanup;
mod trash;
mod trash_contents;
mod undo_error;
mod undo_forecast;
mod undo_operations;
mod undo_plan;
mod undo_refusals;
mod undo_restore;
mod unrecorded_worktree;
mod verify_cache_expiry;
mod veto_hooks;

pub(crate) use attached_files::{MessageFiles, attach, attachments, format_file_list, past_attachments};
pub(crate) use attempts::{any_lanes_by_name, group_attempts, group_sort_key, lanes_by_name};
pub(crate) use auto_merge::{
    AutoMergeStatus, advance_run_tip, auto_merge_status, hold_auto_merge, lanes_waiting_to_land,
    moved_since_run, record_refused_merge, refuse_moved_lanes, undelivered_reason,
};
pub(crate) use auto_snapshot::{is_any_agent_running, run_auto_snapshots};
pub(crate) use base::{Base, resolve as resolve_base};
pub(crate) use broken_lane::{missing_git_data, require_intact_worktree};
pub use broken_lane_error::BrokenLane;
pub(crate) use checkout_mode::{is_sparse_by_scope, widen_sparse_cone};
pub(crate) use commit_graph::start_commit_graph_if_due;
pub(crate) use conflict_validity::is_conflict_current;
pub(crate) use crash_reason::{describe_crash, last_output};
pub(crate) use create::{Created, LanePlan, NewLane, clean_title, create_lane, plan_lane, recreate_lane};
pub(crate) use create_many::{create_attempts, create_lanes, plan_attempts};
pub(crate) use delivered_messages::read_delivered;
pub(crate) use detached_worktree::{close_detached_worktree, open_detached_worktree};
pub(crate) use error::{Error, purpose_phrase};
pub(crate) use evidence::{
    RemovalEvidence, gather as gather_evidence, inspect_worktree, is_contained, lost_commit,
};
pub(crate) use expire::{delete_expired, find_expired};
pub(crate) use expiry_item::{ExpiredItem, ExpiryKind, ExpiryScan, RetainedItem};
pub(crate) use head_ownership::{
    find_off_branch, find_renamed_branch, foreign_head_reason, last_branch_commit, move_branch_to_head,
    recreate_branch_command, save_last_commit,
};
pub(crate) use idle_lane::{
    IDLE_DETAIL, displayed_state, has_committed_work, is_agent_idle, is_idle_with_work, is_interactive,
};
pub(crate) use in_place::{continue_in_place_run, require_in_place_possible, start_in_place_run};
pub(crate) use in_place_finish::{finish_in_place_run, has_in_place_changes};
pub(crate) use in_place_guard::{
    lane_running_in_place, require_branch_not_in_place, require_no_in_place_run,
};
pub(crate) use inbox::{
    ClaimedMessages, Inbox, InboxMessage, join_texts as join_message_texts, pending_messages,
    pending_text as pending_messages_text,
};
pub(crate) use journaled_operation::Operation;
pub(crate) use landing_checks::current_layers;
pub(crate) use lane_costs::total_costs;
pub(crate) use lane_records::load_present_or_past_lane;
pub(crate) use lane_state::{effective_state, last_activity, state_after_run};
pub(crate) use lanes_folder::{create_lanes_folder, exclude_patterns, files_missing_exclude};
pub(crate) use leftovers::{
    LeftoversOutcome, commit_leftovers, contains_conflict, leftovers_to_commit, move_nested_repo_command,
    snapshot_leftovers,
};
pub(crate) use list::{
    LaneView, LaneViewProgress, lane_views, lane_views_with_progress, unrecorded_worktrees,
};
pub use location_error::LocationError;
pub(crate) use locked_worktree::LockedWorktree;
pub(crate) use misplaced::{LaneFolderFault, find_folder_fault};
pub(crate) use name::LaneName;
pub(crate) use op_log_view::{
    BranchMoves, LoggedOperation, OpLog, branches_moved_since, last_finished_operation,
    require as require_operation, summarize_entry, worktrees_parked_since,
};
pub(crate) use pool::{PoolForecast, pool_forecast};
pub(crate) use ports::{ensure_ports, extra_ports};
pub(crate) use preview_return::{existing_worktree_on_branch, origin_branch_elsewhere};
pub(crate) use project::Project;
pub(crate) use read_only::{
    GuestLanePlan, GuestLaneRequest, ReadLocation, create_guest_lane, current_read_target,
    forget_unstarted_lane, last_answer, plan_guest_lane, remove_guest_lane, require_not_busy, run_answer,
};
pub(crate) use recovery::{StuckOperation, recover, stuck_operations};
pub(crate) use remove_lane::{RemovalReason, RemovedLane, refuse_removal, removal_command, remove};
pub(crate) use report::{
    AgentReport, CurrentLane, find_current_lane, save_report, validate as validate_report,
};
pub(crate) use resolve_worktree::{ClosedResolution, close_resolution, open_resolution};
pub(crate) use rewind::{LaneFingerprint, rewind_lane};
pub(crate) use run_operation::operate;
pub(crate) use scope_overlap::{OverlappingLane, ScopeOverlap, overlapping_lanes};
pub(crate) use set_up::{SetUpLevel, refresh_env_file, require_set_up_approved, run_skipped_commands};
pub use set_up_error::SetUpError;
pub(crate) use shared_state::{changed_settings, list_names, shared_settings};
pub(crate) use snap_restore::{RestoreReport, choose_stash_method, restore_snapshot};
pub(crate) use snap_view::{SnapFile, SnapState, SnapView, find_snap, restore_folder_command, snap_views};
pub use snapshot_error::SnapshotError;
pub(crate) use symbolic_branch::find_symbolic_branch;
pub use symbolic_branch_error::SymbolicBranch;
pub(crate) use sync_files::{SyncPlan, plan as plan_sync, sync};
pub(crate) use trash::describe_unreadable;
pub(crate) use trash_contents::{TrashUsage, describe_waiting_folders, trash_usage};
pub(crate) use undo_error::UndoError;
pub(crate) use undo_operations::{check_undoable as check_undo_possible, undo};
pub(crate) use undo_plan::{
    UndoPlan, UndoTarget, plan as plan_undo, written_records as records_written_by_undo,
};
pub(crate) use unrecorded_worktree::{remove_unrecorded, trash_registration};
pub(crate) use verify_cache_expiry::VERIFY_CACHE_LIFETIME;
