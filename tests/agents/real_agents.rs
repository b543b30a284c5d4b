//! Real agent command lines, run against a model server on this machine. The tests are ignored by default;
//! with `--ignored` they need `PROQ_REAL_AGENTS` (a folder with the command lines) and `PROQ_MODEL_SERVER`
//! (the server's script), and fail without them. Nothing is installed or downloaded here. `TMPDIR` has to be
//! `/tmp` for Codex, whose sandbox lets its commands write there, and SIGHUP must not be ignored, as `nohup`
//! has it.

mod user_config;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use proq_test_kit::runs::kill_supervisor;
use proq_test_kit::{Output, Sandbox};
use serde_json::{Value, json};

/// Script of the first turn: read the task, write a file, commit, report.
pub const TASK: &str = r#"[[tool name=read_task]] [[write path=new.txt text=hello]] [[bash cmd="git add -A && git commit -m first-turn"]] [[tool name=update_task args={"findings":["the sky is blue"],"human_steps":["look up"]}]] [[say text="All done"]]"#;

/// Script of a follow-up turn: write a file and commit.
pub const FOLLOW_UP: &str = r#"[[write path=more.txt text=more]] [[bash cmd="git add -A && git commit -m next-turn"]] [[say text="More done"]]"#;

/// Script of a read-only run: an allowed call, then calls that must be refused.
const READ_ONLY_TASK: &str = r#"[[tool name=read_task]] [[write path=new.txt text=hello]] [[bash cmd="git commit -q --allow-empty -m astray"]] [[say text="In tax.rs, line 3"]]"#;

/// Script that answers with a plan: the model's text is between the quotes, and `]]` would end it.
const PLAN: &str = r#"[[say text='The plan: {"summary": "A shop", "task": [{"id": "store", "title": "A store"}, {"id": "shop", "title": "A shop", "needs": ["store"] } ] }']]"#;

/// Script that answers with a revised plan.
const OTHER_PLAN: &str = r#"[[say text='{"summary": "A shop", "task": [{"id": "store", "title": "A store"}, {"id": "mail", "title": "Mail", "needs": ["store"] } ] }']]"#;

/// Script that answers with a plan whose tasks hold scripts for the model. Their brackets are escaped so that
/// they are read with the plan only.
const WORK_PLAN: &str = r#"[[say text='{"summary": "A shop", "criteria": ["there is a store"], "task": [
    {"id": "store", "title": "A store", "prompt": "\u005b\u005bwrite path=store.txt text=store\u005d\u005d \u005b\u005bbash cmd=\"git add -A && git commit -m a-store\"\u005d\u005d \u005b\u005bsay text=Stored\u005d\u005d"},
    {"id": "shop", "title": "A shop", "needs": ["store"], "prompt": "\u005b\u005bwrite path=shop.txt text=shop\u005d\u005d \u005b\u005bbash cmd=\"git add -A && git commit -m a-shop\"\u005d\u005d \u005b\u005bsay text=Opened\u005d\u005d"} ] }']]"#;

/// Script that blocks until the test releases it, with a background process of its own.
pub const BLOCKING_TASK: &str =
    r#"[[bash cmd="git hold"]] [[write path=new.txt text=hello]] [[say text="Held on"]]"#;

/// Script that blocks as `BLOCKING_TASK` does, followed by a slow model.
pub const ENDLESS_TASK: &str = r#"[[bash cmd="git hold"]] [[sleep s=600]] [[say text="Too late"]]"#;

/// Runs a command on a terminal and closes the terminal as soon as the command has printed `launched`.
const TERMINAL_SCRIPT: &str = "import os, pty, sys
pid, fd = pty.fork()
if pid == 0: os.execvp(sys.argv[1], sys.argv[1:])
seen = b''
while b'launched' not in seen: seen += os.read(fd, 1000)
os.close(fd)
print(os.WTERMSIG(os.waitpid(pid, 0)[1]))";

/// Sandbox in which real agent command lines talk to a model server.
pub struct Real {
    /// Sandbox with the repository and the user's configuration.
    pub sandbox: Sandbox,
    server: Child,
    /// Name of the agent's command line.
    pub agent: &'static str,
}

