//! Tests of questions that an agent in a window raises before it starts, and of agents that report no state.

use proq_test_kit::tmux::{TERMINAL_AGENT, TmuxSandbox};
use serde_json::{Value, json};

/// Starts `agent` in lane `x`, waits until it reads its terminal, and returns the warnings.
fn start_warnings(screen: &TmuxSandbox, agent: &str) -> Vec<String> {
    let out = screen.proq(&["spawn", "--tmux", "-n", "x", agent, "do it"]);
    assert_eq!(out.code, 0, "{}", out.to_text());
    drop(screen.0.read_pipe("up"));
    let _ = screen.0.started_row("x");
    out.stderr.lines().filter_map(|line| line.strip_prefix("warning: ")).map(ToOwned::to_owned).collect()
}

fn remove_lane(screen: &TmuxSandbox) {
    let _ = screen.proq(&["stop", "x"]).ok();
    let _ = screen.proq(&["discard", "x"]).ok();
}

fn recorded_args(screen: &TmuxSandbox) -> String {
    std::fs::read_to_string(screen.0.root().join("heard")).unwrap()
}

/// Sets the answers that the user has given Claude Code before.
fn set_claude_answers(screen: &TmuxSandbox, answers: &Value) {
    screen.0.write_in(&screen.0.root(), "home/.claude.json", &answers.to_string());
}

#[test]
fn untrusted_repository_waits_for_the_user() {
    let screen = TmuxSandbox::new();
    set_claude_answers(&screen, &json!({ "hasCompletedOnboarding": true, "projects": {} }));
    let original = std::fs::read(screen.0.root().join("home/.claude.json")).unwrap();
    assert_eq!(
        start_warnings(&screen, "claude"),
        ["claude will ask in its window whether you trust this repository, and waits for your answer"]
    );
    let waiting_detail = "needs approval: asks whether you trust this repository";
    assert_eq!(screen.0.row("x")["detail"], waiting_detail);
    let list = screen.proq(&["list"]).ok();
    assert!(list.contains("running, needs approval"), "{list}");
    let shown = screen.proq(&["show", "x"]).ok();
    assert!(shown.contains("waits for you, in a window of tmux"), "{shown}");
    let events = screen.0.events("agent.state");
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["state"], "needs-approval");
    // The user has answered, and the agent shows that by working.
    screen.type_line("echo '{}' | \"$PROQ_PROGRAM\" _agent-event prompt");
    assert_eq!(screen.0.row("x")["detail"], Value::Null);
    assert!(screen.proq(&["show", "x"]).ok().contains("at work, in a window of tmux"));
    screen.type_line("echo '{}' | \"$PROQ_PROGRAM\" _agent-event stop");
    let list = screen.proq(&["list"]).ok();
    assert!(list.contains("running, idle"), "{list}");
    assert_eq!(
        std::fs::read(screen.0.root().join("home/.claude.json")).unwrap(),
        original,
        "it is the person's"
    );
    remove_lane(&screen);
    // The same for a Claude Code that was never started.
    std::fs::remove_file(screen.0.root().join("home/.claude.json")).unwrap();
    let warnings = start_warnings(&screen, "claude");
    assert!(warnings[0].starts_with("claude will ask in its window about its set-up"));
    remove_lane(&screen);
    // A folder below a trusted folder is trusted as well.
    let above = screen.0.root();
    set_claude_answers(
        &screen,
        &json!({
            "hasCompletedOnboarding": true,
            "projects": { above.to_str().unwrap(): { "hasTrustDialogAccepted": true } },
        }),
    );
    assert_eq!(start_warnings(&screen, "claude"), [""; 0]);
    assert_eq!(screen.0.row("x")["detail"], Value::Null);
    assert!(!screen.proq(&["show", "x"]).ok().contains("at work"), "it has said nothing yet");
}

