//! Owns the tests of what a process makes of what others do between two of its steps.

use std::process::Stdio;

use super::runs::with_claude;
use super::support::Sandbox;
use super::support::patience::{Beside, Lines, wait_until_free};

/// The program at work, which stands still at these points, and what it says.
fn beside(sandbox: &Sandbox, at: &str, args: &[&str]) -> (Beside, Lines) {
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    command.env("PROQ_TEST_STAND_AT", at).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let said = Lines::of(child.stdout.take().unwrap());
    (Beside(child), said)
}

/// An agent that waits for a word in each of its runs.
fn with_patience() -> Sandbox {
    let sandbox = with_claude(r#"begin; echo > "$ROOT/up"; read go < "$ROOT/go"; echo $n >> work; well"#);
    sandbox.pipe("up");
    sandbox.pipe("go");
    sandbox
}

#[test]
fn a_run_that_begins_while_the_end_of_the_last_one_is_looked_at_is_no_death() {
    let sandbox = with_patience();
    // It has read the record of a run that lasts; then it has seen that nobody holds the lock any more.
    let at = "state.claimed,state.free";
    let (mut waits, said) = beside(&sandbox, at, &["spawn", "-n", "x", "--wait", "claude", "do it"]);
    sandbox.hear("up");
    let standing = sandbox.standing(waits.0.id());
    sandbox.tell("go");
    wait_until_free(&sandbox.lock("x", "run.lock"));
    drop(standing);
    let standing = sandbox.standing(waits.0.id());
    let _ = sandbox.proq(&["send", "x", "more"]).ok();
    sandbox.hear("up");
    drop(standing);
    sandbox.tell("go");
    let line = said.next();
    assert!(line.starts_with("x: done"), "{line}");
    assert_eq!((waits.code(), sandbox.last_run("x")["attempt"].as_u64()), (Some(0), Some(2)));
}

#[test]
fn a_lane_that_lands_while_its_run_is_looked_at_has_not_failed() {
    let sandbox = with_patience();
    let _ = sandbox.proq(&["spawn", "-n", "x", "--auto-merge", "claude", "do it"]).ok();
    sandbox.hear("up");
    let (mut waits, said) = beside(&sandbox, "state.claimed", &["wait", "x"]);
    let standing = sandbox.standing(waits.0.id());
    sandbox.tell("go");
    sandbox.until("merge.landed", "x", 1);
    wait_until_free(&sandbox.lock("x", "landing.lock"));
    assert_eq!(sandbox.row("x"), serde_json::Value::Null);
    drop(standing);
    assert_eq!(said.next(), "x: landed");
    assert_eq!(waits.code(), Some(0));
}
