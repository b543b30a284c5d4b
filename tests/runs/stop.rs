//! Tests of `git proq stop`: the agent's process group, agents that ignore SIGTERM, and supervisors that were
//! killed.

use std::path::Path;

use proq_test_kit::Sandbox;
use proq_test_kit::runs::{kill_process, kill_supervisor};
use proq_test_kit::waiting::wait_until_unlocked;

/// Starts a lane whose agent has written `work` and then sleeps. Returns the process ids of the agent and of
/// its child.
fn start_sleeping_agent(sandbox: &Sandbox, name: &str, before: &str) -> (String, String) {
    sandbox.pipe("up");
    sandbox.start_lane(name, &format!("{before} sleep 600 & echo 1 > work; echo $$ $! > \"$ROOT/up\"; wait"));
    let pids = sandbox.read_pipe("up");
    let (agent, child) = pids.trim().split_once(' ').unwrap();
    (agent.to_owned(), child.to_owned())
}

#[test]
fn stop_ends_agent_and_its_child_processes() {
    let sandbox = Sandbox::new();
    let (agent, child) = start_sleeping_agent(&sandbox, "x", "trap 'echo asked; exit 0' TERM;");
    assert_eq!(sandbox.started_row("x")["state"], "running");
    insta::assert_snapshot!(sandbox.proq(&["stop", "x"]).to_text(), @r"
    --- stderr
    x: stopped
    --- code 0
    ");
    assert!(!sandbox.is_alive(&agent) && !sandbox.is_alive(&child));
    assert_eq!(sandbox.proq(&["logs", "x"]).ok(), "asked\n");
    let row = sandbox.row("x");
    assert_eq!((&row["state"], &row["uncommitted"]), (&"stopped".into(), &1.into()));
    insta::assert_snapshot!(sandbox.proq(&["stop", "x"]).to_text(), @r"
    --- stderr
    error: cannot stop lane 'x': it has no running agent
    hint: show the lane: git proq show x
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["merge", "x"]).to_text(), @r"
    refused x: it was stopped; to merge it anyway: git proq merge --force x
    --- code 1
    ");
}

#[test]
fn stop_kills_agent_that_ignores_sigterm() {
    for grace in ["0", "1"] {
        let sandbox = Sandbox::new();
        sandbox.git(&["config", "proq.agent.stopGrace", grace]);
        let (agent, child) = start_sleeping_agent(&sandbox, "x", "trap '' TERM;");
        let _ = sandbox.proq(&["stop", "x"]).ok();
        assert!(!sandbox.is_alive(&agent) && !sandbox.is_alive(&child), "grace {grace}");
        let run = &sandbox.proq(&["show", "x", "--json"]).json()["runs"][0];
        assert_eq!((&run["outcome"], &run["signal"]), (&"stopped".into(), &9.into()));
    }
}

#[test]
fn stop_kills_child_that_outlives_its_agent() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.agent.stopGrace", "0"]);
    sandbox.pipe("up");
    sandbox.start_lane(
        "x",
        "(trap '' TERM; echo $$ > \"$ROOT/child\"; sh -c 'echo $$ > \"$ROOT/up\"; sleep 600') & wait",
    );
    let child = sandbox.read_pipe("up");
    let _ = sandbox.proq(&["stop", "x"]).ok();
    assert!(!sandbox.is_alive(child.trim()));
}

#[test]
fn stop_all_stops_only_running_agents() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("done", "echo 1 > one");
    start_sleeping_agent(&sandbox, "x", "");
    insta::assert_snapshot!(sandbox.proq(&["stop", "--all", "--dry-run"]).to_text(), @r"
    --- stderr
    would stop the agent of 'x'
    --- code 0
    ");
    assert_eq!(sandbox.started_row("x")["state"], "running");
    let out = sandbox.proq(&["stop", "--all", "--json"]).json();
    assert_eq!(out["stopped"], serde_json::json!(["x"]));
    assert_eq!(sandbox.row("done")["state"], "done");
    assert_eq!(sandbox.proq(&["stop", "--all", "--json"]).json()["stopped"], serde_json::json!([]));
    insta::assert_snapshot!(sandbox.proq(&["stop", "--all"]).to_text(), @r"
    --- stderr
    no agent is running
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["stop", "nobody"]).to_text(), @r"
    --- stderr
    error: there is no lane 'nobody'
    hint: see all: git proq list
    --- code 1
    ");
    assert_eq!(sandbox.proq(&["stop"]).code, 2);
}

