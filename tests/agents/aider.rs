//! Tests of Aider's peculiarities: a cache in the worktree, errors with exit code 0, prompts that parse as
//! commands.

use proq_test_kit::Sandbox;
use serde_json::{Value, json};

/// Script that leaves a cache folder as Aider does and prints Aider's last line of a message.
const CACHE_SCRIPT: &str = "mkdir -p .aider.tags.cache.v4; echo $$ > .aider.tags.cache.v4/cache.db
    echo answer; echo 'Tokens: 5 sent, 5 received.'";

/// Installs an `aider` that saves the first line of its prompt, then runs `script`.
fn install_aider(sandbox: &Sandbox, script: &str) {
    let first = "for word; do test \"$last\" != --message-file || sed -n 1p \"$word\" > \"$ROOT/first\"; last=$word; done";
    sandbox.program("aider", &format!("{first}\n{script}"));
}

/// Promise: agent-git/agent-caches
#[test]
fn cache_folder_is_never_committed() {
    let sandbox = Sandbox::new();
    install_aider(
        &sandbox,
        &format!("echo new > $PROQ_LANE.txt; echo a: 1 > .aider.conf-$PROQ_LANE.yml; {CACHE_SCRIPT}"),
    );
    for lane in ["one", "two"] {
        let _ = sandbox.proq(&["spawn", "--wait", "-n", lane, "aider", "add a file"]).ok();
    }
    let _ = sandbox.proq(&["merge", "--all"]).ok();
    let files = sandbox.git(&["ls-files", "*.txt", ".aider*"]);
    assert_eq!(
        files, ".aider.conf-one.yml\n.aider.conf-two.yml\na.txt\none.txt\ntwo.txt",
        "what it was asked for lands"
    );
    install_aider(&sandbox, CACHE_SCRIPT);
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "idle", "aider", "look at it"]).ok();
    assert_eq!(sandbox.row("idle")["state"], "no-change");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "ask", "--mode", "answer", "aider", "what is it?"]).ok();
    assert!(sandbox.repo.join(".aider.tags.cache.v4").exists());
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    assert_eq!(sandbox.events("lane.escape"), [Value::Null; 0]);
    sandbox.assert_healthy();
}

#[test]
fn error_output_fails_run_despite_exit_zero() {
    let sandbox = Sandbox::new();
    install_aider(
        &sandbox,
        "echo 'Aider v0.86.2'; echo 'litellm.AuthenticationError: no such key'; echo 'Check it.'; echo; exit 0",
    );
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "aider", "do it"]).fails(4);
    let row = sandbox.row("x");
    let reason = "litellm.AuthenticationError: no such key Check it.";
    assert_eq!((&row["state"], &row["detail"]), (&json!("failed"), &json!(reason)));
    assert_eq!(sandbox.last_run("x")["class"], "auth");
}

#[test]
fn retries_run_after_provider_error() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.agent.backoff", "0"]);
    let fail_once = "test -e \"$ROOT/tried\" || { touch \"$ROOT/tried\"; echo 'litellm.InternalServerError: oh'; exit 0; }";
    install_aider(&sandbox, &format!("{fail_once}\necho new > new.txt; {CACHE_SCRIPT}"));
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "aider", "do it"]).ok();
    let run = sandbox.last_run("x");
    assert_eq!((&run["attempt"], &run["class"]), (&json!(2), &json!("done")));
}

/// Promise: agent-requests/prompt-is-no-command
#[test]
fn prefixes_prompts_that_parse_as_commands() {
    let sandbox = Sandbox::new();
    install_aider(&sandbox, CACHE_SCRIPT);
    let first = || std::fs::read_to_string(sandbox.root().join("first")).unwrap();
    for (n, prompt) in
        ["!important: mind the gap", "/clear the cache", "  /src/main.rs is broken"].iter().enumerate()
    {
        let _ = sandbox.proq(&["spawn", "--wait", "-n", &format!("x{n}"), "aider", prompt]).ok();
        assert_eq!(first(), "# Task\n", "{prompt}");
    }
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "plain", "aider", "mind the gap"]).ok();
    assert_eq!(first(), "mind the gap\n");
    // The prefix is needed at the start of a conversation and in later messages.
    sandbox.agent("claude", "read -r line; echo \"$line\" >> \"$ROOT/claude\"");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "c", "claude", "/clear the cache"]).ok();
    let _ = sandbox.proq(&["send", "--wait", "c", "/compact it"]).ok();
    assert_eq!(std::fs::read_to_string(sandbox.root().join("claude")).unwrap(), "# Task\n# Task\n");
}

#[test]
fn budget_warns_that_usage_comes_per_message() {
    let sandbox = Sandbox::new();
    install_aider(&sandbox, CACHE_SCRIPT);
    let out = sandbox.proq(&["spawn", "--wait", "--budget", "1", "-n", "x", "aider", "do it"]);
    assert!(
        out.stderr.contains("aider reports its usage only at the end of each message"),
        "{}",
        out.to_text()
    );
}
