//! Agent launch options from a profile: permission levels, lane rules, attachments, files and variables of
//! one run, and agents that the user defines.

use std::os::unix::fs::PermissionsExt;

use proq_test_kit::Sandbox;
use proq_test_kit::claude::write_user_config;

/// Returns a sandbox whose agent `name` writes its arguments (one per line), its input and its environment to
/// files.
fn sandbox_with_agent(name: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.agent(name, "printf '%s\\n' \"$@\" > \"$ROOT/args\"; cat > \"$ROOT/input\"; env > \"$ROOT/env\"");
    sandbox
}

fn read_file(sandbox: &Sandbox, name: &str) -> String {
    std::fs::read_to_string(sandbox.root().join(name)).unwrap()
}

fn env_value(sandbox: &Sandbox, name: &str) -> Option<String> {
    let start = format!("{name}=");
    read_file(sandbox, "env").lines().find_map(|line| line.strip_prefix(&start).map(ToOwned::to_owned))
}

/// Promise: checks/repository-settings
#[test]
fn full_permission_needs_flag_and_warns() {
    let sandbox = sandbox_with_agent("claude");
    let out = sandbox.proq(&["spawn", "--wait", "-n", "x", "claude", "do it"]);
    assert!(!out.stderr.contains("anything"), "{}", out.stderr);
    assert!(!read_file(&sandbox, "args").contains("dangerously"));
    let out = sandbox.proq(&["spawn", "--wait", "-n", "y", "--permission", "full", "claude", "do it"]);
    assert!(out.stderr.contains("warning: the agent may do anything: permission full"), "{}", out.stderr);
    assert!(read_file(&sandbox, "args").contains("--dangerously-skip-permissions\n"));
    let json = sandbox.proq(&["spawn", "--dry-run", "--json", "-n", "z", "claude", "do it"]).json();
    assert_eq!(json["permission"], "edit");
    write_user_config(&sandbox, "agent.permission = 'read'\n");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "r", "claude", "do it"]).ok();
    assert!(read_file(&sandbox, "args").contains("--disallowedTools\nEdit\n"));
    assert_eq!(sandbox.proq(&["spawn", "--permission", "all", "claude", "x"]).code, 2);
}

/// Promise: checks/repository-settings
#[test]
fn refuses_permission_and_agents_in_repository() {
    let sandbox = sandbox_with_agent("claude");
    sandbox.write("proq.toml", "agent.permission = 'full'\n");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "claude", "do it"]).to_text(), @r"
    --- stderr
    error: cannot use [ROOT]/repo/proq.toml: a repository may not set agent.permission
    hint: remove it there; you may set it yourself with: git config proq.agent.permission VALUE
    --- code 1
    ");
    sandbox.write("proq.toml", "[agents.claude]\nprogram = 'evil'\n");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "claude", "do it"]).to_text(), @r"
    --- stderr
    error: cannot use [ROOT]/repo/proq.toml: a repository may not set agents
    hint: remove it there; set it in ~/.config/git-proq/config.toml instead
    --- code 1
    ");
    sandbox.write("proq.toml", "agent.model = 'x'\n");
    assert_eq!(sandbox.proq(&["spawn", "claude", "do it"]).code, 1);
    assert!(!sandbox.root().join("args").exists());
}

#[test]
fn refuses_unsupported_options_before_creating_lane() {
    let sandbox = sandbox_with_agent("robot");
    sandbox.program("codex", "exit 1");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--permission", "read", "robot", "x"]).to_text(), @r"
    --- stderr
    error: cannot start 'robot' with permission read: it has no read-only mode
    hint: show the permissions of each agent: git proq agents --wide
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--model", "m", "robot", "x"]).to_text(), @r"
    --- stderr
    error: cannot start 'robot': it does not support --model
    hint: leave --model out, or define it in [agents.robot.options] of ~/.config/git-proq/config.toml
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--max-turns", "3", "codex", "x"]).to_text(), @r"
    --- stderr
    error: cannot start 'codex': it does not support --max-turns
    hint: leave --max-turns out, or define it in [agents.codex.options] of ~/.config/git-proq/config.toml
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "command", "x"]).to_text(), @r#"
    --- stderr
    error: cannot start 'command': it has no program of its own
    hint: or add [agents.my-agent] with like = "command" and a program to ~/.config/git-proq/config.toml
    --- code 1
    "#);
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
}

