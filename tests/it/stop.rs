//! Owns the tests of `git proq stop`: the agent's whole group, agents that will not go, supervisors that are gone.

use std::path::Path;

use super::support::Sandbox;
use super::support::patience::wait_until_free;

/// Waits until the supervisor of a lane has ended: its lock is free then.
fn supervisor_gone(sandbox: &Sandbox, lane: &str) {
    wait_until_free(&sandbox.lock(lane, "run.lock"));
}

/// Kills the supervisor of a lane, as a crash would.
pub fn kill_supervisor(sandbox: &Sandbox, lane: &str) {
    let holder = std::fs::read_to_string(sandbox.lock(lane, "run.holder")).unwrap();
    let pid = holder.lines().find_map(|l| l.strip_prefix("pid = ")).unwrap();
    kill(sandbox, pid);
    supervisor_gone(sandbox, lane);
}

fn kill(sandbox: &Sandbox, pid: &str) {
    let mut command = sandbox.command("kill", &sandbox.root());
    command.args(["-9", pid]);
    let _ = sandbox.output(command).ok();
}

/// A lane whose agent has written `work` and then sleeps; the process ids of the agent and of its child.
fn sleeper(sandbox: &Sandbox, name: &str, before: &str) -> (String, String) {
    sandbox.pipe("up");
    sandbox.start_lane(name, &format!("{before} sleep 600 & echo 1 > work; echo $$ $! > \"$ROOT/up\"; wait"));
    let pids = sandbox.hear("up");
    let (agent, child) = pids.trim().split_once(' ').unwrap();
    (agent.to_owned(), child.to_owned())
}

#[test]
fn an_agent_that_is_asked_to_end_ends_with_all_its_processes() {
    let sandbox = Sandbox::new();
    let (agent, child) = sleeper(&sandbox, "x", "trap 'echo asked; exit 0' TERM;");
    assert_eq!(sandbox.started_row("x")["state"], "running");
    insta::assert_snapshot!(sandbox.proq(&["stop", "x"]).shown(), @r"
    --- stderr
    x: stopped
    --- code 0
    ");
    assert!(!sandbox.lives(&agent) && !sandbox.lives(&child));
    assert_eq!(sandbox.proq(&["logs", "x"]).ok(), "asked\n");
    let row = sandbox.row("x");
    assert_eq!((&row["state"], &row["uncommitted"]), (&"stopped".into(), &1.into()));
    insta::assert_snapshot!(sandbox.proq(&["stop", "x"]).shown(), @r"
    --- stderr
    error: lane 'x' has no running agent; nothing was stopped
    hint: see its state: git proq show x
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["merge", "x"]).shown(), @r"
    refused x: it was stopped; land it all the same by name with --force
    --- code 1
    ");
}

#[test]
fn an_agent_that_will_not_end_is_ended() {
    for grace in ["0", "1"] {
        let sandbox = Sandbox::new();
        sandbox.git(&["config", "proq.agent.stopGrace", grace]);
        let (agent, child) = sleeper(&sandbox, "x", "trap '' TERM;");
        let _ = sandbox.proq(&["stop", "x"]).ok();
        assert!(!sandbox.lives(&agent) && !sandbox.lives(&child), "grace {grace}");
        let run = &sandbox.proq(&["show", "x", "--json"]).json()["runs"][0];
        assert_eq!((&run["outcome"], &run["signal"]), (&"stopped".into(), &9.into()));
    }
}

#[test]
fn a_child_that_outlives_its_asked_agent_is_ended_too() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.agent.stopGrace", "0"]);
    sandbox.pipe("up");
    sandbox.start_lane(
        "x",
        "(trap '' TERM; echo $$ > \"$ROOT/child\"; sh -c 'echo $$ > \"$ROOT/up\"; sleep 600') & wait",
    );
    let child = sandbox.hear("up");
    let _ = sandbox.proq(&["stop", "x"]).ok();
    assert!(!sandbox.lives(child.trim()));
}

