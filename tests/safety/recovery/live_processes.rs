//! Processes that still run: a live command, the git of a killed command, and a command that is interrupted.

use std::process::Stdio;

use proq_test_kit::faults::{assert_tidy, kill_at, recover, with_git_wrapper};
use proq_test_kit::waiting::{KilledOnDrop, OutputLines};
use proq_test_kit::{RepoState, Sandbox, fixtures};

/// Scene, command, and the git call at which it is interrupted.
type InterruptCase = (fn() -> Sandbox, &'static [&'static str], &'static str);

/// Promise: concurrency/live-command
#[test]
fn operation_of_live_command_is_left_alone() {
    let sandbox = fixtures::dirty_with_lanes();
    sandbox.pipe("here");
    sandbox.pipe("go");
    let act = "echo here > \"$ROOT/here\"; cat \"$ROOT/go\" > /dev/null";
    let mut command = with_git_wrapper(&sandbox, "read-tree -m -u", act, &["preview", "one"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    sandbox.read_pipe("here");
    let out = sandbox.proq(&["list"]);
    assert_eq!((out.code, out.stderr.contains("cut short")), (0, false), "{}", out.to_text());
    assert!(sandbox.repo.join(".git/index.lock").exists());
    sandbox.write_pipe("go");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(sandbox.git(&["branch", "--show-current"]), "proq/one-preview");
    assert_tidy(&sandbox);
}

/// Promise: concurrency/live-command
#[test]
fn recovery_waits_for_git_of_killed_command() {
    let sandbox = fixtures::dirty_with_lanes();
    let before = RepoState::capture(&sandbox);
    sandbox.pipe("here");
    sandbox.pipe("go");
    let act = "kill -9 $PPID; echo here > \"$ROOT/here\"; cat \"$ROOT/go\" > /dev/null";
    let mut command = with_git_wrapper(&sandbox, "read-tree -m -u", act, &["preview", "one"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    sandbox.read_pipe("here");
    assert!(!child.wait().unwrap().success());
    let mut next = sandbox.command("timeout", &sandbox.repo);
    next.args(["0.5", env!("CARGO_BIN_EXE_git-proq"), "list"]);
    let out = sandbox.output(next);
    assert_eq!(out.code, 124, "it did not wait: {}", out.to_text());
    let mut next = sandbox.proq_command(&sandbox.repo, &["list"]);
    let next = next.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The real git runs now and writes files.
    sandbox.write_pipe("go");
    let output = next.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("was interrupted"), "{output:?}");
    recover(&sandbox);
    RepoState::capture(&sandbox).assert_same(&before, "after recovery");
}

/// Starts a command that stops at a fault point.
fn stop_at(sandbox: &Sandbox, point: &str, args: &[&str]) -> KilledOnDrop {
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    command.env("PROQ_TEST_STAND_AT", point).stdout(Stdio::null()).stderr(Stdio::null());
    KilledOnDrop(command.spawn().unwrap())
}

/// Promise: worktree/concurrent-recovery
#[test]
fn commands_fail_while_recovery_holds_lock() {
    let cases: [(&str, &[&str], &[&str]); 4] = [
        ("clear.moved", &["preview", "one"], &["preview", "two"]),
        ("transition.staged", &["merge", "one"], &["merge", "two"]),
        ("step.after:3", &["spawn", "--empty", "-n", "new"], &["discard", "new"]),
        // A worktree that no record knows yet is not treated as unrecorded.
        ("worktree.filled", &["spawn", "--empty", "-n", "new"], &["cleanup"]),
    ];
    for (at, args, next) in cases {
        let sandbox = fixtures::dirty_with_lanes();
        let before = RepoState::capture(&sandbox);
        kill_at(&sandbox, at, args);
        let mut recovering = stop_at(&sandbox, "recover.claimed", &["list"]);
        let stopped = sandbox.wait_until_stopped(recovering.0.id());
        let mut command = sandbox.proq_command(&sandbox.repo, next);
        command.env("PROQ_LOCK_TIMEOUT", "0");
        let out = sandbox.output(command);
        assert_eq!(out.code, 5, "{args:?}: {}", out.to_text());
        assert!(
            out.to_text().contains("held by the process that repairs `git proq"),
            "{args:?}: {}",
            out.to_text()
        );
        drop(stopped);
        assert_eq!(recovering.exit_code(), Some(0), "{args:?}");
        RepoState::capture(&sandbox).assert_same(&before, &format!("{args:?}"));
        recover(&sandbox);
    }
}

#[test]
fn landing_waits_for_undo_that_restores_lane() {
    let mut waited = 0;
    for step in 1..=6 {
        let sandbox = fixtures::dirty_with_lanes();
        let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
        let mut undo = stop_at(&sandbox, &format!("step.after:{step}"), &["undo"]);
        let stopped = sandbox.wait_until_stopped(undo.0.id());
        let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "one"]);
        command.env("PROQ_LOCK_TIMEOUT", "0");
        let output = sandbox.output(command).to_text();
        let is_held = output.contains("lane 'one' is held by `git proq undo`");
        // Before its record is restored the lane does not exist.
        assert!(is_held || output.contains("there is no lane 'one'"), "{step}: {output}");
        waited += usize::from(is_held);
        drop(stopped);
        assert_eq!(undo.exit_code(), Some(0), "{step}");
        let _ = sandbox.proq(&["merge", "one"]).ok();
    }
    assert!(waited > 0);
}

/// Promise: worktree/concurrent-recovery
#[test]
fn discard_tolerates_preview_ended_concurrently() {
    let sandbox = fixtures::dirty_with_lanes();
    let _ = sandbox.proq(&["preview", "two"]).ok();
    let mut discarding = stop_at(&sandbox, "desk.head", &["discard", "--force", "two"]);
    let stopped = sandbox.wait_until_stopped(discarding.0.id());
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    drop(stopped);
    assert_eq!(discarding.exit_code(), Some(0));
    assert!(!sandbox.proq(&["list"]).ok().contains("two"));
}

/// Promise: worktree/concurrent-recovery
#[test]
fn undo_that_waited_for_landing_changes_nothing() {
    let sandbox = fixtures::dirty_with_lanes();
    let _ = sandbox.proq(&["preview", "two"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let before = sandbox.git(&["status", "--porcelain"]);
    let mut landing = stop_at(&sandbox, "transition.locked", &["merge", "one"]);
    let stopped = sandbox.wait_until_stopped(landing.0.id());
    let mut undo = sandbox.proq_command(&sandbox.repo, &["undo"]);
    let mut undo = undo.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let stderr_lines = OutputLines::read_from(undo.stderr.take().unwrap());
    assert!(stderr_lines.next().contains("waiting for the worktree '@main'"));
    drop(stopped);
    assert_eq!(landing.exit_code(), Some(0));
    let error = stderr_lines.next();
    assert!(error.contains("is not the last one in effect"), "{error}");
    assert_eq!(KilledOnDrop(undo).exit_code(), Some(1));
    assert_eq!((sandbox.git(&["status", "--porcelain"]), &*sandbox.read("one.txt")), (before, "one\n"));
    let _ = sandbox.proq(&["preview", "two"]).ok();
    assert_tidy(&sandbox);
}

/// Promise: worktree/concurrent-recovery
#[test]
fn undo_waits_for_recovery_of_its_lane() {
    let sandbox = fixtures::dirty_with_lanes();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "new"]).ok();
    let _ = sandbox.proq(&["discard", "--force", "new"]).ok();
    kill_at(&sandbox, "step.after:1", &["undo"]);
    let mut recovering = stop_at(&sandbox, "recover.claimed", &["list"]);
    let stopped = sandbox.wait_until_stopped(recovering.0.id());
    let mut undo = sandbox.proq_command(&sandbox.repo, &["undo"]);
    undo.env("PROQ_LOCK_TIMEOUT", "0");
    let out = sandbox.output(undo);
    assert_eq!(out.code, 5, "{}", out.to_text());
    let holder = "lane 'new' is held by the process that repairs `git proq undo`";
    assert!(out.stderr.contains(holder), "{}", out.stderr);
    drop(stopped);
    assert_eq!(recovering.exit_code(), Some(0));
    let _ = sandbox.proq(&["undo"]).ok();
    assert_tidy(&sandbox);
}

/// Promise: worktree/interrupt
#[test]
fn interrupt_undoes_command_before_exit() {
    let cases: [InterruptCase; 5] = [
        (fixtures::dirty_with_lanes, &["preview", "one"], "checkout-index"),
        (fixtures::edited_preview, &["preview", "two"], "checkout-index"),
        (fixtures::edited_preview, &["preview", "--back"], "read-tree -m -u"),
        (fixtures::unfinished_lane, &["discard", "--force", "one"], "update-ref"),
        (fixtures::shared_repository, &["spawn", "--empty", "-n", "new"], "worktree add"),
    ];
    for (scene, args, moment) in cases {
        for signal in ["INT", "TERM"] {
            let sandbox = scene();
            let before = RepoState::capture(&sandbox);
            let out =
                sandbox.output(with_git_wrapper(&sandbox, moment, &format!("kill -{signal} $PPID"), args));
            assert_eq!(out.code, if signal == "INT" { 130 } else { 143 }, "{args:?}: {}", out.to_text());
            assert_tidy(&sandbox);
            RepoState::capture(&sandbox).assert_same(&before, &format!("{args:?}, {moment}, {signal}"));
            assert!(!sandbox.proq(&["list"]).stderr.contains("cut short"));
        }
    }
}

/// Promise: worktree/interrupt
#[test]
fn interrupted_command_keeps_finished_landing() {
    let sandbox = fixtures::dirty_with_lanes();
    let out =
        sandbox.output(with_git_wrapper(&sandbox, "read-tree -m -u", "kill -INT $PPID", &["merge", "one"]));
    insta::assert_snapshot!(out.to_text(), @r"
    landed one on main (cc6dcaf6); the lane was kept: interrupted; nothing was left unfinished
    --- stderr
    hint: undo it: git proq undo
    --- code 0
    ");
    assert_tidy(&sandbox);
    assert_eq!(sandbox.git(&["show", "main:one.txt"]), "one");
    assert_eq!(sandbox.row("one")["state"], "landed");
    let _ = sandbox.proq(&["cleanup"]).ok();
    assert!(!sandbox.lane_path("one").exists());
}

/// Promise: concurrency/lock-holder-named
#[test]
fn stopped_holder_is_named_to_waiting_command() {
    let sandbox = fixtures::dirty_with_lanes();
    sandbox.pipe("here");
    sandbox.pipe("go");
    let act = "kill -STOP $PPID; echo here > \"$ROOT/here\"; cat \"$ROOT/go\" > /dev/null";
    let mut command = with_git_wrapper(&sandbox, "read-tree -m -u", act, &["preview", "one"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    sandbox.read_pipe("here");
    let mut other = sandbox.proq_command(&sandbox.repo, &["preview", "two"]);
    other.env("PROQ_LOCK_TIMEOUT", "0");
    let text = sandbox.output(other).fails(5);
    let pid = child.id();
    assert!(
        text.contains(&format!("process {pid}")) && text.contains("which is suspended (Ctrl-Z)"),
        "{text}"
    );
    sandbox.write_pipe("go");
    sandbox.sh(&format!("kill -CONT {pid}"));
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_tidy(&sandbox);
}
