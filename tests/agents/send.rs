//! Tests of `git proq send` and `git proq run`: follow-up messages to an agent, also after agent, supervisor
//! or machine crashed.

use proq_test_kit::Sandbox;
use proq_test_kit::claude::sandbox_with_claude;
use proq_test_kit::runs::kill_supervisor;
use proq_test_kit::waiting::wait_until;

/// Returns shell text for a final line of the agent that reports `usd` as the total cost of its session.
fn print_result_with_cost(usd: &str) -> String {
    format!(
        "sed 's/\"total_cost_usd\":0.0125/\"total_cost_usd\":{usd}/; s/\"costUSD\":0.0125/\"costUSD\":{usd}/' \"$notes/well\""
    )
}

/// Starts lane `x` whose agent waits in its first run for a line in the pipe `go`. It has reported its
/// session by then.
pub fn waiting_agent() -> Sandbox {
    let sandbox = sandbox_with_claude(
        "begin; if [ $n = 1 ]; then echo > \"$ROOT/up\"; read go < \"$ROOT/go\"; fi; echo $n >> work; well",
    );
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = sandbox.proq(&["spawn", "-n", "x", "claude", "do it"]).ok();
    sandbox.read_pipe("up");
    sandbox
}

/// Starts lane `x` with a waiting agent whose session is on record.
pub fn waiting_agent_with_session() -> Sandbox {
    let sandbox = waiting_agent();
    wait_until("its session is on record", || sandbox.last_run("x")["account"]["session"] == "s-1");
    sandbox
}

#[test]
fn send_resumes_conversation_and_separates_usage() {
    let script = format!(
        "begin; echo $n >> work; if [ $n = 1 ]; then well; else {}; fi",
        print_result_with_cost("0.02")
    );
    let sandbox = sandbox_with_claude(&script);
    let _ = sandbox.proq(&["spawn", "-n", "x", "claude", "do it", "--wait"]).ok();
    let _ = sandbox.proq(&["send", "x", "also handle refunds", "--wait"]).ok();
    let args = sandbox.agent_record("args.2");
    assert!(args.contains("--resume\ns-1\n") && !args.contains("--session-id"), "{args}");
    assert_eq!(sandbox.agent_record("prompt.2"), "also handle refunds");
    let run = sandbox.last_run("x");
    assert_eq!((run["resumed"].as_bool(), run["attempt"].as_u64()), (Some(true), Some(2)));
    assert_eq!(run["account"]["cost"]["nanos"], 7_500_000, "{run}");
    assert_eq!(sandbox.git(&["show", "proq/x:work"]), "1\n2");
    assert!(sandbox.proq(&["show", "x", "--prompt"]).ok().contains("also handle refunds"));
}

#[test]
fn messages_to_running_agent_wait_for_its_turn_end() {
    let sandbox = waiting_agent_with_session();
    insta::assert_snapshot!(sandbox.proq(&["send", "x", "first"]).to_text(), @r"
    kept for 'x' until its agent's turn has ended
    --- stderr
    hint: follow it: git proq logs -f x
    --- code 0
    ");
    let _ = sandbox.proq(&["send", "x", "then\nthat"]).ok();
    sandbox.write_pipe("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(sandbox.agent_record("prompt.2"), "first\n\nthen\nthat");
    assert_eq!(sandbox.last_run("x")["attempt"], 2);
    assert_eq!(sandbox.git(&["show", "proq/x:work"]), "1\n2");
}

#[test]
fn send_refuses_without_conversation_or_text() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("x", "echo > n");
    insta::assert_snapshot!(sandbox.proq(&["send", "x", "more"]).to_text(), @"
    --- stderr
    error: cannot send to lane 'x': it has no conversation that can be resumed
    hint: start a new one: git proq run x claude more
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["send", "x"]).to_text(), @r#"
    --- stderr
    error: cannot send to lane 'x': no message is queued
    hint: send one: git proq send x "also handle refunds"
    --- code 1
    "#);
    assert!(sandbox.proq(&["send", "x", " "]).fails(2).contains("the message is empty"));
}

#[test]
fn run_starts_another_agent_in_existing_lane() {
    let sandbox = sandbox_with_claude("begin; ls > seen; well");
    sandbox.lane_with_commit("x", "echo > mine");
    sandbox.write_in(&sandbox.lane_path("x"), "left", "mine");
    let _ = sandbox.proq(&["run", "x", "claude", "look around", "--wait"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/x:seen"]), "a.txt\nleft\nmine\nseen");
    assert_eq!(sandbox.agent_record("prompt.1"), "look around");
    assert!(sandbox.agent_record("args.1").contains("--session-id"));
    let text = sandbox.proq(&["run", "x", "claude", "--dry-run"]).fails(2);
    assert!(text.contains("the prompt: it is empty"), "a lane that was made without a task has none: {text}");
}

#[test]
fn orphaned_agent_is_stopped_and_resumed_by_send() {
    let sandbox = waiting_agent_with_session();
    kill_supervisor(&sandbox, "x");
    assert_eq!(sandbox.row("x")["state"], "orphaned");
    insta::assert_snapshot!(sandbox.proq(&["send", "x", "more"]).to_text(), @r"
    --- stderr
    error: cannot send to lane 'x': its agent runs without a supervisor
    hint: stop it: git proq stop x
    --- code 1
    ");
    let _ = sandbox.proq(&["stop", "x"]).ok();
    assert_eq!(sandbox.row("x")["state"], "stopped");
    let _ = sandbox.proq(&["send", "x", "go on", "--wait"]).ok();
    assert!(sandbox.agent_record("args.2").contains("--resume\ns-1\n"));
    assert_eq!(sandbox.row("x")["state"], "done");
    sandbox.assert_healthy();
}

#[test]
fn killed_agent_is_resumed_by_send() {
    let sandbox = waiting_agent_with_session();
    let pid = sandbox.last_run("x")["pid"].to_string();
    sandbox.sh(&format!("kill -9 {pid}"));
    // The retry comes first, in a new conversation.
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert!(sandbox.agent_record("args.2").contains("--session-id"));
    let _ = sandbox.proq(&["send", "x", "go on", "--wait"]).ok();
    let args = sandbox.agent_record("args.3");
    assert!(args.contains("--resume\ns-1\n"), "{args}");
}

#[test]
fn killed_run_is_failed_and_can_continue() {
    for next in ["send", "redispatch"] {
        let sandbox = waiting_agent_with_session();
        // Queued while the agent was running, and never delivered.
        let _ = sandbox.proq(&["send", "x", "waits"]).ok();
        let pid = sandbox.last_run("x")["pid"].to_string();
        kill_supervisor(&sandbox, "x");
        sandbox.sh(&format!("kill -9 {pid}"));
        wait_until("the agent is gone", || !sandbox.is_alive(&pid));
        let row = sandbox.row("x");
        assert_eq!(row["state"], "failed", "{row}");
        if next == "send" {
            let _ = sandbox.proq(&["send", "x", "--wait"]).ok();
            assert_eq!(sandbox.agent_record("prompt.2"), "waits");
        } else {
            let _ = sandbox.proq(&["redispatch", "x"]).ok();
            let _ = sandbox.proq(&["wait", "x"]).ok();
            assert!(sandbox.agent_record("prompt.2").starts_with("do it"));
        }
        assert_eq!(sandbox.row("x")["state"], "done");
    }
}
