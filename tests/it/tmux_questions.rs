//! Owns the tests of what an agent in a window asks before it begins, and of those that do not tell what they do.

use serde_json::{Value, json};

use super::tmux::{ON_SCREEN, Screen};

/// The warnings of a start of `agent` in lane `x`, which reads its terminal then.
fn warned(screen: &Screen, agent: &str) -> Vec<String> {
    let out = screen.proq(&["spawn", "--tmux", "-n", "x", agent, "do it"]);
    assert_eq!(out.code, 0, "{}", out.shown());
    drop(screen.0.hear("up"));
    let _ = screen.0.started_row("x");
    out.stderr.lines().filter_map(|line| line.strip_prefix("warning: ")).map(ToOwned::to_owned).collect()
}

fn ended(screen: &Screen) {
    let _ = screen.proq(&["stop", "x"]).ok();
    let _ = screen.proq(&["discard", "x"]).ok();
}

fn heard(screen: &Screen) -> String {
    std::fs::read_to_string(screen.0.root().join("heard")).unwrap()
}

/// What a person has answered Claude Code before.
fn answered(screen: &Screen, known: &Value) {
    screen.0.write_in(&screen.0.root(), "home/.claude.json", &known.to_string());
}

#[test]
fn a_repository_that_nobody_trusts_yet_is_asked_about_and_waits_for_the_person() {
    let screen = Screen::new();
    answered(&screen, &json!({ "hasCompletedOnboarding": true, "projects": {} }));
    let kept = std::fs::read(screen.0.root().join("home/.claude.json")).unwrap();
    assert_eq!(
        warned(&screen, "claude"),
        [
            "claude will ask in its window whether you trust this repository, and waits until you have answered: git proq attach"
        ]
    );
    let asks = "needs approval: asks whether you trust this repository";
    assert_eq!(screen.0.row("x")["detail"], asks);
    let list = screen.proq(&["list"]).ok();
    assert!(list.contains("running, needs approval"), "{list}");
    let shown = screen.proq(&["show", "x"]).ok();
    assert!(shown.contains("waits for you, in a window of tmux"), "{shown}");
    let told = screen.0.events("agent.state");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["state"], "needs-approval");
    // It has been answered, and the agent says so by working.
    screen.types("echo '{}' | \"$PROQ_PROGRAM\" _agent-event prompt");
    assert_eq!(screen.0.row("x")["detail"], Value::Null);
    assert!(screen.proq(&["show", "x"]).ok().contains("at work, in a window of tmux"));
    screen.types("echo '{}' | \"$PROQ_PROGRAM\" _agent-event stop");
    let list = screen.proq(&["list"]).ok();
    assert!(list.contains("running, idle"), "{list}");
    assert_eq!(std::fs::read(screen.0.root().join("home/.claude.json")).unwrap(), kept, "it is the person's");
    ended(&screen);
    // Where it was never used at all.
    std::fs::remove_file(screen.0.root().join("home/.claude.json")).unwrap();
    let warnings = warned(&screen, "claude");
    assert!(warnings[0].starts_with("claude will ask in its window to be set up, as at its first start"));
    ended(&screen);
    // Trusted is also what lies below a trusted folder.
    let above = screen.0.root();
    answered(
        &screen,
        &json!({
            "hasCompletedOnboarding": true,
            "projects": { above.to_str().unwrap(): { "hasTrustDialogAccepted": true } },
        }),
    );
    assert_eq!(warned(&screen, "claude"), [""; 0]);
    assert_eq!(screen.0.row("x")["detail"], Value::Null);
    assert!(!screen.proq(&["show", "x"]).ok().contains("at work"), "it has said nothing yet");
}

