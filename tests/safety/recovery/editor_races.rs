//! Files that an editor writes while a recovery undoes a killed step.

use proq_test_kit::faults::{kill_at, recover};
use proq_test_kit::snapshots::snapshot_ids;
use proq_test_kit::{Sandbox, fixtures};

/// Ways in which editors save a file: in place, and by a rename over it.
const SAVES: [&str; 2] = ["echo typed-later > FILE", "echo typed-later > temp; mv temp FILE"];

/// Where an undo that puts a file in the place of another is stopped: once it has decided about both, and once it has
/// moved the other out.
const REPLACING: [&str; 2] = ["undo.replacing", "undo.displaced"];
/// Where an undo that removes a file is stopped: once it has decided about the file, and once it has moved it out.
const REMOVING: [&str; 2] = ["undo.removing", "undo.removed"];

/// Returns where a text that was written to a file is now: in files of the worktree, in parked files, and in
/// commits of git-proq.
fn places_of(sandbox: &Sandbox, text: &str) -> String {
    sandbox.sh(&format!(
        "grep -rlx '{text}' . --exclude-dir=.git || :; \
         grep -rlx '{text}' .git/proq/snaps/*/files .git/proq/snaps/*/not-restored-* 2>/dev/null || :; \
         git grep -lw '{text}' $(git for-each-ref --format='%(refname)' refs/proq) || :"
    ))
}

/// A step that is killed, and a file of it that its undo replaces or removes.
struct KilledStep {
    fixture: fn() -> Sandbox,
    arguments: &'static [&'static str],
    killed_at: &'static str,
    file: &'static str,
    points: [&'static str; 2],
}

const KILLED_STEPS: [KilledStep; 4] = [
    KilledStep {
        fixture: fixtures::dirty_with_lanes,
        arguments: &["preview", "one"],
        killed_at: "clear.filled",
        file: "b.txt",
        points: REPLACING,
    },
    KilledStep {
        fixture: fixtures::two_lanes,
        arguments: &["preview", "one"],
        killed_at: "transition.brought",
        file: "shared.txt",
        points: REPLACING,
    },
    KilledStep {
        fixture: fixtures::two_lanes,
        arguments: &["preview", "one"],
        killed_at: "transition.brought",
        file: "one.txt",
        points: REMOVING,
    },
    KilledStep {
        fixture: fixtures::preview_over_dirty,
        arguments: &["preview", "--back"],
        killed_at: "restore.taken",
        file: "b.txt",
        points: REPLACING,
    },
];

/// Promise: operations/written-after-crash
#[test]
fn file_saved_during_an_undo_is_kept() {
    for step in &KILLED_STEPS {
        for (save, point) in SAVES.iter().flat_map(|save| step.points.map(|point| (save, point))) {
            let sandbox = (step.fixture)();
            kill_at(&sandbox, step.killed_at, step.arguments);
            let save = save.replace("FILE", step.file);
            let (code, text) = sandbox.run_while_stopped(&["list"], (point, ""), &save);
            assert_eq!(code, Some(0), "{text}");
            let context = format!("{} {save} {point}: {text}", step.killed_at);
            assert_ne!(places_of(&sandbox, "typed-later"), "", "{context}");
            sandbox.assert_healthy();
        }
    }
}

/// Promise: operations/written-after-crash
#[test]
fn file_saved_during_a_killed_undo_is_kept() {
    for step in &KILLED_STEPS {
        for save in SAVES {
            let sandbox = (step.fixture)();
            kill_at(&sandbox, step.killed_at, step.arguments);
            let save = save.replace("FILE", step.file);
            let (code, text) = sandbox.run_while_stopped(&["list"], (step.points[0], step.points[1]), &save);
            assert_eq!(code, None, "{text}");
            recover(&sandbox);
            assert_ne!(places_of(&sandbox, "typed-later"), "", "{} {save}: {text}", step.killed_at);
            sandbox.assert_healthy();
        }
    }
}

/// An undo puts a file that was written after the crash into a commit before it replaces the file. The commit
/// has no name yet when the undo is killed.
///
/// Promise: operations/written-after-crash
#[test]
fn file_replaced_by_a_killed_undo_is_kept() {
    for point in ["clear.given", "clear.given:2", "clear.given:3"] {
        let sandbox = fixtures::dirty_with_lanes();
        kill_at(&sandbox, "clear.filled", &["preview", "one"]);
        sandbox.write("b.txt", "typed-later\n");
        kill_at(&sandbox, point, &["list"]);
        recover(&sandbox);
        assert_ne!(places_of(&sandbox, "typed-later"), "", "{point}");
        sandbox.assert_healthy();
    }
}

/// A restore has written files from git's objects, and is killed. What is written over them then is in a commit without
/// a name when the undo of the restore is killed.
///
/// Promise: operations/written-after-crash
#[test]
fn file_written_over_a_rebuilt_one_is_kept() {
    for file in ["b.txt", "notes.txt"] {
        let sandbox = fixtures::dirty_with_lanes();
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        sandbox.sh("git reset -q --hard; git clean -qfd");
        let id = snapshot_ids(&sandbox)[0].clone();
        kill_at(&sandbox, "restore.given", &["snap", "restore", &id]);
        sandbox.write(file, "typed-later\n");
        kill_at(&sandbox, "undo.displaced", &["list"]);
        recover(&sandbox);
        assert_ne!(places_of(&sandbox, "typed-later"), "", "{file}");
        sandbox.assert_healthy();
    }
}
