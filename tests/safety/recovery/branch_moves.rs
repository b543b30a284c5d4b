//! Moves of a checked-out branch that end half way, or beside other processes that ignore or remove the locks.

use std::process::Stdio;

use proq_test_kit::faults::{kill_at, recover};
use proq_test_kit::waiting::KilledOnDrop;
use proq_test_kit::{Output, Sandbox, fixtures};

/// Removes the locks of the main checkout's index, HEAD and branch, as users do by hand.
const REMOVE_LOCKS: &str = "rm -f .git/index.lock .git/HEAD.lock .git/refs/heads/main.lock";
/// Moves the branch of the main checkout to a child of its commit with the same files.
const MOVE_BRANCH: &str = "git update-ref refs/heads/main $(git commit-tree -p main -m mine 'main^{tree}')";
const LIST_LOCKS: &str = "find .git -name '*.lock' -not -path '*/proq/*'";

/// Returns a sandbox whose lane `one` has landed and still exists.
fn sandbox_with_landing() -> Sandbox {
    let sandbox = fixtures::two_lanes();
    let _ = sandbox.proq(&["merge", "--no-cleanup", "one"]).ok();
    sandbox
}

/// Runs a command and `script` while the command stops at a fault point. Returns what the command printed.
fn run_with_script_at(sandbox: &Sandbox, point: &str, script: &str, args: &[&str]) -> Output {
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    command.env("PROQ_TEST_STAND_AT", point).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = KilledOnDrop(command.spawn().unwrap());
    let stopped = sandbox.wait_until_stopped(child.0.id());
    sandbox.sh(script);
    drop(stopped);
    let code = child.exit_code().unwrap();
    let read = |pipe: &mut dyn std::io::Read| std::io::read_to_string(pipe).unwrap();
    let stdout = read(child.0.stdout.as_mut().unwrap());
    Output { code, stdout, stderr: read(child.0.stderr.as_mut().unwrap()) }
}

#[test]
fn killed_undo_is_not_done_where_branch_went_on() {
    for (point, script) in [
        ("branch_move.locked", format!("{REMOVE_LOCKS}; {MOVE_BRANCH}")),
        ("transition.staged", format!("{REMOVE_LOCKS}; git commit -q --allow-empty -m mine")),
    ] {
        let sandbox = sandbox_with_landing();
        kill_at(&sandbox, point, &["undo"]);
        sandbox.sh(&script);
        let tip = sandbox.git(&["rev-parse", "main"]);
        recover(&sandbox);
        assert_eq!(sandbox.git(&["rev-parse", "main"]), tip, "{point}");
        assert_eq!(sandbox.git(&["status", "--porcelain"]), "", "{point}");
        assert_eq!(sandbox.sh(LIST_LOCKS), "", "{point}");
        let lane = sandbox.proq(&["show", "one", "--json"]).json();
        assert_eq!(lane["state"], "landed", "{point}: {lane}");
    }
}

#[test]
fn index_lock_of_killed_undo_that_others_finished_is_removed() {
    let sandbox = sandbox_with_landing();
    let before = sandbox.git(&["rev-parse", "main^1"]);
    kill_at(&sandbox, "branch_move.locked", &["undo"]);
    sandbox.sh(&format!("rm .git/refs/heads/main.lock; git update-ref refs/heads/main {before}"));
    recover(&sandbox);
    assert_eq!(sandbox.sh(LIST_LOCKS), "");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
}

#[test]
fn undo_fails_where_branch_moved_without_its_lock() {
    let sandbox = sandbox_with_landing();
    let script = format!("rm .git/HEAD.lock .git/refs/heads/main.lock; {MOVE_BRANCH}");
    let undo = run_with_script_at(&sandbox, "transition.staged", &script, &["undo"]);
    assert_eq!(undo.code, 1, "{}", undo.to_text());
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "main"]), "mine");
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    recover(&sandbox);
    assert_eq!(sandbox.sh(LIST_LOCKS), "");
}

#[test]
fn own_locks_are_removed_whatever_their_time() {
    let sandbox = fixtures::two_lanes();
    kill_at(&sandbox, "transition.staged", &["merge", "one"]);
    sandbox.sh("touch -d '-1 hour' .git/HEAD.lock .git/refs/heads/main.lock");
    recover(&sandbox);
    assert_eq!(sandbox.sh(LIST_LOCKS), "");
    let _ = sandbox.proq(&["merge", "one"]).ok();
}

#[test]
fn lock_of_another_process_does_not_become_the_branch() {
    let sandbox = fixtures::two_lanes();
    let tip = sandbox.git(&["rev-parse", "main"]);
    let replace = "rm .git/refs/heads/main.lock; echo theirs > .git/refs/heads/main.lock";
    let merge = run_with_script_at(&sandbox, "branch_move.logged", replace, &["merge", "one"]);
    assert_eq!(merge.code, 1, "{}", merge.to_text());
    assert_eq!(sandbox.git(&["rev-parse", "main"]), tip);
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    assert_eq!(sandbox.sh(LIST_LOCKS), ".git/refs/heads/main.lock");
}

/// Only a program that ignores locks moves a branch or HEAD then.
#[test]
fn branch_and_head_are_compared_under_their_locks() {
    let sandbox = fixtures::two_lanes();
    let theirs = sandbox.git(&["commit-tree", "-p", "main", "-m", "theirs", "main^{tree}"]);
    let script = format!("echo {theirs} >.git/refs/heads/main");
    let _ = run_with_script_at(&sandbox, "branch_move.locked", &script, &["merge", "one"]).ok();
    let log = sandbox.git(&["log", "--format=%s", "main"]);
    assert!(log.contains("theirs") && log.contains("one"), "{log}");
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");

    let sandbox = fixtures::two_lanes();
    sandbox.sh("git branch other");
    let before = sandbox.git(&["rev-parse", "other"]);
    let script = "echo 'ref: refs/heads/other' >.git/HEAD";
    let merge = run_with_script_at(&sandbox, "branch_move.locked", script, &["merge", "one"]);
    assert!(sandbox.git(&["log", "--format=%s", "main"]).contains("one"), "{}", merge.to_text());
    assert_eq!(
        (sandbox.git(&["rev-parse", "HEAD"]), sandbox.git(&["status", "--porcelain"])),
        (before, String::new())
    );
}
