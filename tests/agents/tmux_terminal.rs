//! Tests of a lane's window and the user's terminals: attaching to it, and closing the terminal that started
//! it.

use proq_test_kit::tmux::{TmuxSandbox, UserTerminal};
use proq_test_kit::waiting::wait_until;

#[test]
fn attach_enters_agent_window_and_forwards_input() {
    let screen = TmuxSandbox::new();
    let agent = screen.start("do it");
    let line = "git-proq attach x; echo $? > \"$ROOT/left\"";
    let terminal = UserTerminal::open(&screen, line);
    let clients = || screen.tmux(&["list-clients", "-F", "#{session_name} #{window_name}"]).stdout;
    wait_until("somebody in the window", || clients() == "proq-repo x\n");
    // Text typed on the user's terminal reaches the agent.
    terminal.type_line_to_agent("echo typed > typed.txt");
    assert_eq!(std::fs::read_to_string(screen.0.lane_path("x").join("typed.txt")).unwrap(), "typed\n");
    // Detaching does not affect the agent.
    let _ = screen.tmux(&["detach-client", "-s", "=proq-repo"]).ok();
    wait_until("the end of attach", || screen.0.root().join("left").exists());
    wait_until("its exit code", || {
        std::fs::read_to_string(screen.0.root().join("left")).is_ok_and(|code| code == "0\n")
    });
    assert_eq!(clients(), "");
    assert!(screen.0.is_alive(&agent));
}

#[test]
fn run_in_window_outlives_its_terminal() {
    let screen = TmuxSandbox::new();
    screen.0.pipe("begun");
    let line = "git-proq spawn --tmux -n x claude 'do it'; echo > \"$ROOT/begun\"; exec sleep 600";
    let terminal = UserTerminal::open(&screen, line);
    let agent = screen.0.read_pipe("up").trim().to_owned();
    drop(screen.0.read_pipe("begun"));
    let _ = terminal.tmux(&["kill-server"]).ok();
    wait_until("the end of the terminal", || terminal.tmux(&["has-session"]).code != 0);
    screen.type_line("echo on > on.txt; git add on.txt; git commit -qm on");
    assert!(screen.0.is_alive(&agent));
    assert_eq!(screen.0.started_row("x")["state"], "running");
    screen.type_last_line("exit 0");
    assert_eq!(screen.proq(&["wait", "x"]).ok(), "x: done\n");
}

#[test]
fn warns_about_limits_without_effect_in_a_window() {
    let screen = TmuxSandbox::new();
    for (key, value) in [("budget", "2.50"), ("stall", "5m"), ("contextWarn", "80"), ("maxTurns", "0")] {
        screen.0.git(&["config", &format!("proq.agent.{key}"), value]);
    }
    let out = screen.proq(&["spawn", "--tmux", "-n", "x", "claude", "do it", "--max-minutes", "2s"]);
    let warnings: Vec<&str> = out.stderr.lines().filter(|line| line.starts_with("warning:")).collect();
    assert_eq!(
        warnings,
        [
            "warning: git-proq does not read the output of claude in a window, so these have no effect: agent.budget, \
          agent.context_warn, agent.stall; agent.max_time has"
        ],
        "{}",
        out.to_text()
    );
    drop(screen.0.read_pipe("up"));
    let _ = screen.proq(&["wait", "x"]).fails(4);
    assert_eq!(screen.0.last_run("x")["class"], "timeout");
}
