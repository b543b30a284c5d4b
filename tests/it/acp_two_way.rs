//! Owns the tests of telling an agent more that speaks the Agent Client Protocol, and of what deaths leave of that.

use super::acp::with_speaker;
use super::stop::kill_supervisor;
use super::support::Sandbox;
use super::support::patience::wait_until;

/// An agent in lane `x` that has named its session and waits for a word in the pipe `a-go`.
fn at_work(settings: &str, task: &str) -> Sandbox {
    let sandbox = with_speaker(settings);
    for pipe in ["a-up", "a-go", "b-up", "b-go"] {
        sandbox.pipe(pipe);
    }
    let _ = sandbox.proq(&["spawn", "-n", "x", "mine", task]).ok();
    sandbox.hear("a-up");
    wait_until("its session", || !sandbox.last_run("x")["account"]["session"].is_null());
    sandbox
}

/// Kills the process between the supervisor and the agent.
fn kill_client(sandbox: &Sandbox) {
    let pid = sandbox.last_run("x")["pid"].to_string();
    sandbox.sh(&format!("kill -9 {pid}"));
}

fn starts(sandbox: &Sandbox) -> usize {
    sandbox.note("started").lines().count()
}

/// What waits for the agent of lane `x`.
fn waiting(sandbox: &Sandbox) -> String {
    let shown = sandbox.proq(&["show", "x", "--json"]).json();
    let texts =
        shown["waiting"].as_array().into_iter().flatten().map(|letter| letter["text"].as_str().unwrap());
    texts.collect::<Vec<_>>().join("\n\n")
}

