//! Owns lanes: their names and states, making and removing them, and what is known of them.

mod absent;
mod activity;
mod alias;
mod apart;
mod aside;
mod ask;
mod attach;
mod attempts;
mod auto_merge;
mod auto_snapshot;
mod base;
mod broken;
mod checkout;
mod checks;
mod checks_dir;
mod conflict_now;
mod create;
mod create_many;
mod died;
mod drafts;
mod error;
mod evidence;
mod expire;
mod files;
mod fill;
mod half_made;
mod head;
mod history;
mod ignored_files;
mod in_place;
mod in_place_before;
mod in_place_commit;
mod in_place_end;
mod inbox;
mod kind;
mod landing_checks;
mod leftovers;
mod list;
mod location;
mod long_history;
mod look;
mod looks;
mod lost_changes;
mod misplaced;
mod name;
mod neighbours;
mod op_log;
mod open_preview;
mod operation;
mod place;
mod pool;
mod ports;
mod project;
mod put_back;
mod recover;
mod remove;
mod report;
mod resolve_tree;
mod rest;
mod same_again;
mod saved;
mod set_up;
mod shared_settings;
mod snap_restore;
mod snap_view;
mod snaps;
mod snapshot_error;
mod spent;
mod steps;
mod stray;
mod take_back;
mod told;
mod trash;
mod undo;
mod undo_ahead;
mod undo_error;

pub(crate) use activity::said_last;
pub use alias::Alias;
pub(crate) use alias::alias;
pub(crate) use apart::{close_apart, open_apart};
pub(crate) use attach::{SaidFiles, attach, attachments, named as named_files, past_attachments};
pub(crate) use attempts::{any_named, attempts, in_groups, named as lanes_named};
pub(crate) use auto_merge::{
    Due, became, due, extend_run, hold_landing, moved_since_run, refuse_landing, refuse_moved,
    waiting_to_land, waits_to_be_told,
};
pub(crate) use auto_snapshot::{agents_are_at_work, take_automatically};
pub(crate) use base::{Base, resolve as resolve_base};
pub use broken::BrokenLane;
pub(crate) use broken::{missing_in, require_whole};
pub(crate) use checkout::Checkout;
pub(crate) use checks::KEPT as CHECKS_KEPT;
pub(crate) use conflict_now::conflict_stands;
pub(crate) use create::{Created, NewLane, Plan, create, make_anew, plain_title, plan};
pub(crate) use create_many::{create_all, create_attempts, plan_attempts};
pub(crate) use died::{died, last_words};
pub(crate) use error::Error;
pub(crate) use evidence::{Evidence, gather as gather_evidence, is_contained, look as look_at, lost_commit};
pub(crate) use expire::{Kind, Old, Spare, Stays, expire, old};
pub(crate) use head::{
    branch_again, follow_head, keep_last_commit, last_commit, not_own_place, off_branch, renamed_to,
};
pub(crate) use history::{
    BranchMoves, Logged, OpLog, last_ended, moved_since, require as require_operation, set_aside_since,
    summary,
};
pub(crate) use in_place::{
    at_work_in_place, begin_in_place, go_on_in_place, refuse_beside_in_place, refuse_in_place,
    refuse_move_beside_in_place,
};
pub(crate) use in_place_end::{end_in_place, has_changed_in_place};
pub(crate) use inbox::{Inbox, Letter, Taken, joined as join_messages, waiting_in, waits as messages_wait};
pub(crate) use kind::{is_cut, widen as widen_cut};
pub(crate) use landing_checks::current_layers;
pub(crate) use leftovers::{
    Leftovers, commit_leftovers, copy_leftovers, holds_conflict, leftovers_to_commit, move_out,
};
pub(crate) use list::{Partly, View, effective_state, state_after, stray_worktrees, views, views_while};
pub use location::LocationError;
pub(crate) use long_history::have_commit_graph;
pub(crate) use look::{
    LookPlan, NewLook, Where, answer_of, create_look, forget_look, last_answer, plan_look, refuse_busy,
    remove_look, today, with_article,
};
pub(crate) use misplaced::{Misplaced, misplaced};
pub(crate) use name::Name;
pub(crate) use neighbours::{Met, Neighbour, neighbours};
pub(crate) use open_preview::{home_elsewhere, other_worktree};
pub(crate) use operation::{Operation, operate};
pub(crate) use place::{exclude_patterns, not_kept_out, prepare as keep_out};
pub(crate) use pool::{Prospects, prospects};
pub(crate) use ports::{keep_ports, ports_beside};
pub(crate) use project::Project;
pub(crate) use put_back::{Traces, put_back};
pub(crate) use recover::{Stuck, recover, stuck};
pub(crate) use remove::{Removed, Why, command_to_remove, refuse, remove};
pub(crate) use report::{Own, Said, check as check_report, keep_report, own_lane};
pub(crate) use resolve_tree::{PutAway, close_resolve, open_resolve};
pub(crate) use rest::{RESTS, has_work, is_idle, is_on_screen, rests, told_state};
pub use set_up::SetUpError;
pub(crate) use set_up::{Given, Sync, env_file, plan_sync, require_approved, run_later, sync};
pub(crate) use shared_settings::{changed_settings, listed, shared_settings};
pub(crate) use snap_restore::{Brought, restore_snap, way_back};
pub(crate) use snap_view::{SnapFile, SnapState, SnapView, find_snap, snap_views, way_back_to_folder};
pub use snapshot_error::SnapshotError;
pub(crate) use spent::spent;
pub(crate) use stray::{remove_stray, retire_registration};
pub(crate) use told::told_at_work;
pub(crate) use trash::{Held, held, unread_in_words, whose};
pub(crate) use undo::{
    Undo, Which, foresee as foresee_undo, plan as plan_undo, records as records_of_undo, undo,
};
pub(crate) use undo_error::UndoError;
