//! Tests of writes to files that a landing has saved (`--autostash`), before it has restored them.

use std::io::Write;
use std::process::Stdio;

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

/// Lands lane `one`, and acts while the landing is stopped at a point. Returns its exit code and what it printed.
#[track_caller]
fn land_while(sandbox: &Sandbox, point: &str, act: impl FnOnce()) -> (Option<i32>, String) {
    let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "one", "--autostash"]);
    command.env("PROQ_TEST_STAND_AT", point).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let stopped = sandbox.wait_until_stopped(child.id());
    act();
    drop(stopped);
    let out = child.wait_with_output().unwrap();
    let text = [out.stdout, out.stderr].concat();
    (out.status.code(), String::from_utf8(text).unwrap())
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
    let apply = command_after(&text, "they are saved: ").to_owned();
    sandbox.sh("git commit -qm later long.txt; git reset -q --hard HEAD~");
    sandbox.sh(&apply);
    assert_eq!(sandbox.sh("sed -n '2p;20p' long.txt; cat keep.txt"), "2\ntwenty\nmine");
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