/// Promise: concurrency/orphan
#[test]
fn orphaned_lane_is_refused_until_stopped() {
    let sandbox = Sandbox::new();
    let (agent, child) = start_sleeping_agent(&sandbox, "x", "");
    kill_supervisor(&sandbox, "x");
    insta::assert_snapshot!(sandbox.proq(&["list"]).to_text(), @r#"
    LANE  STATE     COMMITS  CHANGES  AGENT    UPDATED  TITLE
    x     orphaned  -        1 file   command  0s ago   sh -ec ' sleep 600 & echo 1 > work; echo $$ $'\!' > "$ROOT/up"; wait'
    --- code 0
    "#);
    insta::assert_snapshot!(sandbox.proq(&["merge", "x"]).to_text(), @r"
    refused x: its agent is running without a supervisor; stop it: git proq stop x
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["merge", "--all"]).to_text(), @r"
    nothing to land
    --- stderr
    skipped x: its agent is running without a supervisor; stop it: git proq stop x
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["cleanup", "x"]).to_text(), @r"
    --- stderr
    error: cannot remove lane 'x': its agent is running without a supervisor; 1 uncommitted file (work)
    hint: stop the agent: git proq stop x
    hint: remove it anyway; everything is saved first: git proq discard --force x
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["discard", "x"]).to_text(), @r"
    --- stderr
    error: cannot remove lane 'x': its agent is running without a supervisor; 1 uncommitted file (work)
    hint: stop the agent: git proq stop x
    hint: remove it anyway; everything is saved first: git proq discard --force x
    --- code 1
    ");
    let _ = sandbox.proq(&["cleanup", "--all"]).ok();
    assert!(sandbox.is_alive(&agent) && sandbox.lane_path("x").join("work").exists());
    insta::assert_snapshot!(sandbox.proq(&["stop", "x"]).to_text(), @r"
    --- stderr
    x: stopped (its supervisor had crashed)
    --- code 0
    ");
    assert!(!sandbox.is_alive(&agent) && !sandbox.is_alive(&child));
    assert_eq!(sandbox.row("x")["state"], "stopped");
}

#[test]
fn forced_discard_stops_orphaned_agent() {
    let sandbox = Sandbox::new();
    let (agent, _) = start_sleeping_agent(&sandbox, "x", "");
    kill_supervisor(&sandbox, "x");
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    assert!(!sandbox.is_alive(&agent));
    assert_eq!(sandbox.row("x@1")["state"], "discarded");
}

