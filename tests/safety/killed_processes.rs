//! Tests of killing each process of a run: the state that is then reported, and every way to continue or
//! remove the lane.

use proq_test_kit::Output;
use proq_test_kit::tmux::TmuxSandbox;

/// Where the agent runs.
#[derive(Debug, Clone, Copy, PartialEq)]
enum AgentLocation {
    Headless,
    Window,
}

/// Process that is killed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Victim {
    Supervisor,
    Agent,
    /// The tmux server.
    TmuxServer,
    /// The first process in the tmux window.
    PaneProcess,
    /// All processes at once, as in a power failure.
    All,
}

/// Script whose first run keeps working and whose later runs succeed at once. Each saves its arguments and
/// input in `run1`, `run2` and so on.
const AGENT_SCRIPT: &str = r#"
    [ "$1" = --version ] && { echo '9.9.9 (Claude Code)'; exit 0; }
    n=1; while ! mkdir "$ROOT/run$n" 2>/dev/null; do n=$((n + 1)); done
    printf '%s\n' "$@" > "$ROOT/run$n/args"; [ -t 0 ] || cat > "$ROOT/run$n/said"
    echo $n > n$n; git add n$n; git commit -qm "run $n"
    echo '{"type":"system","subtype":"init","session_id":"s-1","model":"m","cwd":"/"}'
    if [ $n = 1 ]; then echo $$ > "$ROOT/up"; exec sleep 600; fi
    echo '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s-1"}'"#;

/// Lane `x` with a run of which one process was killed.
struct KilledRun {
    screen: TmuxSandbox,
    agent: String,
}

impl KilledRun {
    fn start_and_kill(location: AgentLocation, victim: Victim) -> KilledRun {
        let screen = TmuxSandbox::new();
        let sandbox = &screen.0;
        sandbox.program("claude", AGENT_SCRIPT);
        for (key, value) in [("crashRetries", "0"), ("stopGrace", "1")] {
            sandbox.git(&["config", &format!("proq.agent.{key}"), value]);
        }
        let spawn: &[&str] = &["spawn", "-n", "x", "claude", "do it", "--tmux"];
        let _ = screen.proq(if location == AgentLocation::Window { spawn } else { &spawn[..5] }).ok();
        let agent = sandbox.read_pipe("up").trim().to_owned();
        assert_eq!(sandbox.started_row("x")["state"], "running");
        let run = KilledRun { screen, agent };
        run.kill(location, victim);
        run
    }

    fn kill(&self, location: AgentLocation, victim: Victim) {
        let sandbox = &self.screen.0;
        let read_pid = |path: std::path::PathBuf| {
            let text = std::fs::read_to_string(path).unwrap();
            text.lines().find_map(|line| line.strip_prefix("pid = ")).unwrap().to_owned()
        };
        let server = || self.screen.tmux(&["display-message", "-p", "#{pid}"]).ok().trim().to_owned();
        let supervisor = read_pid(sandbox.lane_lock("x", "run.holder"));
        let pane_process = read_pid(sandbox.repo.join(".git/proq/lanes/x/runs/1.toml"));
        let victims = match (victim, location) {
            (Victim::Supervisor, _) => vec![supervisor],
            (Victim::Agent, _) => vec![self.agent.clone()],
            (Victim::TmuxServer, _) => vec![server()],
            (Victim::PaneProcess, _) => vec![pane_process],
            (Victim::All, AgentLocation::Headless) => vec![supervisor, pane_process],
            (Victim::All, AgentLocation::Window) => {
                vec![server(), supervisor, pane_process, self.agent.clone()]
            }
        };
        let mut kill = sandbox.command("kill", &sandbox.root());
        kill.arg("-9").args(victims);
        // Some exit together with others before `kill` reaches them.
        drop(sandbox.output(kill));
        let wait_for_lock = |lock: &str| {
            std::fs::File::open(sandbox.lane_lock("x", lock)).unwrap().lock_shared().unwrap();
        };
        wait_for_lock("run.lock");
        if victim != Victim::Supervisor {
            wait_for_lock("alive.lock");
        }
    }

    fn proq(&self, args: &[&str]) -> Output {
        self.screen.proq(args)
    }

    /// Returns a file that a later run saved.
    fn read_file(&self, file: &str) -> String {
        std::fs::read_to_string(self.screen.0.root().join(file)).unwrap()
    }

    /// Runs a command. For an orphaned agent, first asserts that the command is refused, and follows the hint
    /// to stop the agent.
    fn run_after_stop(&self, args: &[&str], is_orphaned: bool) -> Output {
        if is_orphaned {
            let output = self.proq(args).fails(1);
            assert!(output.contains("git proq stop x"), "{args:?}: {output}");
            assert!(self.screen.0.is_alive(&self.agent));
            let _ = self.proq(&["stop", "x"]).ok();
            assert!(!self.screen.0.is_alive(&self.agent));
        }
        self.proq(args)
    }
}

