//! Tests of agent hooks: state events, and the stop gate's answer to the end of a turn.

use std::process::Command;

use proq_test_kit::{Output, Sandbox};

use super::user_hooks::wait_until_dispatched;

/// Creates a lane `x` whose `claude` run has just ended without changes.
fn finished_claude_lane(more: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.agent("claude", "cat > /dev/null");
    let _ = sandbox.proq(&[&["spawn", "--wait", "-n", "x", "claude", "do it"], more].concat()).ok();
    sandbox
}

/// Returns the command configured for the hook `event`, with the environment that the agent would start it
/// in.
fn hook_command(sandbox: &Sandbox, event: &str) -> Command {
    let file = sandbox.repo.join(".git/proq/lanes/x/runs/1.d/settings.json");
    let settings: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let line = settings["hooks"][event][0]["hooks"][0]["command"].as_str().unwrap().to_owned();
    let mut command = sandbox.command("sh", &sandbox.lane_path("x"));
    command.args(["-c", &line]).env("PROQ_PROGRAM", env!("CARGO_BIN_EXE_git-proq"));
    command.env("PROQ_LANE", "x").env("PROQ_ATTEMPT", "1");
    command
}

fn run_hook(sandbox: &Sandbox, event: &str, input: &str) -> Output {
    sandbox.output_with(hook_command(sandbox, event), input.as_bytes())
}

