//! Owns the table of points: each command, killed at each border that matters for it, ends as before or as after.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use super::kit::{dies, recovers};
use crate::support::{Sandbox, State, scenes};

/// How a killed command ends.
#[derive(Clone, Copy)]
enum Ends {
    /// As if it had not been begun.
    Before,
    /// As if it had come to its end.
    After,
    /// As another command would have ended: the landing stands, the lanes were not removed yet. And what finishes it.
    As(&'static [&'static str], &'static [&'static str]),
}
use Ends::{After, As, Before};

const LANDED: Ends = As(&["merge", "--no-cleanup", "one"], &["merge", "one"]);
const ALL_LANDED: Ends = As(&["merge", "--no-cleanup", "--all"], &["cleanup"]);

/// What a command makes of a scene, looked at once for all tests.
fn outcome(scene: fn() -> Sandbox, args: &[&str]) -> State {
    static KNOWN: LazyLock<Mutex<HashMap<(usize, String), State>>> = LazyLock::new(Mutex::default);
    let key = (scene as usize, args.join(" "));
    if let Some(known) = KNOWN.lock().unwrap().get(&key) {
        return known.clone();
    }
    let sandbox = scene();
    let out = sandbox.proq(args);
    assert!([0, 3].contains(&out.code), "{}", out.shown());
    let state = State::of(&sandbox);
    KNOWN.lock().unwrap().insert(key, state.clone());
    state
}

#[track_caller]
fn killed(scene: fn() -> Sandbox, args: &[&str], at: &str, ends: Ends) {
    let sandbox = scene();
    let before = State::of(&sandbox);
    dies(&sandbox, at, args);
    let said = recovers(&sandbox);
    let told = match ends {
        Before => "\n  everything is as it was before; run it again",
        After | As(..) => "",
    };
    assert!(said.contains(told), "{said}");
    match ends {
        Before => State::of(&sandbox).is(&before, "after recovery"),
        After => State::of(&sandbox).is(&outcome(scene, args), "after recovery"),
        As(other, _) => State::of(&sandbox).is(&outcome(scene, other), "after recovery"),
    }
    if let After = ends {
        // What a dead process ended is in the log, and can be taken back like anything else.
        let _ = sandbox.proq(&["undo", "--force"]).ok();
        State::of(&sandbox).without_remains().is(&before.without_remains(), "undone");
    }
    let finish = if let As(_, finish) = ends { finish } else { args };
    let again = sandbox.proq(finish);
    assert!([0, 3].contains(&again.code), "{}", again.shown());
    State::of(&sandbox).without_remains().is(&outcome(scene, args).without_remains(), "run again");
}

macro_rules! killed {
    ($($name:ident: $scene:ident, [$($arg:expr),*], $at:expr, $ends:expr;)*) => {
        $(#[test]
        fn $name() {
            killed(scenes::$scene, &[$($arg),*], $at, $ends);
        })*
    };
}

