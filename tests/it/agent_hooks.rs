//! Owns the tests of what an agent's own hooks say: its state, and whether it may end its turn.

use std::process::Command;

use super::support::{Output, Sandbox};
use super::user_hooks::all_told;

/// A lane `x` of which a `claude` has just ended, which did nothing.
fn lane(more: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.agent("claude", "cat > /dev/null");
    let _ = sandbox.proq(&[&["spawn", "--wait", "-n", "x", "claude", "do it"], more].concat()).ok();
    sandbox
}

/// What the hook of this name is set up to do, as the agent would start it.
fn hook(sandbox: &Sandbox, event: &str) -> Command {
    let file = sandbox.repo.join(".git/proq/lanes/x/runs/1.d/settings.json");
    let settings: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let line = settings["hooks"][event][0]["hooks"][0]["command"].as_str().unwrap().to_owned();
    let mut command = sandbox.command("sh", &sandbox.lane("x"));
    command.args(["-c", &line]).env("PROQ_PROGRAM", env!("CARGO_BIN_EXE_git-proq"));
    command.env("PROQ_LANE", "x").env("PROQ_ATTEMPT", "1");
    command
}

fn says(sandbox: &Sandbox, event: &str, input: &str) -> Output {
    sandbox.output_with(hook(sandbox, event), input.as_bytes())
}

