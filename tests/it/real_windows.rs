//! Owns the tests with real command lines of agents in windows of tmux: their own screens, in front of a person, against a model server on
//! this machine. They are ignored by default as those in `real_agents.rs` are; each has a tmux server of its own.

use serde_json::{Value, json};

use super::real_agents::{HOLD, HOLD_LONG, MORE, Real};
use super::support::Output;
use super::support::patience::wait_until;

/// What the model asks for first; in the middle of it somebody has to let it go on.
const TASK: &str = r#"[[write path=new.txt text=hello]] [[bash cmd="git hold"]] [[tool name=read_task]] [[bash cmd="git add -A && git commit -m first-turn"]] [[tool name=update_task args={"findings":["the sky is blue"]}]] [[say text="All done"]]"#;

/// What a person has to be asked for.
const ASK: &str = r#"[[bash cmd="sh -c 'echo yes > said.txt'"]] [[bash cmd="git add -A && git commit -m said"]] [[say text="All said"]]"#;

/// The same of Codex's model, which says by itself when its sandbox is too narrow for something.
const ASK_OF_CODEX: &str = r#"[[tool name=exec_command args={"cmd":"echo yes > said.txt","sandbox_permissions":"require_escalated","justification":"why not"}]] [[bash cmd="git add -A && git commit -m said"]] [[say text="All said"]]"#;

/// A real agent, and a tmux server of its own.
struct Windows(Real);

impl Drop for Windows {
    fn drop(&mut self) {
        drop(self.tmux(&["kill-server"]));
        drop(self.person(&["kill-server"]));
    }
}

