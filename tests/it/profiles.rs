//! Owns the tests of what an agent is given by its profile: permission levels, its rules, attachments, files and variables
//! of one run, and what a user makes of profiles.

use std::os::unix::fs::PermissionsExt;

use super::support::Sandbox;

/// A sandbox in which the agent `name` writes down its arguments, one a line, its input, and its environment.
fn with(name: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.agent(name, "printf '%s\\n' \"$@\" > \"$ROOT/args\"; cat > \"$ROOT/input\"; env > \"$ROOT/env\"");
    sandbox
}

fn read(sandbox: &Sandbox, name: &str) -> String {
    std::fs::read_to_string(sandbox.root().join(name)).unwrap()
}

fn variable(sandbox: &Sandbox, name: &str) -> Option<String> {
    let start = format!("{name}=");
    read(sandbox, "env").lines().find_map(|line| line.strip_prefix(&start).map(ToOwned::to_owned))
}

/// Writes the user's own configuration.
pub fn configure(sandbox: &Sandbox, text: &str) {
    let dir = sandbox.root().join("home/.config/git-proq");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("config.toml"), text).unwrap();
}

#[test]
fn full_permission_is_asked_for_by_name_and_shown() {
    let sandbox = with("claude");
    let out = sandbox.proq(&["spawn", "--wait", "-n", "x", "claude", "do it"]);
    assert!(!out.stderr.contains("anything"), "{}", out.stderr);
    assert!(!read(&sandbox, "args").contains("dangerously"));
    let out = sandbox.proq(&["spawn", "--wait", "-n", "y", "--permission", "full", "claude", "do it"]);
    assert!(out.stderr.contains("warning: the agent may do anything: permission full"), "{}", out.stderr);
    assert!(read(&sandbox, "args").contains("--dangerously-skip-permissions\n"));
    let json = sandbox.proq(&["spawn", "--dry-run", "--json", "-n", "z", "claude", "do it"]).json();
    assert_eq!(json["permission"], "edit");
    configure(&sandbox, "agent.permission = 'read'\n");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "r", "claude", "do it"]).ok();
    assert!(read(&sandbox, "args").contains("--disallowedTools\nEdit\n"));
    assert_eq!(sandbox.proq(&["spawn", "--permission", "all", "claude", "x"]).code, 2);
}

#[test]
fn a_repository_may_not_say_what_agents_may_do_nor_which_there_are() {
    let sandbox = with("claude");
    sandbox.write("proq.toml", "agent.permission = 'full'\n");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "claude", "do it"]).shown(), @r"
    --- stderr
    error: [ROOT]/repo/proq.toml may not set agent.permission: only you may, for yourself
    hint: take it out of that file; to set it for yourself: git config proq.agent.permission VALUE
    --- code 1
    ");
    sandbox.write("proq.toml", "[agents.claude]\nprogram = 'evil'\n");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "claude", "do it"]).shown(), @r"
    --- stderr
    error: [ROOT]/repo/proq.toml may not set agents: only you may, for yourself
    hint: take it out of that file; yours is ~/.config/git-proq/config.toml
    --- code 1
    ");
    sandbox.write("proq.toml", "agent.model = 'x'\n");
    assert_eq!(sandbox.proq(&["spawn", "claude", "do it"]).code, 1);
    assert!(!sandbox.root().join("args").exists());
}

#[test]
fn what_an_agent_cannot_be_told_is_refused_before_anything_is_made() {
    let sandbox = with("robot");
    sandbox.program("codex", "exit 1");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--permission", "read", "robot", "x"]).shown(), @r"
    --- stderr
    error: nothing is known that keeps 'robot' from changing things, so it cannot be started with permission read; nothing was made
    hint: see which agents have permissions: git proq agents --wide
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--model", "m", "robot", "x"]).shown(), @r"
    --- stderr
    error: 'robot' cannot be told --model; nothing was made
    hint: leave --model out, or say how in your configuration: [agents.robot.options]
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--max-turns", "3", "codex", "x"]).shown(), @r"
    --- stderr
    error: 'codex' cannot be told --max-turns; nothing was made
    hint: leave --max-turns out, or say how in your configuration: [agents.codex.options]
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "command", "x"]).shown(), @r#"
    --- stderr
    error: 'command' names no program of its own; nothing was made
    hint: describe yours in your configuration: [agents.NAME] with like = "command" and a program
    --- code 1
    "#);
    assert_eq!(sandbox.traces(), [""; 0]);
}

