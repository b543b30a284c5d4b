//! Tests of `git proq supervise`: what the supervising agent is started with, and when it is not started.

use std::path::Path;

use proq_test_kit::Sandbox;
use serde_json::Value;

/// Script that stands in for an agent: it records its arguments and environment, then requests the tools of
/// its MCP server.
const AGENT: &str = r#"
n=$(ls "$ROOT" | grep -c '^args-'); out="$ROOT/args-$n"
for a in "$@"; do printf '%s\n--8<--\n' "$a"; done > "$out"
{ pwd; env | grep -c '^GIT_DIR=' ; echo "${PROQ_LANE-none}"; } > "$ROOT/place-$n"
cp "$ROOT/repo/.git/proq/supervisor/session.toml" "$ROOT/session-$n"
server=$(printf '%s\n' "$@" | sed -n 's/.*"proq":{.*"command":"\([^"]*\)".*/\1/p')
ask='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
if [ -n "$server" ]; then printf '%s\n' "$ask" | "$server" mcp --supervisor > "$ROOT/tools-$n"; fi
exit "${AGENT_EXIT-0}""#;

fn sandbox_with_agent(name: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program(name, AGENT);
    sandbox
}

/// Returns the arguments of the `n`-th start.
#[track_caller]
fn recorded_args(sandbox: &Sandbox, n: u32) -> Vec<String> {
    let text = std::fs::read_to_string(sandbox.root().join(format!("args-{n}"))).unwrap();
    text.split("\n--8<--\n").filter(|a| !a.is_empty()).map(ToOwned::to_owned).collect()
}

/// Prepares `git proq supervise` with a `PATH` on which no real agent is installed.
fn supervise_command(sandbox: &Sandbox, dir: &Path, args: &[&str]) -> std::process::Command {
    let mut command = sandbox.proq_command(dir, &[&["supervise"][..], args].concat());
    command.env("PATH", sandbox.path_without_agents(&["ls", "grep", "sed", "env", "cp"]));
    command
}

#[test]
fn starts_agent_with_tools_and_lane_summary() {
    let sandbox = sandbox_with_agent("claude");
    sandbox
        .run_lane("pay", "echo pay > a.txt; git-proq task update --human-step 'make an \u{1b}[2J account'");
    sandbox.run_lane("tax", "echo tax > a.txt");
    let below = sandbox.repo.join("below");
    std::fs::create_dir(&below).unwrap();
    let mut command = supervise_command(&sandbox, &below, &[]);
    command.env("GIT_DIR", sandbox.repo.join(".git")).env("GIT_WORK_TREE", &sandbox.repo);
    let _ = sandbox.output(command).ok();

    let args = recorded_args(&sandbox, 0);
    let (session, prompt) = (&args[1], args.last().unwrap());
    let program = Path::new(env!("CARGO_BIN_EXE_git-proq")).canonicalize().unwrap();
    let server = serde_json::json!({ "type": "stdio", "command": program, "args": ["mcp", "--supervisor"], "alwaysLoad": true });
    assert_eq!(
        serde_json::from_str::<Value>(&args[3]).unwrap(),
        serde_json::json!({ "mcpServers": { "proq": server } })
    );
    let expected = [
        "--session-id",
        session,
        "--mcp-config",
        &args[3],
        "--permission-mode=default",
        "--allowedTools",
        "mcp__proq__list",
        "mcp__proq__show",
        "mcp__proq__diff",
        "mcp__proq__matrix",
        "mcp__proq__spawn",
        "mcp__proq__send",
        "--",
        prompt,
    ];
    assert_eq!(args, expected);
    // The session is recorded before the agent starts, because the terminal may be closed first.
    let record = std::fs::read_to_string(sandbox.root().join("session-0")).unwrap();
    assert!(record.contains(&format!("session = \"{session}\"")), "{record}");
    assert!(prompt.contains("merge: land lanes. The first call returns a plan"), "{prompt}");
    assert!(prompt.contains("- pay \"sh -ec"), "{prompt}");
    assert!(prompt.contains("conflicts with tax"), "{prompt}");
    assert!(prompt.contains("  step for a person: \"make an \\u{1b}[2J account\"\n"), "{prompt}");
    let context = std::fs::read_to_string(sandbox.root().join("place-0")).unwrap();
    assert_eq!(sandbox.normalize(context.as_bytes()), "[ROOT]/repo\n0\nnone\n");
    let tools = std::fs::read_to_string(sandbox.root().join("tools-0")).unwrap();
    assert!(
        tools.contains("\"name\":\"merge\"")
            && !tools.contains("read_task")
            && !tools.contains("You work in a lane"),
        "{tools}"
    );
    sandbox.assert_healthy();
}

#[test]
fn resumes_last_session_unless_new_is_given() {
    let sandbox = sandbox_with_agent("claude");
    for options in [&[][..], &[], &["--new"], &["claude"]] {
        let _ = sandbox.output(supervise_command(&sandbox, &sandbox.repo, options)).ok();
    }
    let start = |n| recorded_args(&sandbox, n)[..2].to_vec();
    let (first, third) = (start(0)[1].clone(), start(2)[1].clone());
    assert_eq!(start(1), ["--resume".to_owned(), first.clone()]);
    assert_eq!(start(2)[0], "--session-id");
    assert_eq!(start(3), ["--resume".to_owned(), third.clone()]);
    assert_ne!(first, third);
    assert!(recorded_args(&sandbox, 1).last().unwrap().starts_with("This session continues"));
}

