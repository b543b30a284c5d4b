//! Tests of messages to agents that speak the Agent Client Protocol, and of their delivery when processes are
//! killed.

use proq_test_kit::Sandbox;
use proq_test_kit::runs::kill_supervisor;
use proq_test_kit::waiting::wait_until;

use super::acp::{prompts, requests_for, with_speaker};

/// Starts an agent in lane `x` that has reported its session id and blocks on the pipe `a-go`.
fn start_held_run(settings: &str, task: &str) -> Sandbox {
    let sandbox = with_speaker(settings);
    for pipe in ["a-up", "a-go", "b-up", "b-go"] {
        sandbox.pipe(pipe);
    }
    let _ = sandbox.proq(&["spawn", "-n", "x", "mine", task]).ok();
    sandbox.read_pipe("a-up");
    wait_until("its session", || !sandbox.last_run("x")["account"]["session"].is_null());
    sandbox
}

/// Kills the client process, which runs between the supervisor and the agent.
fn kill_client(sandbox: &Sandbox) {
    let pid = sandbox.last_run("x")["pid"].to_string();
    sandbox.sh(&format!("kill -9 {pid}"));
}

fn starts(sandbox: &Sandbox) -> usize {
    sandbox.agent_record("started").lines().count()
}

/// Returns the messages in the inbox of lane `x`, joined by empty lines.
fn inbox_text(sandbox: &Sandbox) -> String {
    let shown = sandbox.proq(&["show", "x", "--json"]).json();
    let texts =
        shown["waiting"].as_array().into_iter().flatten().map(|message| message["text"].as_str().unwrap());
    texts.collect::<Vec<_>>().join("\n\n")
}