#[test]
fn model_and_turns_reach_the_agent() {
    let sandbox = with("claude");
    configure(&sandbox, "agent.model = 'a'\n[agents.claude]\nmodel = 'b'\n");
    let model = |args: &[&str]| {
        let _ = sandbox.proq(&[&["spawn", "--wait"], args, &["claude", "do it"]].concat()).ok();
        let args = read(&sandbox, "args");
        let after =
            |flag: &str| args.split_once(&format!("{flag}\n")).unwrap().1.lines().next().unwrap().to_owned();
        (after("--model"), after("--max-turns"))
    };
    assert_eq!(model(&["-n", "x"]), ("b".into(), "200".into()));
    assert_eq!(model(&["-n", "y", "--model", "c", "--max-turns", "7"]), ("c".into(), "7".into()));
    configure(&sandbox, "agent.model = 'a'\n");
    assert_eq!(model(&["-n", "z"]), ("a".into(), "200".into()));
}

#[test]
fn a_user_adds_an_agent() {
    let sandbox = with("my-tool");
    configure(
        &sandbox,
        "[agents.tool]\nlike = 'claude'\nprogram = 'my-tool'\noptions.extra = ['--effort', '{high}']\n\
         env = { KEY = 'in {lane}' }\n",
    );
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "tool", "do it"]).ok();
    assert!(read(&sandbox, "args").ends_with("--effort\n{high}\n"));
    assert_eq!(read(&sandbox, "input"), "do it");
    assert_eq!(variable(&sandbox, "KEY").as_deref(), Some("in x"));
    assert_eq!(sandbox.row("x")["agent"], "tool");
    configure(&sandbox, "[agents.tool]\nlike = 'claud'\n");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "tool", "do it"]).shown(), @r"
    --- stderr
    error: agents.tool.like (from [ROOT]/home/.config/git-proq/config.toml) cannot be used: there is no agent 'claud'
    hint: correct it in [ROOT]/home/.config/git-proq/config.toml
    hint: see what is known: git proq agents --json
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["agents"]).shown(), @r"
    --- stderr
    error: agents.tool.like (from [ROOT]/home/.config/git-proq/config.toml) cannot be used: there is no agent 'claud'
    hint: correct it in [ROOT]/home/.config/git-proq/config.toml
    hint: see what is known: git proq agents --json
    --- code 1
    ");
}

#[test]
fn the_rules_of_a_lane_go_where_the_agent_takes_them() {
    let sandbox = with("claude");
    sandbox.agent("gemini", "cat > \"$ROOT/input\"");
    configure(
        &sandbox,
        "[agent]\ncommit_style = 'like this: topic: what'\nprompt_append = \"Be kind.\\nAlways.\"\n",
    );
    let more = ["--check", "make test", "--scope", "src/pay/", "implement payments"];
    let _ = sandbox.proq(&[&["spawn", "--wait", "-n", "x", "claude"], &more[..]].concat()).ok();
    assert_eq!(read(&sandbox, "input"), "implement payments");
    assert!(read(&sandbox, "args").contains("\nBash(make test)\n"));
    let rules = std::fs::read(sandbox.repo.join(".git/proq/lanes/x/runs/1.rules.md")).unwrap();
    let rules = sandbox.plain(&rules);
    insta::assert_snapshot!(sandbox.proq(&["show", "x", "--prompt"]).shown(), @r"
    # Rules of this lane

    You work in lane `x`: a git worktree of its own at [ROOT]/repo/.proq-worktrees/x, on branch `proq/x`, which is to land on `main`. Others work in other worktrees of this repository at the same time. Nobody can answer questions: decide, and say at the end what you decided.

    - Stay in this worktree. Leave other worktrees and branches, the stash and git's settings alone.
    - The task is expected to touch `src/pay/` and nothing else. Where it cannot be done without other files, change as little of them as possible, and say so.
    - Commit your work here, on this branch, one thing in each commit. What you cannot commit yourself is committed for you when you are done.
    - Commit messages: like this: topic: what
    - Check now and then whether the file exists that the variable `PROQ_WRAP_UP` names. Once it does, finish the step you are at, commit it, say what is left to do, and end.
    - Do not push.
    - The tool `read_task` of the MCP server `proq` gives you this task again. Report with `update_task` what you found out, and what only a person can do. Without that server, `git proq task read` and `git proq task update` do the same.

    It lands only when these commands succeed with it, at the top of the worktree. Run them before you end:

    - `make test`

    Be kind.
    Always.

    implement payments
    --- stderr
    apart from the prompt:
    the prompt:
    --- code 0
    ");
    let json = sandbox.proq(&["show", "x", "--prompt", "--json"]).json();
    assert_eq!((&json["rules"], &json["prompt"]), (&rules.as_str().into(), &"implement payments".into()));
    let _ = sandbox.proq(&[&["spawn", "--wait", "-n", "y", "gemini"], &more[..]].concat()).ok();
    let told = read(&sandbox, "input");
    assert!(told.starts_with("implement payments\n\n# Rules of this lane\n"), "{told}");
    assert!(
        told.contains("- `make test`")
            && told.contains("`src/pay/`")
            && told.ends_with("Be kind.\nAlways.\n")
    );
    assert_eq!(sandbox.proq(&["show", "y", "--prompt"]).ok(), sandbox.plain(told.as_bytes()));
    assert_eq!(std::fs::read_to_string(sandbox.repo.join(".git/proq/lanes/y/task.md")).unwrap(), more[4]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "z"]).ok();
    assert_eq!(sandbox.proq(&["show", "z", "--prompt"]).code, 1);
}

