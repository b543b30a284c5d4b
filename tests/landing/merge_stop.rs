//! Tests of `git proq merge --stop`: which agents are stopped, and what lands of their work.

use proq_test_kit::Sandbox;

/// Starts a lane whose agent commits `NAME.txt`, runs the commands `more`, and then sleeps. Returns its
/// process id.
fn start_busy_lane(sandbox: &Sandbox, name: &str, more: &str) -> String {
    let up = format!("up-{name}");
    sandbox.pipe(&up);
    sandbox.start_lane(name, &format!("echo 1 > {name}.txt; git add -A; git commit -qm work; {more} echo $$ > \"$ROOT/{up}\"; sleep 600 & wait"));
    sandbox.read_pipe(&up).trim().to_owned()
}

fn has_landed(sandbox: &Sandbox, file: &str) -> bool {
    sandbox.repo.join(file).exists()
}

/// Promise: concurrency/merge-stop
#[test]
fn stops_and_lands_only_the_named_lane() {
    let sandbox = Sandbox::new();
    let (x, y) = (start_busy_lane(&sandbox, "x", ""), start_busy_lane(&sandbox, "y", ""));
    assert_eq!(sandbox.started_row("x")["state"], "running");
    insta::assert_snapshot!(sandbox.proq(&["merge", "x"]).to_text(), @r"
    refused x: its agent is running
    --- stderr
    hint: stop it and merge its commits: git proq merge --stop x
    --- code 1
    ");
    let out = sandbox.proq(&["merge", "x", "--stop"]);
    assert_eq!(out.stderr, "stopped the agent of 'x'\nhint: undo it: git proq undo\n");
    assert!(out.clone().ok().starts_with("landed x on main ("), "{}", out.to_text());
    assert!(has_landed(&sandbox, "x.txt") && !has_landed(&sandbox, "y.txt"));
    assert!(!sandbox.is_alive(&x) && sandbox.is_alive(&y));
    assert_eq!(sandbox.row("x@1")["state"], "landed");
    assert_eq!(sandbox.row("y")["state"], "running");
    sandbox.assert_healthy();
}

#[test]
fn all_stops_every_agent_and_lands_commits() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("done", "echo 1 > done.txt");
    let pids = [start_busy_lane(&sandbox, "x", ""), start_busy_lane(&sandbox, "y", "")];
    sandbox.pipe("up");
    sandbox.start_lane("none", "echo $$ > \"$ROOT/up\"; sleep 600 & wait");
    let none = sandbox.read_pipe("up");
    let out = sandbox.proq(&["merge", "--all", "--stop", "--json"]);
    assert_eq!(out.code, 0, "{}", out.to_text());
    let json = out.json();
    assert_eq!(json["stopped"], serde_json::json!(["none", "x", "y"]));
    assert_eq!(json["left_out"], serde_json::json!([["none", "it has no commits yet"]]));
    for name in ["done", "x", "y"] {
        assert!(has_landed(&sandbox, &format!("{name}.txt")), "{name}: {}", out.to_text());
    }
    assert!(pids.iter().chain([&none.trim().to_owned()]).all(|pid| !sandbox.is_alive(pid)));
}

/// Promise: concurrency/merge-stop
#[test]
fn lane_stopped_earlier_lands_only_by_name() {
    let sandbox = Sandbox::new();
    start_busy_lane(&sandbox, "x", "");
    let _ = sandbox.proq(&["stop", "x"]).ok();
    let out = sandbox.proq(&["merge", "--all", "--stop"]);
    insta::assert_snapshot!(out.to_text(), @r"
    nothing to land
    --- stderr
    skipped x: it was stopped; to merge it anyway: git proq merge --force x
    --- code 0
    ");
    assert!(!has_landed(&sandbox, "x.txt"));
    let _ = sandbox.proq(&["merge", "x", "--stop"]).ok();
    assert!(has_landed(&sandbox, "x.txt"));
}

#[test]
fn uncommitted_files_of_stopped_agent_are_refused() {
    let sandbox = Sandbox::new();
    start_busy_lane(&sandbox, "x", "echo 2 > loose.txt;");
    let text = sandbox.proq(&["merge", "x", "--stop"]).fails(1);
    assert!(text.contains("refused x: it has uncommitted work: loose.txt"), "{text}");
    assert_eq!(sandbox.row("x")["state"], "stopped");
    assert!(sandbox.lane_path("x").join("loose.txt").exists());
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    let _ = sandbox.proq(&["merge", "x", "--stop"]).ok();
    assert!(has_landed(&sandbox, "x.txt") && has_landed(&sandbox, "loose.txt"));
    // With `agent.autocommit`, the supervisor commits the files.
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.agent.autocommit", "always"]);
    start_busy_lane(&sandbox, "x", "echo 2 > loose.txt;");
    let _ = sandbox.proq(&["merge", "x", "--stop"]).ok();
    assert!(has_landed(&sandbox, "x.txt") && has_landed(&sandbox, "loose.txt"));
}

#[test]
fn dry_run_lists_agents_to_stop_and_stops_none() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("done", "echo 1 > done.txt");
    let x = start_busy_lane(&sandbox, "x", "");
    insta::assert_snapshot!(sandbox.proq(&["merge", "--all", "--stop", "--dry-run"]).to_text(), @r"
    would stop the agent of x
    would land done on main
    would land x on main
    2 of 2 lanes would land: 2 files changed, 2 insertions(+)
    --- code 0
    ");
    let json = sandbox.proq(&["merge", "x", "--stop", "--dry-run", "--json"]).json();
    assert_eq!(json["stopped"], serde_json::json!(["x"]));
    assert_eq!(json["lanes"][0]["result"], "landed");
    assert!(sandbox.is_alive(&x) && !has_landed(&sandbox, "x.txt"));
    assert_eq!(sandbox.started_row("x")["state"], "running");
}

/// Promise: concurrency/merge-stop
#[test]
fn stops_no_agent_when_the_queue_times_out() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("first", "echo 1 > first.txt");
    let x = start_busy_lane(&sandbox, "x", "");
    sandbox.pipe("here");
    sandbox.pipe("go");
    let check = "timeout 60 sh -c 'echo here > $ROOT/here'; timeout 60 cat $ROOT/go > /dev/null";
    let mut first = sandbox.proq_command(&sandbox.repo, &["merge", "first", "--verify", check]);
    let mut first = first.stdout(std::process::Stdio::null()).spawn().unwrap();
    assert_eq!(sandbox.read_pipe("here"), "here\n");
    assert_eq!(sandbox.proq(&["merge", "x", "--stop", "--lock-timeout", "0"]).code, 5);
    let is_alive = sandbox.is_alive(&x);
    sandbox.write_pipe("go");
    assert!(first.wait().unwrap().success());
    assert!(is_alive && sandbox.row("x")["state"] == "running");
}

#[test]
fn running_lane_without_commits_is_awaited() {
    let sandbox = Sandbox::new();
    sandbox.pipe("up");
    sandbox.start_lane("x", "echo 1 > loose; echo up > \"$ROOT/up\"; sleep 600 & wait");
    let _ = sandbox.read_pipe("up");
    insta::assert_snapshot!(sandbox.proq(&["merge", "x"]).to_text(), @r"
    refused x: its agent is running
    --- stderr
    hint: wait for it: git proq wait x
    --- code 1
    ");
}
