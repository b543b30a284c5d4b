//! Tests of agents in tmux windows, each test with a tmux server of its own: their environment, how they end,
//! and who may attach.

use proq_test_kit::Sandbox;
use proq_test_kit::runs::kill_supervisor;
use proq_test_kit::tmux::{TERMINAL_AGENT, TmuxSandbox};

#[test]
fn agent_gets_terminal_and_literal_prompt() {
    let screen = TmuxSandbox::new();
    let prompt = "it's \"$(touch /nowhere)\"; #{pane_id}\n\\ and;";
    let out = screen.proq(&["spawn", "--tmux", "-n", "x", "claude", prompt]);
    insta::assert_snapshot!(out.to_text(), @"
    lane 'x' on branch proq/x, from main
      [ROOT]/repo/.proq-worktrees/x
    --- stderr
    claude is in a window of tmux there
    may run: git; allow more: git config --add proq.agent.allow 'make *'
    hint: open its window: git proq open x
    hint: wait for it: git proq wait x
    --- code 0
    ");
    drop(screen.0.read_pipe("up"));
    let args = std::fs::read_to_string(screen.0.root().join("heard")).unwrap();
    assert!(args.ends_with(&format!("<-->\n<{prompt}>\n")), "{args}");
    assert!(args.starts_with("<--permission-mode>\n<acceptEdits>\n"), "{args}");
    let environment = std::fs::read_to_string(screen.0.root().join("told")).unwrap();
    let lines: Vec<&str> = environment.lines().collect();
    assert!(lines[0].starts_with("/dev/"), "{environment}");
    assert!(!lines[1].starts_with("dumb") && lines[1].ends_with(" x a b;$(c)"), "{environment}");
    assert!(lines[2].contains("/proq/fences/"), "{environment}");
    screen.type_line("echo one > one.txt; git add one.txt; git commit -qm one");
    assert_eq!(screen.0.started_row("x")["state"], "running");
    screen.type_last_line("exit 0");
    assert_eq!(screen.proq(&["wait", "x"]).ok(), "x: done\n");
    let _ = screen.tmux(&["has-session", "-t", "=proq-repo"]).fails(1);
    let _ = screen.proq(&["merge", "x"]).ok();
}

#[test]
fn second_lane_opens_window_in_same_session() {
    let screen = TmuxSandbox::new();
    let _ = screen.start("do it");
    let _ = screen.proq(&["spawn", "--tmux", "-n", "y", "claude", "do it"]).ok();
    drop(screen.0.read_pipe("up"));
    let windows = screen.tmux(&["list-windows", "-a", "-F", "#{session_name} #{window_name}"]).ok();
    assert_eq!(windows, "proq-repo x\nproq-repo y\n");
    // A window that the user opens next to an agent is in its lane, and by tmux's own rule in the main
    // checkout: never in another lane.
    let display =
        |target: &str, variable: &str| screen.tmux(&["display-message", "-p", "-t", target, variable]).ok();
    for lane in ["x", "y"] {
        let path = display(&format!("=proq-repo:{lane}"), "#{pane_current_path}");
        assert_eq!(path, format!("[ROOT]/repo/.proq-worktrees/{lane}\n"));
    }
    assert_eq!(display("=proq-repo:y", "#{session_path}"), "[ROOT]/repo\n");
    // git-proq searches for stray processes at the end of a run: neither the server nor the other lane is
    // one.
    assert_eq!(screen.proq(&["stop", "x"]).code, 0);
    assert_eq!(screen.0.started_row("y")["state"], "running");
    assert_eq!(screen.tmux(&["list-windows", "-a", "-F", "#{window_name}"]).ok(), "y\n");
}

#[test]
fn hook_states_are_shown_and_send_is_refused() {
    let screen = TmuxSandbox::new();
    let agent = screen.start("do it");
    screen.type_line("echo '{\"tool_name\":\"Bash\"}' | \"$PROQ_PROGRAM\" _agent-event permission");
    assert_eq!(screen.0.started_row("x")["detail"], "needs approval: wants to use Bash");
    screen.type_line("echo '{}' | \"$PROQ_PROGRAM\" _agent-event stop");
    assert_eq!(screen.0.started_row("x")["detail"], "idle");
    screen.type_line("echo '{}' | \"$PROQ_PROGRAM\" _agent-event prompt");
    assert_eq!(screen.0.started_row("x")["detail"], serde_json::Value::Null);
    insta::assert_snapshot!(screen.proq(&["send", "x", "more"]).to_text(), @r"
    --- stderr
    error: cannot send to lane 'x': its agent runs in a tmux window
    hint: type your message there: git proq open x
    --- code 1
    ");
    insta::assert_snapshot!(screen.proq(&["attach", "x"]).to_text(), @r"
    --- stderr
    error: cannot attach: not a terminal
    --- code 1
    ");
    assert_eq!(screen.proq(&["logs", "x"]).ok(), "This run is in a window of tmux: git proq open x\n");
    assert_eq!(screen.proq(&["stop", "x"]).code, 0);
    assert!(!screen.0.is_alive(&agent));
    assert_eq!(screen.0.row("x")["state"], "stopped");
    insta::assert_snapshot!(screen.proq(&["attach", "x"]).to_text(), @r#"
    --- stderr
    error: lane 'x' has no tmux window
    hint: follow its output: git proq logs -f x
    hint: open a shell in its worktree: git proq open x --shell
    --- code 1
    "#);
}

#[test]
fn last_screen_of_failed_run_is_saved() {
    let screen = TmuxSandbox::new();
    screen.0.program("claude", "echo working; printf '\\033[31mError: no such model\\033[0m\\n' >&2; exit 1");
    let _ = screen.proq(&["spawn", "--tmux", "-n", "x", "claude", "do it"]).ok();
    let expected = "x: failed (exit code 1; its window ended with: working Error: no such model)\n";
    assert_eq!(screen.proq(&["wait", "x"]).fails(4), expected);
    let saved = "This run was in a window of tmux, which ended with:\n\nworking\nError: no such model\n";
    assert_eq!(screen.proq(&["logs", "x"]).ok(), saved);
    assert!(screen.proq(&["attach", "x"]).fails(1).contains("git proq logs"));
    // A window that was closed leaves no text.
    screen.0.program("claude", TERMINAL_AGENT);
    let _ = screen.proq(&["run", "--tmux", "x", "claude", "again"]).ok();
    drop(screen.0.read_pipe("up"));
    let _ = screen.tmux(&["kill-server"]).ok();
    let _ = screen.proq(&["wait", "x"]).fails(4);
    let not_saved = "This run was in a window of tmux; its last screen was not saved.\n";
    assert_eq!(screen.proq(&["logs", "x"]).ok(), not_saved);
}

#[test]
fn killed_tmux_server_ends_run_and_lane_can_run_again() {
    let screen = TmuxSandbox::new();
    let agent = screen.start("do it");
    screen.type_line("trap '' HUP; echo half > half.txt");
    let server = screen.tmux(&["display-message", "-p", "#{pid}"]).ok();
    let mut kill = screen.0.command("kill", &screen.0.root());
    kill.args(["-9", server.trim()]);
    let _ = screen.0.output(kill).ok();
    assert_eq!(screen.proq(&["wait", "x"]).code, 4);
    assert!(!screen.0.is_alive(&agent));
    let row = screen.0.row("x");
    assert_eq!((&row["state"], &row["detail"]), (&"failed".into(), &"its window was closed".into()));
    assert_eq!(std::fs::read_to_string(screen.0.lane_path("x").join("half.txt")).unwrap(), "half\n");
    assert!(std::fs::read_to_string(screen.run_record()).unwrap().contains("class = \"interrupted\""));
    let _ = screen.proq(&["run", "--tmux", "x", "claude"]).ok();
    drop(screen.0.read_pipe("up"));
    screen.type_last_line("exit 0");
    assert_eq!(screen.proq(&["wait", "x"]).ok(), "x: done\n");
}

#[test]
fn redispatch_starts_in_a_window() {
    let screen = TmuxSandbox::new();
    let _ = screen.start("do it");
    screen.type_line("echo one > one.txt; git add one.txt; git commit -qm one");
    screen.type_last_line("exit 0");
    assert_eq!(screen.proq(&["wait", "x"]).ok(), "x: done\n");
    let out = screen.proq(&["redispatch", "x", "--tmux"]);
    assert!(out.stderr.contains("hint: open its window: git proq open x"), "{}", out.to_text());
    drop(screen.0.read_pipe("up"));
    screen.type_line("ls > seen.txt; git add seen.txt; git commit -qm seen");
    screen.type_last_line("exit 0");
    assert_eq!(screen.proq(&["wait", "x"]).ok(), "x: done\n");
    assert_eq!(screen.0.git(&["show", "proq/x:seen.txt"]), "a.txt\nseen.txt");
    let _ = screen.proq(&["redispatch", "x", "--tmux", "--budget", "1"]).fails(2);
}

#[test]
fn stop_closes_window_of_orphaned_agent() {
    let screen = TmuxSandbox::new();
    let agent = screen.start("do it");
    kill_supervisor(&screen.0, "x");
    screen.type_line("echo alone > alone.txt");
    assert_eq!(screen.0.started_row("x")["state"], "orphaned");
    assert_eq!(screen.proq(&["stop", "x"]).code, 0);
    assert!(!screen.0.is_alive(&agent));
    assert_eq!(screen.0.row("x")["state"], "stopped");
    let _ = screen.tmux(&["has-session", "-t", "=proq-repo"]).fails(1);
}

#[test]
fn spawn_without_tmux_creates_nothing() {
    let sandbox = Sandbox::new();
    sandbox.program("claude", "exit 0");
    sandbox.sh("for p in git sh; do ln -s \"$(command -v $p)\" \"$ROOT/bin/$p\"; done");
    let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "--tmux", "claude", "do it"]);
    command.env("PATH", sandbox.root().join("bin"));
    insta::assert_snapshot!(sandbox.output(command).to_text(), @r"
    --- stderr
    error: cannot start the agent in a window: tmux is not installed
    hint: install tmux, or leave --tmux out
    --- code 1
    ");
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
}