impl Windows {
    /// With what a person has set up and answered before, but for what is asked once in each repository.
    fn with(agent: &'static str) -> Windows {
        let real = Real::with(agent);
        let sandbox = &real.sandbox;
        std::fs::create_dir(sandbox.root().join("tm")).unwrap();
        let known = json!({
            "hasCompletedOnboarding": true, "theme": "dark",
            "customApiKeyResponses": { "approved": ["made-up"], "rejected": [] },
        });
        sandbox.write_in(&sandbox.root(), "home/.claude.json", &known.to_string());
        let file = sandbox.root().join("home/.config/git-proq/config.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        let hooks = "[agents.codex]\ncapabilities.hooks = true";
        // On a busy machine the lane's tools may come late, and a model has to search for them then. This one cannot.
        let all = "[agents.claude]\nenv.ENABLE_TOOL_SEARCH = \"false\"";
        let text = text.replace("[agents.codex]", hooks).replace("[agents.claude]", all);
        std::fs::write(&file, text).unwrap();
        Windows(real)
    }

    /// The same in a repository that the person trusts.
    fn trusted(agent: &'static str) -> Windows {
        let windows = Windows::with(agent);
        let file = windows.0.sandbox.root().join("home/.claude.json");
        let mut known: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let repo = windows.0.sandbox.repo.to_str().unwrap().to_owned();
        known["projects"] = json!({ repo: { "hasTrustDialogAccepted": true } });
        std::fs::write(file, known.to_string()).unwrap();
        windows
    }

    fn proq(&self, args: &[&str]) -> Output {
        let mut command = self.0.sandbox.proq_command(&self.0.sandbox.repo, args);
        command.env("TMUX_TMPDIR", self.0.sandbox.root().join("tm"));
        let out = self.0.sandbox.output(command);
        eprintln!("[{}]$ git proq {}\n{}", self.0.agent, args.join(" "), out.shown());
        out
    }

    fn tmux(&self, args: &[&str]) -> Output {
        let mut command = self.0.sandbox.command("tmux", &self.0.sandbox.root());
        command.env("TMUX_TMPDIR", self.0.sandbox.root().join("tm")).args(args);
        self.0.sandbox.output(command)
    }

    /// The person's terminal, which is a window of another server.
    fn person(&self, args: &[&str]) -> Output {
        self.tmux(&[&["-L", "person"], args].concat())
    }

    /// Has the person enter the agent's window.
    fn attach(&self) {
        let repo = self.0.sandbox.repo.to_str().unwrap();
        let line = "unset TMUX TMUX_PANE; exec git-proq attach x";
        let start = ["new-session", "-d", "-s", "me", "-x", "120", "-y", "40", "-c", repo, line];
        let _ = self.person(&start).ok();
        let clients = || self.tmux(&["list-clients", "-F", "#{session_name} #{window_name}"]).stdout;
        wait_until("somebody in the window", || clients() == "proq-repo x\n");
    }

    /// What the agent's screen shows.
    fn screen(&self) -> String {
        let shown = self.tmux(&["capture-pane", "-p", "-J", "-t", "=proq-repo:x"]).stdout;
        shown.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
    }

    /// Types on the person's terminal, then Enter until the agent has begun with it: it may take one that follows at once for a part of the
    /// text.
    fn says(&self, text: &str) {
        let before = self.states().len();
        let _ = self.person(&["send-keys", "-t", "me", "-l", text]).ok();
        let end = text.rsplit(' ').next().unwrap();
        wait_until("its echo", || self.screen().contains(end));
        wait_until("the agent at work", || {
            let _ = self.person(&["send-keys", "-t", "me", "Enter"]).ok();
            let since = std::time::Instant::now();
            while since.elapsed().as_millis() < 500 && self.states().len() == before {
                std::thread::yield_now();
            }
            self.states().len() > before
        });
    }

    /// Chooses an answer to what the agent asks on its screen. What comes before it reads keys is lost.
    fn answers(&self, chosen: &str) {
        let presses = |key: &str| drop(self.tmux(&["send-keys", "-t", "=proq-repo:x", key]));
        let shows = |what: &str| {
            let since = std::time::Instant::now();
            while since.elapsed().as_millis() < 500 && !self.screen().contains(what) {
                std::thread::yield_now();
            }
            self.screen().contains(what)
        };
        let answer = chosen.trim_start_matches(['❯', '›', ' ']);
        wait_until("the question", || self.screen().contains(answer));
        wait_until("the answer", || {
            shows(chosen) || {
                presses("Down");
                shows(chosen)
            }
        });
        wait_until("its end", || {
            presses("Enter");
            !shows(answer)
        });
    }

    /// What its hooks have said that it does, in order.
    fn states(&self) -> Vec<String> {
        let events = self.0.sandbox.events("agent.state");
        events.iter().map(|event| event["state"].as_str().unwrap().to_owned()).collect()
    }

    /// Waits until it works. The first start of some in a new home takes more than a minute, when what they look for cannot be reached.
    fn begins(&self) {
        let since = std::time::Instant::now();
        while self.states().is_empty() {
            assert!(since.elapsed().as_secs() < 240, "{}", self.screen());
            std::thread::yield_now();
        }
    }

    fn rests(&self) {
        let out = self.proq(&["wait", "x", "--timeout", "90"]);
        let shown = self.screen();
        assert_eq!(out.stdout, "x: done (its agent is idle in its window)\n", "{shown}");
    }

    fn has_no_window(&self) {
        let _ = self.tmux(&["has-session", "-t", "=proq-repo"]).fails(1);
        let _ = self.0.assert_no_strays();
    }

    /// From the prompt to the landing; whoever looks at it may come and go.
    fn works_is_visited_and_told_more(&self) {
        let sandbox = &self.0.sandbox;
        let out = self.proq(&["spawn", "--tmux", "-n", "x", self.0.agent, TASK]);
        assert!(out.code == 0 && !out.stderr.contains("will ask"), "{}", out.shown());
        self.begins();
        let _ = sandbox.hear("up");
        assert_eq!(self.states(), ["working"]);
        assert_eq!(sandbox.started_row("x")["detail"], Value::Null);
        self.attach();
        // The terminal of the visitor is gone at once, as when its window is closed.
        let _ = self.person(&["kill-server"]).ok();
        wait_until("nobody in the window", || self.tmux(&["list-clients"]).stdout.is_empty());
        assert_eq!(sandbox.started_row("x")["state"], "running");
        sandbox.tell("go");
        self.rests();
        assert_eq!(self.states(), ["working", "idle"]);
        assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "proq/x"]), "first-turn");
        let shown = self.proq(&["show", "x", "--json"]).json();
        assert_eq!(shown["report"]["findings"], json!(["the sky is blue"]));
        self.attach();
        self.says(MORE);
        wait_until("the next commit", || sandbox.git(&["log", "-1", "--format=%s", "proq/x"]) == "next-turn");
        self.rests();
        assert_eq!(self.states(), ["working", "idle", "working", "idle"]);
        let _ = self.proq(&["stop", "x"]).ok();
        self.has_no_window();
        let _ = self.proq(&["merge", "x"]).ok();
        assert_eq!((sandbox.read("new.txt"), sandbox.read("more.txt")), ("hello\n".into(), "more\n".into()));
        sandbox.assert_healthy();
        // What it keeps of its own accord is in there.
        let kept =
            std::fs::read_to_string(sandbox.root().join("home/.codex/config.toml")).unwrap_or_default();
        assert!(!kept.contains("trust_level"), "the answer was for the run: {kept}");
    }

    fn is_stopped_without_strays(&self) {
        let _ = self.proq(&["spawn", "--tmux", "-n", "x", self.0.agent, HOLD_LONG]).ok();
        self.begins();
        let _ = self.0.sandbox.hear("up");
        let _ = self.proq(&["stop", "x"]).ok();
        self.has_no_window();
        assert_eq!(self.0.sandbox.last_run("x")["class"], "stopped");
        self.0.sandbox.assert_healthy();
    }

    /// Its supervisor is killed; the agent goes on on its screen, and is stopped with its window.
    fn outlives_its_supervisor(&self) {
        let _ = self.proq(&["spawn", "--tmux", "-n", "x", self.0.agent, HOLD]).ok();
        self.begins();
        let _ = self.0.sandbox.hear("up");
        super::stop::kill_supervisor(&self.0.sandbox, "x");
        self.0.sandbox.tell("go");
        wait_until("its last words", || self.screen().contains("Held on\n"));
        assert_eq!(self.0.sandbox.row("x")["state"], "orphaned");
        let _ = self.proq(&["stop", "x"]).ok();
        self.has_no_window();
        self.0.sandbox.assert_healthy();
    }

    /// It waits for a person's consent, and the lane says so until that was given.
    fn asks_for_consent(&self) {
        let sandbox = &self.0.sandbox;
        // Its own rules ask for nothing in its folder.
        let file = sandbox.root().join("home/.config/opencode/opencode.json");
        let mut config: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        config["permission"] = json!({ "bash": { "sh *": "ask" } });
        std::fs::write(&file, config.to_string()).unwrap();
        let ask = if self.0.agent == "codex" { ASK_OF_CODEX } else { ASK };
        let _ = self.proq(&["spawn", "--tmux", "-n", "x", self.0.agent, ask]).ok();
        self.begins();
        let said = || sandbox.row("x")["detail"].as_str().unwrap_or_default().to_owned();
        wait_until("the question", || said().starts_with("needs approval: wants"));
        assert!(self.proq(&["list"]).ok().contains("running, needs approval"));
        assert!(!sandbox.lane("x").join("said.txt").exists());
        wait_until("the end", || {
            let _ = self.tmux(&["send-keys", "-t", "=proq-repo:x", "Enter"]).ok();
            let since = std::time::Instant::now();
            while since.elapsed().as_millis() < 500 {
                std::thread::yield_now();
            }
            sandbox.git(&["log", "-1", "--format=%s", "proq/x"]) == "said"
        });
        self.rests();
        let states = self.states();
        assert_eq!(states.first().map(String::as_str), Some("working"), "{states:?}");
        assert!(states.windows(2).any(|two| two == ["needs-approval", "working"]), "{states:?}");
        assert_eq!(states.last().map(String::as_str), Some("idle"), "{states:?}");
        let _ = self.proq(&["stop", "x"]).ok();
        self.has_no_window();
    }

    /// A repository that nobody has trusted: it says so beforehand, waits, and goes on when it was answered; the next lane is not asked.
    fn asks_once_whether_the_repository_is_trusted(&self, chosen: &str) {
        let sandbox = &self.0.sandbox;
        let out = self.proq(&["spawn", "--tmux", "-n", "x", self.0.agent, MORE]);
        assert!(
            out.stderr.contains("will ask in its window whether you trust this repository"),
            "{}",
            out.shown()
        );
        let asks = "needs approval: asks whether you trust this repository";
        assert_eq!(sandbox.started_row("x")["detail"], asks);
        self.answers(chosen);
        self.rests();
        assert_eq!(self.states(), ["needs-approval", "working", "idle"]);
        let _ = self.proq(&["stop", "x"]).ok();
        self.has_no_window();
        let _ = self.proq(&["merge", "x"]).ok();
        let out = self.proq(&["spawn", "--tmux", "-n", "x", self.0.agent, HOLD]);
        assert!(!out.stderr.contains("will ask"), "{}", out.shown());
        let _ = sandbox.hear("up");
        let _ = self.proq(&["stop", "x"]).ok();
        self.has_no_window();
    }
}

