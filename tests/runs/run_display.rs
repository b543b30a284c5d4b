//! Display of a run: its log as users read it, and its figures.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use proq_test_kit::Sandbox;
use proq_test_kit::claude::sandbox_with_claude;

/// Returns the event of an assistant message with one block.
fn assistant_event(id: &str, block: &str) -> String {
    format!(r#"{{"type":"assistant","session_id":"s-1","message":{{"id":"{id}","content":[{block}]}}}}"#)
}

/// Returns the event of a tool result.
fn tool_result_event(id: &str, failed: bool, text: &str) -> String {
    format!(
        r#"{{"type":"user","session_id":"s-1","message":{{"content":[{{"type":"tool_result","tool_use_id":"{id}","is_error":{failed},"content":"{text}"}}]}}}}"#
    )
}

/// Returns the events of a turn in which the agent thinks, uses tools and gets an error from one.
fn turn_events() -> String {
    let lines = [
        assistant_event(
            "m1",
            r#"{"type":"thinking","thinking":"First the tax.\nThen the rest.\nAnd that."}"#,
        ),
        assistant_event("m2", r#"{"type":"text","text":"I look at the tax."}"#),
        assistant_event(
            "m3",
            r#"{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"cat tax.rs","timeout":9}}"#,
        ),
        tool_result_event("t1", false, r"1\n2\n3\n4\n5\n6"),
        assistant_event(
            "m4",
            r#"{"type":"tool_use","id":"t2","name":"Edit","input":{"file_path":"src/tax.rs","old":"a\nb"}}"#,
        ),
        tool_result_event("t2", true, "no such file"),
    ];
    lines.map(|line| format!("{line}\n")).concat()
}

/// Returns a sandbox whose agent prints that turn and then runs `script`.
fn sandbox_with_turn(script: &str) -> Sandbox {
    let sandbox = sandbox_with_claude(&format!("begin; cat \"$ROOT/turn\"; echo a word >&2; {script}"));
    std::fs::write(sandbox.root().join("turn"), turn_events()).unwrap();
    sandbox.git(&["config", "proq.agent.linger", "600"]);
    sandbox
}

#[test]
fn log_folds_thoughts_and_shows_tool_results() {
    let sandbox = sandbox_with_turn("echo 1 > one; well");
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["logs", "x"]).ok(), @r"
    ~ First the tax. (+2 lines)
    I look at the tax.
    $ cat tax.rs
      1
      2
      3
      4
      … 2 more lines
    > Edit src/tax.rs
      failed: no such file
    All done.
    ");
    assert!(sandbox.proq(&["logs", "x", "--raw"]).ok().contains(r#""thinking":"First the tax."#));
    // Standard error has a log of its own.
    assert_eq!(sandbox.proq(&["logs", "x", "--errors"]).ok(), "a word\n");
    assert!(!sandbox.proq(&["logs", "x", "--raw"]).ok().contains("a word"));
}

#[test]
fn follow_prints_events_as_they_happen() {
    let sandbox = sandbox_with_turn("read go < \"$ROOT/go\"; echo 1 > one; well");
    sandbox.pipe("go");
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x"]).ok();
    let mut follow = sandbox.proq_command(&sandbox.repo, &["logs", "-f", "x"]);
    let mut follow = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines().map(Result::unwrap);
    let first: Vec<String> = lines.by_ref().take(10).collect();
    assert_eq!((first[0].as_str(), first[2].as_str()), ("~ First the tax. (+2 lines)", "$ cat tax.rs"));
    assert_eq!(first[9], "  failed: no such file");
    // The agent prints no more before this.
    sandbox.write_pipe("go");
    assert_eq!(lines.collect::<Vec<_>>(), ["All done."]);
    let out = follow.wait_with_output().unwrap();
    assert_eq!((out.status.code(), &*out.stderr), (Some(0), &b"x: done\n"[..]));
}

#[test]
fn shows_usage_of_running_agent() {
    let sandbox = sandbox_with_turn("cat \"$ROOT/size\"; read go < \"$ROOT/go\"; echo 1 > one; well");
    let size = r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s-1","modelUsage":{"claude-x":{"contextWindow":1000}}}"#;
    let usage_event = |id: &str, tokens: u32| {
        format!(
            r#"{{"type":"assistant","session_id":"s-1","message":{{"id":"{id}","usage":{{"input_tokens":{tokens},"output_tokens":3}},"content":[]}}}}"#
        )
    };
    let events = format!("{}\n{size}\n{}\n", usage_event("m8", 10), usage_event("m9", 420));
    std::fs::write(sandbox.root().join("size"), events).unwrap();
    sandbox.pipe("go");
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x"]).ok();
    proq_test_kit::waiting::wait_until("how full it is", || {
        sandbox.last_run("x")["account"]["context"] == 42
    });
    let table = sandbox.proq(&["list", "--wide"]).ok();
    let titles = table.lines().next().unwrap();
    let row = table.lines().find(|line| line.split_whitespace().any(|word| word == "x")).unwrap();
    // Each figure is below its title.
    for (title, figure) in [("TOOLS", "2"), ("LAST", "Edit"), ("CONTEXT", "42 %")] {
        let at = titles.find(title).unwrap_or_else(|| panic!("{table}"));
        let below: String = row.chars().skip(titles[..at].chars().count()).take(title.len()).collect();
        assert_eq!(below.trim(), figure, "{title}: {table}");
    }
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(shown.contains("context 42 % full"), "{shown}");
    assert!(shown.contains("2 tool calls, last Edit"), "{shown}");
    sandbox.write_pipe("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
}

#[test]
fn max_minutes_ends_run() {
    let sandbox = sandbox_with_claude("begin; exec sleep 600");
    let spawn = ["spawn", "claude", "do it", "-n", "y", "--wait", "--max-minutes", "1s"];
    let _ = sandbox.proq(&spawn).fails(4);
    assert_eq!(sandbox.last_run("y")["class"], "timeout");
    let shown = sandbox.proq(&["show", "y"]).ok();
    assert!(shown.contains("it reached its time limit"), "{shown}");
    // Minutes, unless a unit is given.
    let run = ["spawn", "claude", "do it", "-n", "z", "--max-minutes", "7"];
    let _ = sandbox.proq(&run).ok();
    assert_eq!(sandbox.last_run("z")["limits"]["time"], 420, "{:#}", sandbox.last_run("z"));
}

#[test]
fn warns_about_agents_without_permissions() {
    let sandbox = Sandbox::new();
    for agent in ["pi", "aider"] {
        sandbox.program(agent, "echo 1 > one");
        let spawn = ["spawn", "-n", agent, "--wait", agent, "do it"];
        let warned = format!("warning: {agent} has no permission levels: it may do anything that you may\n");
        let out = sandbox.proq(&spawn);
        assert_eq!(out.stderr.matches(&warned).count(), 1, "{}", out.to_text());
        // A read-only agent gets no such warning.
        let read_only_args =
            ["spawn", "-n", &format!("{agent}-look"), "--dry-run", "--permission", "read", agent, "look"];
        assert!(!sandbox.proq(&read_only_args).stderr.contains("warning"));
    }
}

#[test]
fn log_escapes_terminal_sequences() {
    let sandbox = sandbox_with_turn("well");
    let text = assistant_event(
        "m1",
        r#"{"type":"text","text":"fine\u001b]52;c;Y2FsYw==\u0007\u001b[2J\n\tand done"}"#,
    );
    std::fs::write(sandbox.root().join("turn"), format!("{text}\n")).unwrap();
    let _ = sandbox.proq(&["spawn", "claude", "do it", "-n", "x", "--wait"]);
    let log = sandbox.proq(&["logs", "x"]).ok();
    assert!(!log.contains('\u{1b}') && !log.contains('\u{7}'), "{log:?}");
    assert!(log.contains(r"fine\u{1b}]52;c;Y2FsYw==\u{7}\u{1b}[2J") && log.contains("\tand done"), "{log:?}");
}