#[test]
fn a_permission_to_push_and_to_look_only_is_told() {
    let sandbox = with("gemini");
    configure(&sandbox, "agent.push = true\n");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "--permission", "read", "gemini", "look"]).ok();
    let told = read(&sandbox, "input");
    assert!(told.contains("You may push `proq/x`") && told.contains("Change no file"), "{told}");
    assert!(!told.contains("Commit your work") && !told.contains("Do not push"), "{told}");
}

#[test]
fn attached_files_are_copied_and_named() {
    let sandbox = with("claude");
    sandbox.write("notes/plan.md", "the plan\n");
    sandbox.write("other/plan.md", "another\n");
    let plan = sandbox.repo.join(".git/proq/lanes/x/attachments/plan.md");
    let spawn = ["spawn", "--wait", "-n", "x", "claude", "do it"];
    let out = sandbox.proq_in(&sandbox.repo.join("notes"), &[&spawn[..], &["--attach", "plan.md"]].concat());
    let _ = out.ok();
    std::fs::write(sandbox.repo.join("notes/plan.md"), "changed\n").unwrap();
    assert_eq!(std::fs::read_to_string(&plan).unwrap(), "the plan\n");
    assert!(read(&sandbox, "input").starts_with("do it\n\n"));
    assert!(read(&sandbox, "input").contains(&format!("- {}\n", plan.display())));
    let told = sandbox.proq_in(&sandbox.lane("x"), &["task", "read", "--json"]).json();
    assert_eq!(told["files"], serde_json::json!([sandbox.plain(plan.as_os_str().as_encoded_bytes())]));
    let told = sandbox.proq_in(&sandbox.lane("x"), &["task", "read"]).ok();
    assert!(told.contains("/attachments/plan.md"), "{told}");
    let _ = sandbox.proq(&["redispatch", "x"]).ok();
    let _ = sandbox.proq(&["wait", "x"]);
    assert_eq!(std::fs::read_to_string(&plan).unwrap(), "the plan\n");
    assert!(read(&sandbox, "input").contains(&format!("- {}\n", plan.display())));
    let spawn = ["spawn", "-n", "y", "claude", "do it", "--attach", "notes/plan.md", "--attach"];
    insta::assert_snapshot!(sandbox.proq(&[&spawn[..], &["other/plan.md"]].concat()).shown(), @r"
    --- stderr
    error: could not read other/plan.md
      caused by: another file of this name is given along
    --- code 1
    ");
    assert_eq!(sandbox.proq(&[&spawn[..], &["notes/none.md"]].concat()).code, 1);
    assert_eq!(sandbox.proq(&[&spawn[..], &["notes"]].concat()).code, 1);
    assert!(!sandbox.lane("y").exists());
}

#[test]
fn what_the_environment_says_to_opencode_stays() {
    let sandbox = with("opencode");
    let mut command =
        sandbox.proq_command(&sandbox.repo, &["spawn", "--wait", "-n", "x", "opencode", "do it"]);
    command.env("OPENCODE_CONFIG_CONTENT", r#"{"provider":{"stub":{}},"instructions":["mine.md"]}"#);
    let _ = sandbox.output(command).ok();
    let config: serde_json::Value =
        serde_json::from_str(&variable(&sandbox, "OPENCODE_CONFIG_CONTENT").unwrap()).unwrap();
    assert_eq!(config["provider"], serde_json::json!({"stub": {}}));
    assert_eq!(config["instructions"][0], "mine.md");
    let rules = config["instructions"][1].as_str().unwrap();
    assert!(std::fs::read_to_string(rules).unwrap().starts_with("# Rules of this lane"));
    assert_eq!(config["mcp"]["proq"]["environment"]["PROQ_LANE"], "x");
    let database = variable(&sandbox, "OPENCODE_DB").unwrap();
    assert!(database.ends_with(".git/proq/lanes/x/agent/opencode.db"), "{database}");
    assert_eq!(variable(&sandbox, "OPENCODE_PERMISSION").unwrap(), "{\"external_directory\": \"deny\"}");
}

#[test]
fn settings_that_somebody_gave_to_gemini_stay() {
    let sandbox = with("gemini");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "gemini", "do it"]).ok();
    let file = variable(&sandbox, "GEMINI_CLI_SYSTEM_SETTINGS_PATH").unwrap();
    assert!(file.ends_with(".git/proq/lanes/x/runs/1.d/settings.json"), "{file}");
    // Theirs go on beside ours, in each run of a supervisor's as in its first.
    let mine = sandbox.root().join("mine.json");
    let text = r#"{"theme":"x","mcpServers":{"own":{}},"hooks":{"AfterAgent":[{"hooks":[{"type":"command","command":"mine"}]}]}}"#;
    std::fs::write(&mine, text).unwrap();
    let dies = "cp \"$GEMINI_CLI_SYSTEM_SETTINGS_PATH\" \"$ROOT/settings.$PROQ_ATTEMPT\"; test \"$PROQ_ATTEMPT\" = 2 || kill -9 $$";
    sandbox.agent("gemini", dies);
    sandbox.git(&["config", "proq.agent.backoff", "0"]);
    let spawn = |lane: &str| {
        let mut command =
            sandbox.proq_command(&sandbox.repo, &["spawn", "--wait", "-n", lane, "gemini", "do it"]);
        command.env("GEMINI_CLI_SYSTEM_SETTINGS_PATH", &mine);
        sandbox.output(command)
    };
    let _ = spawn("y");
    for attempt in [1, 2] {
        let text = std::fs::read(sandbox.root().join(format!("settings.{attempt}"))).unwrap();
        let both: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!((&both["theme"], &both["mcpServers"]["own"]), (&"x".into(), &serde_json::json!({})));
        assert_eq!(both["mcpServers"]["proq"]["env"]["PROQ_ATTEMPT"], attempt.to_string());
        let hooks = both["hooks"]["AfterAgent"].as_array().unwrap();
        assert_eq!((hooks.len(), &hooks[0]["hooks"][0]["command"]), (2, &"mine".into()), "{both:#}");
    }
    // What cannot be joined is left alone, and said.
    std::fs::write(&mine, "// mine\n{}\n").unwrap();
    sandbox.agent("gemini", "echo \"$GEMINI_CLI_SYSTEM_SETTINGS_PATH\" > \"$ROOT/named\"; echo 1 > one");
    let out = spawn("z");
    assert!(out.stderr.contains("warning: gemini: what [ROOT]/mine.json says"), "{}", out.shown());
    let named = std::fs::read(sandbox.root().join("named")).unwrap();
    assert_eq!(sandbox.plain(&named), "[ROOT]/mine.json\n");
}

#[test]
fn the_files_of_a_run_are_private_and_belong_to_it() {
    let sandbox = with("claude");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "claude", "do it"]).ok();
    let dir = sandbox.repo.join(".git/proq/lanes/x/runs/1.d");
    assert_eq!(dir.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let json = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(dir.join(name)).unwrap()).unwrap()
    };
    let server = &json("mcp_config.json")["mcpServers"]["proq"];
    assert_eq!(server["args"], serde_json::json!(["mcp"]));
    assert_eq!(server["command"].as_str(), variable(&sandbox, "PROQ_PROGRAM").as_deref());
    assert_eq!(server["env"]["PROQ_LANE"], "x");
    let hooks = &json("settings.json")["hooks"];
    for event in ["Stop", "Notification", "PermissionRequest", "UserPromptSubmit"] {
        let command = hooks[event][0]["hooks"][0]["command"].as_str().unwrap();
        assert!(command.starts_with("\"$PROQ_PROGRAM\" _agent-event "), "{command}");
    }
    let home = sandbox.sh_in(
        &sandbox.root().join("home"),
        "find . -type f | grep -v -e cache -e gitconfig -e state/git-proq | sort",
    );
    assert_eq!(home, "");
}
