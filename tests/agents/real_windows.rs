//! Real agent command lines in tmux windows: their own screens with an attached user, run against a model
//! server on this machine. The tests are ignored by default as those in `real_agents.rs` are; each has a tmux
//! server of its own.

use proq_test_kit::Output;
use proq_test_kit::waiting::wait_until;
use serde_json::{Value, json};

use super::real_agents::{BLOCKING_TASK, ENDLESS_TASK, FOLLOW_UP, Real};

/// Script of the first turn, which blocks in the middle until the test releases it.
const TASK: &str = r#"[[write path=new.txt text=hello]] [[bash cmd="git hold"]] [[tool name=read_task]] [[bash cmd="git add -A && git commit -m first-turn"]] [[tool name=update_task args={"findings":["the sky is blue"]}]] [[say text="All done"]]"#;

/// Script of a turn that needs the user's approval.
const APPROVAL_TASK: &str = r#"[[bash cmd="sh -c 'echo yes > said.txt'"]] [[bash cmd="git add -A && git commit -m said"]] [[say text="All said"]]"#;

/// Script of a turn that needs the user's approval in Codex, whose model requests escalation where the
/// sandbox is too narrow.
const CODEX_APPROVAL_TASK: &str = r#"[[tool name=exec_command args={"cmd":"echo yes > said.txt","sandbox_permissions":"require_escalated","justification":"why not"}]] [[bash cmd="git add -A && git commit -m said"]] [[say text="All said"]]"#;

/// Real agent, and a tmux server of its own.
struct Windows(Real);

impl Drop for Windows {
    fn drop(&mut self) {
        drop(self.tmux(&["kill-server"]));
        drop(self.user_tmux(&["kill-server"]));
    }
}

