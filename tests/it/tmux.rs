//! Owns the tests of agents in windows of tmux, each with a server of its own: what they are given, how they end, who may enter.

use std::path::PathBuf;

use super::stop::kill_supervisor;
use super::support::{Output, Sandbox};

/// An agent that says `up` when it has told what it is, and then does what it is told on its terminal.
pub const ON_SCREEN: &str = "printf '<%s>\\n' \"$@\" > \"$ROOT/heard\"
    { tty; echo \"$TERM $PROQ_LANE $SECRET\"; git config --get core.hooksPath; env; } > \"$ROOT/told\"
    echo $$ > \"$ROOT/up\"
    while read -r line; do eval \"$line\"; echo heard > \"$ROOT/up\"; done";

/// A sandbox with a tmux server of its own, which ends with it.
pub struct Screen(pub Sandbox);

impl Drop for Screen {
    fn drop(&mut self) {
        drop(self.tmux(&["kill-server"]));
    }
}

impl Screen {
    /// One with an agent like that, which a person has used in this repository before.
    pub fn new() -> Screen {
        let found = std::process::Command::new("tmux").arg("-V").output();
        assert!(found.is_ok_and(|out| out.status.success()), "these tests need tmux; .ci/run installs it");
        let sandbox = Sandbox::new();
        std::fs::create_dir(sandbox.root().join("tm")).unwrap();
        sandbox.pipe("up");
        sandbox.program("claude", ON_SCREEN);
        let known = serde_json::json!({
            "hasCompletedOnboarding": true,
            "projects": { sandbox.repo.to_str().unwrap(): { "hasTrustDialogAccepted": true } },
        });
        sandbox.write_in(&sandbox.root(), "home/.claude.json", &known.to_string());
        Screen(sandbox)
    }

    /// The program, where tmux's server is this sandbox's own.
    pub fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = self.0.proq_command(&self.0.repo, args);
        command.env("TMUX_TMPDIR", self.0.root().join("tm")).env("SECRET", "a b;$(c)");
        command
    }

    /// The same, run to its end.
    pub fn proq(&self, args: &[&str]) -> Output {
        self.0.output(self.command(args))
    }

    /// A call of that server.
    pub fn tmux(&self, args: &[&str]) -> Output {
        let mut command = self.0.command("tmux", &self.0.root());
        command.env("TMUX_TMPDIR", self.0.root().join("tm")).args(args);
        self.0.output(command)
    }

    /// Starts the agent in a lane, and returns its process when it reads.
    pub fn start(&self, prompt: &str) -> String {
        let _ = self.proq(&["spawn", "--tmux", "-n", "x", "claude", prompt]).ok();
        self.0.hear("up").trim().to_owned()
    }

    /// Types a line, which the agent has carried out afterwards.
    pub fn types(&self, line: &str) {
        let _ = self.tmux(&["send-keys", "-t", "=proq-repo:x", "-l", line]).ok();
        let _ = self.tmux(&["send-keys", "-t", "=proq-repo:x", "Enter"]).ok();
        assert_eq!(self.0.hear("up"), "heard\n");
    }

    /// Types the agent's last line.
    pub fn types_last(&self, line: &str) {
        let _ = self.tmux(&["send-keys", "-t", "=proq-repo:x", "-l", line]).ok();
        let _ = self.tmux(&["send-keys", "-t", "=proq-repo:x", "Enter"]).ok();
    }

    fn record(&self) -> PathBuf {
        self.0.repo.join(".git/proq/lanes/x/runs/1.toml")
    }
}

#[test]
fn an_agent_has_its_own_screen_and_no_shell_reads_what_it_is_told() {
    let screen = Screen::new();
    let prompt = "it's \"$(touch /nowhere)\"; #{pane_id}\n\\ and;";
    let out = screen.proq(&["spawn", "--tmux", "-n", "x", "claude", prompt]);
    insta::assert_snapshot!(out.shown(), @r"
    lane 'x' on branch proq/x, from main
      [ROOT]/repo/.proq-worktrees/x
    --- stderr
    claude is in a window of tmux there
    hint: go there: git proq attach x   wait for it: git proq wait x
    --- code 0
    ");
    drop(screen.0.hear("up"));
    let heard = std::fs::read_to_string(screen.0.root().join("heard")).unwrap();
    assert!(heard.ends_with(&format!("<-->\n<{prompt}>\n")), "{heard}");
    assert!(heard.starts_with("<--permission-mode>\n<acceptEdits>\n"), "{heard}");
    let told = std::fs::read_to_string(screen.0.root().join("told")).unwrap();
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].starts_with("/dev/"), "{told}");
    assert!(!lines[1].starts_with("dumb") && lines[1].ends_with(" x a b;$(c)"), "{told}");
    assert!(lines[2].contains("/proq/fences/"), "{told}");
    screen.types("echo one > one.txt; git add one.txt; git commit -qm one");
    assert_eq!(screen.0.started_row("x")["state"], "running");
    screen.types_last("exit 0");
    assert_eq!(screen.proq(&["wait", "x"]).ok(), "x: done\n");
    let _ = screen.tmux(&["has-session", "-t", "=proq-repo"]).fails(1);
    let _ = screen.proq(&["merge", "x"]).ok();
}