impl Real {
    /// Starts the model server and creates the sandbox. Panics where the environment does not name the
    /// command lines and the server.
    pub fn with(agent: &'static str) -> Real {
        let required_variable =
            |name| std::env::var_os(name).unwrap_or_else(|| panic!("this test needs {name}"));
        let (agents, server) =
            (required_variable("PROQ_REAL_AGENTS"), required_variable("PROQ_MODEL_SERVER"));
        let program = Path::new(&agents).join(agent);
        assert!(program.exists(), "there is no {agent} in PROQ_REAL_AGENTS");
        let sandbox = Sandbox::new();
        std::fs::create_dir(sandbox.root().join("bin")).unwrap();
        std::os::unix::fs::symlink(program, sandbox.root().join("bin").join(agent)).unwrap();
        let mut command = sandbox.command("python3", &sandbox.root());
        command.arg(Path::new(&server).canonicalize().unwrap()).arg("--port=0").stdout(Stdio::piped());
        let mut server = command.spawn().unwrap();
        let mut port = String::new();
        let _ = BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
        user_config::configure(&sandbox, &format!("http://127.0.0.1:{}", port.trim()));
        sandbox.pipe("up");
        sandbox.pipe("go");
        Real { sandbox, server, agent }
    }

    /// Runs git-proq and prints the command and its output, visible with `--nocapture`.
    fn proq(&self, args: &[&str]) -> Output {
        let out = self.sandbox.proq(args);
        eprintln!("[{}]$ git proq {}\n{}", self.agent, args.join(" "), out.to_text());
        out
    }

    /// Asserts the tokens and the cost of the last run.
    #[track_caller]
    fn assert_usage(&self, input: u64, cached: u64, output: u64, nanos: u64) {
        let run = self.sandbox.last_run("x");
        let usage = &run["account"];
        let tokens =
            ["input", "cached_input", "cache_write", "output"].map(|key| usage["tokens"][key].clone());
        assert_eq!(tokens, [json!(input), json!(cached), json!(0), json!(output)], "{run:#}");
        assert_eq!(usage["cost"], json!({ "nanos": nanos, "estimated": self.agent == "codex" }), "{run:#}");
    }

    /// Asserts that no process of the last run is left, and returns the run.
    #[track_caller]
    pub fn assert_no_processes(&self) -> Value {
        let run = self.sandbox.last_run("x");
        let mark = format!("PROQ_RUN={}", run["mark"].as_str().unwrap());
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let run_processes = processes.filter(|process| {
            let vars = std::fs::read(process.path().join("environ")).unwrap_or_default();
            vars.split(|byte| *byte == 0).any(|var| var == mark.as_bytes())
        });
        let leftover: Vec<_> = run_processes.map(|process| process.file_name()).collect();
        assert!(leftover.is_empty(), "{leftover:?} of {run:#}");
        run
    }

    /// Sends the agent a follow-up message and asserts that it resumes its session and commits.
    #[track_caller]
    fn assert_resumes_session(&self, before: &Value) {
        let _ = self.proq(&["send", "x", "--wait", FOLLOW_UP]).ok();
        let run = self.sandbox.last_run("x");
        assert_eq!(run["account"]["session"], before["account"]["session"], "{run:#}");
        assert_eq!((&run["resumed"], &run["class"]), (&json!(true), &json!("done")), "{run:#}");
        assert_eq!(self.sandbox.git(&["show", "proq/x:more.txt"]), "more");
        assert_eq!(self.sandbox.git(&["log", "-1", "--format=%s", "proq/x"]), "next-turn");
        assert_eq!(self.sandbox.row("x")["state"], "done");
    }