#[test]
fn codex_trusts_repository_without_its_own_settings() {
    let screen = TmuxSandbox::new();
    screen.0.program("codex", TERMINAL_AGENT);
    let hooks = "[agents.codex]\ncapabilities.hooks = true\n";
    screen.0.write_in(&screen.0.root(), "home/.config/git-proq/config.toml", hooks);
    assert_eq!(start_warnings(&screen, "codex"), [""; 0]);
    let trust = format!("<projects={{\"{}\"={{trust_level=\"trusted\"}}}}>\n", screen.0.repo.display());
    assert!(recorded_args(&screen).contains(&trust), "{}", recorded_args(&screen));
    assert_eq!(screen.0.row("x")["detail"], Value::Null);
    remove_lane(&screen);
    // The repository's own Codex settings can run any command.
    screen.0.write(".codex/config.toml", "");
    let warnings = start_warnings(&screen, "codex");
    assert!(warnings[0].starts_with("codex will ask in its window whether you trust this repository"));
    assert!(!recorded_args(&screen).contains("trust_level"), "{}", recorded_args(&screen));
    assert_eq!(screen.0.row("x")["detail"], "needs approval: asks whether you trust this repository");
    remove_lane(&screen);
    // The user has answered that question.
    let answer = format!("[projects.\"{}\"]\ntrust_level = \"trusted\"\n", screen.0.repo.display());
    screen.0.write_in(&screen.0.root(), "home/.codex/config.toml", &answer);
    assert_eq!(start_warnings(&screen, "codex"), [""; 0]);
    assert!(!recorded_args(&screen).contains("trust_level"), "{}", recorded_args(&screen));
    assert_eq!(screen.0.row("x")["detail"], Value::Null);
    remove_lane(&screen);
    // Codex settings in the lane only, as on another base.
    screen.0.sh("rm -r .codex \"$ROOT/home/.codex\"; git checkout -q -b other; mkdir .codex; touch .codex/config.toml");
    screen.0.commit_all("settings");
    screen.0.git(&["checkout", "-q", "main"]);
    let _ = screen.proq(&["spawn", "--tmux", "-n", "x", "--base", "other", "codex", "do it"]).ok();
    drop(screen.0.read_pipe("up"));
    assert!(!recorded_args(&screen).contains("trust_level"), "{}", recorded_args(&screen));
    assert_eq!(screen.0.started_row("x")["detail"], "needs approval: asks whether you trust this repository");
    // The prompt allows questions, because the user is there.
    assert!(recorded_args(&screen).contains("can answer questions here"), "{}", recorded_args(&screen));
}

#[test]
fn refuses_window_for_agent_without_prompt_argument() {
    let screen = TmuxSandbox::new();
    screen.0.program("aider", TERMINAL_AGENT);
    let message = screen.proq(&["spawn", "--tmux", "-n", "x", "aider", "do it"]).fails(1);
    assert!(message.contains("cannot start 'aider' in a window: it takes no prompt there"), "{message}");
    assert!(message.contains("{prompt}") && !screen.0.lane_path("x").exists(), "{message}");
}

#[test]
fn agent_without_hooks_shows_no_activity() {
    let screen = TmuxSandbox::new();
    let silent = "does not report whether it works, waits for you or is idle: its lane counts as running until it ends";
    let folder = "may ask in its window whether you trust the folder, and wait for your answer";
    for (agent, program, more) in [
        ("codex", "codex", vec![]),
        ("qwen", "qwen", vec![]),
        ("copilot", "copilot", vec![format!("copilot {folder}")]),
        ("cursor", "cursor-agent", vec![format!("cursor {folder}")]),
    ] {
        screen.0.program(program, TERMINAL_AGENT);
        let hint = "; to change that, set agents.codex.capabilities.hooks = true";
        let silent = format!("{agent} {silent}{}", if agent == "codex" { hint } else { "" });
        let mut expected = more;
        expected.push(silent);
        let mut warnings = start_warnings(&screen, agent);
        warnings.retain(|warning| !warning.contains("no permission levels"));
        assert_eq!(warnings, expected);
        let row = screen.0.row("x");
        let detail = "its agent does not report whether it works or waits";
        assert_eq!((&row["state"], &row["detail"]), (&json!("running"), &json!(detail)), "{agent}");
        let shown = screen.proq(&["show", "x"]).ok();
        assert!(shown.contains(": in a window of tmux") && !shown.contains("at work"), "{shown}");
        assert!(!screen.proq(&["list"]).ok().contains("working"));
        assert_eq!(screen.0.events("agent.state"), [Value::Null; 0]);
        remove_lane(&screen);
    }
    // Without a window the run ends with the agent's turn, so its state is known.
    screen.0.agent("codex", "echo one > one.txt; git add one.txt; git commit -qm one");
    let out = screen.proq(&["spawn", "--wait", "-n", "y", "codex", "do it"]);
    assert!(!out.stderr.contains("does not report"), "{}", out.to_text());
    assert_eq!(screen.0.row("y")["state"], "done");
}

#[test]
fn claude_waits_for_lane_tools_in_a_window() {
    let screen = TmuxSandbox::new();
    let _ = screen.start("do it");
    let environment = || std::fs::read_to_string(screen.0.root().join("told")).unwrap();
    assert!(environment().contains("\nMCP_CONNECTION_NONBLOCKING=0\n"), "{}", environment());
    remove_lane(&screen);
    let mut command = screen.command(&["spawn", "--tmux", "-n", "x", "claude", "do it"]);
    command.env("MCP_CONNECTION_NONBLOCKING", "1");
    let _ = screen.0.output(command).ok();
    drop(screen.0.read_pipe("up"));
    assert!(environment().contains("\nMCP_CONNECTION_NONBLOCKING=1\n"), "what the person says counts");
}
