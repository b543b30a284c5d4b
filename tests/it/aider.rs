//! Owns the tests of what is particular about Aider: a cache in the worktree, errors with exit code 0, prompts that are commands.

use serde_json::{Value, json};

use super::support::Sandbox;

/// Leaves a cache as Aider does, and says how a message ends.
const CACHE: &str = "mkdir -p .aider.tags.cache.v4; echo $$ > .aider.tags.cache.v4/cache.db
    echo answer; echo 'Tokens: 5 sent, 5 received.'";

/// Stands in for Aider: keeps the first line of its prompt, then does `script`.
fn aider(sandbox: &Sandbox, script: &str) {
    let first = "for word; do test \"$last\" != --message-file || sed -n 1p \"$word\" > \"$ROOT/first\"; last=$word; done";
    sandbox.program("aider", &format!("{first}\n{script}"));
}

#[test]
fn its_cache_is_no_work_and_in_nobodys_way() {
    let sandbox = Sandbox::new();
    aider(&sandbox, &format!("echo new > $PROQ_LANE.txt; echo a: 1 > .aider.conf-$PROQ_LANE.yml; {CACHE}"));
    for lane in ["one", "two"] {
        let _ = sandbox.proq(&["spawn", "--wait", "-n", lane, "aider", "add a file"]).ok();
    }
    let _ = sandbox.proq(&["merge", "--all"]).ok();
    let files = sandbox.git(&["ls-files", "*.txt", ".aider*"]);
    assert_eq!(
        files, ".aider.conf-one.yml\n.aider.conf-two.yml\na.txt\none.txt\ntwo.txt",
        "what it was asked for lands"
    );
    aider(&sandbox, CACHE);
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "idle", "aider", "look at it"]).ok();
    assert_eq!(sandbox.row("idle")["state"], "no-change");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "ask", "--mode", "answer", "aider", "what is it?"]).ok();
    assert!(sandbox.repo.join(".aider.tags.cache.v4").exists());
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    assert_eq!(sandbox.events("lane.escape"), [Value::Null; 0]);
    sandbox.assert_healthy();
}

#[test]
fn its_errors_are_failures_though_it_exits_with_nothing() {
    let sandbox = Sandbox::new();
    aider(
        &sandbox,
        "echo 'Aider v0.86.2'; echo 'litellm.AuthenticationError: no such key'; echo 'Check it.'; echo; exit 0",
    );
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "aider", "do it"]).fails(4);
    let row = sandbox.row("x");
    let said = "litellm.AuthenticationError: no such key Check it.";
    assert_eq!((&row["state"], &row["detail"]), (&json!("failed"), &json!(said)));
    assert_eq!(sandbox.last_run("x")["class"], "auth");
}

#[test]
fn one_that_its_provider_fails_is_tried_again() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.agent.backoff", "0"]);
    let fails = "test -e \"$ROOT/tried\" || { touch \"$ROOT/tried\"; echo 'litellm.InternalServerError: oh'; exit 0; }";
    aider(&sandbox, &format!("{fails}\necho new > new.txt; {CACHE}"));
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "aider", "do it"]).ok();
    let run = sandbox.last_run("x");
    assert_eq!((&run["attempt"], &run["class"]), (&json!(2), &json!("done")));
}

#[test]
fn no_prompt_is_a_command_of_its_own() {
    let sandbox = Sandbox::new();
    aider(&sandbox, CACHE);
    let first = || std::fs::read_to_string(sandbox.root().join("first")).unwrap();
    for (n, prompt) in
        ["!important: mind the gap", "/clear the cache", "  /src/main.rs is broken"].iter().enumerate()
    {
        let _ = sandbox.proq(&["spawn", "--wait", "-n", &format!("x{n}"), "aider", prompt]).ok();
        assert_eq!(first(), "# Task\n", "{prompt}");
    }
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "plain", "aider", "mind the gap"]).ok();
    assert_eq!(first(), "mind the gap\n");
    // Neither at the start of a conversation nor in the middle of one.
    sandbox.agent("claude", "read -r line; echo \"$line\" >> \"$ROOT/claude\"");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "c", "claude", "/clear the cache"]).ok();
    let _ = sandbox.proq(&["send", "--wait", "c", "/compact it"]).ok();
    assert_eq!(std::fs::read_to_string(sandbox.root().join("claude")).unwrap(), "# Task\n# Task\n");
}

#[test]
fn a_budget_of_its_is_said_to_hold_between_messages_only() {
    let sandbox = Sandbox::new();
    aider(&sandbox, CACHE);
    let out = sandbox.proq(&["spawn", "--wait", "--budget", "1", "-n", "x", "aider", "do it"]);
    assert!(
        out.stderr.contains("aider says what it used only at the end of each message"),
        "{}",
        out.shown()
    );
}