#[test]
fn a_second_lane_is_a_second_window_of_the_same_session() {
    let screen = Screen::new();
    let _ = screen.start("do it");
    let _ = screen.proq(&["spawn", "--tmux", "-n", "y", "claude", "do it"]).ok();
    drop(screen.0.hear("up"));
    let windows = screen.tmux(&["list-windows", "-a", "-F", "#{session_name} #{window_name}"]).ok();
    assert_eq!(windows, "proq-repo x\nproq-repo y\n");
    // What a person opens beside an agent is in its lane, and by tmux's own rule in the main checkout: never in another lane.
    let tells = |of: &str, what: &str| screen.tmux(&["display-message", "-p", "-t", of, what]).ok();
    for lane in ["x", "y"] {
        let at = tells(&format!("=proq-repo:{lane}"), "#{pane_current_path}");
        assert_eq!(at, format!("[ROOT]/repo/.proq-worktrees/{lane}\n"));
    }
    assert_eq!(tells("=proq-repo:y", "#{session_path}"), "[ROOT]/repo\n");
    // Strays are looked for at the end of a run: neither the server nor the other lane is one.
    assert_eq!(screen.proq(&["stop", "x"]).code, 0);
    assert_eq!(screen.0.started_row("y")["state"], "running");
    assert_eq!(screen.tmux(&["list-windows", "-a", "-F", "#{window_name}"]).ok(), "y\n");
}

