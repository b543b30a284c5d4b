//! Owns the tests of runs whose context becomes full: they are asked to wrap up, and go on in a new conversation.

use super::runs::with_claude;
use super::support::Sandbox;

/// What the model has read, how much it may, and what it has read then: `$1` of 1000 tokens. The size is told at the end of a turn.
const FULL: &str = r#"full() {
    said='{"type":"assistant","session_id":"s-1","message":{"id":"m%s","usage":{"input_tokens":%s},"content":[]}}\n'
    turn='{"type":"result","subtype":"success","is_error":false,"session_id":"s-1","num_turns":1,"modelUsage":{"claude-x":{"contextWindow":1000}}}\n'
    printf "$said$turn$said" "a$1" 10 "b$1" "$1"
}
"#;

/// A repository with a fake agent that fills its context, and a limit.
fn with_limit(key: &str, script: &str) -> Sandbox {
    let sandbox = with_claude(&format!("{FULL}{script}"));
    sandbox.git(&["config", "proq.agent.linger", "600"]);
    sandbox.git(&["config", &format!("proq.agent.{key}"), "90"]);
    sandbox
}

#[test]
fn a_run_is_asked_to_wrap_up() {
    let script = r#"begin; full 899; test ! -e "$PROQ_WRAP_UP" || echo early > early; full 900
        timeout 60 sh -c 'until [ -e "$PROQ_WRAP_UP" ]; do :; done' && echo 1 > wrapped; well; exit 0"#;
    let sandbox = with_limit("contextWarn", script);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/x:wrapped"]), "1");
    assert!(!sandbox.lane("x").join("early").exists());
    assert_eq!(sandbox.last_run("x")["attempt"], 1);
    assert!(sandbox.proq(&["show", "x", "--prompt"]).ok().contains("`PROQ_WRAP_UP`"));
}

#[test]
fn nobody_is_asked_who_need_not() {
    let sandbox = with_limit("contextWarn", "begin; full 899; echo 1 > one; well; exit 0");
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).ok();
    assert!(!sandbox.repo.join(".git/proq/lanes/x/runs/1.d/wrap-up").exists());
    sandbox.git(&["config", "--unset", "proq.agent.contextWarn"]);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "y", "--wait"]).ok();
    // A person may want it of each run, as by git proq abort.
    assert!(sandbox.proq(&["show", "y", "--prompt"]).ok().contains("PROQ_WRAP_UP"));
}

#[test]
fn a_task_goes_on_in_a_new_conversation() {
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
    insta::assert_snapshot!(sandbox.note("prompt.2").replace(&short, "[ID]"), @r"
    do it

    # What has been done

    This was begun in another conversation, which became too long. What it came to is in this worktree. Go on from there, and do nothing twice.

    Commits on this branch, the oldest first:

    - [ID] one is done

    There are changes that are not committed; `git status` names them.

    `STATUS.md` may say how far it had come: read it first.
    ");
    let session = |n: u32| {
        let args = sandbox.note(&format!("args.{n}"));
        let mut lines = args.lines().skip_while(|line| *line != "--session-id").map(ToOwned::to_owned);
        lines.nth(1).unwrap()
    };
    assert_ne!(session(1), session(2));
    sandbox.assert_healthy();
}

#[test]
fn it_does_not_go_on_for_ever() {
    let sandbox = with_limit("contextStop", "begin; echo $n >> half; full 900; exec sleep 600");
    sandbox.git(&["config", "proq.agent.iterations", "2"]);
    let out = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).fails(4);
    assert!(
        out.contains("x: failed (its context was as full as it may get; it has had its runs)\n"),
        "{out}"
    );
    let run = sandbox.last_run("x");
    assert_eq!((&run["class"], run["attempt"].as_u64()), (&"context-full".into(), Some(2)));
    assert_eq!(std::fs::read_to_string(sandbox.lane("x").join("half")).unwrap(), "1\n2\n");
    // What was said of the first is said once.
    assert_eq!(sandbox.note("prompt.2").matches("# What has been done").count(), 1);
}

#[test]
fn one_that_is_done_is_done_however_full_it_is() {
    let script = r#"begin; echo 1 > one
        full 10 | sed -n 1,2p | sed 's/":10}/":950}/'; exec sleep 600"#;
    let sandbox = with_limit("contextStop", script);
    // It does not end by itself, so that what it said is read before it ends.
    sandbox.git(&["config", "proq.agent.linger", "0"]);
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).ok();
    let run = sandbox.last_run("x");
    assert_eq!((run["attempt"].as_u64(), run["account"]["context"].as_u64()), (Some(1), Some(95)));
}

#[test]
fn what_an_agent_cannot_tell_of_its_context_is_said_before() {
    let sandbox = Sandbox::new();
    for agent in ["claude", "codex", "gemini", "qwen", "pi", "copilot", "tool"] {
        sandbox.agent(agent, "true");
    }
    let spawn = |agent: &str| {
        let out = sandbox.proq(&["spawn", "-n", "x", "--dry-run", agent, "do it"]);
        assert_eq!(out.code, 0, "{}", out.shown());
        let said: Vec<_> = out.stderr.lines().filter(|line| line.contains("context")).collect();
        said.join("\n").replace("warning: ", "")
    };
    // It is of nobody's concern that nobody has asked for.
    assert_eq!(spawn("codex"), "");
    sandbox.git(&["config", "proq.agent.contextWarn", "80"]);
    let never = "does not tell how full its context is, so this cannot hold: agent.context_warn";
    for agent in ["codex", "gemini", "qwen", "pi", "tool"] {
        assert_eq!(spawn(agent), format!("{agent} {never}"));
    }
    assert_eq!(spawn("copilot"), "");
    sandbox.git(&["config", "proq.agent.contextStop", "90"]);
    assert_eq!(
        spawn("claude"),
        "claude tells how large its context is only when its first turn has ended, so this does not hold before: \
         agent.context_stop, agent.context_warn"
    );
    assert_eq!(spawn("codex"), format!("codex {}", never.replace(": ", ": agent.context_stop, ")));
}
