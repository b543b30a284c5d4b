//! Tests of agents that speak the Agent Client Protocol: turns, permissions and resumed conversations.

use proq_test_kit::Sandbox;
use serde_json::{Value, json};

/// Creates a repository with a program `speaker` that does what its prompt lists, and an agent profile `mine`
/// that starts it. `settings` are extra lines of the profile.
pub fn with_speaker(settings: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agents/acp-agent.py");
    std::fs::create_dir(sandbox.root().join("notes")).unwrap();
    sandbox.program("speaker", &format!("exec python3 '{script}' \"$@\""));
    let config = format!(
        "[agents.mine]\nlike = \"acp\"\nprogram = \"speaker\"\nargs.start = [\"--acp\"]\n{settings}\n"
    );
    sandbox.write_in(&sandbox.root().join("home"), ".config/git-proq/config.toml", &config);
    for (key, value) in [("backoff", "0"), ("stopGrace", "3"), ("crashRetries", "0")] {
        sandbox.git(&["config", &format!("proq.agent.{key}"), value]);
    }
    sandbox
}

/// Starts the agent `mine` in lane `x` and waits until its run has ended.
#[track_caller]
pub fn run_acp_agent(sandbox: &Sandbox, task: &str) -> proq_test_kit::Output {
    sandbox.proq(&["spawn", "--wait", "-n", "x", "mine", task])
}

/// Returns the prompts that agents received, in order.
#[track_caller]
pub fn prompts(sandbox: &Sandbox) -> Vec<String> {
    sandbox.agent_record("prompt").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the messages with `method` that agents received, over all agent processes.
#[track_caller]
pub fn requests_for(sandbox: &Sandbox, method: &str) -> Vec<Value> {
    let all = sandbox.agent_record("got");
    let read = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    all.lines().map(read).filter(|message| message["method"] == method).collect()
}

#[test]
fn custom_acp_command_commits_and_resumes() {
    let sandbox = with_speaker("");
    let task = "write one\nrun git add -A && git commit -qm 'the first'\nsay hello";
    let args = ["spawn", "-n", "x", "acp", task, "--wait", "--", "speaker", "--odd", "[model]", "{brace}"];
    insta::assert_snapshot!(sandbox.proq(&args).to_text(), @r"
    x: done
    --- code 0
    ");
    assert!(
        sandbox.agent_record("started").starts_with("--odd [model] {brace} in "),
        "{}",
        sandbox.agent_record("started")
    );
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "proq/x", "--", "one"]), "the first");
    let run = sandbox.last_run("x");
    assert_eq!((&run["agent"], &run["class"], &run["exit_code"]), (&"acp".into(), &"done".into(), &0.into()));
    assert_eq!(run["account"]["cost"]["nanos"], 10_000_000, "{run:#}");
    let tokens = &run["account"]["tokens"];
    assert_eq!([&tokens["input"], &tokens["cached_input"], &tokens["output"]], [100, 50, 20], "{run:#}");
    assert_eq!((&run["account"]["context"], &run["account"]["tool_calls"]), (&50.into(), &2.into()));

    let _ = sandbox.proq(&["send", "x", "write two", "--wait"]).ok();
    let load = &requests_for(&sandbox, "session/load")[0]["params"];
    assert_eq!(load["sessionId"], run["account"]["session"]);
    assert_eq!(prompts(&sandbox)[1], "write two");
    let next = sandbox.last_run("x");
    assert_eq!((&next["resumed"], &next["account"]["session"]), (&true.into(), &run["account"]["session"]));
    // History that the agent replays when it loads a session is not counted again.
    assert_eq!(next["account"]["cost"]["nanos"], 10_000_000, "{next:#}");
    assert_eq!(next["account"]["tool_calls"], 1, "{next:#}");
    let row = sandbox.proq(&["list", "--wide", "--json"]).json()["lanes"][0]["account"].clone();
    assert_eq!((&row["cost"]["nanos"], &row["tool_calls"]), (&20_000_000.into(), &3.into()), "{row:#}");
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(shown.contains("total      3 tool calls, 300 tokens in (100 cached), 40 out, $0.02"), "{shown}");
    let logs = sandbox.proq(&["logs", "x"]).ok();
    assert!(!logs.contains("said long ago"), "{logs}");
    assert_eq!(sandbox.git(&["show", "proq/x:two"]), "text");
    let _ = sandbox.proq(&["redispatch", "x"]).ok();
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(sandbox.agent_record("started").matches("--odd").count(), 3);
    sandbox.assert_healthy();
}