/// The states that were told, in order.
fn told(sandbox: &Sandbox) -> Vec<String> {
    let log = std::fs::read_to_string(sandbox.repo.join(".git/proq/events.jsonl")).unwrap();
    let events = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    events
        .filter(|e| e["event"] == "agent.state")
        .map(|e| e["message"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn hooks_tell_what_the_agent_does_once_for_each_change() {
    let sandbox = lane(&[]);
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
        assert_eq!(says(&sandbox, event, input).ok(), "", "{event}");
    }
    assert_eq!(
        told(&sandbox),
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
fn what_waits_for_consent_is_seen_while_the_run_is_under_way() {
    let sandbox = Sandbox::new();
    sandbox.pipe("asked");
    sandbox.pipe("go");
    sandbox.agent(
        "claude",
        "echo '{\"notification_type\":\"permission_prompt\",\"message\":\"may I?\"}' \
         | \"$PROQ_PROGRAM\" _agent-event notification; echo asked > \"$ROOT/asked\"; cat \"$ROOT/go\"",
    );
    let _ = sandbox.proq(&["spawn", "-n", "x", "claude", "do it"]).ok();
    sandbox.hear("asked");
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(shown.contains("running (needs approval: may I?)"), "{shown}");
    sandbox.tell("go");
    let _ = sandbox.proq(&["wait", "x"]);
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(!shown.contains("approval"), "{shown}");
}

#[test]
fn a_hook_never_fails_the_agent() {
    let sandbox = lane(&[]);
    let quiet = |command: Command, input: &[u8]| {
        let out = sandbox.output_with(command, input);
        assert_eq!((out.code, out.stdout.as_str(), out.stderr.as_str()), (0, "", ""));
    };
    quiet(hook(&sandbox, "Stop"), b"\xff not json");
    assert_eq!(told(&sandbox), ["lane 'x': idle"]);
    for (name, value) in
        [("PROQ_LANE", "nobody"), ("PROQ_ATTEMPT", "2"), ("PROQ_ATTEMPT", "x"), ("PROQ_LANE", "")]
    {
        let mut command = hook(&sandbox, "UserPromptSubmit");
        command.env(name, value);
        quiet(command, b"{}");
    }
    let mut command = hook(&sandbox, "UserPromptSubmit");
    command.current_dir("/");
    quiet(command, b"{}");
    let mut command = sandbox.proq_command(&sandbox.repo, &["_agent-event", "something-new"]);
    command.env("PROQ_LANE", "x").env("PROQ_ATTEMPT", "1");
    quiet(command, b"{}");
    quiet(sandbox.proq_command(&sandbox.repo, &["_agent-event"]), b"{}");
    sandbox.write("proq.toml", "[broken");
    quiet(hook(&sandbox, "UserPromptSubmit"), b"{}");
    // Without a terminal nobody can be asked, so a request is no news.
    sandbox.write("proq.toml", "");
    quiet(hook(&sandbox, "PermissionRequest"), br#"{"tool_name":"Bash"}"#);
    assert_eq!(told(&sandbox), ["lane 'x': idle"]);
}

fn reason(out: &Output) -> String {
    let json: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(json["decision"], "block");
    json["reason"].as_str().unwrap().to_owned()
}

#[test]
fn with_the_gate_a_turn_ends_only_when_the_checks_succeed() {
    let sandbox = lane(&["--check", "echo looked in $(basename $PWD); test -f good"]);
    assert_eq!(says(&sandbox, "Stop", "{}").ok(), "");
    sandbox.git(&["config", "proq.agent.gate", "true"]);
    let out = says(&sandbox, "Stop", r#"{"stop_hook_active":false}"#);
    assert_eq!(out.code, 0);
    insta::assert_snapshot!(reason(&out), @r"
    The lane cannot land yet: `echo looked in $(basename $PWD); test -f good` fails (exit code 1). Make it succeed, commit that, and end then. What it wrote ended with:

    looked in x
    ");
    sandbox.write_in(&sandbox.lane("x"), "good", "");
    assert_eq!(says(&sandbox, "Stop", r#"{"stop_hook_active":true}"#).ok(), "");
    assert_eq!(told(&sandbox), ["lane 'x': idle", "lane 'x': working", "lane 'x': idle"]);
}

#[test]
fn the_gate_lets_go_after_so_many_rounds() {
    let sandbox = lane(&["--check", "false"]);
    sandbox.git(&["config", "proq.agent.gate", "true"]);
    sandbox.git(&["config", "proq.agent.gateRounds", "2"]);
    let again = r#"{"stop_hook_active":true}"#;
    let mut rounds = vec![says(&sandbox, "Stop", "{}")];
    rounds.extend((0..3).map(|_| says(&sandbox, "Stop", again)));
    let sent_back: Vec<bool> = rounds.iter().map(|out| !out.stdout.is_empty()).collect();
    assert_eq!(sent_back, [true, true, false, false]);
    // What sends it back may come as a prompt. Another one begins anew.
    let prompt = |text: &str| says(&sandbox, "UserPromptSubmit", &format!("{{\"prompt\":\"{text}\"}}"));
    assert_eq!(prompt("The lane cannot land yet: `false` fails").ok(), "");
    assert_eq!(says(&sandbox, "Stop", "{}").ok(), "");
    assert_eq!(prompt("and refunds").ok(), "");
    assert!(reason(&says(&sandbox, "Stop", "{}")).contains("It wrote nothing."));
}

#[test]
fn the_gate_runs_nothing_of_a_repository_that_nobody_approved() {
    let sandbox = lane(&[]);
    sandbox.write("proq.toml", "agent.gate = true\nverify.commands = ['touch $ROOT/ran; false']\n");
    assert_eq!(says(&sandbox, "Stop", "{}").ok(), "");
    assert!(!sandbox.root().join("ran").exists());
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    assert!(reason(&says(&sandbox, "Stop", "{}")).contains("touch $ROOT/ran; false"));
    assert!(sandbox.root().join("ran").exists());
}

#[test]
fn people_are_told_when_an_agent_needs_them_and_not_of_all_that_it_does() {
    let sandbox = lane(&[]);
    sandbox.program("notify-send", "printf '%s|' \"$@\" >> $ROOT/told; echo >> $ROOT/told");
    sandbox.git(&["config", "proq.notify.desktop", "notify-send"]);
    let notices = || {
        all_told(&sandbox);
        std::fs::read_to_string(sandbox.root().join("told")).unwrap_or_default()
    };
    let ask = r#"{"notification_type":"permission_prompt","message":"Claude needs you"}"#;
    for (event, input) in [("UserPromptSubmit", "{}"), ("Notification", ask), ("PostToolUse", "{}")] {
        assert_eq!(says(&sandbox, event, input).ok(), "", "{event}");
    }
    let asked = "--|git proq: x|lane 'x': needs-approval (Claude needs you)|\n";
    assert_eq!(notices(), asked);
    // A name alone stands for all of its states.
    sandbox.git(&["config", "proq.notify.events", "agent.state"]);
    let _ = says(&sandbox, "Stop", "{}").ok();
    let idle = "--|git proq: x|lane 'x': idle|\n";
    assert_eq!(notices(), format!("{asked}{idle}"));
    sandbox.git(&["config", "proq.notify.events", "run.ended agent.state:working"]);
    for (event, input) in [("Notification", ask), ("UserPromptSubmit", "{}")] {
        let _ = says(&sandbox, event, input).ok();
    }
    assert_eq!(notices(), format!("{asked}{idle}--|git proq: x|lane 'x': working|\n"));
}
