//! Tests of `--allow` and `agent.allow`: what each agent is given of them, what is refused, and how denied
//! commands are shown.

use proq_test_kit::{Output, Sandbox};

/// Script of an agent that records its arguments, one per line, and reports a successful run.
const RECORDING_AGENT: &str = r#"for word; do echo "$word"; done > "$ROOT/args"
git commit -q --allow-empty -m x
echo '{"type":"result","subtype":"success","is_error":false,"result":"done"}'"#;

/// Script of an agent whose commands are denied, in the format of Claude Code.
const DENIED_AGENT: &str = r#"git commit -q --allow-empty -m x
cat <<'END'
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cargo test -p printer"}}]}}
{"type":"system","subtype":"permission_denied","tool_name":"Bash","tool_use_id":"t1","message":"This command requires approval"}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t2","name":"Bash","input":{"command":"make; rm -rf x"}}]}}
{"type":"result","subtype":"success","is_error":false,"result":"could not","permission_denials":[{"tool_name":"Bash","tool_use_id":"t1","tool_input":{}},{"tool_name":"Bash","tool_use_id":"t2","tool_input":{}}]}
END"#;

/// Returns the command rules that the last run's agent was given.
fn given_rules(sandbox: &Sandbox) -> Vec<String> {
    let args = std::fs::read_to_string(sandbox.root().join("args")).unwrap();
    args.lines().filter(|word| word.contains('(')).map(str::to_owned).collect()
}

fn allow_in_settings(sandbox: &Sandbox, pattern: &str) {
    sandbox.git(&["config", "--add", "proq.agent.allow", pattern]);
}

#[test]
fn allowed_commands_reach_the_agent() {
    let sandbox = Sandbox::new();
    sandbox.agent("claude", RECORDING_AGENT);
    allow_in_settings(&sandbox, "cargo *");
    allow_in_settings(&sandbox, "npm run test *");
    let args = ["spawn", "-n", "x", "claude", "do it", "--allow", "npm ci", "--check", "make test"];
    let dry = sandbox.proq(&[&args[..], &["--dry-run"]].concat()).ok();
    let out = sandbox.proq(&args);
    let text = out.to_text();
    assert!(
        text.contains("may run: git, make test, npm ci, cargo *, npm run test *; allow more: "),
        "{text}"
    );
    let _ = sandbox.proq(&["wait", "x"]).ok();
    let rules = ["Bash(git *)", "Bash(make test)", "Bash(cargo *)", "Bash(npm run test *)", "Bash(npm ci)"];
    assert_eq!(given_rules(&sandbox), rules);
    for rule in rules {
        assert!(dry.contains(&format!("'{rule}'")), "{dry}");
    }
    let rules_file = std::fs::read_to_string(sandbox.repo.join(".git/proq/lanes/x/runs/1.rules.md")).unwrap();
    let line = "You may run these commands: `git`, `make test`, `npm ci`, `cargo *`, `npm run test *`";
    assert!(rules_file.contains(line), "{rules_file}");
    // A message goes to the same agent with the same commands.
    let _ = sandbox.proq(&["send", "x", "--wait", "more"]).ok();
    assert_eq!(given_rules(&sandbox), rules);
    let json = sandbox.proq(&["run", "x", "--dry-run", "--json", "claude", "again"]).json();
    assert_eq!(json["may_run"], "git, make test, cargo *, npm run test *");
}

/// Formats the error of a spawn with these arguments.
fn refusal(sandbox: &Sandbox, args: &[&str]) -> String {
    let out: Output = sandbox.proq(&[&["spawn"], args].concat());
    assert_eq!(out.code, 2, "{}", out.to_text());
    out.stderr.lines().filter(|line| !line.starts_with("warning:")).collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn refuses_what_an_agent_cannot_express() {
    let sandbox = Sandbox::new();
    for agent in ["claude", "gemini", "copilot", "qwen", "amp"] {
        sandbox.agent(agent, "true");
    }
    let cases: [&[&str]; 9] = [
        &["claude", "x", "--allow", "cargo x; rm -rf *"],
        &["claude", "x", "--allow", "*"],
        &["claude", "x", "--allow", "cargo *", "--permission", "read"],
        &["gemini", "x", "--allow", "npm ci"],
        &["copilot", "x", "--allow", "npm run test *"],
        &["qwen", "x", "--allow", "cargo *"],
        &["amp", "x", "--allow", "cargo *"],
        &["--agents", "claude,gemini", "x", "--allow", "npm ci"],
        &["-n", "x", "--allow", "cargo *", "--", "true"],
    ];
    let out: String = cases.iter().map(|args| refusal(&sandbox, args)).collect();
    insta::assert_snapshot!(out, @r#"
    error: cannot allow 'cargo x; rm -rf *': it contains ';'; only plain words and ' *' at the end are allowed
    hint: for example: git proq spawn claude "implement payments" --allow 'cargo *'
    error: cannot allow '*': it matches every command; use --permission full instead
    hint: for example: git proq spawn claude "implement payments" --allow 'cargo *'
    error: cannot use --allow with permission read: it adds commands to those of permission edit
    hint: leave --allow out, or use it with --permission edit
    error: cannot allow 'npm ci' for 'gemini': it would permit any arguments after that
    hint: allow more than that: --allow 'npm ci *'
    error: cannot allow 'npm run test *' for 'copilot': it distinguishes only the first 2 words of a command
    hint: allow more than that: --allow 'npm run *'
    error: cannot allow 'cargo *' for 'qwen': it runs no commands
    hint: leave --allow out
    error: cannot allow 'cargo *' for 'amp': git-proq has no way to tell it which commands it may run
    hint: leave --allow out
    error: cannot allow 'npm ci' for 'gemini': it would permit any arguments after that
    hint: allow more than that: --allow 'npm ci *'
    error: cannot allow 'cargo *' for 'command': it is a command of yours, and no agent
    hint: leave --allow out
    "#);
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
    // What a setting allows is no reason to refuse an agent that cannot be given it.
    allow_in_settings(&sandbox, "npm ci");
    let text = sandbox.proq(&["spawn", "--dry-run", "gemini", "x"]).to_text();
    assert!(
        text.contains("warning: agent.allow 'npm ci' has no effect on gemini: it would permit"),
        "{text}"
    );
    assert!(!text.contains("(npm ci)"), "{text}");
    allow_in_settings(&sandbox, "make && sh");
    let error = sandbox.proq(&["spawn", "--dry-run", "claude", "x"]).fails(2);
    assert!(error.contains("cannot allow 'make && sh': it contains '&'"), "{error}");
}

#[test]
fn allows_repository_patterns_only_after_approval() {
    let sandbox = Sandbox::new();
    sandbox.agent("claude", RECORDING_AGENT);
    sandbox.write("proq.toml", "[agent]\nallow = [\"make *\"]\n");
    sandbox.commit_all("Allow make");
    let text = sandbox.proq(&["spawn", "--wait", "-n", "a", "claude", "do it"]).to_text();
    assert!(text.contains("agent.allow 'make *' of the repository is not approved"), "{text}");
    assert_eq!(given_rules(&sandbox), ["Bash(git *)"]);
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "b", "claude", "do it"]).ok();
    assert_eq!(given_rules(&sandbox), ["Bash(git *)", "Bash(make *)"]);
}