#[test]
fn what_its_hooks_say_is_shown_and_nothing_is_sent_past_its_screen() {
    let screen = Screen::new();
    let agent = screen.start("do it");
    screen.types("echo '{\"tool_name\":\"Bash\"}' | \"$PROQ_PROGRAM\" _agent-event permission");
    assert_eq!(screen.0.started_row("x")["detail"], "needs approval: wants to use Bash");
    screen.types("echo '{}' | \"$PROQ_PROGRAM\" _agent-event stop");
    assert_eq!(screen.0.started_row("x")["detail"], "idle");
    screen.types("echo '{}' | \"$PROQ_PROGRAM\" _agent-event prompt");
    assert_eq!(screen.0.started_row("x")["detail"], serde_json::Value::Null);
    insta::assert_snapshot!(screen.proq(&["send", "x", "more"]).shown(), @r"
    --- stderr
    error: the agent of lane 'x' is in a window, where you can talk to it; nothing was sent
    hint: go there: git proq attach x
    --- code 1
    ");
    insta::assert_snapshot!(screen.proq(&["attach", "x"]).shown(), @r"
    --- stderr
    error: a window can be entered on a terminal only
    hint: run it in a terminal
    --- code 1
    ");
    assert_eq!(screen.proq(&["logs", "x"]).ok(), "This run is in a window of tmux: git proq attach x\n");
    assert_eq!(screen.proq(&["stop", "x"]).code, 0);
    assert!(!screen.0.lives(&agent));
    assert_eq!(screen.0.row("x")["state"], "stopped");
    insta::assert_snapshot!(screen.proq(&["attach", "x"]).shown(), @r#"
    --- stderr
    error: lane 'x' has no agent in a window
    hint: see what its agent says: git proq logs -f x
    hint: tell it more: git proq send x "also handle refunds"
    --- code 1
    "#);
}

#[test]
fn what_the_window_of_a_run_that_failed_showed_last_is_kept() {
    let screen = Screen::new();
    screen.0.program("claude", "echo working; printf '\\033[31mError: no such model\\033[0m\\n' >&2; exit 1");
    let _ = screen.proq(&["spawn", "--tmux", "-n", "x", "claude", "do it"]).ok();
    let why = "x: failed (exit code 1; its window ended with: working Error: no such model)\n";
    assert_eq!(screen.proq(&["wait", "x"]).fails(4), why);
    let kept = "This run was in a window of tmux, which ended with:\n\nworking\nError: no such model\n";
    assert_eq!(screen.proq(&["logs", "x"]).ok(), kept);
    assert!(screen.proq(&["attach", "x"]).fails(1).contains("git proq logs"));
    // Of one that was closed nothing is left.
    screen.0.program("claude", ON_SCREEN);
    let _ = screen.proq(&["run", "--tmux", "x", "claude", "again"]).ok();
    drop(screen.0.hear("up"));
    let _ = screen.tmux(&["kill-server"]).ok();
    let _ = screen.proq(&["wait", "x"]).fails(4);
    let gone = "This run was in a window of tmux; what stood there last was not kept.\n";
    assert_eq!(screen.proq(&["logs", "x"]).ok(), gone);
}

#[test]
fn a_server_that_is_killed_ends_the_run_and_the_lane_can_be_run_again() {
    let screen = Screen::new();
    let agent = screen.start("do it");
    screen.types("trap '' HUP; echo half > half.txt");
    let server = screen.tmux(&["display-message", "-p", "#{pid}"]).ok();
    let mut kill = screen.0.command("kill", &screen.0.root());
    kill.args(["-9", server.trim()]);
    let _ = screen.0.output(kill).ok();
    assert_eq!(screen.proq(&["wait", "x"]).code, 4);
    assert!(!screen.0.lives(&agent));
    let row = screen.0.row("x");
    assert_eq!((&row["state"], &row["detail"]), (&"failed".into(), &"its window was closed".into()));
    assert_eq!(std::fs::read_to_string(screen.0.lane("x").join("half.txt")).unwrap(), "half\n");
    assert!(std::fs::read_to_string(screen.record()).unwrap().contains("class = \"interrupted\""));
    let _ = screen.proq(&["run", "--tmux", "x", "claude"]).ok();
    drop(screen.0.hear("up"));
    screen.types_last("exit 0");
    assert_eq!(screen.proq(&["wait", "x"]).ok(), "x: done\n");
}

#[test]
fn a_task_can_start_afresh_in_a_window() {
    let screen = Screen::new();
    let _ = screen.start("do it");
    screen.types("echo one > one.txt; git add one.txt; git commit -qm one");
    screen.types_last("exit 0");
    assert_eq!(screen.proq(&["wait", "x"]).ok(), "x: done\n");
    let out = screen.proq(&["redispatch", "x", "--tmux"]);
    assert!(out.stderr.contains("hint: go there: git proq attach x"), "{}", out.shown());
    drop(screen.0.hear("up"));
    screen.types("ls > seen.txt; git add seen.txt; git commit -qm seen");
    screen.types_last("exit 0");
    assert_eq!(screen.proq(&["wait", "x"]).ok(), "x: done\n");
    assert_eq!(screen.0.git(&["show", "proq/x:seen.txt"]), "a.txt\nseen.txt");
    let _ = screen.proq(&["redispatch", "x", "--tmux", "--budget", "1"]).fails(2);
}

#[test]
fn an_agent_whose_supervisor_was_killed_is_stopped_with_its_window() {
    let screen = Screen::new();
    let agent = screen.start("do it");
    kill_supervisor(&screen.0, "x");
    screen.types("echo alone > alone.txt");
    assert_eq!(screen.0.started_row("x")["state"], "orphaned");
    assert_eq!(screen.proq(&["stop", "x"]).code, 0);
    assert!(!screen.0.lives(&agent));
    assert_eq!(screen.0.row("x")["state"], "stopped");
    let _ = screen.tmux(&["has-session", "-t", "=proq-repo"]).fails(1);
}

#[test]
fn without_tmux_nothing_is_made() {
    let sandbox = Sandbox::new();
    sandbox.program("claude", "exit 0");
    sandbox.sh("for p in git sh; do ln -s \"$(command -v $p)\" \"$ROOT/bin/$p\"; done");
    let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "--tmux", "claude", "do it"]);
    command.env("PATH", sandbox.root().join("bin"));
    insta::assert_snapshot!(sandbox.output(command).shown(), @r"
    --- stderr
    error: tmux is not installed, and the agent was to be in a window of it; nothing was made
    hint: install it, or leave --tmux out
    --- code 1
    ");
    assert_eq!(sandbox.traces(), [""; 0]);
}