killed! {
    spawn_planned: clean, ["spawn", "--empty", "-n", "new"], "journal.planned", Before;
    spawn_before_its_branch: clean, ["spawn", "--empty", "-n", "new"], "step.before", Before;
    spawn_with_its_branch: clean, ["spawn", "--empty", "-n", "new"], "step.after", Before;
    spawn_with_a_locked_branch: clean, ["spawn", "--empty", "-n", "new"], "branch.locked", Before;
    spawn_with_a_branch_in_its_log_alone: clean, ["spawn", "--empty", "-n", "new"], "branch.logged", Before;
    spawn_with_a_worktree_that_has_no_name: clean, ["spawn", "--empty", "-n", "new"], "worktree.nameless", Before;
    spawn_with_a_worktree_that_has_no_head: clean, ["spawn", "--empty", "-n", "new"], "worktree.headless", Before;
    spawn_with_an_empty_folder: clean, ["spawn", "--empty", "-n", "new"], "worktree.added", Before;
    spawn_with_a_filled_folder: clean, ["spawn", "--empty", "-n", "new"], "step.after:2", Before;
    spawn_with_a_draft_of_its_record: clean, ["spawn", "--empty", "-n", "new"], "record.drafted:2", Before;
    spawn_with_its_record: clean, ["spawn", "--empty", "-n", "new"], "record.written", Before;
    spawn_not_filed: clean, ["spawn", "--empty", "-n", "new"], "journal.ended", After;
    spawn_with_what_it_carries: carried, ["spawn", "--empty", "--carry", "-n", "new"], "worktree.added", Before;

    preview_with_a_draft_of_its_snapshot: dirty, ["preview", "one"], "record.drafted", Before;
    preview_with_a_snapshot_without_ref: dirty, ["preview", "one"], "snap.put", Before;
    preview_with_a_snapshot_not_noted: dirty, ["preview", "one"], "step.after", Before;
    preview_moved_aside: dirty, ["preview", "one"], "clear.moved", Before;
    preview_filled: dirty, ["preview", "one"], "clear.filled", Before;
    preview_clear: dirty, ["preview", "one"], "clear.installed", Before;
    preview_locked: dirty, ["preview", "one"], "transition.locked", Before;
    preview_linked: dirty, ["preview", "one"], "transition.linked", Before;
    preview_brought: dirty, ["preview", "one"], "transition.brought", Before;
    preview_staged: dirty, ["preview", "one"], "transition.staged", Before;
    preview_with_head_moved: dirty, ["preview", "one"], "transition.moved", Before;
    preview_installed: dirty, ["preview", "one"], "transition.installed", Before;
    preview_with_its_record: dirty, ["preview", "one"], "record.written", Before;
    preview_not_filed: dirty, ["preview", "one"], "journal.ended", After;

    switch_with_a_snapshot_without_ref: edited, ["preview", "two"], "snap.put", Before;
    switch_moved_aside: edited, ["preview", "two"], "clear.moved", Before;
    switch_brought: edited, ["preview", "two"], "transition.brought", Before;
    switch_with_head_moved: edited, ["preview", "two"], "transition.moved", Before;
    switch_not_filed: edited, ["preview", "two"], "journal.ended", After;

    refresh_staged: outdated, ["preview", "--refresh"], "transition.staged", Before;
    refresh_with_its_ref_moved: outdated, ["preview", "--refresh"], "transition.moved", Before;
    refresh_not_filed: outdated, ["preview", "--refresh"], "journal.ended", After;

    back_moved_aside: edited, ["preview", "--back"], "clear.moved", Before;
    back_brought: edited, ["preview", "--back"], "transition.brought", Before;
    back_with_head_moved: edited, ["preview", "--back"], "transition.moved", Before;
    back_given: edited, ["preview", "--back"], "restore.given", Before;
    back_installed: edited, ["preview", "--back"], "restore.installed", Before;
    back_with_its_record: edited, ["preview", "--back"], "record.written:2", Before;
    back_not_filed: edited, ["preview", "--back"], "journal.ended", After;

    back_with_a_commit_carried: committed, ["preview", "--back"], "transition.moved", Before;
    back_with_a_commit_given: committed, ["preview", "--back"], "restore.given", Before;
    back_with_a_commit_not_filed: committed, ["preview", "--back"], "journal.ended", After;

    back_onto_a_moved_base_given: moved, ["preview", "--back"], "restore.given", Before;
    back_onto_a_moved_base_installed: moved, ["preview", "--back"], "restore.installed", After;
    back_onto_a_moved_base_with_its_record: moved, ["preview", "--back"], "record.written", After;

    landing_planned: dirty, ["merge", "one"], "journal.planned", Before;
    landing_locked: dirty, ["merge", "one"], "transition.locked", Before;
    landing_linked: dirty, ["merge", "one"], "transition.linked", Before;
    landing_brought: dirty, ["merge", "one"], "transition.brought", Before;
    landing_staged: dirty, ["merge", "one"], "transition.staged", Before;
    landing_with_the_base_moved: dirty, ["merge", "one"], "transition.moved", LANDED;
    landing_installed: dirty, ["merge", "one"], "transition.installed", LANDED;
    landing_with_its_record: dirty, ["merge", "one"], "record.written", LANDED;
    landing_with_the_lane_in_the_trash: dirty, ["merge", "one"], "trash.moved", LANDED;
    landing_not_filed: dirty, ["merge", "one"], "journal.ended", After;
    landing_of_many_with_the_base_moved: all_lanes, ["merge", "--all"], "transition.moved", ALL_LANDED;
    landing_of_many_with_one_in_the_trash: all_lanes, ["merge", "--all"], "trash.moved", ALL_LANDED;
    landing_elsewhere_before_the_base: elsewhere, ["merge", "one"], "step.before", Before;
    landing_elsewhere_with_the_base_moved: elsewhere, ["merge", "one"], "step.after", LANDED;
    conflict_with_its_ref: conflicting, ["merge", "clash"], "step.after", Before;
    conflict_with_its_record: conflicting, ["merge", "clash"], "record.written", Before;
    conflict_not_filed: conflicting, ["merge", "clash"], "journal.ended", After;

    discard_with_a_snapshot_without_ref: unfinished, ["discard", "--force", "one"], "snap.put", Before;
    discard_with_an_empty_trash_entry: unfinished, ["discard", "--force", "one"], "record.drafted:2", Before;
    discard_in_the_trash: unfinished, ["discard", "--force", "one"], "trash.moved", Before;
    discard_with_its_record: unfinished, ["discard", "--force", "one"], "record.written:2", Before;
    discard_not_filed: unfinished, ["discard", "--force", "one"], "journal.ended", After;
    cleanup_in_the_trash: landed, ["cleanup"], "trash.moved", Before;
    cleanup_not_filed: landed, ["cleanup"], "journal.ended", After;
}