#[test]
fn resumes_last_session_of_agent_with_own_ids() {
    for (agent, resume_args) in [("codex", &["resume", "--last"][..]), ("opencode", &["--continue"])] {
        let sandbox = sandbox_with_agent(agent);
        let dry_run = || sandbox.output(supervise_command(&sandbox, &sandbox.repo, &["--dry-run"])).ok();
        assert!(dry_run().contains(", in a new session, with this prompt:"), "{}", dry_run());
        let _ = sandbox.output(supervise_command(&sandbox, &sandbox.repo, &[])).ok();
        assert!(dry_run().contains(", resuming its last session here, with this prompt:"), "{}", dry_run());
        for options in [&[][..], &["--new"]] {
            let _ = sandbox.output(supervise_command(&sandbox, &sandbox.repo, options)).ok();
        }
        assert_ne!(recorded_args(&sandbox, 0)[..resume_args.len()], *resume_args);
        assert_eq!(recorded_args(&sandbox, 1)[..resume_args.len()], *resume_args);
        // The agent's last session may not be the one that git-proq started, so its prompt is complete.
        assert!(recorded_args(&sandbox, 1).last().unwrap().starts_with("You supervise"), "{agent}");
        assert_ne!(recorded_args(&sandbox, 2)[..resume_args.len()], *resume_args);
        let answer =
            sandbox.output(supervise_command(&sandbox, &sandbox.repo, &["--dry-run", "--json"])).json();
        assert_eq!((&answer["resumed"], &answer["session"]), (&true.into(), &Value::Null));
    }
}

#[test]
fn warns_when_agent_exits_with_failure() {
    let sandbox = sandbox_with_agent("claude");
    let _ = sandbox.output(supervise_command(&sandbox, &sandbox.repo, &[])).ok();
    let mut command = supervise_command(&sandbox, &sandbox.repo, &[]);
    command.env("AGENT_EXIT", "1");
    insta::assert_snapshot!(sandbox.output(command).fails(4), @r"
    warning: claude ended with exit code 1
    hint: start a new session: git proq supervise --new
    ");
}

/// Promise: agent-requests/no-lane-tools
#[test]
fn refuses_supervising_from_a_lane_or_twice() {
    let sandbox = sandbox_with_agent("claude");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    let message = sandbox.output(supervise_command(&sandbox, &sandbox.lane_path("x"), &[])).fails(1);
    assert!(message.contains("cannot do this from lane 'x'"), "{message}");
    let mut command = supervise_command(&sandbox, &sandbox.repo, &[]);
    command.env("PROQ_LANE", "x");
    assert!(sandbox.output(command).fails(1).contains("cannot do this from lane 'x'"));

    sandbox.program(
        "claude",
        "git-proq supervise --new; echo $? > \"$ROOT/second\"; git-proq doctor --json > \"$ROOT/doctor\"",
    );
    let out = sandbox.output(supervise_command(&sandbox, &sandbox.repo, &[]));
    assert!(out.stderr.contains("the place of the supervising agent"), "{}", out.stderr);
    assert_eq!(std::fs::read_to_string(sandbox.root().join("second")).unwrap(), "5\n");
    let doctor = std::fs::read_to_string(sandbox.root().join("doctor")).unwrap();
    let doctor: Value = serde_json::from_str(&doctor).unwrap();
    let bad = doctor["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|f| f["severity"] == "warning" && f["check"] != "disk-space");
    assert_eq!(bad.count(), 0, "{doctor}");
}

#[test]
fn dry_run_starts_and_saves_nothing() {
    let sandbox = sandbox_with_agent("codex");
    let out = sandbox.output(supervise_command(&sandbox, &sandbox.repo, &["--dry-run"])).ok();
    assert!(out.contains("would start [ROOT]/bin/codex, in a new session, with this prompt:"), "{out}");
    let answer = sandbox.output(supervise_command(&sandbox, &sandbox.repo, &["--dry-run", "--json"])).json();
    assert_eq!((&answer["agent"], &answer["command"][1]), (&"codex".into(), &"-c".into()));
    assert!(!sandbox.root().join("args-0").exists() && !sandbox.repo.join(".git/proq/supervisor").exists());
}

#[test]
fn lists_supported_agents_when_none_is_installed() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.output(supervise_command(&sandbox, &sandbox.repo, &[])).fails(1), @r"
    error: cannot supervise: none of these agents is installed: claude, codex, gemini or opencode
    hint: give the tools to an agent yourself: git proq mcp --supervisor
    ");
    let message = sandbox.output(supervise_command(&sandbox, &sandbox.repo, &["aider"])).fails(2);
    assert!(
        message.contains("cannot supervise with 'aider': supported are claude, codex, gemini or opencode"),
        "{message}"
    );
    let message = sandbox.output(supervise_command(&sandbox, &sandbox.repo, &["gemini"])).fails(1);
    assert!(message.contains("gemini"), "{message}");
}

#[test]
fn custom_agent_supervises_like_its_base_profile() {
    let sandbox = sandbox_with_agent("helper");
    sandbox.write_in(
        &sandbox.root(),
        "home/.config/git-proq/config.toml",
        "[agents.mine]\nlike = 'claude'\nprogram = 'helper'\n",
    );
    let _ = sandbox.output(supervise_command(&sandbox, &sandbox.repo, &["mine"])).ok();
    let first = recorded_args(&sandbox, 0);
    assert_eq!((first[0].as_str(), first[2].as_str()), ("--session-id", "--mcp-config"));
    let _ = sandbox.output(supervise_command(&sandbox, &sandbox.repo, &[])).ok();
    assert_eq!(recorded_args(&sandbox, 1)[..2], ["--resume".to_owned(), first[1].clone()]);
}