#[test]
fn run_fails_when_supervisor_and_agent_are_killed() {
    let sandbox = Sandbox::new();
    let (agent, child) = start_sleeping_agent(&sandbox, "x", "");
    kill_supervisor(&sandbox, "x");
    kill_process(&sandbox, &agent);
    kill_process(&sandbox, &child);
    wait_until_unlocked(&sandbox.lane_lock("x", "alive.lock"));
    insta::assert_snapshot!(sandbox.proq(&["list"]).to_text(), @r#"
    LANE  STATE   COMMITS  CHANGES  AGENT    UPDATED  TITLE
    x     failed  -        1 file   command  0s ago   sh -ec ' sleep 600 & echo 1 > work; echo $$ $'\!' > "$ROOT/up"; wait'
    --- code 0
    "#);
    insta::assert_snapshot!(sandbox.proq(&["stop", "x"]).to_text(), @r"
    --- stderr
    error: cannot stop lane 'x': it has no running agent
    hint: show the lane: git proq show x
    --- code 1
    ");
    assert_eq!(sandbox.proq(&["wait", "x"]).code, 4);
}

/// Promise: concurrency/reused-pid
#[test]
fn stop_spares_process_with_reused_pid() {
    let sandbox = Sandbox::new();
    let (agent, child) = start_sleeping_agent(&sandbox, "x", "");
    kill_supervisor(&sandbox, "x");
    // The record now names this `sleep`, which was started at another time.
    let mut other = sandbox.command("sleep", &sandbox.root()).arg("600").spawn().unwrap();
    let record = sandbox.repo.join(".git/proq/lanes/x/runs/1.toml");
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, text.replace(&format!("pid = {agent}"), &format!("pid = {}", other.id())))
        .unwrap();
    let stopped = sandbox.proq(&["stop", "x"]);
    let alive = sandbox.is_alive(&other.id().to_string());
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(alive, "{}", stopped.to_text());
    // The agent itself is found by the lock that it keeps open, where the open files of processes can be
    // read.
    if Path::new("/proc/self/fd").exists() {
        let _ = stopped.ok();
        assert!(!sandbox.is_alive(&agent) && !sandbox.is_alive(&child));
    } else {
        let message = stopped.fails(1);
        assert!(message.contains("lsof '[ROOT]/repo/.git/proq/locks/lanes/x.alive.lock'"), "{message}");
        kill_process(&sandbox, &agent);
        kill_process(&sandbox, &child);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn stop_kills_detached_process_of_orphaned_agent() {
    let sandbox = Sandbox::new();
    // A session of its own, and none of the files that the agent has open.
    let detach = r#"setsid bash -c 'for fd in /proc/$$/fd/*; do fd=${fd##*/}; [ $fd -le 2 ] || eval "exec $fd>&-"; done
        echo $$ > "$ROOT/fled"; exec sleep 600' < /dev/null > /dev/null 2>&1 & while [ ! -s "$ROOT/fled" ]; do :; done;"#;
    let (agent, _) = start_sleeping_agent(&sandbox, "x", detach);
    let detached = std::fs::read_to_string(sandbox.root().join("fled")).unwrap();
    kill_supervisor(&sandbox, "x");
    assert!(sandbox.is_alive(detached.trim()));
    let _ = sandbox.proq(&["stop", "x"]).ok();
    assert!(!sandbox.is_alive(&agent) && !sandbox.is_alive(detached.trim()));
    assert_eq!(sandbox.row("x")["state"], "stopped");
}

#[test]
fn stop_spares_process_named_in_forged_lock_note() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "-n", "x", "--", "sleep", "600"]).ok();
    sandbox.started_row("x");
    let mut unrelated = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let note = sandbox.repo.join(".git/proq/locks/lanes/x.run.holder");
    let text = std::fs::read_to_string(&note).unwrap();
    let lines = text.lines().map(|line| {
        if line.starts_with("pid = ") { format!("pid = {}", unrelated.id()) } else { line.to_owned() }
    });
    std::fs::write(&note, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let _ = sandbox.proq(&["stop", "x"]).ok();
    assert_eq!(sandbox.row("x")["state"], "stopped");
    assert!(unrelated.try_wait().unwrap().is_none(), "a stranger was ended");
    unrelated.kill().unwrap();
    unrelated.wait().unwrap();
}

/// Promise: concurrency/independent-process
#[test]
fn stop_spares_lane_started_by_the_agent() {
    let sandbox = Sandbox::new();
    for pipe in ["up", "go"] {
        sandbox.pipe(pipe);
    }
    let script = "git proq spawn -n inner -- sleep 600; echo > \"$ROOT/up\"; cat \"$ROOT/go\"; echo 1 > one";
    // One run ends normally; the supervisor of the other is killed.
    for is_killed in [false, true] {
        sandbox.start_lane("outer", script);
        sandbox.read_pipe("up");
        if is_killed {
            kill_supervisor(&sandbox, "outer");
            assert_eq!(sandbox.row("outer")["state"], "orphaned");
            let _ = sandbox.proq(&["stop", "outer"]).ok();
        } else {
            sandbox.write_pipe("go");
            let _ = sandbox.proq(&["wait", "outer"]).ok();
            assert_eq!(sandbox.row("outer")["state"], "done");
        }
        assert_eq!(sandbox.row("inner")["state"], "running");
        let _ = sandbox.proq(&["stop", "inner"]).ok();
        let _ = sandbox.proq(&["discard", "--force", "inner", "outer"]).ok();
    }
}

#[test]
fn reports_last_output_of_crashed_supervisor() {
    let sandbox = Sandbox::new();
    let (agent, child) = start_sleeping_agent(&sandbox, "x", "");
    let log = sandbox.repo.join(".git/proq/lanes/x/supervisor.log");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "");
    std::fs::write(&log, "thread 'main' panicked at a.rs:1:2:\nno room\n").unwrap();
    kill_supervisor(&sandbox, "x");
    kill_process(&sandbox, &agent);
    kill_process(&sandbox, &child);
    wait_until_unlocked(&sandbox.lane_lock("x", "alive.lock"));
    let reason = "its supervisor crashed; its last output: thread 'main' panicked at a.rs:1:2: no room";
    assert_eq!(sandbox.row("x")["detail"], reason);
    let report = sandbox.proq(&["doctor"]).stdout;
    assert!(report.contains(&format!("lane 'x' claims to be running, but {reason}")), "{report}");
}

/// Script of an agent that commits a part, signals that, and ends once a wrap-up is requested.
const WRAPS_UP: &str = r#"echo part > part.txt; git add -A; git commit -qm part; echo up > "$ROOT/up"
    until [ -e "$PROQ_WRAP_UP" ]; do sleep 0.02; done"#;

/// Promise: operations/wrapped-up-run
#[test]
fn wrapped_up_run_is_stopped_and_does_not_land() {
    let sandbox = Sandbox::new();
    sandbox.pipe("up");
    let _ = sandbox.proq(&["spawn", "-n", "x", "--auto-merge", "--", "sh", "-ec", WRAPS_UP]).ok();
    sandbox.read_pipe("up");
    let message = sandbox.proq(&["stop", "--wrap-up", "x"]).to_text();
    assert!(message.contains("x: stopped (asked to wrap up)"), "{message}");
    let row = sandbox.row("x");
    assert_eq!((&row["state"], &row["detail"]), (&"stopped".into(), &"asked to wrap up".into()));
    assert_eq!(sandbox.last_run("x")["class"], "stopped");
    assert_eq!(sandbox.git(&["log", "--oneline", "main"]).lines().count(), 1);
    assert!(!sandbox.repo.join("part.txt").exists());
    let message = sandbox.proq(&["merge", "x"]).fails(1);
    assert!(message.contains("refused x: it was stopped: asked to wrap up"), "{message}");
    sandbox.assert_healthy();
}
