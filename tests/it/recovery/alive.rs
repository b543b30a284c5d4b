//! Owns the tests of who is at work still: a living command, the git of a dead one, and one that is asked to stop.

use std::process::Stdio;

use super::kit::{dies, is_tidy, recovers, with_git};
use crate::support::patience::{Beside, Lines};
use crate::support::{Sandbox, State, scenes};

/// A scene, a command, and the call of git at which it is interrupted.
type Case = (fn() -> Sandbox, &'static [&'static str], &'static str);

#[test]
fn a_living_commands_operation_is_left_alone() {
    let sandbox = scenes::dirty();
    sandbox.pipe("here");
    sandbox.pipe("go");
    let act = "echo here > \"$ROOT/here\"; cat \"$ROOT/go\" > /dev/null";
    let mut command = with_git(&sandbox, "read-tree -m -u", act, &["preview", "one"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    sandbox.hear("here");
    let out = sandbox.proq(&["list"]);
    assert_eq!((out.code, out.stderr.contains("cut short")), (0, false), "{}", out.shown());
    assert!(sandbox.repo.join(".git/index.lock").exists());
    sandbox.tell("go");
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(sandbox.git(&["branch", "--show-current"]), "proq/one-preview");
    is_tidy(&sandbox);
}

#[test]
fn recovery_waits_for_the_git_of_a_dead_command() {
    let sandbox = scenes::dirty();
    let before = State::of(&sandbox);
    sandbox.pipe("here");
    sandbox.pipe("go");
    let act = "kill -9 $PPID; echo here > \"$ROOT/here\"; cat \"$ROOT/go\" > /dev/null";
    let mut command = with_git(&sandbox, "read-tree -m -u", act, &["preview", "one"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    sandbox.hear("here");
    assert!(!child.wait().unwrap().success());
    let mut next = sandbox.command("timeout", &sandbox.repo);
    next.args(["0.5", env!("CARGO_BIN_EXE_git-proq"), "list"]);
    let out = sandbox.output(next);
    assert_eq!(out.code, 124, "it did not wait: {}", out.shown());
    let mut next = sandbox.proq_command(&sandbox.repo, &["list"]);
    let next = next.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The real git comes now, and brings files over.
    sandbox.tell("go");
    let said = next.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&said.stderr).contains("was cut short"), "{said:?}");
    recovers(&sandbox);
    State::of(&sandbox).is(&before, "after recovery");
}

/// Starts a command that stands still at a point.
fn stands_at(sandbox: &Sandbox, at: &str, args: &[&str]) -> Beside {
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    command.env("PROQ_TEST_STAND_AT", at).stdout(Stdio::null()).stderr(Stdio::null());
    Beside(command.spawn().unwrap())
}

#[test]
fn nobody_goes_on_from_what_another_process_puts_right_just_now() {
    let cases: [(&str, &[&str], &[&str]); 4] = [
        ("clear.moved", &["preview", "one"], &["preview", "two"]),
        ("transition.staged", &["merge", "one"], &["merge", "two"]),
        ("step.after:3", &["spawn", "--empty", "-n", "new"], &["discard", "new"]),
        // A worktree that no record knows yet is no stray.
        ("worktree.filled", &["spawn", "--empty", "-n", "new"], &["cleanup"]),
    ];
    for (at, args, next) in cases {
        let sandbox = scenes::dirty();
        let before = State::of(&sandbox);
        dies(&sandbox, at, args);
        let mut rights = stands_at(&sandbox, "recover.claimed", &["list"]);
        let standing = sandbox.standing(rights.0.id());
        let mut command = sandbox.proq_command(&sandbox.repo, next);
        command.env("PROQ_LOCK_TIMEOUT", "0");
        let out = sandbox.output(command);
        assert_eq!(out.code, 5, "{args:?}: {}", out.shown());
        assert!(out.shown().contains("held by whoever puts `git proq"), "{args:?}: {}", out.shown());
        drop(standing);
        assert_eq!(rights.code(), Some(0), "{args:?}");
        State::of(&sandbox).is(&before, &format!("{args:?}"));
        recovers(&sandbox);
    }
}

#[test]
fn a_landing_waits_for_whoever_brings_a_lane_back_and_takes_none_for_broken() {
    let mut waited = 0;
    for step in 1..=6 {
        let sandbox = scenes::dirty();
        let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
        let mut undo = stands_at(&sandbox, &format!("step.after:{step}"), &["undo"]);
        let standing = sandbox.standing(undo.0.id());
        let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "one"]);
        command.env("PROQ_LOCK_TIMEOUT", "0");
        let said = sandbox.output(command).shown();
        let is_held = said.contains("lane 'one' is held by `git proq undo`");
        // Until its record is back it is none.
        assert!(is_held || said.contains("there is no lane 'one'"), "{step}: {said}");
        waited += usize::from(is_held);
        drop(standing);
        assert_eq!(undo.code(), Some(0), "{step}");
        let _ = sandbox.proq(&["merge", "one"]).ok();
    }
    assert!(waited > 0);
}