#[test]
fn acp_command_required_unless_profile_has_one() {
    let sandbox = with_speaker("");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "acp", "do it"]).to_text(), @r#"
    --- stderr
    error: cannot start 'acp': it has no program of its own
    hint: name it behind '--': git proq spawn acp "implement payments" -- my-agent
    hint: or add [agents.my-agent] with like = "acp" and a program to ~/.config/git-proq/config.toml
    --- code 1
    "#);
    insta::assert_snapshot!(sandbox.proq(&["spawn", "mine", "do it", "--", "speaker"]).to_text(), @r#"
    --- stderr
    error: cannot start 'mine': it has a command of its own, and another was given
    hint: leave out the command behind '--'
    hint: or, if it speaks the Agent Client Protocol: git proq spawn acp "implement payments" -- my-agent
    --- code 1
    "#);
    let missing = sandbox.proq(&["spawn", "acp", "do it", "--", "not-there"]).fails(1);
    assert!(missing.contains("cannot start 'not-there': there is no such program on PATH"), "{missing}");
    let out = sandbox.proq(&["spawn", "-n", "x", "acp", "do it", "--dry-run", "--", "speaker", "a b"]).ok();
    assert!(out.contains("runs      [ROOT]/bin/speaker 'a b'"), "{out}");
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
    sandbox.lane_with_commit("x", "echo > one");
    let _ = sandbox.proq(&["run", "x", "acp", "write two", "--wait", "--", "speaker"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/x:two"]), "text");
    sandbox.git(&["config", "proq.agent.crashRetries", "1"]);
    // A retry uses the command that was given on the command line.
    let _ = sandbox.proq(&["spawn", "-n", "y", "acp", "die 3", "--wait", "--", "speaker", "--mark"]).fails(4);
    assert_eq!(sandbox.agent_record("started").matches("--mark").count(), 2);
}

#[test]
fn refuses_command_in_existing_lane() {
    let sandbox = Sandbox::new();
    // A plain command takes no prompt, so it cannot continue work in an existing lane.
    let _ = sandbox.proq(&["spawn", "-q", "--empty", "-n", "there"]).ok();
    for args in [&["command", "--", "sh", "-c", "echo hi"][..], &["--", "sh", "-c", "echo hi"]] {
        let out = sandbox.proq(&[&["run", "there"], args].concat());
        insta::allow_duplicates! {
            insta::assert_snapshot!(out.to_text(), @r"
            --- stderr
            error: cannot run a command in lane 'there': a command always runs in a new lane
            hint: run it in a new lane: git proq spawn -- sh -c 'echo hi'
            --- code 1
            ");
        }
    }
    let out = sandbox.proq(&["run", "there", "command", "x"]).to_text();
    assert!(
        out.contains("error: cannot run a command in lane 'there': a command always runs in a new lane"),
        "{out}"
    );
    assert!(out.contains("hint: run it in a new lane: git proq spawn -- my-command"), "{out}");
    assert_eq!(sandbox.row("there")["state"], "idle");
}

#[test]
fn refuses_acp_profile_with_stdin_prompt() {
    let sandbox = with_speaker("prompt = \"stdin\"");
    let out = sandbox.proq(&["agents"]).fails(1);
    assert!(out.contains("agents.mine.prompt") && out.contains("go together"), "{out}");
}

#[test]
fn acp_session_gets_lane_cwd_and_mcp_server() {
    let sandbox = with_speaker("");
    let _ = run_acp_agent(&sandbox, "task\nwrite one").ok();
    let initialize = &requests_for(&sandbox, "initialize")[0]["params"];
    assert_eq!(initialize["protocolVersion"], 1);
    let none = json!({ "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false });
    assert_eq!(initialize["clientCapabilities"], none);
    let new = &requests_for(&sandbox, "session/new")[0]["params"];
    assert_eq!(new["cwd"], sandbox.lane_path("x").display().to_string());
    assert_eq!(new["mcpServers"][0]["env"][0], json!({ "name": "PROQ_LANE", "value": "x" }));
    let task = sandbox.agent_record("task");
    assert!(task.contains("write one") && task.contains("proq/x"), "{task}");
}

/// Runs an agent that requests each permission of `requests` and returns the client's answers, one a line.
fn permission_answers(sandbox: &Sandbox, level: &str, requests: &[&str]) -> String {
    let task: Vec<String> = requests.iter().map(|request| format!("ask {request}")).collect();
    let _ = sandbox.proq(&["spawn", "--wait", "-n", level, "--permission", level, "mine", &task.join("\n")]);
    std::mem::take(&mut sandbox.agent_record("leave"))
}

/// Promise: agent-requests/permission-requests
#[test]
fn permission_level_limits_acp_requests_to_lane() {
    let requests = [
        "read",
        "read a.txt",
        "read /etc/passwd",
        "search",
        "think",
        "edit a.txt",
        "edit",
        "edit new/b.txt",
        "edit ../../a.txt",
        "edit .git",
        "delete a.txt",
        "move a.txt",
        "execute",
        "fetch",
        "other",
        "switch_mode",
    ];
    let mut out = String::new();
    for level in ["read", "edit", "full"] {
        let sandbox = with_speaker("");
        let answers = permission_answers(&sandbox, level, &requests);
        let words: Vec<_> =
            answers.lines().map(|line| line.split_once(' ').unwrap().1.split('_').next().unwrap()).collect();
        out.push_str(&format!("{level}: {}\n", words.join(" ")));
        assert!(answers.lines().all(|line| line.contains("_once-id")), "{answers}");
    }
    insta::assert_snapshot!(out, @r"
    read: allow allow reject allow allow reject reject reject reject reject reject reject reject reject reject reject
    edit: allow allow reject allow allow allow reject allow reject reject allow allow reject reject reject reject
    full: allow allow allow allow allow allow allow allow allow allow allow allow allow allow allow allow
    ");
}

/// Promise: agent-requests/permission-requests
#[test]
fn allows_only_git_and_checks_and_logs_refusals() {
    let sandbox = with_speaker("");
    let check = "test -e one && grep -q x <one";
    let task = format!(
        "run git status && cd . ; git log -1\nrun {check}\nrun rm -f a.txt\nrun git add -A; rm a.txt\nrun git -C / status\nrun git config x.y z\nrun cd .. && git status\nrun git commit -m \"$(id)\""
    );
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "--check", check, "mine", &task]);
    let allowed: Vec<_> = sandbox.agent_record("leave").lines().map(|l| l.contains("allow")).collect();
    assert_eq!(allowed, [true, true, false, false, false, false, false, false]);
    assert!(sandbox.lane_path("x").join("a.txt").exists());
    let shown = sandbox.proq(&["logs", "x"]).ok();
    assert!(
        shown.contains("! denied: ") && shown.contains(": only git, the lane's checks and the commands"),
        "{shown}"
    );
    let events = sandbox.proq(&["logs", "x", "--json"]).json();
    let refused = events["events"].as_array().unwrap().iter().filter(|e| e["event"] == "permission-refused");
    assert_eq!(refused.count(), 6);
}

#[test]
fn allowed_commands_run_only_as_plain_words() {
    let sandbox = with_speaker("");
    let lines = [
        "make all",
        "make all && git status",
        "make 'a b'",
        "make all && rm a.txt",
        "make $(id)",
        "make x >y",
    ];
    let task = lines.map(|line| format!("run {line}")).join("\n") + "\nrun maker x";
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "--allow", "make *", "mine", &task]);
    let allowed: Vec<_> = sandbox.agent_record("leave").lines().map(|l| l.contains("allow")).collect();
    assert_eq!(allowed, [true, true, true, false, false, false, false]);
    assert!(sandbox.lane_path("x").join("a.txt").exists());
}

#[test]
fn selects_session_mode_for_permission_level() {
    let sandbox = with_speaker("env.MODES = \"auto default yolo http://x/modes#plan\"");
    let mode = |name: &str, level: &str| {
        let _ = sandbox.proq(&["spawn", "--wait", "-n", name, "--permission", level, "mine", "write one"]);
        std::fs::read_to_string(sandbox.root().join("notes/mode")).unwrap_or_default()
    };
    assert_eq!(mode("a", "full"), "");
    assert_eq!(mode("b", "edit"), "default\n");
    assert_eq!(mode("c", "read"), "default\nhttp://x/modes#plan\n");
}

#[test]
fn prompt_repeats_history_without_session_load() {
    for (setting, reason) in [("NO_LOAD", "it cannot resume a session"), ("BAD_LOAD", "could not be loaded")]
    {
        let sandbox = with_speaker(&format!("env.{setting} = \"1\""));
        let _ = run_acp_agent(&sandbox, "write one").ok();
        let _ = sandbox.proq(&["send", "x", "say first", "--wait"]).ok();
        let first = sandbox.last_run("x");
        let _ = sandbox.proq(&["send", "x", "say then", "--wait"]).ok();
        let prompt = prompts(&sandbox).pop().unwrap();
        assert!(prompt.starts_with("write one"), "{prompt}");
        let parts = [
            "Later message from the user:\n\nsay first",
            "Commits on this branch",
            "Your next task\n\nsay then",
            "# Rules of",
        ];
        let places = parts.map(|part| prompt.find(part).unwrap_or_else(|| panic!("no {part} in {prompt}")));
        assert!(places.is_sorted(), "{prompt}");
        let logs = sandbox.proq(&["logs", "x"]).ok();
        assert!(logs.contains(reason), "{logs}");
        let last = sandbox.last_run("x");
        assert_ne!(last["account"]["session"], first["account"]["session"]);
        assert_eq!(last["class"], "done", "{last:#}");
    }
}

#[test]
fn read_only_run_answers_and_resumes() {
    let sandbox = with_speaker("env.NO_LOAD = \"1\"");
    let before = proq_test_kit::runs::repository_state(&sandbox);
    let spawn_args =
        ["spawn", "--wait", "-n", "x", "--mode", "answer", "mine", "write one\nsay it is in tax.rs"];
    assert_eq!(sandbox.proq(&spawn_args).ok().trim_end(), "it is in tax.rs");
    assert_eq!(proq_test_kit::runs::repository_state(&sandbox), before);
    assert!(!sandbox.repo.join("one").exists());
    // The test agent obeys its complete prompt, which repeats the earlier messages.
    assert_eq!(sandbox.proq(&["send", "x", "say line 3", "--wait"]).ok().trim_end(), "it is in tax.rsline 3");
    let prompt = prompts(&sandbox).pop().unwrap();
    let parts = [
        "write one\nsay it is",
        "# Progress so far",
        "Your answer then:\n\nit is in tax.rs",
        "Your next task\n\nsay line 3",
    ];
    let places = parts.map(|part| prompt.find(part).unwrap_or_else(|| panic!("no {part} in {prompt}")));
    assert!(places.is_sorted(), "{prompt}");
    assert!(!prompt.contains("worktree"), "{prompt}");
    assert_eq!(proq_test_kit::runs::repository_state(&sandbox), before);
}
