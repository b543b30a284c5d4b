//! Files that an editor writes while a recovery undoes a killed step.

use std::process::Stdio;

use proq_test_kit::faults::{kill_at, recover};
use proq_test_kit::snapshots::snapshot_ids;
use proq_test_kit::{Sandbox, fixtures};

/// Ways in which editors save a file: in place, and by a rename over it.
const SAVES: [&str; 2] = ["echo typed-later > FILE", "echo typed-later > temp; mv temp FILE"];

/// Where the undo of a file that was replaced, or created, is stopped: after it has decided about files, and after it
/// has moved one out.
const REPLACING: [&str; 2] = ["undo.replacing", "undo.displaced"];
const REMOVING: [&str; 2] = ["undo.removing", "undo.removed"];

/// Runs the next command, which recovers, and `script` while the recovery is stopped at a point. Then kills it
/// if `dies_at` is a point that it reaches. Returns what it printed; none if it never stopped.
#[track_caller]
fn recover_while(sandbox: &Sandbox, point: &str, script: &str, dies_at: Option<&str>) -> String {
    let mut command = sandbox.proq_command(&sandbox.repo, &["list"]);
    command.env("PROQ_TEST_STAND_AT", point).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(point) = dies_at {
        command.env("PROQ_TEST_DIE_AT", point);
    }
    let child = command.spawn().unwrap();
    let stopped = sandbox.wait_until_stopped(child.id());
    sandbox.sh(script);
    drop(stopped);
    let out = child.wait_with_output().unwrap();
    let text = String::from_utf8([out.stdout, out.stderr].concat()).unwrap();
    assert_eq!(out.status.success(), dies_at.is_none(), "{text}");
    text
}

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
            let text = recover_while(&sandbox, point, &save.replace("FILE", step.file), None);
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
            let text = recover_while(&sandbox, step.points[0], &save, Some(step.points[1]));
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

/// The same with files that a restore has written from git's objects.
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