#[test]
fn all_that_run_are_stopped_and_nothing_else() {
    let sandbox = Sandbox::new();
    sandbox.lane_with("done", "echo 1 > one");
    sleeper(&sandbox, "x", "");
    insta::assert_snapshot!(sandbox.proq(&["stop", "--all", "--dry-run"]).shown(), @r"
    --- stderr
    would stop the agent of 'x'
    --- code 0
    ");
    assert_eq!(sandbox.started_row("x")["state"], "running");
    let out = sandbox.proq(&["stop", "--all", "--json"]).json();
    assert_eq!(out["stopped"], serde_json::json!(["x"]));
    assert_eq!(sandbox.row("done")["state"], "done");
    assert_eq!(sandbox.proq(&["stop", "--all", "--json"]).json()["stopped"], serde_json::json!([]));
    insta::assert_snapshot!(sandbox.proq(&["stop", "--all"]).shown(), @r"
    --- stderr
    no agent is running
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["stop", "nobody"]).shown(), @r"
    --- stderr
    error: there is no lane 'nobody'
    hint: see all: git proq list
    --- code 1
    ");
    assert_eq!(sandbox.proq(&["stop"]).code, 2);
}

#[test]
fn an_agent_whose_supervisor_was_killed_is_orphaned_and_untouchable_until_it_is_stopped() {
    let sandbox = Sandbox::new();
    let (agent, child) = sleeper(&sandbox, "x", "");
    kill_supervisor(&sandbox, "x");
    insta::assert_snapshot!(sandbox.proq(&["list"]).shown(), @r#"
    LANE  STATE     AGENT    COMMITS  CHANGES  AGE  TITLE
    x     orphaned  command  -        1 file   0s   sh -ec  sleep 600 & echo 1 > work; echo $$ $! > "$ROOT/up"; wait
    --- code 0
    "#);
    insta::assert_snapshot!(sandbox.proq(&["merge", "x"]).shown(), @r"
    refused x: its agent lives on without a supervisor; git proq stop x ends it
    --- stderr
    hint: stop it and land what it has committed: git proq merge x --stop
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["merge", "--all"]).shown(), @r"
    nothing to land
    --- stderr
    left out x: its agent lives on without a supervisor; git proq stop x ends it
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["cleanup", "x"]).shown(), @r"
    --- stderr
    error: lane 'x' was kept: its agent lives on without a supervisor; 1 uncommitted file (work)
    hint: stop its agent: git proq stop x
    hint: remove it all the same, saving everything first: git proq discard --force x
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["discard", "x"]).shown(), @r"
    --- stderr
    error: lane 'x' was kept: its agent lives on without a supervisor; 1 uncommitted file (work)
    hint: stop its agent: git proq stop x
    hint: remove it all the same, saving everything first: git proq discard --force x
    --- code 1
    ");
    let _ = sandbox.proq(&["cleanup", "--all"]).ok();
    assert!(sandbox.lives(&agent) && sandbox.lane("x").join("work").exists());
    insta::assert_snapshot!(sandbox.proq(&["stop", "x"]).shown(), @r"
    --- stderr
    x: stopped (its supervisor was gone)
    --- code 0
    ");
    assert!(!sandbox.lives(&agent) && !sandbox.lives(&child));
    assert_eq!(sandbox.row("x")["state"], "stopped");
}

#[test]
fn a_forced_discard_of_an_orphan_ends_it_first() {
    let sandbox = Sandbox::new();
    let (agent, _) = sleeper(&sandbox, "x", "");
    kill_supervisor(&sandbox, "x");
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    assert!(!sandbox.lives(&agent));
    assert_eq!(sandbox.row("x@1")["state"], "discarded");
}

#[test]
fn when_supervisor_and_agent_were_killed_the_run_has_failed() {
    let sandbox = Sandbox::new();
    let (agent, child) = sleeper(&sandbox, "x", "");
    kill_supervisor(&sandbox, "x");
    kill(&sandbox, &agent);
    kill(&sandbox, &child);
    wait_until_free(&sandbox.lock("x", "alive.lock"));
    insta::assert_snapshot!(sandbox.proq(&["list"]).shown(), @r#"
    LANE  STATE   AGENT    COMMITS  CHANGES  AGE  TITLE
    x     failed  command  -        1 file   0s   sh -ec  sleep 600 & echo 1 > work; echo $$ $! > "$ROOT/up"; wait
    --- code 0
    "#);
    insta::assert_snapshot!(sandbox.proq(&["stop", "x"]).shown(), @r"
    --- stderr
    error: lane 'x' has no running agent; nothing was stopped
    hint: see its state: git proq show x
    --- code 1
    ");
    assert_eq!(sandbox.proq(&["wait", "x"]).code, 4);
}

#[test]
fn a_process_that_got_the_number_of_a_dead_agent_is_left_alone() {
    let sandbox = Sandbox::new();
    let (agent, child) = sleeper(&sandbox, "x", "");
    kill_supervisor(&sandbox, "x");
    // The record now names this sleeper, which was born at another time.
    let mut other = sandbox.command("sleep", &sandbox.root()).arg("600").spawn().unwrap();
    let record = sandbox.repo.join(".git/proq/lanes/x/runs/1.toml");
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, text.replace(&format!("pid = {agent}"), &format!("pid = {}", other.id())))
        .unwrap();
    let stopped = sandbox.proq(&["stop", "x"]);
    let alive = sandbox.lives(&other.id().to_string());
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(alive, "{}", stopped.shown());
    // The agent itself is found by the lock that it keeps open, where processes can be asked for that.
    if Path::new("/proc/self/fd").exists() {
        let _ = stopped.ok();
        assert!(!sandbox.lives(&agent) && !sandbox.lives(&child));
    } else {
        let said = stopped.fails(1);
        assert!(said.contains("lsof '[ROOT]/repo/.git/proq/locks/lanes/x.alive.lock'"), "{said}");
        kill(&sandbox, &agent);
        kill(&sandbox, &child);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_fled_from_an_agent_whose_supervisor_was_killed_is_ended_with_it() {
    let sandbox = Sandbox::new();
    // A session of its own, and none of the files that the agent has open.
    let flee = r#"setsid bash -c 'for fd in /proc/$$/fd/*; do fd=${fd##*/}; [ $fd -le 2 ] || eval "exec $fd>&-"; done
        echo $$ > "$ROOT/fled"; exec sleep 600' < /dev/null > /dev/null 2>&1 & while [ ! -s "$ROOT/fled" ]; do :; done;"#;
    let (agent, _) = sleeper(&sandbox, "x", flee);
    let fled = std::fs::read_to_string(sandbox.root().join("fled")).unwrap();
    kill_supervisor(&sandbox, "x");
    assert!(sandbox.lives(fled.trim()));
    let _ = sandbox.proq(&["stop", "x"]).ok();
    assert!(!sandbox.lives(&agent) && !sandbox.lives(fled.trim()));
    assert_eq!(sandbox.row("x")["state"], "stopped");
}

#[test]
fn only_the_process_that_watches_the_run_is_asked() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "-n", "x", "--", "sleep", "600"]).ok();
    sandbox.started_row("x");
    let mut stranger = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let note = sandbox.repo.join(".git/proq/locks/lanes/x.run.holder");
    let text = std::fs::read_to_string(&note).unwrap();
    let lines = text.lines().map(|line| {
        if line.starts_with("pid = ") { format!("pid = {}", stranger.id()) } else { line.to_owned() }
    });
    std::fs::write(&note, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let _ = sandbox.proq(&["stop", "x"]).ok();
    assert_eq!(sandbox.row("x")["state"], "stopped");
    assert!(stranger.try_wait().unwrap().is_none(), "a stranger was ended");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn a_lane_that_an_agent_started_is_no_process_of_the_agents() {
    let sandbox = Sandbox::new();
    for pipe in ["up", "go"] {
        sandbox.pipe(pipe);
    }
    let script = "git proq spawn -n inner -- sleep 600; echo > \"$ROOT/up\"; cat \"$ROOT/go\"; echo 1 > one";
    // One run ends by itself, the other one's supervisor dies.
    for dies in [false, true] {
        sandbox.start_lane("outer", script);
        sandbox.hear("up");
        if dies {
            kill_supervisor(&sandbox, "outer");
            assert_eq!(sandbox.row("outer")["state"], "orphaned");
            let _ = sandbox.proq(&["stop", "outer"]).ok();
        } else {
            sandbox.tell("go");
            let _ = sandbox.proq(&["wait", "outer"]).ok();
            assert_eq!(sandbox.row("outer")["state"], "done");
        }
        assert_eq!(sandbox.row("inner")["state"], "running");
        let _ = sandbox.proq(&["stop", "inner"]).ok();
        let _ = sandbox.proq(&["discard", "--force", "inner", "outer"]).ok();
    }
}

#[test]
fn what_a_supervisor_wrote_that_died_is_said() {
    let sandbox = Sandbox::new();
    let (agent, child) = sleeper(&sandbox, "x", "");
    let log = sandbox.repo.join(".git/proq/lanes/x/supervisor.log");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "");
    std::fs::write(&log, "thread 'main' panicked at a.rs:1:2:\nno room\n").unwrap();
    kill_supervisor(&sandbox, "x");
    kill(&sandbox, &agent);
    kill(&sandbox, &child);
    wait_until_free(&sandbox.lock("x", "alive.lock"));
    let why = "its supervisor ended without a word; the last that it wrote: thread 'main' panicked at a.rs:1:2: no room";
    assert_eq!(sandbox.row("x")["detail"], why);
    let found = sandbox.proq(&["doctor"]).stdout;
    assert!(found.contains(&format!("lane 'x' claims to be running, but {why}")), "{found}");
}

/// An agent that commits a part, says so, and ends once it is asked to wrap up.
const WRAPS_UP: &str = r#"echo part > part.txt; git add -A; git commit -qm part; echo up > "$ROOT/up"
    until [ -e "$PROQ_WRAP_UP" ]; do sleep 0.02; done"#;

#[test]
fn a_run_that_ends_after_it_was_asked_to_wrap_up_is_stopped_and_does_not_land() {
    let sandbox = Sandbox::new();
    sandbox.pipe("up");
    let _ = sandbox.proq(&["spawn", "-n", "x", "--auto-merge", "--", "sh", "-ec", WRAPS_UP]).ok();
    sandbox.hear("up");
    let said = sandbox.proq(&["stop", "--wrap-up", "x"]).shown();
    assert!(said.contains("x: stopped (asked to wrap up)"), "{said}");
    let row = sandbox.row("x");
    assert_eq!((&row["state"], &row["detail"]), (&"stopped".into(), &"asked to wrap up".into()));
    assert_eq!(sandbox.last_run("x")["class"], "stopped");
    assert_eq!(sandbox.git(&["log", "--oneline", "main"]).lines().count(), 1);
    assert!(!sandbox.repo.join("part.txt").exists());
    let said = sandbox.proq(&["merge", "x"]).fails(1);
    assert!(said.contains("refused x: it was stopped: asked to wrap up"), "{said}");
    sandbox.assert_healthy();
}