#[test]
fn codex_is_told_for_one_run_to_trust_a_repository_without_settings_for_it() {
    let screen = Screen::new();
    screen.0.program("codex", ON_SCREEN);
    let hooks = "[agents.codex]\ncapabilities.hooks = true\n";
    screen.0.write_in(&screen.0.root(), "home/.config/git-proq/config.toml", hooks);
    assert_eq!(warned(&screen, "codex"), [""; 0]);
    let trust = format!("<projects={{\"{}\"={{trust_level=\"trusted\"}}}}>\n", screen.0.repo.display());
    assert!(heard(&screen).contains(&trust), "{}", heard(&screen));
    assert_eq!(screen.0.row("x")["detail"], Value::Null);
    ended(&screen);
    // Settings of the repository's own can have anything run.
    screen.0.write(".codex/config.toml", "");
    let warnings = warned(&screen, "codex");
    assert!(warnings[0].starts_with("codex will ask in its window whether you trust this repository"));
    assert!(!heard(&screen).contains("trust_level"), "{}", heard(&screen));
    assert_eq!(screen.0.row("x")["detail"], "needs approval: asks whether you trust this repository");
    ended(&screen);
    // The person has answered that.
    let kept = format!("[projects.\"{}\"]\ntrust_level = \"trusted\"\n", screen.0.repo.display());
    screen.0.write_in(&screen.0.root(), "home/.codex/config.toml", &kept);
    assert_eq!(warned(&screen, "codex"), [""; 0]);
    assert!(!heard(&screen).contains("trust_level"), "{}", heard(&screen));
    assert_eq!(screen.0.row("x")["detail"], Value::Null);
    ended(&screen);
    // In the lane only, as on another base.
    screen.0.sh("rm -r .codex \"$ROOT/home/.codex\"; git checkout -q -b other; mkdir .codex; touch .codex/config.toml");
    screen.0.commit_all("settings");
    screen.0.git(&["checkout", "-q", "main"]);
    let _ = screen.proq(&["spawn", "--tmux", "-n", "x", "--base", "other", "codex", "do it"]).ok();
    drop(screen.0.hear("up"));
    assert!(!heard(&screen).contains("trust_level"), "{}", heard(&screen));
    assert_eq!(screen.0.started_row("x")["detail"], "needs approval: asks whether you trust this repository");
    // A person is there.
    assert!(heard(&screen).contains("can answer questions here"), "{}", heard(&screen));
}

#[test]
fn an_agent_that_takes_no_prompt_on_its_screen_is_not_started_on_one() {
    let screen = Screen::new();
    screen.0.program("aider", ON_SCREEN);
    let said = screen.proq(&["spawn", "--tmux", "-n", "x", "aider", "do it"]).fails(1);
    assert!(said.contains("cannot start 'aider' in a window: it takes no prompt there"), "{said}");
    assert!(said.contains("{prompt}") && !screen.0.lane("x").exists(), "{said}");
}

#[test]
fn of_an_agent_that_does_not_tell_nothing_is_claimed() {
    let screen = Screen::new();
    let silent =
        "does not tell whether it works, waits for you or is idle: its lane is running until it ends";
    let folder = "may ask in its window whether you trust the folder, and then waits for your answer";
    for (agent, program, more) in [
        ("codex", "codex", vec![]),
        ("qwen", "qwen", vec![]),
        ("copilot", "copilot", vec![format!("copilot {folder}")]),
        ("cursor", "cursor-agent", vec![format!("cursor {folder}")]),
    ] {
        screen.0.program(program, ON_SCREEN);
        let helps = "; with agents.codex.capabilities.hooks = true it does";
        let silent = format!("{agent} {silent}{}", if agent == "codex" { helps } else { "" });
        let mut wanted = more;
        wanted.push(silent);
        let mut warnings = warned(&screen, agent);
        warnings.retain(|warning| !warning.contains("no permissions of its own"));
        assert_eq!(warnings, wanted);
        let row = screen.0.row("x");
        let said = "its agent does not tell whether it works or waits";
        assert_eq!((&row["state"], &row["detail"]), (&json!("running"), &json!(said)), "{agent}");
        let shown = screen.proq(&["show", "x"]).ok();
        assert!(shown.contains(": in a window of tmux") && !shown.contains("at work"), "{shown}");
        assert!(!screen.proq(&["list"]).ok().contains("working"));
        assert_eq!(screen.0.events("agent.state"), [Value::Null; 0]);
        ended(&screen);
    }
    // Without a window its run ends with its turn: nothing is unknown.
    screen.0.agent("codex", "echo one > one.txt; git add one.txt; git commit -qm one");
    let out = screen.proq(&["spawn", "--wait", "-n", "y", "codex", "do it"]);
    assert!(!out.stderr.contains("does not tell"), "{}", out.shown());
    assert_eq!(screen.0.row("y")["state"], "done");
}

#[test]
fn claude_waits_for_the_lanes_tools_in_a_window() {
    let screen = Screen::new();
    let _ = screen.start("do it");
    let told = || std::fs::read_to_string(screen.0.root().join("told")).unwrap();
    assert!(told().contains("\nMCP_CONNECTION_NONBLOCKING=0\n"), "{}", told());
    ended(&screen);
    let mut command = screen.command(&["spawn", "--tmux", "-n", "x", "claude", "do it"]);
    command.env("MCP_CONNECTION_NONBLOCKING", "1");
    let _ = screen.0.output(command).ok();
    drop(screen.0.hear("up"));
    assert!(told().contains("\nMCP_CONNECTION_NONBLOCKING=1\n"), "what the person says counts");
}
