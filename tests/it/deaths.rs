//! Owns the tests of what the death of each process that takes part in a run leaves: a state that is true, and a lane that can be gone on
//! with in every way.

use super::support::Output;
use super::tmux::Screen;

/// Where the agent is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Headless,
    Window,
}

/// Who is killed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Who {
    Supervisor,
    Agent,
    /// The server of tmux.
    Server,
    /// The first process of the window.
    First,
    /// All of them at once, as when the power fails.
    Everybody,
}

/// The first run works on for long; each later one ends well at once. They keep how they were called in `run1/args` and so on.
const AGENT: &str = r#"
    [ "$1" = --version ] && { echo '9.9.9 (Claude Code)'; exit 0; }
    n=1; while ! mkdir "$ROOT/run$n" 2>/dev/null; do n=$((n + 1)); done
    printf '%s\n' "$@" > "$ROOT/run$n/args"; [ -t 0 ] || cat > "$ROOT/run$n/said"
    echo $n > n$n; git add n$n; git commit -qm "run $n"
    echo '{"type":"system","subtype":"init","session_id":"s-1","model":"m","cwd":"/"}'
    if [ $n = 1 ]; then echo $$ > "$ROOT/up"; exec sleep 600; fi
    echo '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s-1"}'"#;

/// A lane `x` in which one has died, and what is known by then.
struct Scene {
    screen: Screen,
    agent: String,
}

impl Scene {
    fn of(place: Place, who: Who) -> Scene {
        let screen = Screen::new();
        let sandbox = &screen.0;
        sandbox.program("claude", AGENT);
        for (key, value) in [("crashRetries", "0"), ("stopGrace", "1")] {
            sandbox.git(&["config", &format!("proq.agent.{key}"), value]);
        }
        let spawn: &[&str] = &["spawn", "-n", "x", "claude", "do it", "--tmux"];
        let _ = screen.proq(if place == Place::Window { spawn } else { &spawn[..5] }).ok();
        let agent = sandbox.hear("up").trim().to_owned();
        assert_eq!(sandbox.started_row("x")["state"], "running");
        let scene = Scene { screen, agent };
        scene.kill(place, who);
        scene
    }

    fn kill(&self, place: Place, who: Who) {
        let sandbox = &self.screen.0;
        let number = |path: std::path::PathBuf| {
            let text = std::fs::read_to_string(path).unwrap();
            text.lines().find_map(|line| line.strip_prefix("pid = ")).unwrap().to_owned()
        };
        let server = || self.screen.tmux(&["display-message", "-p", "#{pid}"]).ok().trim().to_owned();
        let supervisor = number(sandbox.lock("x", "run.holder"));
        let first = number(sandbox.repo.join(".git/proq/lanes/x/runs/1.toml"));
        let victims = match (who, place) {
            (Who::Supervisor, _) => vec![supervisor],
            (Who::Agent, _) => vec![self.agent.clone()],
            (Who::Server, _) => vec![server()],
            (Who::First, _) => vec![first],
            (Who::Everybody, Place::Headless) => vec![supervisor, first],
            (Who::Everybody, Place::Window) => vec![server(), supervisor, first, self.agent.clone()],
        };
        let mut kill = sandbox.command("kill", &sandbox.root());
        kill.arg("-9").args(victims);
        // Some end with others before it is their turn.
        drop(sandbox.output(kill));
        let free = |lock: &str| {
            std::fs::File::open(sandbox.lock("x", lock)).unwrap().lock_shared().unwrap();
        };
        free("run.lock");
        if who != Who::Supervisor {
            free("alive.lock");
        }
    }

    fn proq(&self, args: &[&str]) -> Output {
        self.screen.proq(args)
    }

    /// What a later run was given.
    fn given(&self, file: &str) -> String {
        std::fs::read_to_string(self.screen.0.root().join(file)).unwrap()
    }

    /// Does what is refused as long as the agent lives on without its supervisor, after what helps.
    fn does(&self, args: &[&str], lives_on: bool) -> Output {
        if lives_on {
            let said = self.proq(args).fails(1);
            assert!(said.contains("git proq stop x"), "{args:?}: {said}");
            assert!(self.screen.0.lives(&self.agent));
            let _ = self.proq(&["stop", "x"]).ok();
            assert!(!self.screen.0.lives(&self.agent));
        }
        self.proq(args)
    }
}

