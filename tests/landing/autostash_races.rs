//! Tests of writes to files that a landing has saved (`--autostash`), before it has restored them.

use std::io::Write;
use std::process::{Child, Stdio};

use proq_test_kit::Sandbox;

/// Creates lane `one`, which changes the second line of `long.txt`, and uncommitted edits of its last line and of
/// `keep.txt`.
fn sandbox_with_edits() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 20 > long.txt; echo keep > keep.txt");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "sed -i 's/^2$/two/' long.txt");
    sandbox.sh("sed -i 's/^20$/twenty/' long.txt; echo mine > keep.txt");
    sandbox
}

/// Creates a sandbox as [`sandbox_with_edits`] does, in which git converts the line ends of `keep.txt`. The edit has
/// others, which only a copy of the saved file restores.
fn sandbox_with_converted_edit() -> Sandbox {
    let sandbox = sandbox_with_edits();
    sandbox.sh("echo 'keep.txt text eol=crlf' > .git/info/attributes");
    sandbox
}

/// Starts to land lane `one`. The landing stops at the points `stop_at`, and is killed at `die_at`.
fn start_landing(sandbox: &Sandbox, stop_at: &str, die_at: &str) -> Child {
    let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "one", "--autostash"]);
    command.env("PROQ_TEST_STAND_AT", stop_at).env("PROQ_TEST_DIE_AT", die_at);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for the end of a landing. Returns its exit code and what it printed.
fn wait_for_landing(child: Child) -> (Option<i32>, String) {
    let out = child.wait_with_output().unwrap();
    (out.status.code(), String::from_utf8([out.stdout, out.stderr].concat()).unwrap())
}

/// Lands lane `one`, and acts while the landing is stopped at a point. Returns its exit code and what it printed.
#[track_caller]
fn land_while(sandbox: &Sandbox, point: &str, act: impl FnOnce()) -> (Option<i32>, String) {
    let child = start_landing(sandbox, point, "");
    let stopped = sandbox.wait_until_stopped(child.id());
    act();
    drop(stopped);
    wait_for_landing(child)
}

/// Returns the command that follows `start` in a message, up to the end of its line.
#[track_caller]
fn command_after<'t>(text: &'t str, start: &str) -> &'t str {
    let found = text.split_once(start).unwrap_or_else(|| panic!("no `{start}` in: {text}"));
    found.1.lines().next().unwrap()
}

/// What was written in the place of a saved file is in the way of the revert too.
///
/// Promise: worktree/autostash
#[test]
fn changes_that_cannot_return_are_named() {
    let sandbox = sandbox_with_edits();
    let (code, text) = land_while(&sandbox, "clear.installed", || sandbox.write("long.txt", "later\n"));
    assert_eq!(code, Some(1), "{text}");
    assert_eq!(sandbox.read("long.txt"), "later\n");
    assert_eq!(text.matches("cannot undo everything").count(), 1, "{text}");
    // The other edit is only in the snapshot by then.
    assert_eq!(sandbox.read("keep.txt"), "keep\n");
    assert!(!text.contains("nothing was changed"), "{text}");
    let apply = command_after(&text, "they are saved: ").to_owned();
    sandbox.sh("git commit -qm later long.txt; git reset -q --hard HEAD~");
    sandbox.sh(&apply);
    assert_eq!(sandbox.sh("sed -n '2p;20p' long.txt; cat keep.txt"), "2\ntwenty\nmine");
    sandbox.assert_healthy();
}

/// The base has moved, so the failure of the restore may not state that nothing was changed.
///
/// Promise: worktree/autostash
#[test]
fn failed_restore_after_the_move_is_named() {
    let sandbox = sandbox_with_edits();
    let (code, text) = land_while(&sandbox, "transition.moved", || sandbox.write("long.txt", "later\n"));
    assert_eq!(code, Some(3), "{text}");
    let reason = command_after(&text, "cannot record everything: local changes in ");
    assert!(reason.ends_with(" are in the way: long.txt"), "{text}");
    assert!(!text.contains("nothing was changed"), "{text}");
    assert_eq!(sandbox.read("long.txt"), "later\n");
    sandbox.assert_healthy();
}

/// A program that still has the file open writes to the saved one. The changes are merged as they were saved.
///
/// Promise: worktree/autostash
#[test]
fn late_write_to_a_saved_file_is_named() {
    let sandbox = sandbox_with_edits();
    let mut open_file = std::fs::File::options().append(true).open(sandbox.repo.join("long.txt")).unwrap();
    let (code, text) = land_while(&sandbox, "transition.moved", || open_file.write_all(b"late\n").unwrap());
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(sandbox.sh("sed -n '2p;20p' long.txt; cat keep.txt"), "two\ntwenty\nmine");
    let show = command_after(&text, "long.txt was written to while it was saved; see what was written: ");
    assert!(sandbox.sh(show).ends_with("\ntwenty\nlate"), "{text}");
    sandbox.assert_healthy();
}

/// A save by rename, as editors do it, and a write into the file.
const LATER_WRITES: [&str; 2] = ["echo later > temp; mv temp keep.txt", "echo later > keep.txt"];

/// Start of the warning that names the saved version of a file that was written during the restore.
const SAVED_VERSION: &str =
    "keep.txt was written while your changes were restored, and stays as it is; your saved version is ";