#[test]
fn a_preview_that_ends_meanwhile_is_no_branch_without_a_commit() {
    let sandbox = scenes::dirty();
    let _ = sandbox.proq(&["preview", "two"]).ok();
    let mut goes = stands_at(&sandbox, "desk.head", &["discard", "--force", "two"]);
    let standing = sandbox.standing(goes.0.id());
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    drop(standing);
    assert_eq!(goes.code(), Some(0));
    assert!(!sandbox.proq(&["list"]).ok().contains("two"));
}

#[test]
fn an_undo_that_has_waited_for_a_landing_takes_nothing_back() {
    let sandbox = scenes::dirty();
    let _ = sandbox.proq(&["preview", "two"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let before = sandbox.git(&["status", "--porcelain"]);
    let mut lands = stands_at(&sandbox, "transition.locked", &["merge", "one"]);
    let standing = sandbox.standing(lands.0.id());
    let mut undo = sandbox.proq_command(&sandbox.repo, &["undo"]);
    let mut undo = undo.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let said = Lines::of(undo.stderr.take().unwrap());
    assert!(said.next().contains("waiting for the worktree '@main'"));
    drop(standing);
    assert_eq!(lands.code(), Some(0));
    let error = said.next();
    assert!(error.contains("is not the last one that stands"), "{error}");
    assert_eq!(Beside(undo).code(), Some(1));
    assert_eq!((sandbox.git(&["status", "--porcelain"]), &*sandbox.read("one.txt")), (before, "one\n"));
    let _ = sandbox.proq(&["preview", "two"]).ok();
    is_tidy(&sandbox);
}

#[test]
fn an_undo_waits_for_whoever_puts_its_lane_right() {
    let sandbox = scenes::dirty();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "new"]).ok();
    let _ = sandbox.proq(&["discard", "--force", "new"]).ok();
    dies(&sandbox, "step.after:1", &["undo"]);
    let mut rights = stands_at(&sandbox, "recover.claimed", &["list"]);
    let standing = sandbox.standing(rights.0.id());
    let mut undo = sandbox.proq_command(&sandbox.repo, &["undo"]);
    undo.env("PROQ_LOCK_TIMEOUT", "0");
    let out = sandbox.output(undo);
    assert_eq!(out.code, 5, "{}", out.shown());
    let holder = "lane 'new' is held by whoever puts `git proq undo` right";
    assert!(out.stderr.contains(holder), "{}", out.stderr);
    drop(standing);
    assert_eq!(rights.code(), Some(0));
    let _ = sandbox.proq(&["undo"]).ok();
    is_tidy(&sandbox);
}

#[test]
fn an_interrupted_command_takes_everything_back_before_it_ends() {
    let cases: [Case; 5] = [
        (scenes::dirty, &["preview", "one"], "checkout-index"),
        (scenes::edited, &["preview", "two"], "checkout-index"),
        (scenes::edited, &["preview", "--back"], "read-tree -m -u"),
        (scenes::unfinished, &["discard", "--force", "one"], "update-ref"),
        (scenes::shared, &["spawn", "--empty", "-n", "new"], "worktree add"),
    ];
    for (scene, args, moment) in cases {
        for signal in ["INT", "TERM"] {
            let sandbox = scene();
            let before = State::of(&sandbox);
            let out = sandbox.output(with_git(&sandbox, moment, &format!("kill -{signal} $PPID"), args));
            assert_eq!(out.code, if signal == "INT" { 130 } else { 143 }, "{args:?}: {}", out.shown());
            is_tidy(&sandbox);
            State::of(&sandbox).is(&before, &format!("{args:?}, {moment}, {signal}"));
            assert!(!sandbox.proq(&["list"]).stderr.contains("cut short"));
        }
    }
}

#[test]
fn an_interrupted_command_that_was_at_its_end_stands() {
    let sandbox = scenes::dirty();
    let out = sandbox.output(with_git(&sandbox, "read-tree -m -u", "kill -INT $PPID", &["merge", "one"]));
    insta::assert_snapshot!(out.shown(), @r"
    landed one on main (cc6dcaf6); the lane was kept: interrupted; nothing was left half-done
    --- code 0
    ");
    is_tidy(&sandbox);
    assert_eq!(sandbox.git(&["show", "main:one.txt"]), "one");
    assert_eq!(sandbox.row("one")["state"], "landed");
    let _ = sandbox.proq(&["cleanup"]).ok();
    assert!(!sandbox.lane("one").exists());
}

#[test]
fn a_stopped_command_is_named_to_whoever_waits_for_it() {
    let sandbox = scenes::dirty();
    sandbox.pipe("here");
    sandbox.pipe("go");
    let act = "kill -STOP $PPID; echo here > \"$ROOT/here\"; cat \"$ROOT/go\" > /dev/null";
    let mut command = with_git(&sandbox, "read-tree -m -u", act, &["preview", "one"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    sandbox.hear("here");
    let mut other = sandbox.proq_command(&sandbox.repo, &["preview", "two"]);
    other.env("PROQ_LOCK_TIMEOUT", "0");
    let text = sandbox.output(other).fails(5);
    let pid = child.id();
    assert!(text.contains(&format!("process {pid}")) && text.contains("which is stopped (Ctrl-Z)"), "{text}");
    sandbox.tell("go");
    sandbox.sh(&format!("kill -CONT {pid}"));
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    is_tidy(&sandbox);
}
