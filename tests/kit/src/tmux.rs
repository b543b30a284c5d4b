//! A tmux server of its own for a sandbox.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::waiting::{WAIT_LIMIT, wait_within};
use crate::{Output, Sandbox};

/// Script of an agent that records its arguments and environment, signals `up`, and then runs each line from
/// its terminal.
pub const TERMINAL_AGENT: &str = "printf '<%s>\\n' \"$@\" > \"$ROOT/heard\"
    { tty; echo \"$TERM $PROQ_LANE $SECRET\"; git config --get core.hooksPath; env; } > \"$ROOT/told\"
    echo $$ > \"$ROOT/up\"
    while read -r line; do eval \"$line\"; echo heard > \"$ROOT/up\"; done";

/// Sandbox with a tmux server of its own, which ends with it.
pub struct TmuxSandbox(pub Sandbox);

impl Drop for TmuxSandbox {
    fn drop(&mut self) {
        drop(self.tmux(&["kill-server"]));
    }
}

impl TmuxSandbox {
    /// Creates a sandbox with such an agent as `claude`, which the user has used in this repository before.
    pub fn new() -> TmuxSandbox {
        let version = std::process::Command::new("tmux").arg("-V").output();
        assert!(version.is_ok_and(|out| out.status.success()), "these tests need tmux; .ci/run installs it");
        let sandbox = Sandbox::new();
        std::fs::create_dir(sandbox.root().join("tm")).unwrap();
        sandbox.pipe("up");
        sandbox.program("claude", TERMINAL_AGENT);
        let settings = serde_json::json!({
            "hasCompletedOnboarding": true,
            "projects": { sandbox.repo.to_str().unwrap(): { "hasTrustDialogAccepted": true } },
        });
        sandbox.write_in(&sandbox.root(), "home/.claude.json", &settings.to_string());
        TmuxSandbox(sandbox)
    }

    /// Prepares the program with this sandbox's tmux server.
    pub fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = self.0.proq_command(&self.0.repo, args);
        command.env("TMUX_TMPDIR", self.0.root().join("tm")).env("SECRET", "a b;$(c)");
        command
    }

    /// Runs the program with this sandbox's tmux server.
    pub fn proq(&self, args: &[&str]) -> Output {
        self.0.output(self.command(args))
    }

    /// Runs a tmux command on that server.
    pub fn tmux(&self, args: &[&str]) -> Output {
        let mut command = self.0.command("tmux", &self.0.root());
        command.env("TMUX_TMPDIR", self.0.root().join("tm")).args(args);
        self.0.output(command)
    }

    /// Starts the agent in a lane, and returns its process id once it reads its terminal.
    pub fn start(&self, prompt: &str) -> String {
        let _ = self.proq(&["spawn", "--tmux", "-n", "x", "claude", prompt]).ok();
        self.0.read_pipe("up").trim().to_owned()
    }

    /// Types a line and waits until the agent has run it.
    pub fn type_line(&self, line: &str) {
        let _ = self.tmux(&["send-keys", "-t", "=proq-repo:x", "-l", line]).ok();
        let _ = self.tmux(&["send-keys", "-t", "=proq-repo:x", "Enter"]).ok();
        assert_eq!(self.0.read_pipe("up"), "heard\n");
    }

    /// Types the agent's last line, without waiting for the agent.
    pub fn type_last_line(&self, line: &str) {
        let _ = self.tmux(&["send-keys", "-t", "=proq-repo:x", "-l", line]).ok();
        let _ = self.tmux(&["send-keys", "-t", "=proq-repo:x", "Enter"]).ok();
    }

    /// Returns the path of the record of the first run.
    pub fn run_record(&self) -> PathBuf {
        self.0.repo.join(".git/proq/lanes/x/runs/1.toml")
    }
}

/// The user's terminal: a window of another tmux server, which ends with it.
pub struct UserTerminal<'a> {
    screen: &'a TmuxSandbox,
    /// Name of the server's socket. A server that is ending still answers on its socket for a moment, so
    /// no two terminals share one.
    socket: String,
}

impl Drop for UserTerminal<'_> {
    fn drop(&mut self) {
        drop(self.tmux(&["kill-server"]));
    }
}

impl UserTerminal<'_> {
    /// Opens the terminal and runs a shell line on it, outside of tmux as far as the line can see.
    pub fn open<'a>(screen: &'a TmuxSandbox, line: &str) -> UserTerminal<'a> {
        static OPENED: AtomicUsize = AtomicUsize::new(0);
        let socket = format!("person-{}", OPENED.fetch_add(1, Ordering::Relaxed));
        let script = format!(
            "exec tmux -L {socket} new-session -d -s me -x 100 -y 30 'unset TMUX TMUX_PANE; {}'",
            line.replace('\'', r"'\''")
        );
        let terminal = UserTerminal { screen, socket };
        let mut command = screen.0.command("sh", &screen.0.repo);
        command.env("TMUX_TMPDIR", screen.0.root().join("tm")).args(["-c", &script]);
        let _ = screen.0.output(command).ok();
        terminal
    }

    /// Runs a tmux command on the server of the terminal.
    pub fn tmux(&self, args: &[&str]) -> Output {
        let sandbox = &self.screen.0;
        let mut command = sandbox.command("tmux", &sandbox.root());
        command.env("TMUX_TMPDIR", sandbox.root().join("tm")).args(["-L", &self.socket]).args(args);
        sandbox.output(command)
    }

    /// Presses keys, by tmux's names of them.
    pub fn press(&self, keys: &[&str]) {
        let _ = self.tmux(&[&["send-keys", "-t", "me"], keys].concat()).ok();
    }

    /// Waits until the terminal shows a text, and returns all that it shows, each line as it was printed.
    pub fn wait_for_text(&self, text: &str) -> String {
        let shown = || self.tmux(&["capture-pane", "-p", "-J", "-t", "me"]).stdout;
        wait_within(
            WAIT_LIMIT,
            || format!("{text}\n{}", shown()),
            || Some(shown()).filter(|s| s.contains(text)),
        )
    }

    /// Types a line, and waits until the agent in lane `x` has run it.
    pub fn type_line_to_agent(&self, line: &str) {
        let _ = self.tmux(&["send-keys", "-t", "me", "-l", line]).ok();
        let _ = self.tmux(&["send-keys", "-t", "me", "Enter"]).ok();
        assert_eq!(self.screen.0.read_pipe("up"), "heard\n");
    }
}