#[test]
fn what_is_sent_goes_to_the_same_process_when_its_turn_has_ended() {
    let sandbox = at_work("", "hold a\nwrite one");
    let kept = sandbox.proq(&["send", "x", "write two"]).ok();
    assert_eq!(kept, "kept for 'x' until its agent's turn has ended\n");
    let _ = sandbox.proq(&["send", "x", "hold b\nwrite three"]).ok();
    sandbox.tell("a-go");
    sandbox.hear("b-up");
    // While that is done, there is a third time.
    let _ = sandbox.proq(&["send", "x", "write four"]).ok();
    sandbox.tell("b-go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(starts(&sandbox), 1);
    assert_eq!(sandbox.prompts()[1..], ["write two\n\nhold b\nwrite three", "write four"]);
    assert_eq!(sandbox.asked_for("session/new").len() + sandbox.asked_for("session/load").len(), 1);
    let run = sandbox.last_run("x");
    assert_eq!(
        (&run["attempt"], &run["told"], &run["class"]),
        (&1.into(), &2.into(), &"done".into()),
        "{run:#}"
    );
    assert_eq!(run["account"]["tokens"]["input"], 300);
    assert_eq!(run["account"]["cost"]["nanos"], 30_000_000);
    assert_eq!(sandbox.git(&["ls-tree", "--name-only", "proq/x"]), "a.txt\nfour\none\nthree\ntwo");
    assert_eq!(waiting(&sandbox), "");
    assert_eq!(sandbox.events("agent.told").len(), 2);
    let logs = sandbox.proq(&["logs", "x"]).ok();
    assert!(
        logs.contains("< told more: write two (+3 lines)\n") && logs.contains("< told more: write four\n"),
        "{logs}"
    );
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(shown.contains("told more 2 times while it was at work"), "{shown}");
    let prompt = sandbox.proq(&["show", "x", "--prompt"]).ok();
    assert!(prompt.contains("hold a\nwrite one") && prompt.ends_with("write four\n"), "{prompt}");
    let _ = sandbox.proq(&["send", "x", "write five", "--wait"]).ok();
    assert_eq!((starts(&sandbox), sandbox.last_run("x")["attempt"].as_u64()), (2, Some(2)));
    sandbox.assert_healthy();
}

#[test]
fn a_message_that_an_agent_has_is_not_told_again_when_its_client_is_killed() {
    let sandbox = at_work("", "hold a");
    let _ = sandbox.proq(&["send", "x", "say I hear\nhold b"]).ok();
    sandbox.tell("a-go");
    sandbox.hear("b-up");
    wait_until("it has the message", || waiting(&sandbox).is_empty());
    kill_client(&sandbox);
    let _ = sandbox.proq(&["wait", "x"]).fails(4);
    let run = sandbox.last_run("x");
    assert_eq!((&run["class"], &run["signal"]), (&"crashed".into(), &9.into()), "{run:#}");
    assert!(sandbox.proq(&["send", "x"]).fails(1).contains("nothing waits"));
    assert_eq!(sandbox.prompts().len(), 2);
    sandbox.assert_healthy();
}

#[test]
fn a_message_that_an_agent_may_not_have_is_told_again_when_its_client_is_killed() {
    let sandbox = at_work("", "hold a");
    let _ = sandbox.proq(&["send", "x", "hold b\nwrite two"]).ok();
    sandbox.tell("a-go");
    sandbox.hear("b-up");
    assert_eq!(waiting(&sandbox), "hold b\nwrite two");
    kill_client(&sandbox);
    let _ = sandbox.proq(&["wait", "x"]).fails(4);
    assert_eq!(waiting(&sandbox), "hold b\nwrite two");
    let _ = sandbox.proq(&["send", "x"]).ok();
    sandbox.hear("b-up");
    sandbox.tell("b-go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(sandbox.last_run("x")["resumed"], true);
    assert_eq!(sandbox.prompts()[2], "hold b\nwrite two");
    assert_eq!(sandbox.git(&["show", "proq/x:two"]), "text");
    assert_eq!(waiting(&sandbox), "");
    sandbox.assert_healthy();
}

#[cfg(debug_assertions)]
#[test]
fn a_client_that_dies_while_it_notes_what_was_told_leaves_it_told_or_waiting() {
    for (point, left) in [("inbox.told-at-work", "say I hear"), ("inbox.told", "")] {
        let sandbox = with_speaker(&format!("env.PROQ_TEST_DIE_AT = \"{point}\""));
        sandbox.pipe("a-up");
        sandbox.pipe("a-go");
        let _ = sandbox.proq(&["spawn", "-n", "x", "mine", "hold a"]).ok();
        sandbox.hear("a-up");
        let _ = sandbox.proq(&["send", "x", "say I hear"]).ok();
        sandbox.tell("a-go");
        let _ = sandbox.proq(&["wait", "x"]).fails(4);
        assert_eq!(sandbox.last_run("x")["signal"], 9);
        assert_eq!(waiting(&sandbox), left, "{point}");
        let prompt = sandbox.proq(&["show", "x", "--prompt", "--json"]).json();
        assert_eq!(prompt["told"].is_null(), !left.is_empty(), "{prompt:#}");
        let out = sandbox.proq(&["send", "x", "--wait"]);
        assert_eq!(out.code, i32::from(left.is_empty()), "{point}: {}", out.shown());
        sandbox.assert_healthy();
    }
}

#[test]
fn what_is_for_another_conversation_is_not_told_in_this_one() {
    let sandbox = at_work("", "hold a\nwrite one");
    let _ = sandbox.proq(&["send", "x", "write two"]).ok();
    let _ = sandbox.proq(&["stop", "x"]).ok();
    let _ = sandbox.proq(&["run", "x", "mine", "hold b"]).ok();
    sandbox.hear("b-up");
    let _ = sandbox.proq(&["send", "x", "write three"]).ok();
    sandbox.tell("b-go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(sandbox.prompts().last().map(String::as_str), Some("write three"));
    assert_eq!(waiting(&sandbox), "write two");
    let _ = sandbox.proq(&["send", "x", "--wait"]).ok();
    assert_eq!(sandbox.asked_for("session/load").len(), 1);
    assert_eq!(sandbox.prompts().last().map(String::as_str), Some("write two"));
    assert_eq!(waiting(&sandbox), "");
    sandbox.assert_healthy();
}

#[test]
fn a_run_that_is_tried_again_is_told_again_what_it_had_been_told() {
    let sandbox = at_work("", "hold a\nwrite one");
    sandbox.git(&["config", "proq.agent.crashRetries", "1"]);
    // The supervisor has read its settings by now; a run of its own reads them anew.
    let _ = sandbox.proq(&["stop", "x"]).ok();
    let _ = sandbox.proq(&["redispatch", "x"]).ok();
    sandbox.hear("a-up");
    let _ = sandbox.proq(&["send", "x", "write two\nhold b"]).ok();
    sandbox.tell("a-go");
    sandbox.hear("b-up");
    kill_client(&sandbox);
    for pipe in ["a", "b"] {
        sandbox.hear(&format!("{pipe}-up"));
        sandbox.tell(&format!("{pipe}-go"));
    }
    let _ = sandbox.proq(&["wait", "x"]).ok();
    let prompts = sandbox.prompts();
    assert_eq!((prompts.len(), prompts[4].as_str()), (5, "write two\nhold b"), "{prompts:#?}");
    assert_eq!(sandbox.git(&["show", "proq/x:one"]), "text");
    assert_eq!(sandbox.git(&["show", "proq/x:two"]), "text");
    assert_eq!(waiting(&sandbox), "");
}

#[test]
fn without_its_supervisor_an_agent_ends_its_turn_and_takes_nothing_more() {
    let sandbox = at_work("", "hold a\nwrite one");
    let _ = sandbox.proq(&["send", "x", "write two"]).ok();
    kill_supervisor(&sandbox, "x");
    assert_eq!(sandbox.row("x")["state"], "orphaned");
    assert!(sandbox.proq(&["send", "x", "more"]).fails(1).contains("lives on without its supervisor"));
    let pid = sandbox.last_run("x")["pid"].to_string();
    sandbox.tell("a-go");
    wait_until("its end", || !sandbox.lives(&pid));
    assert_eq!(waiting(&sandbox), "write two");
    assert_eq!(sandbox.row("x")["state"], "failed");
    let _ = sandbox.proq(&["send", "x", "--wait"]).ok();
    assert_eq!(sandbox.prompts()[1..], ["write two"]);
    assert_eq!(sandbox.asked_for("session/load").len(), 1);
    assert_eq!(sandbox.row("x")["state"], "done");
    sandbox.assert_healthy();
}

#[test]
fn an_orphan_is_stopped_and_told_more() {
    let sandbox = at_work("", "child\nhold a");
    let child = sandbox.note("child");
    kill_supervisor(&sandbox, "x");
    let pid = sandbox.last_run("x")["pid"].to_string();
    let _ = sandbox.proq(&["stop", "x"]).ok();
    assert!(!sandbox.lives(&pid));
    // Elsewhere what fled is not found without the supervisor.
    assert!(cfg!(not(target_os = "linux")) || !sandbox.lives(child.trim()));
    let _ = sandbox.proq(&["send", "x", "write two", "--wait"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/x:two"]), "text");
}