/// Looks at what a death leaves, and goes on from there in every way, each from the beginning.
fn goes_on_after(place: Place, who: Who, state: &str, detail: &str) {
    let lives_on = who == Who::Supervisor;
    for way in ["send", "run", "redispatch", "discard"] {
        let scene = Scene::of(place, who);
        let sandbox = &scene.screen.0;
        let row = sandbox.row("x");
        assert_eq!((&row["state"], &row["detail"]), (&state.into(), &detail.into()), "{way}");
        let shown = scene.proq(&["show", "x", "--json"]).json();
        assert_eq!((&shown["current_state"], &shown["current_detail"]), (&state.into(), &detail.into()));
        // The one in a window has not said yet what it does.
        let lasts = if place == Place::Window { ": in a window of tmux" } else { "at work" };
        assert_eq!(scene.proq(&["show", "x"]).ok().contains(lasts), lives_on, "{way}");
        assert_eq!(sandbox.lives(&scene.agent), lives_on);
        let _ = scene.proq(&["attach", "x"]).fails(1);
        let _ = scene.proq(&["merge", "x"]).fails(1);
        let _ = scene.proq(&["discard", "x"]).fails(1);
        match way {
            "send" => {
                let said = scene.does(&["send", "x", "go on"], lives_on).ok();
                let how = if place == Place::Window { "goes on, without a window" } else { "goes on" };
                assert_eq!(said, format!("sent to 'x'; claude {how}\n"));
                let _ = scene.proq(&["wait", "x"]).ok();
                assert!(scene.given("run2/args").contains("--resume\n"), "{}", scene.given("run2/args"));
                assert_eq!(scene.given("run2/said"), "go on");
            }
            "run" => {
                let _ = scene.does(&["run", "x", "claude", "look", "--wait"], lives_on).ok();
                assert!(!scene.given("run2/args").contains("--resume"));
            }
            "redispatch" => {
                let _ = scene.does(&["redispatch", "x"], lives_on).ok();
                let _ = scene.proq(&["wait", "x"]).ok();
                assert_eq!(sandbox.git(&["ls-tree", "--name-only", "proq/x"]), "a.txt\nn2");
                assert_eq!(sandbox.row("x@1")["state"], "discarded");
            }
            _ => {
                let _ = scene.proq(&["discard", "--force", "x"]).ok();
                assert!(!sandbox.lives(&scene.agent));
                assert_eq!(sandbox.row("x@1")["state"], "discarded");
            }
        }
        if way != "discard" {
            assert_eq!(sandbox.row("x")["state"], "done", "{way}");
        }
        if way == "send" || way == "run" {
            // What the dead run had committed is there.
            assert_eq!(sandbox.git(&["ls-tree", "--name-only", "proq/x"]), "a.txt\nn1\nn2");
            let _ = scene.proq(&["merge", "x"]).ok();
        }
        sandbox.assert_healthy();
    }
}

const ORPHANED: &str = "its supervisor is gone, its agent lives on";
const DIED: &str = "its supervisor ended without a word";

#[test]
fn of_a_supervisor() {
    goes_on_after(Place::Headless, Who::Supervisor, "orphaned", ORPHANED);
}

#[test]
fn of_a_supervisor_with_a_window() {
    goes_on_after(Place::Window, Who::Supervisor, "orphaned", ORPHANED);
}

#[test]
fn of_an_agent() {
    goes_on_after(Place::Headless, Who::Agent, "failed", "ended by signal 9 before its result");
}

#[test]
fn of_an_agent_in_a_window() {
    goes_on_after(Place::Window, Who::Agent, "failed", "killed by signal 9");
}

#[test]
fn of_the_server_of_tmux() {
    goes_on_after(Place::Window, Who::Server, "failed", "its window was closed");
}

#[test]
fn of_the_first_process_of_a_window() {
    goes_on_after(Place::Window, Who::First, "failed", "its window was closed");
}

#[test]
fn of_everybody_at_once() {
    goes_on_after(Place::Headless, Who::Everybody, "failed", DIED);
}

#[test]
fn of_everybody_and_of_tmux_at_once() {
    goes_on_after(Place::Window, Who::Everybody, "failed", DIED);
}