#[test]
fn agent_in_lane_allows_other_agents_nothing() {
    let sandbox = Sandbox::new();
    sandbox.agent("claude", RECORDING_AGENT);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    let dir = sandbox.lane_path("x");
    let args = ["spawn", "--dry-run", "-n", "y", "claude", "do it"];
    let _ = sandbox.proq_in(&dir, &args).ok();
    let error = sandbox.proq_in(&dir, &[&args[..], &["--allow", "make *"]].concat()).fails(1);
    assert!(error.contains("only a person"), "{error}");
}

#[test]
fn shows_denied_commands_with_what_allows_them() {
    let sandbox = Sandbox::new();
    sandbox.agent("claude", DENIED_AGENT);
    let allow = "hint: allow it from now on: git config --add proq.agent.allow 'cargo *'\n";
    let hint = &format!("hint: 2 calls were denied: git proq logs x\n{allow}");
    let text = sandbox.proq(&["spawn", "--wait", "-n", "x", "claude", "do it"]).to_text();
    assert!(text.contains(hint), "{text}");
    let shown = sandbox.proq(&["show", "x"]).to_text();
    assert!(shown.contains("2 denied calls: cargo test -p printer, make; rm -rf x\n"), "{shown}");
    assert!(shown.contains(hint), "{shown}");
    let usage = sandbox.proq(&["show", "x", "--json"]).json()["runs"][0]["account"].clone();
    assert_eq!(usage["denied"], 2, "{usage:#}");
    let commands = ["cargo test -p printer", "make; rm -rf x"];
    assert_eq!(usage["denied_commands"], serde_json::json!(commands), "{usage:#}");
    let list = sandbox.proq(&["list", "--wide"]).ok();
    assert!(list.contains("  2, 2 denied  "), "{list}");
    assert_eq!(sandbox.row("x")["usage"], serde_json::Value::Null);
    let logs = sandbox.proq(&["logs", "x"]).to_text();
    assert!(logs.contains("! denied: cargo test -p printer\n") && logs.contains(allow), "{logs}");
}

#[test]
fn hint_to_allow_ends_when_it_is_allowed() {
    let sandbox = Sandbox::new();
    sandbox.agent("claude", DENIED_AGENT);
    sandbox.write("package.json", "{}");
    sandbox.commit_all("package");
    let spawn = |name: &str| {
        let started = sandbox.proq(&["spawn", "-n", name, "claude", "do it"]).to_text();
        let _ = sandbox.proq(&["wait", name]).ok();
        started + &sandbox.proq(&["show", name]).to_text()
    };
    let (more, denied) =
        ("allow more: git config --add proq.agent.allow 'npm run *'", "hint: allow it from now on: ");
    let text = spawn("a");
    assert!(text.contains(more) && text.contains(denied), "{text}");
    // A broader pattern allows the same.
    allow_in_settings(&sandbox, "npm *");
    allow_in_settings(&sandbox, "cargo *");
    let text = spawn("b");
    assert!(text.contains("may run: git, npm *, cargo *\n") && !text.contains(denied), "{text}");
    for command in ["show", "logs"] {
        let text = sandbox.proq(&[command, "a"]).to_text();
        assert!(text.contains("cargo test -p printer") && !text.contains(denied), "{text}");
    }
    // A narrower one does not.
    sandbox.git(&["config", "--unset-all", "proq.agent.allow"]);
    allow_in_settings(&sandbox, "cargo test");
    let text = spawn("c");
    assert!(text.contains(more) && text.contains(denied), "{text}");
}