#[test]
fn model_and_turns_reach_the_agent() {
    let sandbox = sandbox_with_agent("claude");
    write_user_config(&sandbox, "agent.model = 'a'\n[agents.claude]\nmodel = 'b'\n");
    let spawned_model_and_turns = |args: &[&str]| {
        let _ = sandbox.proq(&[&["spawn", "--wait"], args, &["claude", "do it"]].concat()).ok();
        let args = read_file(&sandbox, "args");
        let after =
            |flag: &str| args.split_once(&format!("{flag}\n")).unwrap().1.lines().next().unwrap().to_owned();
        (after("--model"), after("--max-turns"))
    };
    assert_eq!(spawned_model_and_turns(&["-n", "x"]), ("b".into(), "200".into()));
    assert_eq!(
        spawned_model_and_turns(&["-n", "y", "--model", "c", "--max-turns", "7"]),
        ("c".into(), "7".into())
    );
    write_user_config(&sandbox, "agent.model = 'a'\n");
    assert_eq!(spawned_model_and_turns(&["-n", "z"]), ("a".into(), "200".into()));
}

#[test]
fn user_config_defines_an_agent() {
    let sandbox = sandbox_with_agent("my-tool");
    write_user_config(
        &sandbox,
        "[agents.tool]\nlike = 'claude'\nprogram = 'my-tool'\noptions.extra = ['--effort', '{high}']\n\
         env = { KEY = 'in {lane}' }\n",
    );
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "tool", "do it"]).ok();
    assert!(read_file(&sandbox, "args").ends_with("--effort\n{high}\n"));
    assert_eq!(read_file(&sandbox, "input"), "do it");
    assert_eq!(env_value(&sandbox, "KEY").as_deref(), Some("in x"));
    assert_eq!(sandbox.row("x")["agent"], "tool");
    write_user_config(&sandbox, "[agents.tool]\nlike = 'claud'\n");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "tool", "do it"]).to_text(), @r"
    --- stderr
    error: cannot use agents.tool.like of [ROOT]/home/.config/git-proq/config.toml: there is no agent 'claud'
    hint: correct it, or move it away: mv '[ROOT]/home/.config/git-proq/config.toml' '[ROOT]/home/.config/git-proq/config.toml.broken'
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["agents"]).to_text(), @r"
    --- stderr
    error: cannot use agents.tool.like of [ROOT]/home/.config/git-proq/config.toml: there is no agent 'claud'
    hint: correct it, or move it away: mv '[ROOT]/home/.config/git-proq/config.toml' '[ROOT]/home/.config/git-proq/config.toml.broken'
    --- code 1
    ");
}

#[test]
fn passes_lane_rules_where_the_agent_reads_them() {
    let sandbox = sandbox_with_agent("claude");
    sandbox.agent("gemini", "cat > \"$ROOT/input\"");
    write_user_config(
        &sandbox,
        "[agent]\ncommit_style = 'like this: topic: what'\nprompt_append = \"Be kind.\\nAlways.\"\n",
    );
    let more = ["--check", "make test", "--scope", "src/pay/", "implement payments"];
    let _ = sandbox.proq(&[&["spawn", "--wait", "-n", "x", "claude"], &more[..]].concat()).ok();
    assert_eq!(read_file(&sandbox, "input"), "implement payments");
    assert!(read_file(&sandbox, "args").contains("\nBash(make test)\n"));
    let rules = std::fs::read(sandbox.repo.join(".git/proq/lanes/x/runs/1.rules.md")).unwrap();
    let rules = sandbox.normalize(&rules);
    insta::assert_snapshot!(sandbox.proq(&["show", "x", "--prompt"]).to_text(), @"
    # Rules of this lane

    You are working in lane `x`: a separate git worktree at [ROOT]/repo/.proq-worktrees/x, on branch `proq/x`, which will be merged into `main`. Other agents work in other worktrees of this repository at the same time. Nobody can answer questions: decide yourself and list your decisions in your final message.

    - Stay in this worktree. Do not touch other worktrees, other branches, the stash or git's configuration.
    - The task is expected to change only `src/pay/`. If other files have to change, change as little of them as possible and mention it in your final message.
    - Commit your work on this branch, one logical change per commit. Changes that you cannot commit are committed for you when you finish.
    - You may run these commands: `git`, `make test`. Any other is refused; do not try it in another form.
    - Commit messages: like this: topic: what
    - Check from time to time whether the file named by the environment variable `PROQ_WRAP_UP` exists. Once it exists, finish your current step, commit it, list what is left to do, and stop.
    - Do not push.
    - The tool `read_task` of the MCP server `proq` shows this task again. Use `update_task` to report findings and steps that only a person can do. Without that server, use `git proq task read` and `git proq task update` instead.

    The work is merged only if these commands succeed in the top-level folder of the worktree. Run them before you finish:

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
    let prompt = read_file(&sandbox, "input");
    assert!(prompt.starts_with("implement payments\n\n# Rules of this lane\n"), "{prompt}");
    assert!(
        prompt.contains("- `make test`")
            && prompt.contains("`src/pay/`")
            && prompt.ends_with("Be kind.\nAlways.\n")
    );
    assert_eq!(sandbox.proq(&["show", "y", "--prompt"]).ok(), sandbox.normalize(prompt.as_bytes()));
    assert_eq!(std::fs::read_to_string(sandbox.repo.join(".git/proq/lanes/y/task.md")).unwrap(), more[4]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "z"]).ok();
    assert_eq!(sandbox.proq(&["show", "z", "--prompt"]).code, 1);
}

