//! Tests of agent launch: arguments, standard input, environment, and prompts of every kind.

use proq_test_kit::{Output, Sandbox};

/// Returns what the test agent received: its arguments, one a line, then its standard input.
fn robot_input(sandbox: &Sandbox) -> String {
    std::fs::read_to_string(sandbox.root().join("heard")).unwrap()
}

/// Returns what the test agent received, with paths and session ids replaced by placeholders.
fn stable_robot_input(sandbox: &Sandbox) -> String {
    let text = robot_input(sandbox).replace(&sandbox.root().display().to_string(), "[ROOT]");
    let Some((before, after)) = text.split_once("<--session-id>\n<") else { return text };
    let (id, after) = after.split_once('>').unwrap();
    assert!(id.len() == 36 && id.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-'), "{id}");
    format!("{before}<--session-id>\n<[ID]>{after}")
}

fn with_robot(name: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.agent(name, "{ printf '<%s>\\n' \"$@\"; echo --; cat; } > \"$ROOT/heard\"");
    sandbox
}

#[test]
fn known_agent_gets_prompt_on_stdin() {
    let sandbox = with_robot("claude");
    let prompt = "say \"it's\" $(id) `x`\n\\ {git_dir}";
    let _ = sandbox.proq(&["spawn", "--wait", "claude", "-n", "x", prompt]).ok();
    insta::assert_snapshot!(stable_robot_input(&sandbox), @r#"
    <-p>
    <--output-format>
    <stream-json>
    <--verbose>
    <--input-format>
    <stream-json>
    <--permission-mode>
    <acceptEdits>
    <--allowedTools>
    <mcp__proq__*>
    <Bash(git *)>
    <--max-turns>
    <200>
    <--settings>
    <[ROOT]/repo/.git/proq/lanes/x/runs/1.d/settings.json>
    <--mcp-config>
    <[ROOT]/repo/.git/proq/lanes/x/runs/1.d/mcp_config.json>
    <--append-system-prompt-file>
    <[ROOT]/repo/.git/proq/lanes/x/runs/1.rules.md>
    <--session-id>
    <[ID]>
    --
    say "it's" $(id) `x`
    \ {git_dir}
    "#);
    assert_eq!(sandbox.row("x")["agent"], "claude");
}

#[test]
fn unknown_program_gets_prompt_as_last_argument() {
    let sandbox = with_robot("robot");
    let _ = sandbox.proq(&["spawn", "--wait", "robot", "do\nthis; $(x)"]).ok();
    insta::assert_snapshot!(robot_input(&sandbox), @r"
    <do
    this; $(x)>
    --
    ");
}

#[test]
fn supervisor_reads_prompt_from_file_of_run() {
    let sandbox = Sandbox::new();
    sandbox.agent("robot", "{ printf '<%s>\\n' \"$@\"; ps -ww -o args= -p $PPID; } > \"$ROOT/heard\"");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "robot", "a long prompt"]).ok();
    let input = robot_input(&sandbox);
    let supervisor = input.strip_prefix("<a long prompt>\n").unwrap();
    assert!(supervisor.contains("_supervise --lane x --attempt 1 --prompt-marker "), "{supervisor}");
    assert!(!supervisor.contains("long prompt"), "{supervisor}");
}

#[test]
fn resolves_program_path_from_current_folder() {
    let sandbox = with_robot("robot");
    std::fs::create_dir_all(sandbox.repo.join("tools")).unwrap();
    std::fs::rename(sandbox.root().join("bin/robot"), sandbox.repo.join("tools/robot")).unwrap();
    let _ = sandbox.proq_in(&sandbox.repo.join("tools"), &["spawn", "--wait", "./robot", "do it"]).ok();
    assert_eq!(robot_input(&sandbox), "<do it>\n--\n");
}

#[test]
fn expands_placeholders_in_command() {
    let sandbox = with_robot("robot");
    sandbox.write("task.md", "the task\n");
    let _ = sandbox
        .proq(&[
            "spawn",
            "--wait",
            "-n",
            "x",
            "-f",
            "task.md",
            "--",
            "robot",
            "-m={prompt}",
            "{prompt_file}",
            "{x}",
        ])
        .ok();
    let file = sandbox.repo.join(".git/proq/lanes/x/runs/1.md");
    assert_eq!(robot_input(&sandbox), format!("<-m=the task\n>\n<{}>\n<{{x}}>\n--\n", file.display()));
    assert_eq!(std::fs::read_to_string(file).unwrap(), "the task\n");
    let task = sandbox.repo.join(".git/proq/lanes/x/task.md");
    assert_eq!(std::fs::read_to_string(task).unwrap(), "the task\n");
}

#[test]
fn reads_prompt_from_file_or_stdin() {
    let sandbox = with_robot("robot");
    sandbox.write("tasks/one.md", "# From a file\n\nbody\n");
    let _ = sandbox.proq_in(&sandbox.repo.join("tasks"), &["spawn", "--wait", "robot", "-f", "one.md"]).ok();
    assert_eq!(robot_input(&sandbox), "<# From a file\n\nbody\n>\n--\n");
    assert_eq!(sandbox.row("file")["title"], "From a file");
    let command = sandbox.proq_command(&sandbox.repo, &["spawn", "--wait", "robot", "-f", "-"]);
    let _ = sandbox.output_with(command, b"piped in").ok();
    assert_eq!(robot_input(&sandbox), "<piped in>\n--\n");
    let out = sandbox.proq(&["spawn", "robot", "-f", "nowhere.md"]);
    insta::assert_snapshot!(out.to_text(), @r"
    --- stderr
    error: cannot read nowhere.md: there is no such file; nothing was changed
    hint: list the files of that folder: ls -A .
    --- code 1
    ");
    assert_eq!(sandbox.proq(&["spawn", "robot", "x", "-f", "y"]).code, 2);
}

fn spawn_with_piped_prompt(sandbox: &Sandbox, agent: &str, prompt: &[u8]) -> Output {
    let command = sandbox.proq_command(&sandbox.repo, &["spawn", "--wait", "-n", "x", agent, "-f", "-"]);
    sandbox.output_with(command, prompt)
}

#[test]
fn megabyte_prompt_reaches_agent_on_stdin() {
    let sandbox = with_robot("claude");
    let prompt = "0123456789abcde\n".repeat(1 << 16);
    let _ = spawn_with_piped_prompt(&sandbox, "claude", prompt.as_bytes()).ok();
    assert!(robot_input(&sandbox).ends_with(&format!("--\n{prompt}")));
}

#[test]
fn refuses_unusable_prompt_before_creating_lane() {
    let sandbox = with_robot("robot");
    insta::assert_snapshot!(spawn_with_piped_prompt(&sandbox, "robot", "x".repeat(1 << 20).as_bytes()).to_text(), @r"
    --- stderr
    error: cannot use the prompt: it is longer than 120 KiB, the limit of an argument, which is how this agent takes it
    hint: let the agent read a file: git proq spawn --name payments --file task.md -- my-agent {prompt_file}
    --- code 2
    ");
    insta::assert_snapshot!(spawn_with_piped_prompt(&sandbox, "robot", b"a\0b").to_text(), @r"
    --- stderr
    error: cannot use the prompt: it has a NUL byte
    hint: a prompt is plain text; check the file
    --- code 2
    ");
    insta::assert_snapshot!(spawn_with_piped_prompt(&sandbox, "robot", b"\xff\xfe").to_text(), @r"
    --- stderr
    error: cannot read standard input
      caused by: invalid utf-8 sequence of 1 bytes from index 0
    --- code 1
    ");
    insta::assert_snapshot!(spawn_with_piped_prompt(&sandbox, "robot", b" \n").to_text(), @r#"
    --- stderr
    error: cannot use the prompt: it is empty
    hint: for example: git proq spawn claude "implement payments"
    --- code 2
    "#);
    insta::assert_snapshot!(spawn_with_piped_prompt(&sandbox, "robot", b"--help").to_text(), @r"
    --- stderr
    error: cannot use the prompt: it starts with '-', so this agent would read it as an option
    hint: start the prompt with a word
    --- code 2
    ");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "robot"]).to_text(), @r#"
    --- stderr
    error: no prompt given for the agent
    hint: for example: git proq spawn claude "implement payments"
    --- code 2
    "#);
    insta::assert_snapshot!(sandbox.proq(&["spawn"]).to_text(), @r#"
    --- stderr
    error: no agent or command given
    hint: for example: git proq spawn claude "implement payments"
    --- code 2
    "#);
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
}

#[test]
fn refuses_missing_program_before_creating_lane() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.proq(&["spawn", "no-such-agent", "do it"]).to_text(), @r"
    --- stderr
    error: cannot start 'no-such-agent': there is no such program on PATH
    hint: list installed agents: git proq agents
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["spawn", "-n", "x", "--", "no-such-command"]).to_text(), @r"
    --- stderr
    error: cannot start 'no-such-command': there is no such program on PATH
    --- code 1
    ");
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
    assert!(!sandbox.repo.join(".git/proq").exists());
}

#[test]
fn unstartable_program_leaves_failed_lane() {
    let sandbox = Sandbox::new();
    sandbox.program("broken", "true");
    let mut command = sandbox.command("sh", &sandbox.root());
    command.args(["-c", "printf '#!/no/such/interpreter\\n' > bin/broken"]);
    let _ = sandbox.output(command).ok();
    let out = sandbox.proq(&["spawn", "-n", "x", "broken", "do it"]);
    insta::assert_snapshot!(out.to_text(), @r"
    --- stderr
    error: created lane 'x', but its agent did not start: cannot start '[ROOT]/bin/broken': its interpreter '/no/such/interpreter' does not exist
    hint: remove the lane: git proq discard x
    --- code 4
    ");
    assert_eq!(sandbox.row("x")["state"], "failed");
    insta::assert_snapshot!(sandbox.proq(&["discard", "x"]).to_text(), @r"
    discarded x
    --- stderr
    its folder, ignored files included, is kept for 7 days: [ROOT]/repo/.git/proq/trash/x-[ID]
    --- code 0
    ");
}

#[test]
fn agent_env_names_lane_without_caller_git_vars() {
    let sandbox = Sandbox::new();
    sandbox.program(
        "robot",
        "env > \"$ROOT/env\"; git rev-parse --abbrev-ref HEAD > \"$ROOT/branch\"; pwd > \"$ROOT/pwd\"",
    );
    let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "--wait", "-n", "x", "robot", "do it"]);
    command.env("GIT_DIR", sandbox.repo.join(".git")).env("GIT_WORK_TREE", &sandbox.repo);
    command.env("GIT_INDEX_FILE", sandbox.root().join("index")).env("GIT_PREFIX", "sub/");
    command.env("CLAUDECODE", "1").env("KEPT", "kept");
    let _ = sandbox.output(command).ok();
    let read = |name: &str| std::fs::read_to_string(sandbox.root().join(name)).unwrap();
    let env = read("env");
    let value = |key: &str| env.lines().find_map(|l| l.strip_prefix(&format!("{key}=")));
    assert_eq!(value("PROQ_LANE"), Some("x"));
    assert_eq!(std::fs::read_to_string(value("PROQ_TASK_FILE").unwrap()).unwrap(), "do it");
    assert_eq!(value("KEPT"), Some("kept"));
    for removed_var in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "CLAUDECODE"] {
        assert_eq!(value(removed_var), None, "{removed_var}");
    }
    assert_eq!(read("branch"), "proq/x\n");
    assert_eq!(read("pwd").trim_end(), sandbox.lane_path("x").display().to_string());
}

#[test]
fn git_config_arguments_do_not_reach_agent() {
    let sandbox = Sandbox::new();
    sandbox.program("robot", "env > \"$ROOT/env\"");
    let mut command = sandbox.command("git", &sandbox.repo);
    command.args(["-c", "user.name=Other", "proq", "spawn", "--wait", "robot", "do it"]);
    let _ = sandbox.output(command).ok();
    let env = std::fs::read_to_string(sandbox.root().join("env")).unwrap();
    assert!(!env.contains("user.name") && !env.contains("Other"), "{env}");
}

#[test]
fn agent_pwd_is_its_worktree() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "--wait", "-n", "x", "--", "env"]);
    command.env("PWD", &sandbox.repo);
    let _ = sandbox.output(command).ok();
    let log = sandbox.proq(&["logs", "x"]).ok();
    assert!(log.lines().any(|line| line == "PWD=[ROOT]/repo/.proq-worktrees/x"), "{log}");
}

#[test]
fn resumes_agent_without_turn_limit_option() {
    let sandbox = Sandbox::new();
    sandbox.agent(
        "codex",
        r#"echo '{"type":"thread.started","thread_id":"t-1"}'; echo "$* $(cat)" >> "$ROOT/heard""#,
    );
    let _ = sandbox.proq(&["spawn", "--wait", "codex", "-n", "x", "begin"]).ok();
    let _ = sandbox.proq(&["send", "x", "--wait", "go on"]).ok();
    let run = sandbox.last_run("x");
    assert_eq!((&run["resumed"], &run["account"]["session"]), (&true.into(), &"t-1".into()));
    assert!(robot_input(&sandbox).ends_with("resume t-1 - go on\n"), "{}", robot_input(&sandbox));
}

#[test]
fn start_error_names_missing_interpreter() {
    let sandbox = Sandbox::new();
    for (line, interpreter) in [("#! /nowhere/sh -e", "/nowhere/sh"), ("#!/bin/sh\r", "/bin/sh\\r")] {
        sandbox.agent("robot", "true");
        let robot = sandbox.root().join("bin/robot");
        std::fs::write(&robot, format!("{line}\ntrue\n")).unwrap();
        let error = sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "robot"]).fails(4);
        assert!(
            error.contains(&format!("robot': its interpreter '{interpreter}' does not exist")),
            "{error}"
        );
        assert!(!error.contains("No such file"), "{error}");
        let _ = sandbox.proq(&["discard", "x"]).ok();
    }
    // A script that exists, with an interpreter that exists.
    std::fs::write(sandbox.root().join("bin/robot"), "#!/bin/sh\ntrue\n").unwrap();
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "robot"]);
    assert_eq!(sandbox.row("x")["state"], "no-change");
}