/// Asserts the state after a kill, then tries every follow-up command, each on a new lane.
fn assert_recovers_after_kill(location: AgentLocation, victim: Victim, state: &str, detail: &str) {
    let is_orphaned = victim == Victim::Supervisor;
    for next_command in ["send", "run", "redispatch", "discard"] {
        let run = KilledRun::start_and_kill(location, victim);
        let sandbox = &run.screen.0;
        let row = sandbox.row("x");
        assert_eq!((&row["state"], &row["detail"]), (&state.into(), &detail.into()), "{next_command}");
        let shown = run.proq(&["show", "x", "--json"]).json();
        assert_eq!((&shown["current_state"], &shown["current_detail"]), (&state.into(), &detail.into()));
        // The agent in a window has not reported its activity yet.
        let running_text =
            if location == AgentLocation::Window { ": in a window of tmux" } else { "at work" };
        assert_eq!(run.proq(&["show", "x"]).ok().contains(running_text), is_orphaned, "{next_command}");
        assert_eq!(sandbox.is_alive(&run.agent), is_orphaned);
        let _ = run.proq(&["attach", "x"]).fails(1);
        let _ = run.proq(&["merge", "x"]).fails(1);
        let _ = run.proq(&["discard", "x"]).fails(1);
        match next_command {
            "send" => {
                let output = run.run_after_stop(&["send", "x", "go on"], is_orphaned).ok();
                let continuation = if location == AgentLocation::Window {
                    "continues, without a window"
                } else {
                    "continues"
                };
                assert_eq!(output, format!("sent to 'x'; claude {continuation}\n"));
                let _ = run.proq(&["wait", "x"]).ok();
                assert!(run.read_file("run2/args").contains("--resume\n"), "{}", run.read_file("run2/args"));
                assert_eq!(run.read_file("run2/said"), "go on");
            }
            "run" => {
                let _ = run.run_after_stop(&["run", "x", "claude", "look", "--wait"], is_orphaned).ok();
                assert!(!run.read_file("run2/args").contains("--resume"));
            }
            "redispatch" => {
                let _ = run.run_after_stop(&["redispatch", "x"], is_orphaned).ok();
                let _ = run.proq(&["wait", "x"]).ok();
                assert_eq!(sandbox.git(&["ls-tree", "--name-only", "proq/x"]), "a.txt\nn2");
                assert_eq!(sandbox.row("x@1")["state"], "discarded");
            }
            _ => {
                let _ = run.proq(&["discard", "--force", "x"]).ok();
                assert!(!sandbox.is_alive(&run.agent));
                assert_eq!(sandbox.row("x@1")["state"], "discarded");
            }
        }
        if next_command != "discard" {
            assert_eq!(sandbox.row("x")["state"], "done", "{next_command}");
        }
        if next_command == "send" || next_command == "run" {
            // The commit of the killed run is retained.
            assert_eq!(sandbox.git(&["ls-tree", "--name-only", "proq/x"]), "a.txt\nn1\nn2");
            let _ = run.proq(&["merge", "x"]).ok();
        }
        sandbox.assert_healthy();
    }
}

const ORPHANED: &str = "its agent is running without a supervisor";
const SUPERVISOR_VANISHED: &str = "its supervisor crashed";

/// Promise: concurrency/killed-processes
#[test]
fn killed_supervisor_orphans_the_agent() {
    assert_recovers_after_kill(AgentLocation::Headless, Victim::Supervisor, "orphaned", ORPHANED);
}

/// Promise: concurrency/killed-processes
#[test]
fn killed_supervisor_orphans_agent_in_window() {
    assert_recovers_after_kill(AgentLocation::Window, Victim::Supervisor, "orphaned", ORPHANED);
}

/// Promise: concurrency/killed-processes
#[test]
fn killed_agent_fails_the_run() {
    assert_recovers_after_kill(
        AgentLocation::Headless,
        Victim::Agent,
        "failed",
        "ended by signal 9 before its result",
    );
}

/// Promise: concurrency/killed-processes
#[test]
fn killed_agent_in_window_fails_the_run() {
    assert_recovers_after_kill(AgentLocation::Window, Victim::Agent, "failed", "killed by signal 9");
}

/// Promise: concurrency/killed-processes
#[test]
fn killed_tmux_server_fails_the_run() {
    assert_recovers_after_kill(AgentLocation::Window, Victim::TmuxServer, "failed", "its window was closed");
}

/// Promise: concurrency/killed-processes
#[test]
fn killed_pane_process_fails_the_run() {
    assert_recovers_after_kill(AgentLocation::Window, Victim::PaneProcess, "failed", "its window was closed");
}

/// Promise: concurrency/killed-processes
#[test]
fn killing_all_processes_fails_the_run() {
    assert_recovers_after_kill(AgentLocation::Headless, Victim::All, "failed", SUPERVISOR_VANISHED);
}

/// Promise: concurrency/killed-processes
#[test]
fn killing_all_processes_and_tmux_fails_the_run() {
    assert_recovers_after_kill(AgentLocation::Window, Victim::All, "failed", SUPERVISOR_VANISHED);
}
