//! Table of fault points: each command, killed at each point that matters for it, ends as before or as after.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use proq_test_kit::faults::{kill_at, recover};
use proq_test_kit::{RepoState, Sandbox, fixtures};

/// State of the repository after the recovery of a killed command.
#[derive(Clone, Copy)]
enum RecoveredState {
    /// As if the command had not been started.
    Before,
    /// As if the command had finished.
    After,
    /// As another command leaves it: the landing is kept, but the lanes are not removed yet. The second
    /// command completes it.
    SameAs(&'static [&'static str], &'static [&'static str]),
}
use RecoveredState::{After, Before, SameAs};

const LANDED: RecoveredState = SameAs(&["merge", "--no-cleanup", "one"], &["merge", "one"]);
const AUTOSTASH_LANDED: RecoveredState =
    SameAs(&["merge", "--autostash", "--no-cleanup", "one"], &["merge", "one"]);
const ALL_LANDED: RecoveredState = SameAs(&["merge", "--no-cleanup", "--all"], &["cleanup"]);

/// Returns the state that a command leaves in a scene, computed once for all tests.
fn state_after(scene: fn() -> Sandbox, args: &[&str]) -> RepoState {
    static STATES: LazyLock<Mutex<HashMap<(usize, String), RepoState>>> = LazyLock::new(Mutex::default);
    let key = (scene as usize, args.join(" "));
    if let Some(cached) = STATES.lock().unwrap().get(&key) {
        return cached.clone();
    }
    let sandbox = scene();
    let out = sandbox.proq(args);
    assert!([0, 3].contains(&out.code), "{}", out.to_text());
    let state = RepoState::capture(&sandbox);
    STATES.lock().unwrap().insert(key, state.clone());
    state
}

#[track_caller]
fn killed(scene: fn() -> Sandbox, args: &[&str], at: &str, ends: RecoveredState) {
    let sandbox = scene();
    let before = RepoState::capture(&sandbox);
    kill_at(&sandbox, at, args);
    let stderr = recover(&sandbox);
    let expected_text = match ends {
        Before => "\n  everything is as it was before; run it again",
        After | SameAs(..) => "",
    };
    assert!(stderr.contains(expected_text), "{stderr}");
    match ends {
        Before => RepoState::capture(&sandbox).assert_same(&before, "after recovery"),
        After => RepoState::capture(&sandbox).assert_same(&state_after(scene, args), "after recovery"),
        SameAs(other, _) => {
            RepoState::capture(&sandbox).assert_same(&state_after(scene, other), "after recovery");
        }
    }
    if let After = ends {
        // An operation that recovery completed is in the log and can be undone like any other.
        let _ = sandbox.proq(&["undo", "--force"]).ok();
        RepoState::capture(&sandbox)
            .without_removed_lanes()
            .assert_same(&before.without_removed_lanes(), "undone");
    }
    let finish = if let SameAs(_, finish) = ends { finish } else { args };
    let finished = sandbox.proq(finish);
    assert!([0, 3].contains(&finished.code), "{}", finished.to_text());
    RepoState::capture(&sandbox)
        .without_removed_lanes()
        .assert_same(&state_after(scene, args).without_removed_lanes(), "run again");
}

macro_rules! killed {
    ($($name:ident: $scene:ident, [$($arg:expr),*], $at:expr, $ends:expr;)*) => {
        $(#[test]
        fn $name() {
            killed(fixtures::$scene, &[$($arg),*], $at, $ends);
        })*
    };
}