impl Windows {
    /// Starts an agent whose user has completed its onboarding, except for what is confirmed once in each
    /// repository.
    fn with(agent: &'static str) -> Windows {
        let real = Real::with(agent);
        let sandbox = &real.sandbox;
        std::fs::create_dir(sandbox.root().join("tm")).unwrap();
        let claude_config = json!({
            "hasCompletedOnboarding": true, "theme": "dark",
            "customApiKeyResponses": { "approved": ["made-up"], "rejected": [] },
        });
        sandbox.write_in(&sandbox.root(), "home/.claude.json", &claude_config.to_string());
        let file = sandbox.root().join("home/.config/git-proq/config.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        let hooks = "[agents.codex]\ncapabilities.hooks = true";
        // On a busy machine the lane's tools may come late, and a model has to search for them then. This one
        // cannot.
        let no_tool_search = "[agents.claude]\nenv.ENABLE_TOOL_SEARCH = \"false\"";
        let text = text.replace("[agents.codex]", hooks).replace("[agents.claude]", no_tool_search);
        std::fs::write(&file, text).unwrap();
        Windows(real)
    }

    /// Starts an agent in a repository that the user trusts.
    fn trusted(agent: &'static str) -> Windows {
        let windows = Windows::with(agent);
        let file = windows.0.sandbox.root().join("home/.claude.json");
        let mut claude_config: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let repo = windows.0.sandbox.repo.to_str().unwrap().to_owned();
        claude_config["projects"] = json!({ repo: { "hasTrustDialogAccepted": true } });
        std::fs::write(file, claude_config.to_string()).unwrap();
        windows
    }

    fn proq(&self, args: &[&str]) -> Output {
        let mut command = self.0.sandbox.proq_command(&self.0.sandbox.repo, args);
        command.env("TMUX_TMPDIR", self.0.sandbox.root().join("tm"));
        let out = self.0.sandbox.output(command);
        eprintln!("[{}]$ git proq {}\n{}", self.0.agent, args.join(" "), out.to_text());
        out
    }

    fn tmux(&self, args: &[&str]) -> Output {
        let mut command = self.0.sandbox.command("tmux", &self.0.sandbox.root());
        command.env("TMUX_TMPDIR", self.0.sandbox.root().join("tm")).args(args);
        self.0.sandbox.output(command)
    }

    /// Runs tmux on the server that is the user's terminal.
    fn user_tmux(&self, args: &[&str]) -> Output {
        self.tmux(&[&["-L", "person"], args].concat())
    }

    /// Attaches the user to the agent's window.
    fn attach(&self) {
        let repo = self.0.sandbox.repo.to_str().unwrap();
        let line = "unset TMUX TMUX_PANE; exec git-proq attach x";
        let new_session = ["new-session", "-d", "-s", "me", "-x", "120", "-y", "40", "-c", repo, line];
        let _ = self.user_tmux(&new_session).ok();
        let clients = || self.tmux(&["list-clients", "-F", "#{session_name} #{window_name}"]).stdout;
        wait_until("somebody in the window", || clients() == "proq-repo x\n");
    }

    /// Returns the text on the agent's screen.
    fn screen(&self) -> String {
        let pane_text = self.tmux(&["capture-pane", "-p", "-J", "-t", "=proq-repo:x"]).stdout;
        pane_text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
    }

    /// Types text on the user's terminal, then presses Enter until the agent has started on it: an Enter that
    /// follows at once may be read as part of the text.
    fn type_message(&self, text: &str) {
        let before = self.agent_states().len();
        let _ = self.user_tmux(&["send-keys", "-t", "me", "-l", text]).ok();
        let last_word = text.rsplit(' ').next().unwrap();
        wait_until("its echo", || self.screen().contains(last_word));
        wait_until("the agent at work", || {
            let _ = self.user_tmux(&["send-keys", "-t", "me", "Enter"]).ok();
            let since = std::time::Instant::now();
            while since.elapsed().as_millis() < 500 && self.agent_states().len() == before {
                std::thread::yield_now();
            }
            self.agent_states().len() > before
        });
    }

    /// Selects an answer to a question on the agent's screen. Keys that are sent before the agent reads keys
    /// are lost.
    fn choose_answer(&self, chosen: &str) {
        let press_key = |key: &str| drop(self.tmux(&["send-keys", "-t", "=proq-repo:x", key]));
        let shows_within_limit = |text: &str| {
            let since = std::time::Instant::now();
            while since.elapsed().as_millis() < 500 && !self.screen().contains(text) {
                std::thread::yield_now();
            }
            self.screen().contains(text)
        };
        let answer = chosen.trim_start_matches(['❯', '›', ' ']);
        wait_until("the question", || self.screen().contains(answer));
        wait_until("the answer", || {
            shows_within_limit(chosen) || {
                press_key("Down");
                shows_within_limit(chosen)
            }
        });
        wait_until("its end", || {
            press_key("Enter");
            !shows_within_limit(answer)
        });
    }

    /// Returns the states that the agent's hooks have reported, in order.
    fn agent_states(&self) -> Vec<String> {
        let events = self.0.sandbox.events("agent.state");
        events.iter().map(|event| event["state"].as_str().unwrap().to_owned()).collect()
    }

    /// Waits until the agent works. Some agents take more than a minute for their first start in a new home,
    /// when the servers they contact cannot be reached.
    fn wait_for_start(&self) {
        let since = std::time::Instant::now();
        while self.agent_states().is_empty() {
            assert!(since.elapsed().as_secs() < 240, "{}", self.screen());
            std::thread::yield_now();
        }
    }

    fn wait_for_idle(&self) {
        let out = self.proq(&["wait", "x", "--timeout", "90"]);
        let shown = self.screen();
        assert_eq!(out.stdout, "x: done (its agent is idle in its window)\n", "{shown}");
    }

    fn assert_window_closed(&self) {
        let _ = self.tmux(&["has-session", "-t", "=proq-repo"]).fails(1);
        let _ = self.0.assert_no_processes();
    }

    /// From the prompt to the landing, while a user attaches and leaves.
    fn works_with_attached_user_and_follow_up(&self) {
        let sandbox = &self.0.sandbox;
        let out = self.proq(&["spawn", "--tmux", "-n", "x", self.0.agent, TASK]);
        assert!(out.code == 0 && !out.stderr.contains("will ask"), "{}", out.to_text());
        self.wait_for_start();
        let _ = sandbox.read_pipe("up");
        assert_eq!(self.agent_states(), ["working"]);
        assert_eq!(sandbox.started_row("x")["detail"], Value::Null);
        self.attach();
        // The user's terminal vanishes at once, as when its window is closed.
        let _ = self.user_tmux(&["kill-server"]).ok();
        wait_until("nobody in the window", || self.tmux(&["list-clients"]).stdout.is_empty());
        assert_eq!(sandbox.started_row("x")["state"], "running");
        sandbox.write_pipe("go");
        self.wait_for_idle();
        assert_eq!(self.agent_states(), ["working", "idle"]);
        assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "proq/x"]), "first-turn");
        let shown = self.proq(&["show", "x", "--json"]).json();
        assert_eq!(shown["report"]["findings"], json!(["the sky is blue"]));
        self.attach();
        self.type_message(FOLLOW_UP);
        wait_until("the next commit", || sandbox.git(&["log", "-1", "--format=%s", "proq/x"]) == "next-turn");
        self.wait_for_idle();
        assert_eq!(self.agent_states(), ["working", "idle", "working", "idle"]);
        let _ = self.proq(&["stop", "x"]).ok();
        self.assert_window_closed();
        let _ = self.proq(&["merge", "x"]).ok();
        assert_eq!((sandbox.read("new.txt"), sandbox.read("more.txt")), ("hello\n".into(), "more\n".into()));
        sandbox.assert_healthy();
        // Codex writes its own settings to this file.
        let codex_config =
            std::fs::read_to_string(sandbox.root().join("home/.codex/config.toml")).unwrap_or_default();
        assert!(!codex_config.contains("trust_level"), "the answer was for the run: {codex_config}");
    }

    fn stop_leaves_no_processes(&self) {
        let _ = self.proq(&["spawn", "--tmux", "-n", "x", self.0.agent, ENDLESS_TASK]).ok();
        self.wait_for_start();
        let _ = self.0.sandbox.read_pipe("up");
        let _ = self.proq(&["stop", "x"]).ok();
        self.assert_window_closed();
        assert_eq!(self.0.sandbox.last_run("x")["class"], "stopped");
        self.0.sandbox.assert_healthy();
    }

    /// The supervisor is killed; the agent keeps working on its screen, and is stopped with its window.
    fn outlives_supervisor(&self) {
        let _ = self.proq(&["spawn", "--tmux", "-n", "x", self.0.agent, BLOCKING_TASK]).ok();
        self.wait_for_start();
        let _ = self.0.sandbox.read_pipe("up");
        proq_test_kit::runs::kill_supervisor(&self.0.sandbox, "x");
        self.0.sandbox.write_pipe("go");
        wait_until("its last words", || self.screen().contains("Held on\n"));
        assert_eq!(self.0.sandbox.row("x")["state"], "orphaned");
        let _ = self.proq(&["stop", "x"]).ok();
        self.assert_window_closed();
        self.0.sandbox.assert_healthy();
    }

    /// The agent waits for the user's approval, and the lane shows that until the approval is given.
    fn waits_for_approval(&self) {
        let sandbox = &self.0.sandbox;
        // The rules of opencode request no approval in its own folder.
        let file = sandbox.root().join("home/.config/opencode/opencode.json");
        let mut config: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        config["permission"] = json!({ "bash": { "sh *": "ask" } });
        std::fs::write(&file, config.to_string()).unwrap();
        let task = if self.0.agent == "codex" { CODEX_APPROVAL_TASK } else { APPROVAL_TASK };
        let _ = self.proq(&["spawn", "--tmux", "-n", "x", self.0.agent, task]).ok();
        self.wait_for_start();
        let state_detail = || sandbox.row("x")["detail"].as_str().unwrap_or_default().to_owned();
        wait_until("the question", || state_detail().starts_with("needs approval: asks"));
        assert!(self.proq(&["list"]).ok().contains("running, needs approval"));
        assert!(!sandbox.lane_path("x").join("said.txt").exists());
        wait_until("the end", || {
            let _ = self.tmux(&["send-keys", "-t", "=proq-repo:x", "Enter"]).ok();
            let since = std::time::Instant::now();
            while since.elapsed().as_millis() < 500 {
                std::thread::yield_now();
            }
            sandbox.git(&["log", "-1", "--format=%s", "proq/x"]) == "said"
        });
        self.wait_for_idle();
        let states = self.agent_states();
        assert_eq!(states.first().map(String::as_str), Some("working"), "{states:?}");
        assert!(states.windows(2).any(|two| two == ["needs-approval", "working"]), "{states:?}");
        assert_eq!(states.last().map(String::as_str), Some("idle"), "{states:?}");
        let _ = self.proq(&["stop", "x"]).ok();
        self.assert_window_closed();
    }

    /// In a repository that is not trusted, git-proq warns beforehand and the agent waits until the user
    /// answers; the next lane needs no confirmation.
    fn assert_trust_is_confirmed_once(&self, chosen: &str) {
        let sandbox = &self.0.sandbox;
        let out = self.proq(&["spawn", "--tmux", "-n", "x", self.0.agent, FOLLOW_UP]);
        assert!(
            out.stderr.contains("will ask in its window whether you trust this repository"),
            "{}",
            out.to_text()
        );
        let detail = "needs approval: asks whether you trust this repository";
        assert_eq!(sandbox.started_row("x")["detail"], detail);
        self.choose_answer(chosen);
        self.wait_for_idle();
        assert_eq!(self.agent_states(), ["needs-approval", "working", "idle"]);
        let _ = self.proq(&["stop", "x"]).ok();
        self.assert_window_closed();
        let _ = self.proq(&["merge", "x"]).ok();
        let out = self.proq(&["spawn", "--tmux", "-n", "x", self.0.agent, BLOCKING_TASK]);
        assert!(!out.stderr.contains("will ask"), "{}", out.to_text());
        let _ = sandbox.read_pipe("up");
        let _ = self.proq(&["stop", "x"]).ok();
        self.assert_window_closed();
    }
}

/// Defines the named tests for each agent.
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
    claude: works_with_attached_user_and_follow_up stop_leaves_no_processes outlives_supervisor waits_for_approval;
    codex: works_with_attached_user_and_follow_up stop_leaves_no_processes outlives_supervisor waits_for_approval;
    opencode: works_with_attached_user_and_follow_up stop_leaves_no_processes outlives_supervisor waits_for_approval;
}

#[test]
#[ignore = "needs the real command lines: PROQ_REAL_AGENTS and PROQ_MODEL_SERVER"]
fn claude_confirms_repository_trust_once() {
    // "No" is selected at first.
    Windows::with("claude").assert_trust_is_confirmed_once("❯ Yes, I trust this folder");
}

#[test]
#[ignore = "needs the real command lines: PROQ_REAL_AGENTS and PROQ_MODEL_SERVER"]
fn codex_confirms_trust_of_repository_settings_once() {
    let windows = Windows::with("codex");
    windows.0.sandbox.write(".codex/config.toml", "");
    windows.0.sandbox.commit_all("settings");
    windows.assert_trust_is_confirmed_once("› 1. Trust and continue");
}
