//! Owns the tests of `git proq supervise`: what the one agent is started with, and when it is not.

use std::path::Path;

use serde_json::Value;

use super::support::Sandbox;

/// A stand-in for an agent: it writes down what it got, then asks the server that it was given for its tools.
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

fn with_agent(name: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program(name, AGENT);
    sandbox
}

/// The arguments of the `n`-th start.
#[track_caller]
fn args(sandbox: &Sandbox, n: u32) -> Vec<String> {
    let text = std::fs::read_to_string(sandbox.root().join(format!("args-{n}"))).unwrap();
    text.split("\n--8<--\n").filter(|a| !a.is_empty()).map(ToOwned::to_owned).collect()
}

/// The program where no real agent can be found.
fn supervise(sandbox: &Sandbox, dir: &Path, args: &[&str]) -> std::process::Command {
    let mut command = sandbox.proq_command(dir, &[&["supervise"][..], args].concat());
    command.env("PATH", sandbox.path_without_agents(&["ls", "grep", "sed", "env", "cp"]));
    command
}

#[test]
fn an_agent_is_started_here_with_the_tools_and_told_how_the_lanes_stand() {
    let sandbox = with_agent("claude");
    sandbox
        .lane_with("pay", "echo pay > a.txt; git-proq task update --human-step 'make an \u{1b}[2J account'");
    sandbox.lane_with("tax", "echo tax > a.txt");
    let below = sandbox.repo.join("below");
    std::fs::create_dir(&below).unwrap();
    let mut command = supervise(&sandbox, &below, &[]);
    command.env("GIT_DIR", sandbox.repo.join(".git")).env("GIT_WORK_TREE", &sandbox.repo);
    let _ = sandbox.output(command).ok();

    let args = args(&sandbox, 0);
    let (session, prompt) = (&args[1], args.last().unwrap());
    let exe = Path::new(env!("CARGO_BIN_EXE_git-proq")).canonicalize().unwrap();
    let server = serde_json::json!({ "type": "stdio", "command": exe, "args": ["mcp", "--supervisor"], "alwaysLoad": true });
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
    // It is known before the agent starts: the terminal may end first.
    let known = std::fs::read_to_string(sandbox.root().join("session-0")).unwrap();
    assert!(known.contains(&format!("session = \"{session}\"")), "{known}");
    assert!(prompt.contains("merge: land lanes. The first call answers with a plan"), "{prompt}");
    assert!(prompt.contains("- pay \"sh -ec"), "{prompt}");
    assert!(prompt.contains("conflicts with tax"), "{prompt}");
    assert!(prompt.contains("  a person has to: \"make an \\u{1b}[2J account\"\n"), "{prompt}");
    let place = std::fs::read_to_string(sandbox.root().join("place-0")).unwrap();
    assert_eq!(sandbox.plain(place.as_bytes()), "[ROOT]/repo\n0\nnone\n");
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
fn its_session_goes_on_the_next_time_unless_a_new_one_is_asked_for() {
    let sandbox = with_agent("claude");
    for more in [&[][..], &[], &["--new"], &["claude"]] {
        let _ = sandbox.output(supervise(&sandbox, &sandbox.repo, more)).ok();
    }
    let start = |n| args(&sandbox, n)[..2].to_vec();
    let (first, third) = (start(0)[1].clone(), start(2)[1].clone());
    assert_eq!(start(1), ["--resume".to_owned(), first.clone()]);
    assert_eq!(start(2)[0], "--session-id");
    assert_eq!(start(3), ["--resume".to_owned(), third.clone()]);
    assert_ne!(first, third);
    assert!(args(&sandbox, 1).last().unwrap().starts_with("This session goes on"));
}

#[test]
fn one_that_names_its_sessions_itself_goes_on_with_its_last_one_here() {
    for (agent, words) in [("codex", &["resume", "--last"][..]), ("opencode", &["--continue"])] {
        let sandbox = with_agent(agent);
        let dry = || sandbox.output(supervise(&sandbox, &sandbox.repo, &["--dry-run"])).ok();
        assert!(dry().contains(", in a new session; it would be told:"), "{}", dry());
        let _ = sandbox.output(supervise(&sandbox, &sandbox.repo, &[])).ok();
        assert!(dry().contains(", and go on with its last session here; it would be told:"), "{}", dry());
        for more in [&[][..], &["--new"]] {
            let _ = sandbox.output(supervise(&sandbox, &sandbox.repo, more)).ok();
        }
        assert_ne!(args(&sandbox, 0)[..words.len()], *words);
        assert_eq!(args(&sandbox, 1)[..words.len()], *words);
        // It may be another one than the last that we began: it is told all.
        assert!(args(&sandbox, 1).last().unwrap().starts_with("You supervise"), "{agent}");
        assert_ne!(args(&sandbox, 2)[..words.len()], *words);
        let said = sandbox.output(supervise(&sandbox, &sandbox.repo, &["--dry-run", "--json"])).json();
        assert_eq!((&said["resumed"], &said["session"]), (&true.into(), &Value::Null));
    }
}

#[test]
fn an_agent_that_ends_badly_is_told_of() {
    let sandbox = with_agent("claude");
    let _ = sandbox.output(supervise(&sandbox, &sandbox.repo, &[])).ok();
    let mut command = supervise(&sandbox, &sandbox.repo, &[]);
    command.env("AGENT_EXIT", "1");
    insta::assert_snapshot!(sandbox.output(command).fails(4), @r"
    warning: claude ended with exit code 1
    hint: if its session is gone, begin a new one: git proq supervise --new
    ");
}

#[test]
fn nobody_supervises_from_a_lane_or_beside_another_one() {
    let sandbox = with_agent("claude");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    let said = sandbox.output(supervise(&sandbox, &sandbox.lane("x"), &[])).fails(1);
    assert!(said.contains("and not for one in lane 'x'"), "{said}");
    let mut command = supervise(&sandbox, &sandbox.repo, &[]);
    command.env("PROQ_LANE", "x");
    assert!(sandbox.output(command).fails(1).contains("and not for one in lane 'x'"));

    sandbox.program(
        "claude",
        "git-proq supervise --new; echo $? > \"$ROOT/second\"; git-proq doctor --json > \"$ROOT/doctor\"",
    );
    let out = sandbox.output(supervise(&sandbox, &sandbox.repo, &[]));
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
fn a_dry_run_starts_nothing_and_keeps_nothing() {
    let sandbox = with_agent("codex");
    let out = sandbox.output(supervise(&sandbox, &sandbox.repo, &["--dry-run"])).ok();
    assert!(out.contains("would start [ROOT]/bin/codex, in a new session; it would be told:"), "{out}");
    let answer = sandbox.output(supervise(&sandbox, &sandbox.repo, &["--dry-run", "--json"])).json();
    assert_eq!((&answer["agent"], &answer["command"][1]), (&"codex".into(), &"-c".into()));
    assert!(!sandbox.root().join("args-0").exists() && !sandbox.repo.join(".git/proq/supervisor").exists());
}

#[test]
fn without_an_agent_that_can_supervise_it_says_which_can() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.output(supervise(&sandbox, &sandbox.repo, &[])).fails(1), @r"
    error: no agent that can supervise is installed: it takes claude, codex, gemini or opencode
    hint: or give another agent the tools yourself: git proq mcp --supervisor
    ");
    let said = sandbox.output(supervise(&sandbox, &sandbox.repo, &["aider"])).fails(2);
    assert!(
        said.contains("'aider' cannot supervise lanes: it takes claude, codex, gemini or opencode"),
        "{said}"
    );
    let said = sandbox.output(supervise(&sandbox, &sandbox.repo, &["gemini"])).fails(1);
    assert!(said.contains("gemini"), "{said}");
}

#[test]
fn an_agent_of_the_users_own_supervises_as_the_one_that_it_is_like() {
    let sandbox = with_agent("helper");
    sandbox.write_in(
        &sandbox.root(),
        "home/.config/git-proq/config.toml",
        "[agents.mine]\nlike = 'claude'\nprogram = 'helper'\n",
    );
    let _ = sandbox.output(supervise(&sandbox, &sandbox.repo, &["mine"])).ok();
    let first = args(&sandbox, 0);
    assert_eq!((first[0].as_str(), first[2].as_str()), ("--session-id", "--mcp-config"));
    let _ = sandbox.output(supervise(&sandbox, &sandbox.repo, &[])).ok();
    assert_eq!(args(&sandbox, 1)[..2], ["--resume".to_owned(), first[1].clone()]);
}