killed! {
    undoes_spawn_after_planning: clean_checkout, ["spawn", "--empty", "-n", "new"], "journal.planned", Before;
    undoes_spawn_before_branch: clean_checkout, ["spawn", "--empty", "-n", "new"], "step.before", Before;
    undoes_spawn_after_branch: clean_checkout, ["spawn", "--empty", "-n", "new"], "step.after", Before;
    undoes_spawn_with_locked_branch: clean_checkout, ["spawn", "--empty", "-n", "new"], "branch.locked", Before;
    undoes_spawn_with_reflog_only: clean_checkout, ["spawn", "--empty", "-n", "new"], "branch.logged", Before;
    undoes_spawn_with_nameless_worktree: clean_checkout, ["spawn", "--empty", "-n", "new"], "worktree.nameless", Before;
    undoes_spawn_with_headless_worktree: clean_checkout, ["spawn", "--empty", "-n", "new"], "worktree.headless", Before;
    undoes_spawn_with_empty_worktree: clean_checkout, ["spawn", "--empty", "-n", "new"], "worktree.added", Before;
    undoes_spawn_with_populated_worktree: clean_checkout, ["spawn", "--empty", "-n", "new"], "step.after:2", Before;
    undoes_spawn_with_unwritten_record: clean_checkout, ["spawn", "--empty", "-n", "new"], "record.drafted:2", Before;
    undoes_spawn_with_written_record: clean_checkout, ["spawn", "--empty", "-n", "new"], "record.written", Before;
    completes_unfiled_spawn: clean_checkout, ["spawn", "--empty", "-n", "new"], "journal.ended", After;
    undoes_spawn_that_carries_changes: dirty_without_lanes, ["spawn", "--empty", "--carry", "-n", "new"], "worktree.added", Before;

    undoes_preview_with_unwritten_snapshot_record: dirty_with_lanes, ["preview", "one"], "record.drafted", Before;
    undoes_preview_with_snapshot_without_ref: dirty_with_lanes, ["preview", "one"], "snap.put", Before;
    undoes_preview_with_unrecorded_snapshot: dirty_with_lanes, ["preview", "one"], "step.after", Before;
    undoes_preview_after_parking_files: dirty_with_lanes, ["preview", "one"], "clear.moved", Before;
    undoes_preview_with_populated_checkout: dirty_with_lanes, ["preview", "one"], "clear.filled", Before;
    undoes_preview_with_cleared_checkout: dirty_with_lanes, ["preview", "one"], "clear.installed", Before;
    undoes_preview_with_locked_refs: dirty_with_lanes, ["preview", "one"], "transition.locked", Before;
    undoes_preview_with_linked_files: dirty_with_lanes, ["preview", "one"], "transition.linked", Before;
    undoes_preview_with_written_files: dirty_with_lanes, ["preview", "one"], "transition.brought", Before;
    undoes_preview_with_staged_refs: dirty_with_lanes, ["preview", "one"], "transition.staged", Before;
    undoes_preview_after_head_update: dirty_with_lanes, ["preview", "one"], "transition.moved", Before;
    undoes_preview_with_installed_index: dirty_with_lanes, ["preview", "one"], "transition.installed", Before;
    undoes_preview_with_written_record: dirty_with_lanes, ["preview", "one"], "record.written", Before;
    completes_unfiled_preview: dirty_with_lanes, ["preview", "one"], "journal.ended", After;

    undoes_switch_with_snapshot_without_ref: edited_preview, ["preview", "two"], "snap.put", Before;
    undoes_switch_after_parking_files: edited_preview, ["preview", "two"], "clear.moved", Before;
    undoes_switch_with_written_files: edited_preview, ["preview", "two"], "transition.brought", Before;
    undoes_switch_after_head_update: edited_preview, ["preview", "two"], "transition.moved", Before;
    completes_unfiled_switch: edited_preview, ["preview", "two"], "journal.ended", After;

    undoes_refresh_with_staged_refs: outdated_preview, ["preview", "--refresh"], "transition.staged", Before;
    undoes_refresh_after_ref_update: outdated_preview, ["preview", "--refresh"], "transition.moved", Before;
    completes_unfiled_refresh: outdated_preview, ["preview", "--refresh"], "journal.ended", After;

    undoes_preview_end_after_parking_files: edited_preview, ["preview", "--back"], "clear.moved", Before;
    undoes_preview_end_with_written_files: edited_preview, ["preview", "--back"], "transition.brought", Before;
    undoes_preview_end_after_head_update: edited_preview, ["preview", "--back"], "transition.moved", Before;
    undoes_preview_end_with_restored_files: edited_preview, ["preview", "--back"], "restore.given", Before;
    undoes_preview_end_with_installed_index: edited_preview, ["preview", "--back"], "restore.installed", Before;
    undoes_preview_end_with_written_record: edited_preview, ["preview", "--back"], "record.written:2", Before;
    completes_unfiled_preview_end: edited_preview, ["preview", "--back"], "journal.ended", After;

    undoes_preview_end_that_carries_commit: preview_with_commit, ["preview", "--back"], "transition.moved", Before;
    undoes_preview_end_with_commit_and_restored_files: preview_with_commit, ["preview", "--back"], "restore.given", Before;
    completes_unfiled_preview_end_with_commit: preview_with_commit, ["preview", "--back"], "journal.ended", After;

    undoes_preview_end_on_moved_base: preview_with_moved_base, ["preview", "--back"], "restore.given", Before;
    completes_preview_end_on_moved_base_once_installed: preview_with_moved_base, ["preview", "--back"], "restore.installed", After;
    completes_preview_end_on_moved_base_with_record: preview_with_moved_base, ["preview", "--back"], "record.written", After;

    undoes_landing_after_planning: dirty_with_lanes, ["merge", "one"], "journal.planned", Before;
    undoes_landing_with_locked_refs: dirty_with_lanes, ["merge", "one"], "transition.locked", Before;
    undoes_landing_with_linked_files: dirty_with_lanes, ["merge", "one"], "transition.linked", Before;
    undoes_landing_with_written_files: dirty_with_lanes, ["merge", "one"], "transition.brought", Before;
    undoes_landing_with_staged_refs: dirty_with_lanes, ["merge", "one"], "transition.staged", Before;
    undoes_landing_with_locked_base: dirty_with_lanes, ["merge", "one"], "branch_move.locked", Before;
    undoes_landing_with_reflog_only: dirty_with_lanes, ["merge", "one"], "branch_move.logged", Before;
    keeps_landing_without_reflog_of_head: dirty_with_lanes, ["merge", "one"], "branch_move.moved", LANDED;
    keeps_landing_after_base_update: dirty_with_lanes, ["merge", "one"], "transition.moved", LANDED;
    keeps_landing_with_installed_index: dirty_with_lanes, ["merge", "one"], "transition.installed", LANDED;
    keeps_landing_with_written_record: dirty_with_lanes, ["merge", "one"], "record.written", LANDED;
    keeps_landing_with_lane_in_trash: dirty_with_lanes, ["merge", "one"], "trash.moved", LANDED;
    completes_unfiled_landing: dirty_with_lanes, ["merge", "one"], "journal.ended", After;
    keeps_landing_of_all_lanes_after_base_update: lanes_with_one_conflict, ["merge", "--all"], "transition.moved", ALL_LANDED;
    keeps_landing_of_all_lanes_with_one_in_trash: lanes_with_one_conflict, ["merge", "--all"], "trash.moved", ALL_LANDED;
    undoes_unchecked_out_landing_before_base_update: base_not_checked_out, ["merge", "one"], "step.before", Before;
    keeps_unchecked_out_landing_after_base_update: base_not_checked_out, ["merge", "one"], "step.after", LANDED;
    undoes_autostash_with_snapshot_without_ref: changes_in_the_way, ["merge", "--autostash", "one"], "snap.put", Before;
    undoes_autostash_after_parking_files: changes_in_the_way, ["merge", "--autostash", "one"], "clear.moved", Before;
    undoes_autostash_with_cleared_checkout: changes_in_the_way, ["merge", "--autostash", "one"], "clear.installed", Before;
    undoes_autostash_with_written_files: changes_in_the_way, ["merge", "--autostash", "one"], "transition.brought", Before;
    restores_autostash_after_base_update: changes_in_the_way, ["merge", "--autostash", "one"], "transition.moved", AUTOSTASH_LANDED;
    keeps_restored_autostash: changes_in_the_way, ["merge", "--autostash", "one"], "restore.installed", AUTOSTASH_LANDED;
    completes_unfiled_autostash: changes_in_the_way, ["merge", "--autostash", "one"], "journal.ended", After;
    undoes_conflict_capture_with_ref: conflicting_lane, ["merge", "clash"], "step.after", Before;
    undoes_conflict_capture_with_record: conflicting_lane, ["merge", "clash"], "record.written", Before;
    completes_unfiled_conflict_capture: conflicting_lane, ["merge", "clash"], "journal.ended", After;

    undoes_discard_with_snapshot_without_ref: unfinished_lane, ["discard", "--force", "one"], "snap.put", Before;
    undoes_discard_with_empty_trash_entry: unfinished_lane, ["discard", "--force", "one"], "record.drafted:2", Before;
    undoes_discard_with_worktree_in_trash: unfinished_lane, ["discard", "--force", "one"], "trash.moved", Before;
    undoes_discard_with_locked_refs: unfinished_lane, ["discard", "--force", "one"], "ref.deletable", Before;
    undoes_discard_with_written_record: unfinished_lane, ["discard", "--force", "one"], "record.written:2", Before;
    completes_unfiled_discard: unfinished_lane, ["discard", "--force", "one"], "journal.ended", After;
    undoes_rename_with_locked_head: two_lanes, ["rename", "one", "first"], "rename.locked", Before;
    undoes_rename_with_moved_folder: two_lanes, ["rename", "one", "first"], "rename.moved", Before;
    undoes_rename_with_recorded_folder: two_lanes, ["rename", "one", "first"], "rename.recorded", Before;
    undoes_rename_with_renamed_worktree: two_lanes, ["rename", "one", "first"], "step.after:2", Before;
    undoes_rename_with_moved_records: two_lanes, ["rename", "one", "first"], "step.after:4", Before;
    undoes_rename_with_written_record: two_lanes, ["rename", "one", "first"], "record.written", Before;
    completes_unfiled_rename: two_lanes, ["rename", "one", "first"], "journal.ended", After;
    undoes_cleanup_with_worktree_in_trash: landed_lane, ["cleanup"], "trash.moved", Before;
    completes_unfiled_cleanup: landed_lane, ["cleanup"], "journal.ended", After;
}
