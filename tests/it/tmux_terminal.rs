//! Owns the tests of a lane's window and the terminals of people: one that enters it, and one that goes away.

use super::support::Output;
use super::support::patience::wait_until;
use super::tmux::Screen;

/// A person's terminal, which is a window of another server of tmux.
struct Terminal<'a>(&'a Screen);

impl Terminal<'_> {
    /// Runs a line for the shell on it.
    fn running<'a>(screen: &'a Screen, line: &str) -> Terminal<'a> {
        let terminal = Terminal(screen);
        let repo = screen.0.repo.to_str().unwrap();
        let _ =
            terminal.tmux(&["new-session", "-d", "-s", "me", "-x", "100", "-y", "30", "-c", repo, line]).ok();
        terminal
    }

    fn tmux(&self, args: &[&str]) -> Output {
        let mut command = self.0.0.command("tmux", &self.0.0.root());
        command.env("TMUX_TMPDIR", self.0.0.root().join("tm")).args(["-L", "person"]).args(args);
        self.0.0.output(command)
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        drop(self.tmux(&["kill-server"]));
    }
}

#[test]
fn whoever_attaches_is_in_the_agents_window_and_talks_to_it() {
    let screen = Screen::new();
    let agent = screen.start("do it");
    let line = "unset TMUX TMUX_PANE; git-proq attach x; echo $? > \"$ROOT/left\"";
    let terminal = Terminal::running(&screen, line);
    let clients = || screen.tmux(&["list-clients", "-F", "#{session_name} #{window_name}"]).stdout;
    wait_until("somebody in the window", || clients() == "proq-repo x\n");
    // What is typed on the person's terminal reaches the agent.
    let _ = terminal.tmux(&["send-keys", "-t", "me", "-l", "echo typed > typed.txt"]).ok();
    let _ = terminal.tmux(&["send-keys", "-t", "me", "Enter"]).ok();
    assert_eq!(screen.0.hear("up"), "heard\n");
    assert_eq!(std::fs::read_to_string(screen.0.lane("x").join("typed.txt")).unwrap(), "typed\n");
    // Leaving it leaves the agent alone.
    let _ = screen.tmux(&["detach-client", "-s", "=proq-repo"]).ok();
    wait_until("the end of attach", || screen.0.root().join("left").exists());
    wait_until("its exit code", || {
        std::fs::read_to_string(screen.0.root().join("left")).is_ok_and(|code| code == "0\n")
    });
    assert_eq!(clients(), "");
    assert!(screen.0.lives(&agent));
}

#[test]
fn a_run_in_a_window_outlives_the_terminal_that_it_was_started_on() {
    let screen = Screen::new();
    screen.0.pipe("begun");
    let line = "unset TMUX TMUX_PANE; git-proq spawn --tmux -n x claude 'do it'; echo > \"$ROOT/begun\"; exec sleep 600";
    let terminal = Terminal::running(&screen, line);
    let agent = screen.0.hear("up").trim().to_owned();
    drop(screen.0.hear("begun"));
    let _ = terminal.tmux(&["kill-server"]).ok();
    wait_until("the end of the terminal", || terminal.tmux(&["has-session"]).code != 0);
    screen.types("echo on > on.txt; git add on.txt; git commit -qm on");
    assert!(screen.0.lives(&agent));
    assert_eq!(screen.0.started_row("x")["state"], "running");
    screen.types_last("exit 0");
    assert_eq!(screen.proq(&["wait", "x"]).ok(), "x: done\n");
}

#[test]
fn what_cannot_hold_in_a_window_is_named_and_a_time_limit_holds() {
    let screen = Screen::new();
    for (key, value) in [("budget", "2.50"), ("stall", "5m"), ("contextWarn", "80"), ("maxTurns", "0")] {
        screen.0.git(&["config", &format!("proq.agent.{key}"), value]);
    }
    let out = screen.proq(&["spawn", "--tmux", "-n", "x", "claude", "do it", "--max-minutes", "2s"]);
    let warnings: Vec<&str> = out.stderr.lines().filter(|line| line.starts_with("warning:")).collect();
    assert_eq!(
        warnings,
        [
            "warning: in a window nothing is read of what claude says, so this cannot hold there: agent.budget, \
          agent.context_warn, agent.stall; agent.max_time does"
        ],
        "{}",
        out.shown()
    );
    drop(screen.0.hear("up"));
    let _ = screen.proq(&["wait", "x"]).fails(4);
    assert_eq!(screen.0.last_run("x")["class"], "timeout");
}