    fn commits_reports_and_resumes(&self) {
        let sandbox = &self.sandbox;
        let _ = self.proq(&["spawn", "--wait", "-n", "x", self.agent, TASK]).ok();
        assert_eq!(sandbox.git(&["show", "proq/x:new.txt"]), "hello");
        assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "proq/x"]), "first-turn");
        assert_eq!(sandbox.git(&["status", "--short"]), "", "nothing is done outside of the lane");
        let shown = self.proq(&["show", "x", "--json"]).json();
        assert_eq!(shown["report"]["findings"], json!(["the sky is blue"]));
        assert_eq!(shown["report"]["human_steps"], json!(["look up"]));
        assert_eq!(shown["runs"][0]["account"]["tool_calls"], 4);
        self.assert_usage(6000, 1000, 250, 22_050_000);
        self.assert_resumes_session(&shown["runs"][0]);
        self.assert_usage(3300, 600, 150, 12_330_000);
        let _ = self.proq(&["show", "x"]).ok();
        let _ = self.proq(&["merge", "x"]).ok();
        assert_eq!((sandbox.read("new.txt"), sandbox.read("more.txt")), ("hello\n".into(), "more\n".into()));
        sandbox.assert_healthy();
    }

    /// Drafts a plan and revises it in the same session; nothing else changes.
    fn drafts_and_revises_plan(&self) {
        let sandbox = &self.sandbox;
        let before = sandbox.git(&["for-each-ref"]);
        let drafted =
            self.proq(&["plan", "--ai", &format!("a shop {PLAN}"), "--agent", self.agent, "--json"]).json();
        assert_eq!(drafted["waves"], json!([["store"], ["shop"]]), "{drafted:#}");
        let name = drafted["draft"]["name"].as_str().unwrap().to_owned();
        let revised =
            self.proq(&["plan", "--feedback", &format!("mail instead {OTHER_PLAN}"), "--json"]).json();
        let changes = json!([{"change": "added", "task": "mail"}, {"change": "removed", "task": "shop"}]);
        assert_eq!(revised["changes"], changes, "{revised:#}");
        let shown = self.proq(&["show", &name, "--json"]).json();
        let [first, second] = [0, 1].map(|n| shown["runs"][n]["account"]["session"].clone());
        assert!(first == second && first.is_string() && first == revised["draft"]["session"], "{shown:#}");
        assert_eq!((&shown["runs"][1]["resumed"], &shown["runs"][2]), (&json!(true), &Value::Null));
        assert!(revised["draft"]["costs"]["cost"]["nanos"].as_u64().unwrap() > 0, "{revised:#}");
        let _ = self.proq(&["plan", &name]).ok();
        let _ = self.proq(&["plan", "--approve", "--yes"]).ok();
        let _ = self.proq(&["plan", "-o", "plan.toml"]).ok();
        let saved = self.proq(&["plan", "plan.toml", "--json"]).json();
        assert_eq!(saved["waves"], json!([["store"], ["mail"]]));
        assert_eq!(sandbox.git(&["for-each-ref"]), before);
        sandbox.assert_healthy();
    }

    /// Goes from a goal to a report: the plan is drafted, revised, approved, run and landed.
    fn plans_runs_and_lands_batch(&self) {
        let sandbox = &self.sandbox;
        let before = sandbox.git(&["for-each-ref"]);
        let goal = format!("a shop {PLAN}");
        let drafted = self.proq(&["plan", "--ai", &goal, "--agent", self.agent, "--json"]).json();
        let name = drafted["draft"]["name"].as_str().unwrap().to_owned();
        let error = self.proq(&["swarm", &name, "--agent", self.agent]).fails(1);
        assert!(error.contains("approve"), "{error}");
        let _ = self.proq(&["plan", "--feedback", &format!("say what to do {WORK_PLAN}"), "--json"]).json();
        assert_eq!(sandbox.git(&["for-each-ref"]), before, "nothing is run before it is approved");
        let _ = self.proq(&["plan", "--approve", "--yes"]).ok();
        let _ = self.proq(&["swarm", &name, "--agent", self.agent]).ok();
        let batch = self.proq(&["status", "--json"]).json()["batch"].as_str().unwrap().to_owned();
        let _ = self.proq(&["merge", "--batch", &batch]).ok();
        assert_eq!(
            (sandbox.read("store.txt"), sandbox.read("shop.txt")),
            ("store\n".into(), "shop\n".into())
        );
        let report = self.proq(&["report", "--json"]).json();
        assert_eq!(report["waves"], json!([["store"], ["shop"]]), "{report:#}");
        assert_eq!(report["counts"]["landed"], 2, "{report:#}");
        // Two runs, each of three calls of the model: the input grows by a hundred each time, of which 200
        // were sent before.
        let tokens = &report["tokens"];
        assert_eq!((&tokens["input"], &tokens["output"]), (&json!(6600), &json!(300)), "{report:#}");
        assert_eq!(
            report["cost"],
            json!({ "nanos": 24_660_000, "estimated": self.agent == "codex" }),
            "{report:#}"
        );
        let _ = self.proq(&["report"]).ok();
        let page = self.sandbox.proq(&["report", "--html"]).ok();
        assert!(page.contains("<h2>Timeline</h2>"), "{page}");
        sandbox.assert_healthy();
    }

    fn stop_leaves_no_processes(&self) {
        let _ = self.proq(&["spawn", "-n", "x", self.agent, ENDLESS_TASK]).ok();
        let _ = self.sandbox.read_pipe("up");
        let _ = self.proq(&["stop", "x"]).ok();
        let run = self.assert_no_processes();
        assert_eq!((&run["outcome"], &run["class"]), (&json!("stopped"), &json!("stopped")), "{run:#}");
        self.assert_resumes_session(&run);
        self.sandbox.assert_healthy();
    }

    /// A message sent while the agent runs reaches the same process.
    fn running_agent_takes_sent_message(&self) {
        let sandbox = &self.sandbox;
        let _ = self.proq(&["spawn", "-n", "x", self.agent, BLOCKING_TASK]).ok();
        let _ = sandbox.read_pipe("up");
        let _ = self.proq(&["send", "x", FOLLOW_UP]).ok();
        sandbox.write_pipe("go");
        let _ = self.proq(&["wait", "x"]).ok();
        let run = self.assert_no_processes();
        assert_eq!(
            (&run["attempt"], &run["told"], &run["class"]),
            (&json!(1), &json!(1), &json!("done")),
            "{run:#}"
        );
        assert_eq!(sandbox.git(&["show", "proq/x:new.txt"]), "hello");
        assert_eq!(sandbox.git(&["show", "proq/x:more.txt"]), "more");
        self.assert_resumes_session(&run);
        sandbox.assert_healthy();
    }

    /// The agent's hooks, or a plugin that it is given, report its state.
    fn hooks_report_state(&self) {
        let _ = self.proq(&["spawn", "--wait", "-n", "x", self.agent, TASK]).ok();
        let states: Vec<Value> =
            self.sandbox.events("agent.state").into_iter().map(|event| event["state"].clone()).collect();
        assert_eq!(states, [json!("working"), json!("idle")]);
    }

    /// The agent's turn ends only when the checks succeed. The output of a failed check is its next prompt,
    /// which scripts the model.
    fn stop_gate_returns_failed_check(&self) {
        let sandbox = &self.sandbox;
        sandbox.git(&["config", "proq.agent.gate", "true"]);
        if self.agent == "codex" {
            let capabilities = "[agents.codex]\ncapabilities.hooks = true\ncapabilities.stop_gate = true";
            let file = sandbox.root().join("home/.config/git-proq/config.toml");
            let text = std::fs::read_to_string(&file).unwrap();
            std::fs::write(&file, text.replace("[agents.codex]", capabilities)).unwrap();
        }
        // Without quotes, which Codex would write in another form.
        let check = "test -e good || { echo '[[write path=good text=1]] [[say text=Mended]]'; false; }";
        let _ = self.proq(&["spawn", "--wait", "-n", "x", "--check", check, self.agent, TASK]).ok();
        assert_eq!(sandbox.git(&["show", "proq/x:good"]), "1");
        assert_eq!(sandbox.row("x")["state"], "done");
        let _ = self.proq(&["merge", "x"]).ok();
    }

    fn answers_without_changes(&self) {
        let sandbox = &self.sandbox;
        let before = sandbox.git(&["for-each-ref"]);
        // The model of opencode is not even offered the tools that it may not use.
        let task =
            if self.agent == "opencode" { r#"[[say text="In tax.rs, line 3"]]"# } else { READ_ONLY_TASK };
        let answer = ["spawn", "--mode", "answer", "--wait", "-n", "x", self.agent, task];
        assert_eq!(self.proq(&answer).ok(), "In tax.rs, line 3\n");
        assert_eq!(
            self.proq(&["send", "x", "--wait", r#"[[say text="By the clerk"]]"#]).ok(),
            "By the clerk\n"
        );
        let shown = self.proq(&["show", "x", "--json"]).json();
        let [first, second] = [0, 1].map(|n| shown["runs"][n]["account"]["session"].clone());
        assert_eq!((&first, &shown["answer"]), (&second, &json!("By the clerk\n")), "{shown:#}");
        assert_eq!(
            (sandbox.git(&["for-each-ref"]), sandbox.git(&["status", "--short"])),
            (before, String::new())
        );
        let _ = self.assert_no_processes();
        sandbox.assert_healthy();
    }

    fn survives_closed_terminal(&self) {
        let mut terminal = self.sandbox.command("python3", &self.sandbox.repo);
        let script = r#"git-proq spawn -n x "$0" "$1"; echo launched; exec sleep 600"#;
        terminal.args(["-c", TERMINAL_SCRIPT, "sh", "-c", script, self.agent, BLOCKING_TASK]);
        assert_eq!(self.sandbox.output(terminal).ok(), "1\n", "the terminal's own command was hung up");
        let _ = self.sandbox.read_pipe("up");
        assert_eq!(self.sandbox.started_row("x")["state"], "running");
        self.sandbox.write_pipe("go");
        let _ = self.proq(&["wait", "x"]).ok();
        assert_eq!(self.sandbox.git(&["show", "proq/x:new.txt"]), "hello");
        let _ = self.assert_no_processes();
        self.sandbox.assert_healthy();
    }

    /// Over the agent client protocol: the agent's tools and those of git-proq, a message during the run, and
    /// a session resumed later.
    fn works_over_acp(&self) {
        let sandbox = &self.sandbox;
        let task = format!(r#"[[bash cmd="git hold"]] {TASK}"#);
        let _ = self.proq(&["spawn", "-n", "x", "acp", &task, "--", self.agent, "acp"]).ok();
        let _ = sandbox.read_pipe("up");
        while sandbox.last_run("x")["account"]["session"].is_null() {
            std::thread::yield_now();
        }
        let _ = self.proq(&["send", "x", FOLLOW_UP]).ok();
        sandbox.write_pipe("go");
        let _ = self.proq(&["wait", "x"]).ok();
        let shown = self.proq(&["show", "x", "--json"]).json();
        let run = &shown["runs"][0];
        assert_eq!(
            (&run["told"], &run["class"], &run["exit_code"]),
            (&json!(1), &json!("done"), &json!(0)),
            "{run:#}"
        );
        assert_eq!(shown["runs"].as_array().unwrap().len(), 1);
        assert_eq!(shown["report"]["findings"], json!(["the sky is blue"]));
        assert_eq!(sandbox.git(&["log", "--format=%s", "main..proq/x"]), "next-turn\nfirst-turn");
        let _ = self.assert_no_processes();
        let again = r#"[[write path=third.txt text=third]] [[say text="Third done"]]"#;
        let _ = self.proq(&["send", "x", "--wait", again]).ok();
        let next = sandbox.last_run("x");
        assert_eq!(
            (&next["resumed"], &next["account"]["session"]),
            (&json!(true), &run["account"]["session"])
        );
        assert_eq!(next["account"]["tool_calls"], 1, "{next:#}");
        assert_eq!(sandbox.git(&["show", "proq/x:third.txt"]), "third");
        let _ = self.proq(&["send", "x", ENDLESS_TASK]).ok();
        let _ = sandbox.read_pipe("up");
        let _ = self.proq(&["stop", "x"]).ok();
        assert_eq!(self.assert_no_processes()["class"], "stopped");
        sandbox.assert_healthy();
    }

    fn resolves_conflict(&self) {
        let sandbox = &self.sandbox;
        sandbox.write("shared.txt", "1\n2\n3\n4\n5\n");
        sandbox.commit_all("base");
        let task = r#"[[bash cmd="git fix"]] [[say text="Fixed"]]"#;
        let _ = self.proq(&["spawn", "--wait", "-n", "x", self.agent, task]).ok();
        sandbox.sh("sed -i 's/^3$/main 3/' shared.txt; git commit -qam 'main goes on'");
        let _ = self.proq(&["merge", "x"]).fails(3);
        let _ = self.proq(&["resolve", "x", "--agent", self.agent]).ok();
        let _ = self.assert_no_processes();
        let _ = self.proq(&["merge", "x"]).ok();
        assert_eq!(sandbox.read("shared.txt"), "1\n2\nmain and lane 3\n4\n5\n");
        sandbox.assert_healthy();
    }

    fn runs_only_allowed_commands(&self) {
        let sandbox = &self.sandbox;
        sandbox.program("build", "echo \"build $*\" >> \"$ROOT/ran\"");
        sandbox.program("evil", "echo evil >> \"$ROOT/ran\"");
        let task = r#"[[bash cmd="build all"]] [[bash cmd="build $(evil)"]] [[bash cmd="build && evil"]] [[say text=Built]]"#;
        let _ = self.proq(&["spawn", "--wait", "-n", "x", "--allow", "build *", self.agent, task]);
        assert_eq!(std::fs::read_to_string(sandbox.root().join("ran")).unwrap(), "build all\n");
        assert_eq!(sandbox.last_run("x")["account"]["denied"], 2);
    }

    /// Runs a script of the repository, as the agent's sandbox or its own form of the rule permits.
    fn runs_allowed_build(&self) {
        let sandbox = &self.sandbox;
        sandbox.sh("printf '#!/bin/sh\\necho \"build $*\" > built\\n' > build; chmod +x build");
        sandbox.commit_all("build");
        let task = r#"[[bash cmd="./build all"]] [[say text=Built]]"#;
        let _ = self.proq(&["spawn", "--wait", "-n", "x", "--allow", "./build *", self.agent, task]);
        assert_eq!(std::fs::read_to_string(sandbox.lane_path("x").join("built")).unwrap(), "build all\n");
        let run = sandbox.last_run("x");
        assert_eq!(
            (&run["account"]["tool_calls"], &run["account"]["denied"]),
            (&json!(1), &Value::Null),
            "{run:#}"
        );
    }

    fn resumes_after_agent_kill(&self) {
        let _ = self.proq(&["spawn", "-n", "x", self.agent, ENDLESS_TASK]).ok();
        let _ = self.sandbox.read_pipe("up");
        let pid = self.sandbox.last_run("x")["pid"].to_string();
        self.sandbox.sh(&format!("kill -9 {pid}"));
        let _ = self.proq(&["wait", "x"]).fails(4);
        let run = self.assert_no_processes();
        assert_eq!((&run["outcome"], &run["class"]), (&json!("failed"), &json!("crashed")), "{run:#}");
        self.assert_resumes_session(&run);
        self.sandbox.assert_healthy();
    }

    fn resumes_after_supervisor_kill(&self) {
        let _ = self.proq(&["spawn", "-n", "x", self.agent, BLOCKING_TASK]).ok();
        let _ = self.sandbox.read_pipe("up");
        kill_supervisor(&self.sandbox, "x");
        assert_eq!(self.sandbox.row("x")["state"], "orphaned");
        let _ = self.proq(&["stop", "x"]).ok();
        let run = self.assert_no_processes();
        self.assert_resumes_session(&run);
        let _ = self.proq(&["redispatch", "x"]).ok();
        let _ = self.sandbox.read_pipe("up");
        self.sandbox.write_pipe("go");
        let _ = self.proq(&["wait", "x"]).ok();
        assert_eq!(self.sandbox.git(&["show", "proq/x:new.txt"]), "hello");
        self.sandbox.assert_healthy();
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        drop(self.server.kill());
        drop(self.server.wait());
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
                    super::Real::with(stringify!($agent)).$test();
                }
            )*
        }
    )*};
}

tests! {
    claude: commits_reports_and_resumes running_agent_takes_sent_message hooks_report_state stop_gate_returns_failed_check answers_without_changes drafts_and_revises_plan plans_runs_and_lands_batch stop_leaves_no_processes survives_closed_terminal resolves_conflict
        runs_only_allowed_commands resumes_after_agent_kill resumes_after_supervisor_kill;
    gemini: runs_only_allowed_commands;
    codex: runs_allowed_build commits_reports_and_resumes stop_gate_returns_failed_check answers_without_changes drafts_and_revises_plan plans_runs_and_lands_batch stop_leaves_no_processes survives_closed_terminal resolves_conflict
        resumes_after_agent_kill resumes_after_supervisor_kill;
    opencode: runs_allowed_build commits_reports_and_resumes hooks_report_state answers_without_changes drafts_and_revises_plan plans_runs_and_lands_batch stop_leaves_no_processes survives_closed_terminal resolves_conflict
        resumes_after_agent_kill resumes_after_supervisor_kill works_over_acp;
}
