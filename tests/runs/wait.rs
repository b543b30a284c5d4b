//! Tests of `git proq wait`: for all lanes or the first, with a timeout, and for a group.

use std::process::Stdio;

use proq_test_kit::Sandbox;
use proq_test_kit::runs::kill_supervisor;
use proq_test_kit::waiting::{KilledOnDrop, OutputLines, wait_until};

#[test]
fn wait_any_returns_with_the_first_finished_lane() {
    let sandbox = Sandbox::new();
    sandbox.pipe("a");
    sandbox.pipe("b");
    sandbox.start_lane("a", "read line < \"$ROOT/a\"; echo 1 > one");
    sandbox.start_lane("b", "read line < \"$ROOT/b\"; exit 3");
    let mut wait = sandbox.proq_command(&sandbox.repo, &["wait", "--any", "--json", "a", "b"]);
    let wait = wait.stdout(Stdio::piped()).spawn().unwrap();
    // One thread for each of the two, and the thread that receives from them: the command waits now.
    if cfg!(target_os = "linux") {
        let threads = format!("/proc/{}/task", wait.id());
        wait_until("it waits", || std::fs::read_dir(&threads).unwrap().count() >= 3);
    }
    sandbox.write_pipe("b");
    let out = wait.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(4));
    let answer: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((&answer["first"], &answer["timed_out"]), (&"b".into(), &false.into()));
    assert_eq!((&answer["lanes"][0]["lane"], &answer["lanes"][1]["state"]), (&"a".into(), &"failed".into()));
    assert!(["starting", "running"].contains(&answer["lanes"][0]["state"].as_str().unwrap()), "{answer}");
    // A lane that has finished already counts as the first, too.
    assert_eq!(sandbox.proq(&["wait", "--any", "a", "b"]).fails(4), "b: failed (exit code 3)\n");
    sandbox.write_pipe("a");
    assert_eq!(sandbox.proq(&["wait", "a"]).ok(), "a: done\n");
    assert_eq!(sandbox.proq(&["wait", "--any", "a", "b"]).ok(), "a: done\n");
    let _ = sandbox.proq(&["wait", "--any", "--all", "a"]).fails(2);
}

#[test]
fn timeout_names_running_agents_and_stops_none() {
    let sandbox = Sandbox::new();
    sandbox.pipe("go");
    sandbox.run_lane("past", "echo 1 > one");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "bad", "--", "false"]).fails(4);
    sandbox.start_lane("x", "read line < \"$ROOT/go\"; echo 1 > one");
    let _ = sandbox.started_row("x");
    // A timeout of zero only checks; the smallest unit is a second.
    for (time, shown) in [("0", "0s"), ("1s", "1s")] {
        let out = sandbox.proq(&["wait", "--timeout", time, "past", "x", "bad"]);
        assert_eq!(out.stdout, "past: done\nx: running\nbad: failed (exit code 1)\n");
        assert_eq!(out.stderr, format!("warning: timed out after {shown}: 1 agent is still running\n"));
        assert_eq!(out.code, 5);
    }
    let out = sandbox.proq(&["wait", "--timeout", "0", "--json", "x"]);
    assert_eq!((out.json()["timed_out"].clone(), out.code), (true.into(), 5));
    let _ = sandbox.proq(&["wait", "--timeout", "soon", "x"]).fails(2);
    assert_eq!(
        sandbox.proq(&["wait", "--any", "--timeout", "0", "x"]).fails(5).lines().next(),
        Some("x: running")
    );
    assert_eq!(sandbox.proq(&["wait", "--any", "--timeout", "0", "x", "past"]).ok(), "past: done\n");
    sandbox.write_pipe("go");
    assert_eq!(sandbox.proq(&["wait", "--timeout", "1h", "x"]).ok(), "x: done\n");
    assert_eq!(sandbox.proq(&["wait", "--timeout", "1h", "--any"]).code, 0);
}

#[test]
fn group_names_its_lanes_unless_a_lane_has_its_name() {
    let sandbox = Sandbox::new();
    let _ = sandbox
        .proq(&["spawn", "--wait", "--count", "2", "-n", "pay", "--", "sh", "-c", "echo 1 > one"])
        .ok();
    assert_eq!(sandbox.proq(&["wait", "pay-2", "pay"]).ok(), "pay-2: done\npay-1: done\n");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "pay"]).ok();
    assert_eq!(sandbox.proq(&["wait", "pay"]).ok(), "pay: idle\n");
}

/// The supervisor is killed and its agent continues: `wait` has to switch to another lock.
#[test]
fn waits_for_agent_that_outlives_its_supervisor() {
    let sandbox = Sandbox::new();
    sandbox.pipe("go");
    sandbox.run_lane("past", "echo 1 > one");
    sandbox.start_lane("x", "read line < \"$ROOT/go\"");
    let _ = sandbox.started_row("x");
    let mut wait = sandbox.proq_command(&sandbox.repo, &["wait", "past", "x"]);
    let mut wait = KilledOnDrop(wait.stdout(Stdio::piped()).spawn().unwrap());
    let lines = OutputLines::read_from(wait.0.stdout.take().unwrap());
    assert_eq!(lines.next(), "past: done");
    wait_until_blocked_on(&sandbox, wait.0.id(), "run.lock");
    kill_supervisor(&sandbox, "x");
    assert_eq!(sandbox.row("x")["state"], "orphaned");
    wait_until_blocked_on(&sandbox, wait.0.id(), "alive.lock");
    sandbox.write_pipe("go");
    assert_eq!(lines.next(), "x: failed (its supervisor crashed)");
    assert_eq!(wait.exit_code(), Some(4));
}

/// Waits until a process has opened a lock of lane `x`, its last step before it blocks on the lock, where
/// that is visible. `/proc/locks` would show the blocking itself, but not that of a thread in a container.
#[track_caller]
fn wait_until_blocked_on(sandbox: &Sandbox, pid: u32, lock: &str) {
    let Ok(_) = std::fs::metadata("/proc/self/fd") else { return };
    let lock = sandbox.lane_lock("x", lock).canonicalize().unwrap();
    wait_until(&format!("{pid} sleeps on {}", lock.display()), || {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
        open.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|path| path == lock)
    });
}