/// Promise: concurrency/message-to-running-agent
#[test]
fn message_reaches_same_process_after_its_turn() {
    let sandbox = start_held_run("", "hold a\nwrite one");
    let kept = sandbox.proq(&["send", "x", "write two"]).ok();
    assert_eq!(kept, "kept for 'x' until its agent's turn has ended\n");
    let _ = sandbox.proq(&["send", "x", "hold b\nwrite three"]).ok();
    sandbox.write_pipe("a-go");
    sandbox.read_pipe("b-up");
    // A third message is sent while the agent handles the second.
    let _ = sandbox.proq(&["send", "x", "write four"]).ok();
    sandbox.write_pipe("b-go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(starts(&sandbox), 1);
    assert_eq!(prompts(&sandbox)[1..], ["write two\n\nhold b\nwrite three", "write four"]);
    assert_eq!(requests_for(&sandbox, "session/new").len() + requests_for(&sandbox, "session/load").len(), 1);
    let run = sandbox.last_run("x");
    assert_eq!(
        (&run["attempt"], &run["told"], &run["class"]),
        (&1.into(), &2.into(), &"done".into()),
        "{run:#}"
    );
    assert_eq!(run["account"]["tokens"]["input"], 300);
    assert_eq!(run["account"]["cost"]["nanos"], 30_000_000);
    assert_eq!(sandbox.git(&["ls-tree", "--name-only", "proq/x"]), "a.txt\nfour\none\nthree\ntwo");
    assert_eq!(inbox_text(&sandbox), "");
    assert_eq!(sandbox.events("agent.told").len(), 2);
    let logs = sandbox.proq(&["logs", "x"]).ok();
    assert!(
        logs.contains("< message: write two (+3 lines)\n") && logs.contains("< message: write four\n"),
        "{logs}"
    );
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(shown.contains("received 2 messages while it ran"), "{shown}");
    let prompt = sandbox.proq(&["show", "x", "--prompt"]).ok();
    assert!(prompt.contains("hold a\nwrite one") && prompt.ends_with("write four\n"), "{prompt}");
    let _ = sandbox.proq(&["send", "x", "write five", "--wait"]).ok();
    assert_eq!((starts(&sandbox), sandbox.last_run("x")["attempt"].as_u64()), (2, Some(2)));
    sandbox.assert_healthy();
}

/// Promise: concurrency/message-to-running-agent
#[test]
fn killed_client_does_not_resend_delivered_message() {
    let sandbox = start_held_run("", "hold a");
    let _ = sandbox.proq(&["send", "x", "say I hear\nhold b"]).ok();
    sandbox.write_pipe("a-go");
    sandbox.read_pipe("b-up");
    wait_until("it has the message", || inbox_text(&sandbox).is_empty());
    kill_client(&sandbox);
    let _ = sandbox.proq(&["wait", "x"]).fails(4);
    let run = sandbox.last_run("x");
    assert_eq!((&run["class"], &run["signal"]), (&"crashed".into(), &9.into()), "{run:#}");
    assert!(sandbox.proq(&["send", "x"]).fails(1).contains("no message is queued"));
    assert_eq!(prompts(&sandbox).len(), 2);
    sandbox.assert_healthy();
}

/// Promise: concurrency/message-to-running-agent
#[test]
fn killed_client_resends_unconfirmed_message() {
    let sandbox = start_held_run("", "hold a");
    let _ = sandbox.proq(&["send", "x", "hold b\nwrite two"]).ok();
    sandbox.write_pipe("a-go");
    sandbox.read_pipe("b-up");
    assert_eq!(inbox_text(&sandbox), "hold b\nwrite two");
    kill_client(&sandbox);
    let _ = sandbox.proq(&["wait", "x"]).fails(4);
    assert_eq!(inbox_text(&sandbox), "hold b\nwrite two");
    let _ = sandbox.proq(&["send", "x"]).ok();
    sandbox.read_pipe("b-up");
    sandbox.write_pipe("b-go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(sandbox.last_run("x")["resumed"], true);
    assert_eq!(prompts(&sandbox)[2], "hold b\nwrite two");
    assert_eq!(sandbox.git(&["show", "proq/x:two"]), "text");
    assert_eq!(inbox_text(&sandbox), "");
    sandbox.assert_healthy();
}

/// Promise: concurrency/message-to-running-agent
#[cfg(debug_assertions)]
#[test]
fn client_crash_leaves_message_delivered_or_waiting() {
    for (point, expected_inbox) in [("inbox.told-at-work", "say I hear"), ("inbox.told", "")] {
        let sandbox = with_speaker(&format!("env.PROQ_TEST_DIE_AT = \"{point}\""));
        sandbox.pipe("a-up");
        sandbox.pipe("a-go");
        let _ = sandbox.proq(&["spawn", "-n", "x", "mine", "hold a"]).ok();
        sandbox.read_pipe("a-up");
        let _ = sandbox.proq(&["send", "x", "say I hear"]).ok();
        sandbox.write_pipe("a-go");
        let _ = sandbox.proq(&["wait", "x"]).fails(4);
        assert_eq!(sandbox.last_run("x")["signal"], 9);
        assert_eq!(inbox_text(&sandbox), expected_inbox, "{point}");
        let prompt = sandbox.proq(&["show", "x", "--prompt", "--json"]).json();
        assert_eq!(prompt["told"].is_null(), !expected_inbox.is_empty(), "{prompt:#}");
        let out = sandbox.proq(&["send", "x", "--wait"]);
        assert_eq!(out.code, i32::from(expected_inbox.is_empty()), "{point}: {}", out.to_text());
        sandbox.assert_healthy();
    }
}

/// Promise: concurrency/message-to-running-agent
#[test]
fn message_stays_with_its_conversation() {
    let sandbox = start_held_run("", "hold a\nwrite one");
    let _ = sandbox.proq(&["send", "x", "write two"]).ok();
    let _ = sandbox.proq(&["stop", "x"]).ok();
    let _ = sandbox.proq(&["run", "x", "mine", "hold b"]).ok();
    sandbox.read_pipe("b-up");
    let _ = sandbox.proq(&["send", "x", "write three"]).ok();
    sandbox.write_pipe("b-go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(prompts(&sandbox).last().map(String::as_str), Some("write three"));
    assert_eq!(inbox_text(&sandbox), "write two");
    let _ = sandbox.proq(&["send", "x", "--wait"]).ok();
    assert_eq!(requests_for(&sandbox, "session/load").len(), 1);
    assert_eq!(prompts(&sandbox).last().map(String::as_str), Some("write two"));
    assert_eq!(inbox_text(&sandbox), "");
    sandbox.assert_healthy();
}

/// Promise: concurrency/message-to-running-agent
#[test]
fn retried_run_resends_delivered_messages() {
    let sandbox = start_held_run("", "hold a\nwrite one");
    sandbox.git(&["config", "proq.agent.crashRetries", "1"]);
    // The supervisor reads its settings when it starts, so the new setting needs a new run.
    let _ = sandbox.proq(&["stop", "x"]).ok();
    let _ = sandbox.proq(&["redispatch", "x"]).ok();
    sandbox.read_pipe("a-up");
    let _ = sandbox.proq(&["send", "x", "write two\nhold b"]).ok();
    sandbox.write_pipe("a-go");
    sandbox.read_pipe("b-up");
    kill_client(&sandbox);
    for pipe in ["a", "b"] {
        sandbox.read_pipe(&format!("{pipe}-up"));
        sandbox.write_pipe(&format!("{pipe}-go"));
    }
    let _ = sandbox.proq(&["wait", "x"]).ok();
    let prompts = prompts(&sandbox);
    assert_eq!((prompts.len(), prompts[4].as_str()), (5, "write two\nhold b"), "{prompts:#?}");
    assert_eq!(sandbox.git(&["show", "proq/x:one"]), "text");
    assert_eq!(sandbox.git(&["show", "proq/x:two"]), "text");
    assert_eq!(inbox_text(&sandbox), "");
}

/// Promise: concurrency/message-to-running-agent
#[test]
fn orphan_finishes_turn_without_new_messages() {
    let sandbox = start_held_run("", "hold a\nwrite one");
    let _ = sandbox.proq(&["send", "x", "write two"]).ok();
    kill_supervisor(&sandbox, "x");
    assert_eq!(sandbox.row("x")["state"], "orphaned");
    assert!(sandbox.proq(&["send", "x", "more"]).fails(1).contains("its agent runs without a supervisor"));
    let pid = sandbox.last_run("x")["pid"].to_string();
    sandbox.write_pipe("a-go");
    wait_until("its end", || !sandbox.is_alive(&pid));
    assert_eq!(inbox_text(&sandbox), "write two");
    assert_eq!(sandbox.row("x")["state"], "failed");
    let _ = sandbox.proq(&["send", "x", "--wait"]).ok();
    assert_eq!(prompts(&sandbox)[1..], ["write two"]);
    assert_eq!(requests_for(&sandbox, "session/load").len(), 1);
    assert_eq!(sandbox.row("x")["state"], "done");
    sandbox.assert_healthy();
}

#[test]
fn stops_orphan_and_resumes_with_message() {
    let sandbox = start_held_run("", "child\nhold a");
    let child = sandbox.agent_record("child");
    kill_supervisor(&sandbox, "x");
    let pid = sandbox.last_run("x")["pid"].to_string();
    let _ = sandbox.proq(&["stop", "x"]).ok();
    assert!(!sandbox.is_alive(&pid));
    // On other systems a detached process is not found without the supervisor.
    assert!(cfg!(not(target_os = "linux")) || !sandbox.is_alive(child.trim()));
    let _ = sandbox.proq(&["send", "x", "write two", "--wait"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/x:two"]), "text");
}