#[test]
fn prompt_states_push_and_read_permission() {
    let sandbox = sandbox_with_agent("gemini");
    write_user_config(&sandbox, "agent.push = true\n");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "--permission", "read", "gemini", "look"]).ok();
    let prompt = read_file(&sandbox, "input");
    assert!(prompt.contains("You may push branch `proq/x`") && prompt.contains("change no file"), "{prompt}");
    assert!(!prompt.contains("Commit your work") && !prompt.contains("Do not push"), "{prompt}");
}

#[test]
fn attached_files_are_copied_and_listed() {
    let sandbox = sandbox_with_agent("claude");
    sandbox.write("notes/plan.md", "the plan\n");
    sandbox.write("other/plan.md", "another\n");
    let plan = sandbox.repo.join(".git/proq/lanes/x/attachments/plan.md");
    let spawn = ["spawn", "--wait", "-n", "x", "claude", "do it"];
    let out = sandbox.proq_in(&sandbox.repo.join("notes"), &[&spawn[..], &["--attach", "plan.md"]].concat());
    let _ = out.ok();
    std::fs::write(sandbox.repo.join("notes/plan.md"), "changed\n").unwrap();
    assert_eq!(std::fs::read_to_string(&plan).unwrap(), "the plan\n");
    assert!(read_file(&sandbox, "input").starts_with("do it\n\n"));
    assert!(read_file(&sandbox, "input").contains(&format!("- {}\n", plan.display())));
    let task = sandbox.proq_in(&sandbox.lane_path("x"), &["task", "read", "--json"]).json();
    assert_eq!(task["files"], serde_json::json!([sandbox.normalize(plan.as_os_str().as_encoded_bytes())]));
    let stdout = sandbox.proq_in(&sandbox.lane_path("x"), &["task", "read"]).ok();
    assert!(stdout.contains("/attachments/plan.md"), "{stdout}");
    let _ = sandbox.proq(&["redispatch", "x"]).ok();
    let _ = sandbox.proq(&["wait", "x"]);
    assert_eq!(std::fs::read_to_string(&plan).unwrap(), "the plan\n");
    assert!(read_file(&sandbox, "input").contains(&format!("- {}\n", plan.display())));
    let spawn = ["spawn", "-n", "y", "claude", "do it", "--attach", "notes/plan.md", "--attach"];
    insta::assert_snapshot!(sandbox.proq(&[&spawn[..], &["other/plan.md"]].concat()).to_text(), @r"
    --- stderr
    error: cannot read other/plan.md
      caused by: another file of this name is given along
    --- code 1
    ");
    assert_eq!(sandbox.proq(&[&spawn[..], &["notes/none.md"]].concat()).code, 1);
    assert_eq!(sandbox.proq(&[&spawn[..], &["notes"]].concat()).code, 1);
    assert!(!sandbox.lane_path("y").exists());
}

#[test]
fn keeps_opencode_config_from_environment() {
    let sandbox = sandbox_with_agent("opencode");
    let mut command =
        sandbox.proq_command(&sandbox.repo, &["spawn", "--wait", "-n", "x", "opencode", "do it"]);
    command.env("OPENCODE_CONFIG_CONTENT", r#"{"provider":{"stub":{}},"instructions":["mine.md"]}"#);
    let _ = sandbox.output(command).ok();
    let config: serde_json::Value =
        serde_json::from_str(&env_value(&sandbox, "OPENCODE_CONFIG_CONTENT").unwrap()).unwrap();
    assert_eq!(config["provider"], serde_json::json!({"stub": {}}));
    assert_eq!(config["instructions"][0], "mine.md");
    let rules = config["instructions"][1].as_str().unwrap();
    assert!(std::fs::read_to_string(rules).unwrap().starts_with("# Rules of this lane"));
    assert_eq!(config["mcp"]["proq"]["environment"]["PROQ_LANE"], "x");
    let database = env_value(&sandbox, "OPENCODE_DB").unwrap();
    assert!(database.ends_with(".git/proq/lanes/x/agent/opencode.db"), "{database}");
    assert_eq!(env_value(&sandbox, "OPENCODE_PERMISSION").unwrap(), "{\"external_directory\": \"deny\"}");
}

#[test]
fn merges_users_gemini_settings_into_each_run() {
    let sandbox = sandbox_with_agent("gemini");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "gemini", "do it"]).ok();
    let file = env_value(&sandbox, "GEMINI_CLI_SYSTEM_SETTINGS_PATH").unwrap();
    assert!(file.ends_with(".git/proq/lanes/x/runs/1.d/settings.json"), "{file}");
    // The user's settings are merged with those of git-proq, in a retry by the supervisor as in the first
    // run.
    let mine = sandbox.root().join("mine.json");
    let text = r#"{"theme":"x","mcpServers":{"own":{}},"hooks":{"AfterAgent":[{"hooks":[{"type":"command","command":"mine"}]}]}}"#;
    std::fs::write(&mine, text).unwrap();
    let agent_script = "cp \"$GEMINI_CLI_SYSTEM_SETTINGS_PATH\" \"$ROOT/settings.$PROQ_ATTEMPT\"; test \"$PROQ_ATTEMPT\" = 2 || kill -9 $$";
    sandbox.agent("gemini", agent_script);
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
        let merged: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!((&merged["theme"], &merged["mcpServers"]["own"]), (&"x".into(), &serde_json::json!({})));
        assert_eq!(merged["mcpServers"]["proq"]["env"]["PROQ_ATTEMPT"], attempt.to_string());
        let hooks = merged["hooks"]["AfterAgent"].as_array().unwrap();
        assert_eq!((hooks.len(), &hooks[0]["hooks"][0]["command"]), (2, &"mine".into()), "{merged:#}");
    }
    // Settings that cannot be merged are left alone, with a warning.
    std::fs::write(&mine, "// mine\n{}\n").unwrap();
    sandbox.agent("gemini", "echo \"$GEMINI_CLI_SYSTEM_SETTINGS_PATH\" > \"$ROOT/named\"; echo 1 > one");
    let out = spawn("z");
    assert!(out.stderr.contains("warning: gemini: cannot merge [ROOT]/mine.json"), "{}", out.to_text());
    let used_path = std::fs::read(sandbox.root().join("named")).unwrap();
    assert_eq!(sandbox.normalize(&used_path), "[ROOT]/mine.json\n");
}

#[test]
fn run_files_are_private_and_name_the_run() {
    let sandbox = sandbox_with_agent("claude");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "claude", "do it"]).ok();
    let dir = sandbox.repo.join(".git/proq/lanes/x/runs/1.d");
    assert_eq!(dir.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let json = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(dir.join(name)).unwrap()).unwrap()
    };
    let server = &json("mcp_config.json")["mcpServers"]["proq"];
    assert_eq!(server["args"], serde_json::json!(["mcp"]));
    assert_eq!(server["command"].as_str(), env_value(&sandbox, "PROQ_PROGRAM").as_deref());
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
