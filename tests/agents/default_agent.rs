//! Tests of the agent that `git proq spawn` starts when none is named, and of names that are no agent.

use proq_test_kit::{Output, Sandbox};

/// Runs git-proq with no other known agents on `PATH` than those of the sandbox.
fn proq(sandbox: &Sandbox, args: &[&str]) -> Output {
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    command.env("PATH", sandbox.path_without_agents(&["cat"]));
    sandbox.output(command)
}

#[test]
fn starts_the_only_installed_agent() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(proq(&sandbox, &["spawn", "implement payments"]).to_text(), @"
    --- stderr
    error: cannot choose an agent: no known agent is installed
    hint: see which agents are known: git proq agents
    --- code 2
    ");
    sandbox.agent("codex", "git commit -q --allow-empty -m x");
    let out = proq(&sandbox, &["spawn", "--dry-run", "implement payments"]).to_text();
    assert!(
        out.contains("would create lane 'implement-payments'") && out.contains("bin/codex exec"),
        "{out}"
    );
    assert!(out.contains("using codex, the only known agent that is installed"), "{out}");
    sandbox.write("task.md", "do it");
    let json = proq(&sandbox, &["spawn", "--dry-run", "--json", "-n", "x", "-f", "task.md"]).json();
    assert_eq!(json["agent"], "codex");
    let answer = ["spawn", "--dry-run", "--json", "--mode", "answer", "where is the tax computed?"];
    assert_eq!(proq(&sandbox, &answer).json()["agent"], "codex");
}

#[test]
fn default_agent_is_chosen_by_setting() {
    let sandbox = Sandbox::new();
    sandbox.agent("claude", "true");
    sandbox.agent("codex", "true");
    insta::assert_snapshot!(proq(&sandbox, &["spawn", "implement payments"]).to_text(), @r#"
    --- stderr
    error: cannot choose an agent: claude and codex are installed
    hint: name one: git proq spawn claude "implement payments"
    hint: or choose the default: git config --global proq.agent.default claude
    --- code 2
    "#);
    sandbox.git(&["config", "proq.agent.default", "claude"]);
    let out = proq(&sandbox, &["spawn", "--dry-run", "implement payments"]).to_text();
    assert!(out.contains("bin/claude -p") && !out.contains("using"), "{out}");
    // Both arguments name the agent and the prompt, as without the setting.
    let json = proq(&sandbox, &["spawn", "--dry-run", "--json", "codex", "do it"]).json();
    assert_eq!(json["agent"], "codex");
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
}

#[test]
fn single_word_is_an_agent_where_it_names_one() {
    let sandbox = Sandbox::new();
    sandbox.agent("claude", "true");
    let lines =
        [&["spawn", "claude"][..], &["spawn", "cat"], &["spawn", "claud"], &["spawn", "clade", "do it"]];
    let out = lines.map(|args| proq(&sandbox, args).to_text()).join("\n") + "\n";
    insta::assert_snapshot!(out, @r#"
    --- stderr
    error: no prompt given for the agent
    hint: for example: git proq spawn claude "implement payments"
    --- code 2

    --- stderr
    error: no prompt given for the agent
    hint: for example: git proq spawn claude "implement payments"
    --- code 2

    --- stderr
    error: cannot start 'claud': there is no such program on PATH
    hint: did you mean 'claude'?
    hint: list installed agents: git proq agents
    --- code 1

    --- stderr
    error: cannot start 'clade': there is no such program on PATH
    hint: did you mean 'claude'?
    hint: list installed agents: git proq agents
    --- code 1
    "#);
    let json = proq(&sandbox, &["spawn", "--dry-run", "--json", "refactor"]).json();
    assert_eq!((&json["agent"], &json["lane"]), (&"claude".into(), &"refactor".into()));
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
}

#[test]
fn names_known_agents_that_are_not_installed() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(proq(&sandbox, &["spawn", "claude", "do it"]).to_text(), @"
    --- stderr
    error: cannot start 'claude': Claude Code is not installed: there is no such program on PATH
    hint: install it: npm install -g @anthropic-ai/claude-code
    hint: list installed agents: git proq agents
    --- code 1
    ");
    insta::assert_snapshot!(proq(&sandbox, &["spawn", "--agents", "claude:x", "do it"]).to_text(), @"
    --- stderr
    error: invalid value 'claude:x' for --agents: 'x' is not a number; give claude a number of attempts, like claude:2
    hint: see the help: git proq help spawn
    --- code 2
    ");
    let reviewer = ["spawn", "claude", "do it", "--reviewer", "codex"];
    insta::assert_snapshot!(proq(&sandbox, &reviewer).to_text(), @"
    --- stderr
    error: cannot use --reviewer without --folder: only the steps of a task folder are reviewed
    hint: for example: git proq spawn claude --folder tasks/pay/PAY-3-refunds --reviewer codex
    --- code 2
    ");
}