/// Returns the messages of all `agent.state` events, in order.
fn state_messages(sandbox: &Sandbox) -> Vec<String> {
    let log = std::fs::read_to_string(sandbox.repo.join(".git/proq/events.jsonl")).unwrap();
    let events = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    events
        .filter(|e| e["event"] == "agent.state")
        .map(|e| e["message"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn hooks_emit_one_event_per_state_change() {
    let sandbox = finished_claude_lane(&[]);
    for (event, input) in [
        ("UserPromptSubmit", "{}"),
        ("PostToolUse", r#"{"tool_name":"Bash"}"#),
        (
            "Notification",
            r#"{"notification_type":"permission_prompt","message":"Claude needs\nyour permission"}"#,
        ),
        ("PostToolUse", "{}"),
        ("Notification", r#"{"notification_type":"auth_success","message":"hello"}"#),
        ("Stop", r#"{"stop_hook_active":false}"#),
        ("Notification", r#"{"notification_type":"idle_prompt"}"#),
    ] {
        assert_eq!(run_hook(&sandbox, event, input).ok(), "", "{event}");
    }
    assert_eq!(
        state_messages(&sandbox),
        [
            "lane 'x': working",
            "lane 'x': needs-approval (Claude needs your permission)",
            "lane 'x': working",
            "lane 'x': idle"
        ]
    );
    let events = sandbox.proq(&["events", "--json"]).json();
    let states = events["events"].as_array().unwrap().iter().filter(|e| e["event"] == "agent.state");
    let states: Vec<&str> = states.map(|e| e["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["working", "needs-approval", "working", "idle"]);
}

#[test]
fn show_reports_pending_approval_during_run() {
    let sandbox = Sandbox::new();
    sandbox.pipe("asked");
    sandbox.pipe("go");
    sandbox.agent(
        "claude",
        "echo '{\"notification_type\":\"permission_prompt\",\"message\":\"may I?\"}' \
         | \"$PROQ_PROGRAM\" _agent-event notification; echo asked > \"$ROOT/asked\"; cat \"$ROOT/go\"",
    );
    let _ = sandbox.proq(&["spawn", "-n", "x", "claude", "do it"]).ok();
    sandbox.read_pipe("asked");
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(shown.contains("running (needs approval: may I?)"), "{shown}");
    sandbox.write_pipe("go");
    let _ = sandbox.proq(&["wait", "x"]);
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(!shown.contains("approval"), "{shown}");
}

/// Promise: checks/stop-gate
#[test]
fn invalid_hook_calls_exit_zero_silently() {
    let sandbox = finished_claude_lane(&[]);
    let quiet = |command: Command, input: &[u8]| {
        let out = sandbox.output_with(command, input);
        assert_eq!((out.code, out.stdout.as_str(), out.stderr.as_str()), (0, "", ""));
    };
    quiet(hook_command(&sandbox, "Stop"), b"\xff not json");
    assert_eq!(state_messages(&sandbox), ["lane 'x': idle"]);
    for (name, value) in
        [("PROQ_LANE", "nobody"), ("PROQ_ATTEMPT", "2"), ("PROQ_ATTEMPT", "x"), ("PROQ_LANE", "")]
    {
        let mut command = hook_command(&sandbox, "UserPromptSubmit");
        command.env(name, value);
        quiet(command, b"{}");
    }
    let mut command = hook_command(&sandbox, "UserPromptSubmit");
    command.current_dir("/");
    quiet(command, b"{}");
    let mut command = sandbox.proq_command(&sandbox.repo, &["_agent-event", "something-new"]);
    command.env("PROQ_LANE", "x").env("PROQ_ATTEMPT", "1");
    quiet(command, b"{}");
    quiet(sandbox.proq_command(&sandbox.repo, &["_agent-event"]), b"{}");
    sandbox.write("proq.toml", "[broken");
    quiet(hook_command(&sandbox, "UserPromptSubmit"), b"{}");
    // Without a terminal no permission can be requested, so the request changes no state.
    sandbox.write("proq.toml", "");
    quiet(hook_command(&sandbox, "PermissionRequest"), br#"{"tool_name":"Bash"}"#);
    assert_eq!(state_messages(&sandbox), ["lane 'x': idle"]);
}

fn block_reason(out: &Output) -> String {
    let json: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(json["decision"], "block");
    json["reason"].as_str().unwrap().to_owned()
}

#[test]
fn gate_ends_turn_only_when_checks_pass() {
    let sandbox = finished_claude_lane(&["--check", "echo looked in $(basename $PWD); test -f good"]);
    assert_eq!(run_hook(&sandbox, "Stop", "{}").ok(), "");
    sandbox.git(&["config", "proq.agent.gate", "true"]);
    let out = run_hook(&sandbox, "Stop", r#"{"stop_hook_active":false}"#);
    assert_eq!(out.code, 0);
    insta::assert_snapshot!(block_reason(&out), @"
    The lane cannot land yet: `echo looked in $(basename $PWD); test -f good` fails (exit code 1). Fix the cause, commit the fix, and finish then. The end of its output:

    looked in x
    ");
    sandbox.write_in(&sandbox.lane_path("x"), "good", "");
    assert_eq!(run_hook(&sandbox, "Stop", r#"{"stop_hook_active":true}"#).ok(), "");
    assert_eq!(state_messages(&sandbox), ["lane 'x': idle", "lane 'x': working", "lane 'x': idle"]);
}

/// Promise: checks/stop-gate
#[test]
fn gate_gives_up_after_configured_rounds() {
    let sandbox = finished_claude_lane(&["--check", "false"]);
    sandbox.git(&["config", "proq.agent.gate", "true"]);
    sandbox.git(&["config", "proq.agent.gateRounds", "2"]);
    let again = r#"{"stop_hook_active":true}"#;
    let mut rounds = vec![run_hook(&sandbox, "Stop", "{}")];
    rounds.extend((0..3).map(|_| run_hook(&sandbox, "Stop", again)));
    let sent_back: Vec<bool> = rounds.iter().map(|out| !out.stdout.is_empty()).collect();
    assert_eq!(sent_back, [true, true, false, false]);
    // The gate's reason may come back as a prompt, which keeps the count. Any other prompt resets it.
    let prompt = |text: &str| run_hook(&sandbox, "UserPromptSubmit", &format!("{{\"prompt\":\"{text}\"}}"));
    assert_eq!(prompt("The lane cannot land yet: `false` fails").ok(), "");
    assert_eq!(run_hook(&sandbox, "Stop", "{}").ok(), "");
    assert_eq!(prompt("and refunds").ok(), "");
    assert!(block_reason(&run_hook(&sandbox, "Stop", "{}")).contains("The command printed no output."));
}

/// Promise: checks/stop-gate
#[test]
fn gate_skips_unapproved_repository_checks() {
    let sandbox = finished_claude_lane(&[]);
    sandbox.write("proq.toml", "agent.gate = true\nverify.commands = ['touch $ROOT/ran; false']\n");
    assert_eq!(run_hook(&sandbox, "Stop", "{}").ok(), "");
    assert!(!sandbox.root().join("ran").exists());
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    assert!(block_reason(&run_hook(&sandbox, "Stop", "{}")).contains("touch $ROOT/ran; false"));
    assert!(sandbox.root().join("ran").exists());
}

#[test]
fn desktop_notices_follow_selected_agent_states() {
    let sandbox = finished_claude_lane(&[]);
    sandbox.program("notify-send", "printf '%s|' \"$@\" >> $ROOT/told; echo >> $ROOT/told");
    sandbox.git(&["config", "proq.notify.desktop", "notify-send"]);
    let notices = || {
        wait_until_dispatched(&sandbox);
        std::fs::read_to_string(sandbox.root().join("told")).unwrap_or_default()
    };
    let approval_request = r#"{"notification_type":"permission_prompt","message":"Claude needs you"}"#;
    for (event, input) in
        [("UserPromptSubmit", "{}"), ("Notification", approval_request), ("PostToolUse", "{}")]
    {
        assert_eq!(run_hook(&sandbox, event, input).ok(), "", "{event}");
    }
    let approval_notice = "--|git proq: x|lane 'x': needs-approval (Claude needs you)|\n";
    assert_eq!(notices(), approval_notice);
    // An event name without a state selects all of its states.
    sandbox.git(&["config", "proq.notify.events", "agent.state"]);
    let _ = run_hook(&sandbox, "Stop", "{}").ok();
    let idle = "--|git proq: x|lane 'x': idle|\n";
    assert_eq!(notices(), format!("{approval_notice}{idle}"));
    sandbox.git(&["config", "proq.notify.events", "run.ended agent.state:working"]);
    for (event, input) in [("Notification", approval_request), ("UserPromptSubmit", "{}")] {
        let _ = run_hook(&sandbox, event, input).ok();
    }
    assert_eq!(notices(), format!("{approval_notice}{idle}--|git proq: x|lane 'x': working|\n"));
}
