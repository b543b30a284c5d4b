//! Owns everything that knows git: the library for reading, the program for changing.

mod ahead;
mod ahead_by_git;
mod bring;
mod by_hand;
mod clean;
mod clear;
mod command;
mod commit;
mod connected;
mod cut;
mod diff;
mod error;
mod exact;
mod flags;
mod glance;
mod graph;
mod hook;
mod hook_place;
mod ignored;
mod index;
mod injected;
mod loose;
mod merge_rules;
mod objects;
mod oid;
mod open_op;
mod patch_id;
mod path;
mod people;
mod pick;
#[cfg(test)]
mod place;
mod plain;
mod push;
mod quarantine;
mod ref_move;
mod refs;
mod refusal;
mod repair;
mod repo;
mod resolve;
mod restore;
mod restore_plan;
mod scope;
mod settings;
mod snapshot;
mod special;
mod stale;
mod status;
mod submodule;
mod survey;
mod text_merge;
mod threads;
mod touched;
mod transition;
mod tree_merge;
mod trees;
mod uncommitted;
mod version;
mod warm;
mod worktree;

pub(crate) use ahead::Clash;
pub(crate) use ahead::{Three, circumstances, look_ahead};
pub(crate) use ahead_by_git::{ByGit, ask_git, commit_aside};
pub(crate) use clear::{clear, renew};
pub(crate) use command::{Command, Program};
pub(crate) use commit::{NewCommit, stage_and_commit};
pub(crate) use cut::{Common, Cuts, Fork};
pub(crate) use diff::{Change, FileLines, Side, files_of, tree_changes, tree_files};
pub(crate) use error::{Error, give_up, names};
pub(crate) use flags::hidden_edits;
pub(crate) use graph::Distance;
pub(crate) use hook::run_hook;
pub(crate) use hook_place::{HookPlace, own_hook};
pub(crate) use injected::{VARIABLE as HOOKS_VARIABLE, hooks_setting, own_parameters, quoted};
pub(crate) use objects::ThrowAway;
pub use oid::Oid;
pub(crate) use open_op::open_operation;
pub use path::RepoPath;
pub(crate) use pick::{Ancestry, Picked, pick};
pub(crate) use push::NotPushed;
pub use ref_move::Head;
pub(crate) use ref_move::RefMove;
pub(crate) use refusal::require_free;
pub(crate) use repair::{
    is_beginning_of, settle_clear, settle_own_ref, settle_ref, settle_restore, settle_transition,
};
pub(crate) use repo::Repo;
pub(crate) use resolve::{Laid, laid_out};
pub(crate) use restore::{Restored, restore};
pub(crate) use restore_plan::foresee;
pub(crate) use scope::Scope;
pub(crate) use snapshot::{
    Snapshot, empty_folders, ignored, keep_index, prune_folders, take as take_snapshot, tracked_tree,
};
pub(crate) use special::LeftOut;
pub(crate) use status::{Dirt, Entry, status, statuses};
pub(crate) use survey::{Registration, installed, knows_repository, lock_owner};
pub(crate) use text_merge::Lines;
pub(crate) use touched::{Touched, touched};
pub(crate) use transition::{Tree, transition};
pub(crate) use tree_merge::{
    Merged, Stage, merge_commits, merge_exactly, merge_trees, merge_with_base, would_conflict,
};
pub(crate) use uncommitted::{Uncommitted, trees_of};
pub(crate) use worktree::{Worktree, WorktreeList};
