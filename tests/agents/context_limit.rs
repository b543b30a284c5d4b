//! Tests of context limits: a run gets a wrap-up request, or continues in a new conversation.

use proq_test_kit::Sandbox;
use proq_test_kit::claude::sandbox_with_claude;

/// Shell function that reports `$1` of 1000 tokens as read. As with the real agent, the size is known at the
/// end of a turn.
const REPORT_CONTEXT_SCRIPT: &str = r#"full() {
    said='{"type":"assistant","session_id":"s-1","message":{"id":"m%s","usage":{"input_tokens":%s},"content":[]}}\n'
    turn='{"type":"result","subtype":"success","is_error":false,"session_id":"s-1","num_turns":1,"modelUsage":{"claude-x":{"contextWindow":1000}}}\n'
    printf "$said$turn$said" "a$1" 10 "b$1" "$1"
}
"#;

/// Creates a repository with a limit of 90 percent for setting `key` and a fake agent that reports its
/// context.
fn with_limit(key: &str, script: &str) -> Sandbox {
    let sandbox = sandbox_with_claude(&format!("{REPORT_CONTEXT_SCRIPT}{script}"));
    sandbox.git(&["config", "proq.agent.linger", "600"]);
    sandbox.git(&["config", &format!("proq.agent.{key}"), "90"]);
    sandbox
}

#[test]
fn requests_wrap_up_at_context_warn() {
    let script = r#"begin; full 899; test ! -e "$PROQ_WRAP_UP" || echo early > early; full 900
        timeout 60 sh -c 'until [ -e "$PROQ_WRAP_UP" ]; do :; done' && echo 1 > wrapped; well; exit 0"#;
    let sandbox = with_limit("contextWarn", script);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/x:wrapped"]), "1");
    assert!(!sandbox.lane_path("x").join("early").exists());
    assert_eq!(sandbox.last_run("x")["attempt"], 1);
    assert!(sandbox.proq(&["show", "x", "--prompt"]).ok().contains("`PROQ_WRAP_UP`"));
}

#[test]
fn no_wrap_up_below_context_warn() {
    let sandbox = with_limit("contextWarn", "begin; full 899; echo 1 > one; well; exit 0");
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).ok();
    assert!(!sandbox.repo.join(".git/proq/lanes/x/runs/1.d/wrap-up").exists());
    sandbox.git(&["config", "--unset", "proq.agent.contextWarn"]);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "y", "--wait"]).ok();
    // The prompt names the file anyway, as `git proq batch abort` can request a wrap-up of every run.
    assert!(sandbox.proq(&["show", "y", "--prompt"]).ok().contains("PROQ_WRAP_UP"));
}

#[test]
fn context_stop_resumes_in_new_conversation() {
    let script = r#"begin; if [ $n = 1 ]; then echo 1 > one; git add one; git commit -qm "one is done"
        echo half > half; echo far > STATUS.md; full 900; exec sleep 600; fi
        cat half > two; well; exit 0"#;
    let sandbox = with_limit("contextStop", script);
    let out = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).ok();
    assert_eq!(out, "x: done\n");
    let shown = sandbox.proq(&["show", "x", "--json"]).json();
    let classes: Vec<_> = shown["runs"].as_array().unwrap().iter().map(|run| run["class"].clone()).collect();
    assert_eq!(classes, ["context-full", "done"]);
    assert_eq!(sandbox.git(&["ls-tree", "--name-only", "proq/x"]), "STATUS.md\na.txt\nhalf\none\ntwo");
    let short = sandbox.git(&["log", "-1", "--format=%h", "proq/x", "--", "one"]);
    insta::assert_snapshot!(sandbox.agent_record("prompt.2").replace(&short, "[ID]"), @"
    do it

    # Progress so far

    This task was started in an earlier conversation, which became too long. Its results are in this worktree. Continue from there and do not repeat finished work.

    Commits on this branch, oldest first:

    - [ID] one is done

    There are uncommitted changes; `git status` lists them.

    `STATUS.md` may describe the progress: read it first.
    ");
    let session = |n: u32| {
        let args = sandbox.agent_record(&format!("args.{n}"));
        let mut lines = args.lines().skip_while(|line| *line != "--session-id").map(ToOwned::to_owned);
        lines.nth(1).unwrap()
    };
    assert_ne!(session(1), session(2));
    sandbox.assert_healthy();
}

#[test]
fn context_stop_respects_iteration_limit() {
    let sandbox = with_limit("contextStop", "begin; echo $n >> half; full 900; exec sleep 600");
    sandbox.git(&["config", "proq.agent.iterations", "2"]);
    let out = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).fails(4);
    assert!(out.contains("x: failed (its context is full; it has used all its runs)\n"), "{out}");
    let run = sandbox.last_run("x");
    assert_eq!((&run["class"], run["attempt"].as_u64()), (&"context-full".into(), Some(2)));
    assert_eq!(std::fs::read_to_string(sandbox.lane_path("x").join("half")).unwrap(), "1\n2\n");
    // The summary of the first conversation is not repeated.
    assert_eq!(sandbox.agent_record("prompt.2").matches("# Progress so far").count(), 1);
}

#[test]
fn finished_run_ignores_context_stop() {
    let script = r#"begin; echo 1 > one
        full 10 | sed -n 1,2p | sed 's/":10}/":950}/'; exec sleep 600"#;
    let sandbox = with_limit("contextStop", script);
    // The agent does not exit, so that its output is read before the run is stopped.
    sandbox.git(&["config", "proq.agent.linger", "0"]);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).ok();
    let run = sandbox.last_run("x");
    assert_eq!((run["attempt"].as_u64(), run["account"]["context"].as_u64()), (Some(1), Some(95)));
}

#[test]
fn warns_about_agents_not_reporting_context() {
    let sandbox = Sandbox::new();
    for agent in ["claude", "codex", "gemini", "qwen", "pi", "copilot", "tool"] {
        sandbox.agent(agent, "true");
    }
    let spawn = |agent: &str| {
        let out = sandbox.proq(&["spawn", "-n", "x", "--dry-run", agent, "do it"]);
        assert_eq!(out.code, 0, "{}", out.to_text());
        let warnings: Vec<_> = out.stderr.lines().filter(|line| line.contains("context")).collect();
        warnings.join("\n").replace("warning: ", "")
    };
    // Without the setting there is no warning.
    assert_eq!(spawn("codex"), "");
    sandbox.git(&["config", "proq.agent.contextWarn", "80"]);
    let never = "does not report its context, so this has no effect: agent.context_warn";
    for agent in ["codex", "gemini", "qwen", "pi", "tool"] {
        assert_eq!(spawn(agent), format!("{agent} {never}"));
    }
    assert_eq!(spawn("copilot"), "");
    sandbox.git(&["config", "proq.agent.contextStop", "90"]);
    assert_eq!(
        spawn("claude"),
        "claude reports its context only after its first turn, so this has no effect before: \
         agent.context_stop, agent.context_warn"
    );
    assert_eq!(spawn("codex"), format!("codex {}", never.replace(": ", ": agent.context_stop, ")));
}
