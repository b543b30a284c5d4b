//! Owns the tests of `git proq merge --stop`: whose agent is stopped, and what lands of it.

use super::support::Sandbox;

/// A lane whose agent has committed `NAME.txt`, has done `then`, and would go on for long. Returns its process id.
fn busy(sandbox: &Sandbox, name: &str, then: &str) -> String {
    let up = format!("up-{name}");
    sandbox.pipe(&up);
    sandbox.start_lane(
        name,
        &format!(
            "echo 1 > {name}.txt; git add -A; git commit -qm work; {then} echo $$ > \"$ROOT/{up}\"; sleep 600 & wait"
        ),
    );
    sandbox.hear(&up).trim().to_owned()
}

fn has(sandbox: &Sandbox, file: &str) -> bool {
    sandbox.repo.join(file).exists()
}

#[test]
fn a_lane_that_is_named_is_stopped_and_lands_and_no_other() {
    let sandbox = Sandbox::new();
    let (x, y) = (busy(&sandbox, "x", ""), busy(&sandbox, "y", ""));
    assert_eq!(sandbox.started_row("x")["state"], "running");
    insta::assert_snapshot!(sandbox.proq(&["merge", "x"]).shown(), @r"
    refused x: its agent is running
    --- stderr
    hint: stop it and land what it has committed: git proq merge x --stop
    --- code 1
    ");
    let out = sandbox.proq(&["merge", "x", "--stop"]);
    assert_eq!(out.stderr, "stopped the agent of 'x'\n");
    assert!(out.clone().ok().starts_with("landed x on main ("), "{}", out.shown());
    assert!(has(&sandbox, "x.txt") && !has(&sandbox, "y.txt"));
    assert!(!sandbox.lives(&x) && sandbox.lives(&y));
    assert_eq!(sandbox.row("x@1")["state"], "landed");
    assert_eq!(sandbox.row("y")["state"], "running");
    sandbox.assert_healthy();
}

#[test]
fn all_stops_every_agent_and_lands_what_there_is() {
    let sandbox = Sandbox::new();
    sandbox.lane_with("done", "echo 1 > done.txt");
    let pids = [busy(&sandbox, "x", ""), busy(&sandbox, "y", "")];
    sandbox.pipe("up");
    sandbox.start_lane("none", "echo $$ > \"$ROOT/up\"; sleep 600 & wait");
    let none = sandbox.hear("up");
    let out = sandbox.proq(&["merge", "--all", "--stop", "--json"]);
    assert_eq!(out.code, 0, "{}", out.shown());
    let answer = out.json();
    assert_eq!(answer["stopped"], serde_json::json!(["none", "x", "y"]));
    assert_eq!(answer["left_out"], serde_json::json!([["none", "it has no commits yet"]]));
    for name in ["done", "x", "y"] {
        assert!(has(&sandbox, &format!("{name}.txt")), "{name}: {}", out.shown());
    }
    assert!(pids.iter().chain([&none.trim().to_owned()]).all(|pid| !sandbox.lives(pid)));
}

#[test]
fn what_was_stopped_before_lands_only_when_it_is_named() {
    let sandbox = Sandbox::new();
    busy(&sandbox, "x", "");
    let _ = sandbox.proq(&["stop", "x"]).ok();
    let out = sandbox.proq(&["merge", "--all", "--stop"]);
    insta::assert_snapshot!(out.shown(), @r"
    nothing to land
    --- stderr
    left out x: it was stopped; land it all the same by name with --force
    --- code 0
    ");
    assert!(!has(&sandbox, "x.txt"));
    let _ = sandbox.proq(&["merge", "x", "--stop"]).ok();
    assert!(has(&sandbox, "x.txt"));
}

#[test]
fn what_a_stopped_agent_left_uncommitted_counts_as_in_any_lane() {
    let sandbox = Sandbox::new();
    busy(&sandbox, "x", "echo 2 > loose.txt;");
    let text = sandbox.proq(&["merge", "x", "--stop"]).fails(1);
    assert!(text.contains("refused x: it has uncommitted work: loose.txt"), "{text}");
    assert_eq!(sandbox.row("x")["state"], "stopped");
    assert!(sandbox.lane("x").join("loose.txt").exists());
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    let _ = sandbox.proq(&["merge", "x", "--stop"]).ok();
    assert!(has(&sandbox, "x.txt") && has(&sandbox, "loose.txt"));
    // Committed by the supervisor, when that is what it does.
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.agent.autocommit", "always"]);
    busy(&sandbox, "x", "echo 2 > loose.txt;");
    let _ = sandbox.proq(&["merge", "x", "--stop"]).ok();
    assert!(has(&sandbox, "x.txt") && has(&sandbox, "loose.txt"));
}

#[test]
fn a_dry_run_says_who_would_be_stopped_and_stops_nobody() {
    let sandbox = Sandbox::new();
    sandbox.lane_with("done", "echo 1 > done.txt");
    let x = busy(&sandbox, "x", "");
    insta::assert_snapshot!(sandbox.proq(&["merge", "--all", "--stop", "--dry-run"]).shown(), @r"
    would stop the agent of x
    would land done on main
    would land x on main
    --- code 0
    ");
    let answer = sandbox.proq(&["merge", "x", "--stop", "--dry-run", "--json"]).json();
    assert_eq!(answer["stopped"], serde_json::json!(["x"]));
    assert_eq!(answer["lanes"][0]["result"], "landed");
    assert!(sandbox.lives(&x) && !has(&sandbox, "x.txt"));
    assert_eq!(sandbox.started_row("x")["state"], "running");
}

#[test]
fn nobody_is_stopped_for_a_landing_whose_turn_does_not_come() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("first", "echo 1 > first.txt");
    let x = busy(&sandbox, "x", "");
    sandbox.pipe("here");
    sandbox.pipe("go");
    let check = "timeout 60 sh -c 'echo here > $ROOT/here'; timeout 60 cat $ROOT/go > /dev/null";
    let mut first = sandbox.proq_command(&sandbox.repo, &["merge", "first", "--verify", check]);
    let mut first = first.stdout(std::process::Stdio::null()).spawn().unwrap();
    assert_eq!(sandbox.hear("here"), "here\n");
    assert_eq!(sandbox.proq(&["merge", "x", "--stop", "--lock-timeout", "0"]).code, 5);
    let lives = sandbox.lives(&x);
    sandbox.tell("go");
    assert!(first.wait().unwrap().success());
    assert!(lives && sandbox.row("x")["state"] == "running");
}