/// The same tests for each agent.
macro_rules! tests {
    ($($agent:ident: $($test:ident)*;)*) => {$(
        mod $agent {
            $(
                #[test]
                #[ignore = "needs the real command lines: PROQ_REAL_AGENTS and PROQ_MODEL_SERVER"]
                fn $test() {
                    super::Windows::trusted(stringify!($agent)).$test();
                }
            )*
        }
    )*};
}

tests! {
    claude: works_is_visited_and_told_more is_stopped_without_strays outlives_its_supervisor asks_for_consent;
    codex: works_is_visited_and_told_more is_stopped_without_strays outlives_its_supervisor asks_for_consent;
    opencode: works_is_visited_and_told_more is_stopped_without_strays outlives_its_supervisor asks_for_consent;
}

#[test]
#[ignore = "needs the real command lines: PROQ_REAL_AGENTS and PROQ_MODEL_SERVER"]
fn claude_asks_once_whether_the_repository_is_trusted() {
    // "No" is chosen at first.
    Windows::with("claude").asks_once_whether_the_repository_is_trusted("❯ Yes, I trust this folder");
}

#[test]
#[ignore = "needs the real command lines: PROQ_REAL_AGENTS and PROQ_MODEL_SERVER"]
fn codex_asks_once_whether_a_repository_with_settings_for_it_is_trusted() {
    let windows = Windows::with("codex");
    windows.0.sandbox.write(".codex/config.toml", "");
    windows.0.sandbox.commit_all("settings");
    windows.asks_once_whether_the_repository_is_trusted("› 1. Trust and continue");
}