/// Asserts that `keep.txt` has what was written to it during the restore, and that all else is restored.
#[track_caller]
fn assert_later_write_stays(sandbox: &Sandbox, (code, text): &(Option<i32>, String)) {
    assert_eq!(*code, Some(0), "{text}");
    assert_eq!(sandbox.sh("sed -n '2p;20p' long.txt; cat keep.txt"), "two\ntwenty\nlater", "{text}");
    assert_eq!(sandbox.sh("git status --short"), " M keep.txt\n M long.txt");
    sandbox.assert_healthy();
}

/// Promise: worktree/appearing-files
#[test]
fn file_renamed_over_a_restored_one_stays() {
    let sandbox = sandbox_with_edits();
    let landed = land_while(&sandbox, "restore.given", || drop(sandbox.sh(LATER_WRITES[0])));
    assert_later_write_stays(&sandbox, &landed);
}

/// Promise: worktree/late-writes-restored
#[test]
fn write_into_a_restored_file_stays() {
    let sandbox = sandbox_with_edits();
    let landed = land_while(&sandbox, "restore.given", || drop(sandbox.sh(LATER_WRITES[1])));
    assert_later_write_stays(&sandbox, &landed);
}

/// The copy of a saved file replaces the one that git has converted. An editor writes that file before or after it is
/// compared, or while its name is free.
///
/// Promise: worktree/appearing-files
#[test]
fn later_write_to_a_converted_file_stays() {
    for point in ["restore.given", "restore.compared", "restore.displaced"] {
        for write in LATER_WRITES {
            let sandbox = sandbox_with_converted_edit();
            let landed = land_while(&sandbox, point, || drop(sandbox.sh(write)));
            assert_later_write_stays(&sandbox, &landed);
            let saved_file = command_after(&landed.1, SAVED_VERSION);
            assert_eq!(std::fs::read_to_string(saved_file).unwrap(), "mine\n", "{point}: {write}");
        }
    }
}

/// A program opens the file that git has converted, and writes to it once the copy has its name.
///
/// Promise: worktree/late-writes-restored
#[test]
fn late_write_to_a_replaced_file_is_named() {
    let sandbox = sandbox_with_converted_edit();
    let child = start_landing(&sandbox, "restore.compared,restore.replaced", "");
    let stopped = sandbox.wait_until_stopped(child.id());
    let mut open_file = std::fs::File::options().append(true).open(sandbox.repo.join("keep.txt")).unwrap();
    drop(stopped);
    let stopped = sandbox.wait_until_stopped(child.id());
    open_file.write_all(b"late\n").unwrap();
    drop(stopped);
    let (code, text) = wait_for_landing(child);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(sandbox.sh("sed -n '2p;20p' long.txt; cat keep.txt"), "two\ntwenty\nmine");
    let start = "keep.txt was written while your changes were restored, and then replaced; what was written is saved as ";
    assert_eq!(std::fs::read_to_string(command_after(&text, start)).unwrap(), "mine\r\nlate\n");
    sandbox.assert_healthy();
}

/// The next command recovers a landing that is killed while no file, or only a copy, has the name of the saved file.
/// The text that an editor wrote before the kill is in a commit, which that command names.
///
/// Promise: worktree/appearing-files
#[test]
fn later_write_survives_a_kill_of_the_restore() {
    for (stop_at, kill_at) in [
        ("restore.compared", "restore.displaced"),
        ("restore.displaced", "restore.as-edited"),
        ("restore.replaced", "restore.as-edited"),
    ] {
        for write in LATER_WRITES {
            let sandbox = sandbox_with_converted_edit();
            let child = start_landing(&sandbox, stop_at, kill_at);
            let stopped = sandbox.wait_until_stopped(child.id());
            sandbox.sh(write);
            drop(stopped);
            assert_eq!(wait_for_landing(child).0, None);
            let text = sandbox.proq(&["list"]).to_text();
            let checkout = "saved; restore them here: git checkout refs/proq/saved/crash-";
            assert!(text.contains(checkout), "{text}");
            let show =
                "git show $(git for-each-ref --format='%(refname)' 'refs/proq/saved/crash-*'):keep.txt";
            assert_eq!(sandbox.sh(show), "later", "{stop_at}: {write}");
            assert_eq!(sandbox.sh("sed -n '2p;20p' long.txt; cat keep.txt"), "two\ntwenty\nmine");
            sandbox.assert_healthy();
        }
    }
}

/// The undo of a landing restores its own snapshot, which a revert of that undo would delete.
///
/// Promise: worktree/appearing-files
#[test]
fn named_copy_survives_the_revert_of_a_killed_undo() {
    let sandbox = sandbox_with_converted_edit();
    let _ = sandbox.proq(&["merge", "one", "--autostash"]).ok();
    sandbox.sh("echo more >> keep.txt");
    let points = ("restore.compared", "restore.installed");
    let (code, text) = sandbox.run_while_stopped(&["undo"], points, LATER_WRITES[1]);
    assert_eq!(code, None, "{text}");
    let saved_file = command_after(&text, SAVED_VERSION);
    let recovery = sandbox.proq(&["list"]).to_text();
    assert_eq!(std::fs::read_to_string(saved_file).unwrap(), "mine\nmore\n", "{recovery}");
    assert_eq!(sandbox.read("keep.txt"), "mine\nmore\n", "{recovery}");
    let apply = command_after(&recovery, "saved later edits as snapshot ").split_once(": ").unwrap().1;
    sandbox.sh("git stash push -q");
    sandbox.sh(apply);
    assert_eq!(sandbox.read("keep.txt"), "later\r\n");
    sandbox.assert_healthy();
}
