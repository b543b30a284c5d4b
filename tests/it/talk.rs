//! Owns the tests of telling a lane's agent more, and of what the deaths of those who take part leave.

use super::runs::with_claude;
use super::stop::kill_supervisor;
use super::support::Sandbox;
use super::support::patience::wait_until;

/// The agent says at its end that all of its session has cost this much.
fn well_at(usd: &str) -> String {
    format!(
        "sed 's/\"total_cost_usd\":0.0125/\"total_cost_usd\":{usd}/; s/\"costUSD\":0.0125/\"costUSD\":{usd}/' \"$notes/well\""
    )
}

/// A lane `x` whose agent waits for a word in its first run. It has named its session by then.
pub fn at_work() -> Sandbox {
    let sandbox = with_claude(
        "begin; if [ $n = 1 ]; then echo > \"$ROOT/up\"; read go < \"$ROOT/go\"; fi; echo $n >> work; well",
    );
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = sandbox.proq(&["spawn", "-n", "x", "claude", "do it"]).ok();
    sandbox.hear("up");
    sandbox
}

/// The same, once its session is on record.
pub fn in_session() -> Sandbox {
    let sandbox = at_work();
    wait_until("its session is on record", || sandbox.last_run("x")["account"]["session"] == "s-1");
    sandbox
}

#[test]
fn the_same_conversation_goes_on_and_its_counters_are_told_apart() {
    let script = format!("begin; echo $n >> work; if [ $n = 1 ]; then well; else {}; fi", well_at("0.02"));
    let sandbox = with_claude(&script);
    let _ = sandbox.proq(&["spawn", "-n", "x", "claude", "do it", "--wait"]).ok();
    let _ = sandbox.proq(&["send", "x", "also handle refunds", "--wait"]).ok();
    let args = sandbox.note("args.2");
    assert!(args.contains("--resume\ns-1\n") && !args.contains("--session-id"), "{args}");
    assert_eq!(sandbox.note("prompt.2"), "also handle refunds");
    let run = sandbox.last_run("x");
    assert_eq!((run["resumed"].as_bool(), run["attempt"].as_u64()), (Some(true), Some(2)));
    assert_eq!(run["account"]["cost"]["nanos"], 7_500_000, "{run}");
    assert_eq!(sandbox.git(&["show", "proq/x:work"]), "1\n2");
    assert!(sandbox.proq(&["show", "x", "--prompt"]).ok().contains("also handle refunds"));
}

#[test]
fn what_is_sent_to_an_agent_at_work_is_told_when_its_turn_has_ended() {
    let sandbox = in_session();
    insta::assert_snapshot!(sandbox.proq(&["send", "x", "first"]).shown(), @r"
    kept for 'x' until its agent's turn has ended
    --- stderr
    hint: follow it: git proq logs -f x
    --- code 0
    ");
    let _ = sandbox.proq(&["send", "x", "then\nthat"]).ok();
    sandbox.tell("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(sandbox.note("prompt.2"), "first\n\nthen\nthat");
    assert_eq!(sandbox.last_run("x")["attempt"], 2);
    assert_eq!(sandbox.git(&["show", "proq/x:work"]), "1\n2");
}

#[test]
fn there_has_to_be_somebody_to_tell() {
    let sandbox = Sandbox::new();
    sandbox.lane_with("x", "echo > n");
    insta::assert_snapshot!(sandbox.proq(&["send", "x", "more"]).shown(), @r#"
    --- stderr
    error: lane 'x' has no conversation to go on with: no agent of it has named one that it can be resumed by; nothing was sent
    hint: begin another one: git proq run x AGENT "what to do"
    --- code 1
    "#);
    insta::assert_snapshot!(sandbox.proq(&["send", "x"]).shown(), @r#"
    --- stderr
    error: nothing waits to be told to the agent of lane 'x'
    hint: say what: git proq send x "also handle refunds"
    --- code 1
    "#);
    assert!(sandbox.proq(&["send", "x", " "]).fails(2).contains("there is nothing to send"));
}

#[test]
fn another_agent_can_be_started_in_a_lane_as_it_is() {
    let sandbox = with_claude("begin; ls > seen; well");
    sandbox.lane_of("x", "echo > mine");
    sandbox.write_in(&sandbox.lane("x"), "left", "mine");
    let _ = sandbox.proq(&["run", "x", "claude", "look around", "--wait"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/x:seen"]), "a.txt\nleft\nmine\nseen");
    assert_eq!(sandbox.note("prompt.1"), "look around");
    assert!(sandbox.note("args.1").contains("--session-id"));
    let text = sandbox.proq(&["run", "x", "claude", "--dry-run"]).fails(2);
    assert!(text.contains("prompt is empty"), "a lane that was made without a task has none: {text}");
}

#[test]
fn after_its_supervisors_death_an_agent_is_stopped_and_told_more() {
    let sandbox = in_session();
    kill_supervisor(&sandbox, "x");
    assert_eq!(sandbox.row("x")["state"], "orphaned");
    insta::assert_snapshot!(sandbox.proq(&["send", "x", "more"]).shown(), @r"
    --- stderr
    error: the agent of lane 'x' lives on without its supervisor; nothing was sent
    hint: end it first: git proq stop x
    --- code 1
    ");
    let _ = sandbox.proq(&["stop", "x"]).ok();
    assert_eq!(sandbox.row("x")["state"], "stopped");
    let _ = sandbox.proq(&["send", "x", "go on", "--wait"]).ok();
    assert!(sandbox.note("args.2").contains("--resume\ns-1\n"));
    assert_eq!(sandbox.row("x")["state"], "done");
    sandbox.assert_healthy();
}

#[test]
fn after_an_agents_death_it_is_told_more() {
    let sandbox = in_session();
    let pid = sandbox.last_run("x")["pid"].to_string();
    sandbox.sh(&format!("kill -9 {pid}"));
    // It is tried again first, in a conversation of its own.
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert!(sandbox.note("args.2").contains("--session-id"));
    let _ = sandbox.proq(&["send", "x", "go on", "--wait"]).ok();
    let args = sandbox.note("args.3");
    assert!(args.contains("--resume\ns-1\n"), "{args}");
}

#[test]
fn after_a_reboot_nothing_pretends_to_run() {
    for next in ["send", "redispatch"] {
        let sandbox = in_session();
        // Asked while it was at work, and never told.
        let _ = sandbox.proq(&["send", "x", "waits"]).ok();
        let pid = sandbox.last_run("x")["pid"].to_string();
        kill_supervisor(&sandbox, "x");
        sandbox.sh(&format!("kill -9 {pid}"));
        wait_until("the agent is gone", || !sandbox.lives(&pid));
        let row = sandbox.row("x");
        assert_eq!(row["state"], "failed", "{row}");
        if next == "send" {
            let _ = sandbox.proq(&["send", "x", "--wait"]).ok();
            assert_eq!(sandbox.note("prompt.2"), "waits");
        } else {
            let _ = sandbox.proq(&["redispatch", "x"]).ok();
            let _ = sandbox.proq(&["wait", "x"]).ok();
            assert!(sandbox.note("prompt.2").starts_with("do it"));
        }
        assert_eq!(sandbox.row("x")["state"], "done");
    }
}
