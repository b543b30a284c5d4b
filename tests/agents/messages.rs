//! Messages that wait for a lane's agent: each is delivered once, to its recipient, and shown until then.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use proq_test_kit::Sandbox;
use proq_test_kit::claude::{sandbox_with_claude, write_user_config};
use proq_test_kit::runs::{kill_supervisor, sandbox_with_running_landing};

use super::send::waiting_agent_with_session;

/// Script of an agent that records its name, waits for `go` in its first run, and continues.
const FIRST_RUN_WAITS: &str = r#"echo "${0##*/}" > "$notes/who.$n"; begin
    if [ $n = 1 ]; then echo > "$ROOT/up"; read go < "$ROOT/go"; fi"#;

/// Returns a lane `x` whose agent `mine` waits in its first run. The program can be moved away, and no other
/// has that name.
fn sandbox_with_waiting_agent(before: &str, spawn: &[&str]) -> Sandbox {
    let sandbox = sandbox_with_claude(&format!("{before}; echo $n >> work; well"));
    sandbox.sh(r#"ln -s claude "$ROOT/bin/mine"; ln -s claude "$ROOT/bin/theirs""#);
    write_user_config(
        &sandbox,
        "[agents.mine]\nlike = 'claude'\nprogram = 'mine'\n[agents.theirs]\nlike = 'claude'\nprogram = 'theirs'\n",
    );
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = sandbox.proq(&[&["spawn", "-n", "x", "mine", "do it"], spawn].concat()).ok();
    sandbox.read_pipe("up");
    sandbox
}

/// Returns how many messages wait in a lane; `show` and `list` must agree.
#[track_caller]
fn waiting_count(sandbox: &Sandbox, lane: &str) -> usize {
    let shown = sandbox.proq(&["show", lane, "--json"]).json();
    let count = shown["waiting"].as_array().map_or(0, Vec::len);
    if !lane.contains('@') {
        assert_eq!(sandbox.row(lane)["waiting"].as_u64().unwrap_or_default(), count as u64, "{shown}");
    }
    count
}

/// Returns the prompts of an agent's runs after the first.
fn prompts_after_first_run(sandbox: &Sandbox) -> Vec<String> {
    let prompt = |n: usize| std::fs::read_to_string(sandbox.root().join(format!("notes/prompt.{n}")));
    (2..).map_while(|n| prompt(n).ok()).collect()
}

/// Starts the program, and returns it with the lines of its standard error.
fn start_proq(sandbox: &Sandbox, args: &[&str]) -> (Child, impl Iterator<Item = String>) {
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    (child, lines)
}

/// Returns how often a run was reported as finished.
fn run_end_count(sandbox: &Sandbox) -> usize {
    sandbox.events("run.ended").len()
}

#[test]
fn reports_missing_commit_before_follow_up_run() {
    let waits = r#"if [ $n = 2 ]; then echo > "$ROOT/up"; read go < "$ROOT/go"; fi"#;
    let sandbox = sandbox_with_claude(&format!("begin; [ $n = 1 ] && echo > work; {waits}; well"));
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = sandbox.proq(&["spawn", "-n", "x", "--wait", "claude", "do it"]).ok();
    let _ = sandbox.proq(&["send", "x", "look"]).ok();
    sandbox.read_pipe("up");
    let _ = sandbox.proq(&["send", "x", "more"]).ok();
    sandbox.write_pipe("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    let events = sandbox.events("agent.told");
    assert_eq!(events.len(), 1);
    let message = events[0]["message"].as_str().unwrap();
    assert!(
        message.starts_with("lane 'x': done") && message.ends_with(", with no new commit in this run"),
        "{message}"
    );
}

/// Promise: concurrency/message-once
#[test]
fn message_during_final_check_is_sent_before_landing() {
    let sandbox = sandbox_with_claude("begin; if [ $n = 2 ]; then echo > work; fi; well");
    sandbox.pipe("up");
    sandbox.pipe("go");
    // A run that has changed nothing is judged by its checks, and by then no process reads messages any more.
    let check = r#"test -e work || { echo > "$ROOT/up"; read go < "$ROOT/go"; }"#;
    let _ = sandbox.proq(&["spawn", "-n", "x", "--auto-merge", "--check", check, "claude", "do it"]).ok();
    sandbox.read_pipe("up");
    let sent = sandbox.proq(&["send", "x", "more"]).ok();
    assert_eq!(sent, "kept for 'x' until its agent's turn has ended\n");
    sandbox.write_pipe("go");
    sandbox.wait_for_events("merge.landed", "x", 1);
    assert!(sandbox.repo.join("work").exists());
    assert_eq!(prompts_after_first_run(&sandbox), ["more"]);
    assert_eq!((run_end_count(&sandbox), sandbox.events("merge.refused").len()), (1, 0));
}

#[test]
fn follow_up_run_during_landing_lands_too() {
    let sandbox = sandbox_with_running_landing();
    let _ = sandbox.proq(&["send", "x", "more"]).ok();
    let _ = sandbox.proq(&["wait", "x"]).ok();
    sandbox.write_pipe("end");
    sandbox.wait_for_events("merge.landed", "x", 2);
    assert_eq!(sandbox.read("work"), "1\n2\n");
}

/// Promise: concurrency/message-after-success
#[test]
fn undeliverable_message_does_not_fail_run() {
    let sandbox = sandbox_with_waiting_agent(FIRST_RUN_WAITS, &["--auto-merge"]);
    let _ = sandbox.proq(&["send", "x", "more"]).ok();
    sandbox.sh(r#"mv "$ROOT/bin/mine" "$ROOT/bin/gone""#);
    sandbox.write_pipe("go");
    let out = sandbox.proq(&["wait", "x"]);
    let reason = "cannot send the queued messages: cannot start 'mine': there is no such program on PATH)\n";
    assert!(
        out.code == 0 && out.stdout.starts_with("x: done (") && out.stdout.ends_with(reason),
        "{}",
        out.to_text()
    );
    sandbox.wait_for_events("merge.refused", "x", 1);
    assert_eq!((run_end_count(&sandbox), waiting_count(&sandbox, "x")), (1, 1));
    assert_eq!(sandbox.row("x")["state"], "done");
    assert!(!sandbox.repo.join("work").exists(), "it does not land without what was sent");
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(shown.contains("queued     for mine, in the conversation of run 1; sent "), "{shown}");
    assert!(shown.contains("auto-merge refused: 1 message in"), "{shown}");
    sandbox.sh(r#"mv "$ROOT/bin/gone" "$ROOT/bin/mine""#);
    let _ = sandbox.proq(&["send", "x"]).ok();
    sandbox.wait_for_events("merge.landed", "x", 1);
    assert_eq!(prompts_after_first_run(&sandbox), ["more"]);
}

#[test]
fn long_messages_are_split_over_turns() {
    let sandbox = sandbox_with_claude(
        r#"begin; shift $(($# - 1)); printf %s "$1" | cut -c 1-3 > "$notes/last.$n"
        if [ $n = 1 ]; then echo > "$ROOT/up"; read go < "$ROOT/go"; fi; echo $n >> work; well"#,
    );
    write_user_config(
        &sandbox,
        "[agents.arg]\nlike = 'claude'\nprogram = 'claude'\nprompt = 'argument'\n[agents.arg.args]\nstart = ['{prompt}']\n\
         resume = ['--resume', '{session}', '{prompt}']\n",
    );
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = sandbox.proq(&["spawn", "-n", "x", "arg", "do it"]).ok();
    sandbox.read_pipe("up");
    for word in ["one", "two"] {
        sandbox.write("long", &word.repeat(25_000));
        let _ = sandbox.proq(&["send", "x", "-f", "long"]).ok();
    }
    sandbox.write("long", &"long".repeat(50_000));
    let refused = sandbox.proq(&["send", "x", "-f", "long"]).fails(2);
    assert!(refused.contains("longer than 120 KiB"), "{refused}");
    sandbox.write_pipe("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!([sandbox.agent_record("last.2"), sandbox.agent_record("last.3")], ["one\n", "two\n"]);
    assert_eq!((run_end_count(&sandbox), waiting_count(&sandbox, "x")), (1, 0));
}

/// Promise: concurrency/message-once
#[test]
fn undelivered_message_is_shown_everywhere() {
    let sandbox = waiting_agent_with_session();
    let _ = sandbox.proq(&["send", "x", "also handle refunds"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["list"]).to_text(), @r"
    LANE  STATE              COMMITS  CHANGES  AGENT   UPDATED  TITLE
    x     running, 1 queued  -        -        claude  0s ago   do it
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["stop", "x"]).to_text(), @r"
    --- stderr
    x: stopped
    1 message in 'x' waits to be sent: git proq send x
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["list"]).to_text(), @"
    LANE  STATE              COMMITS  CHANGES  AGENT   UPDATED  TITLE
    x     stopped, 1 queued  -        -        claude  0s ago   do it
    --- stderr
    1 message in 'x' waits to be sent: git proq send x
    --- code 0
    ");
    let json = sandbox.proq(&["show", "x", "--json"]).json();
    let message = &json["waiting"][0];
    assert_eq!(message["text"], "also handle refunds");
    assert_eq!(
        (&message["agent"], &message["run"], &message["session"]),
        (&"claude".into(), &1.into(), &"s-1".into())
    );
    insta::assert_snapshot!(sandbox.proq(&["discard", "--force", "x"]).stderr, @r"
    its folder, ignored files included, is kept for 7 days: [ROOT]/repo/.git/proq/trash/x-[ID]
    1 message was never sent to the agent of 'x'; git proq show x@1 shows what was sent
    ");
    let shown = sandbox.proq(&["show", "x@1"]).ok();
    assert!(shown.contains("\n             also handle refunds\n"), "{shown}");
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["send", "x", "--wait"]).ok();
    assert_eq!(
        (prompts_after_first_run(&sandbox), waiting_count(&sandbox, "x")),
        (vec!["also handle refunds".to_owned()], 0)
    );
}

#[test]
fn merge_and_redispatch_report_undelivered_messages() {
    for args in [&["merge", "--stop", "x"][..], &["redispatch", "x"]] {
        let sandbox = waiting_agent_with_session();
        sandbox.commit_in_lane("x", "echo > mine");
        let _ = sandbox.proq(&["send", "x", "more"]).ok();
        if args[0] == "redispatch" {
            let _ = sandbox.proq(&["stop", "x"]).ok();
        }
        let out = sandbox.proq(args);
        let warning = "1 message was never sent to the agent of 'x'; git proq show x@1 shows what was sent\n";
        assert!(out.stderr.contains(warning), "{}", out.to_text());
        assert_eq!((out.code, waiting_count(&sandbox, "x@1")), (0, 1));
        if args[0] == "redispatch" {
            let _ = sandbox.proq(&["wait", "x"]).ok();
            assert_eq!(waiting_count(&sandbox, "x"), 0);
        }
    }
}

/// Promise: concurrency/message-once
#[test]
fn message_is_sent_only_to_its_conversation() {
    let sandbox = sandbox_with_waiting_agent(FIRST_RUN_WAITS, &[]);
    let _ = sandbox.proq(&["send", "x", "for mine"]).ok();
    let _ = sandbox.proq(&["stop", "x"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["run", "x", "theirs", "review"]).stderr, @"
    may run: git; allow more: git config --add proq.agent.allow 'make *'
    1 message in 'x' waits to be sent: git proq send x
    hint: follow it: git proq logs -f x
    hint: wait for it: git proq wait x
    ");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(prompts_after_first_run(&sandbox), ["review"]);
    assert_eq!(waiting_count(&sandbox, "x"), 1);
    let _ = sandbox.proq(&["send", "x", "for theirs", "--wait"]).ok();
    let _ = sandbox.proq(&["send", "x", "--wait"]).ok();
    assert_eq!(prompts_after_first_run(&sandbox), ["review", "for theirs", "for mine"]);
    let agents: Vec<String> = (1..5).map(|n| sandbox.agent_record(&format!("who.{n}"))).collect();
    assert_eq!(agents, ["mine\n", "theirs\n", "theirs\n", "mine\n"]);
    assert_eq!(waiting_count(&sandbox, "x"), 0);
}

#[test]
fn message_waits_while_another_conversation_runs() {
    let sandbox = sandbox_with_waiting_agent(
        r#"echo "${0##*/}" > "$notes/who.$n"; begin; if [ $n -lt 3 ]; then echo > "$ROOT/up"; read go < "$ROOT/go"; fi"#,
        &[],
    );
    let _ = sandbox.proq(&["send", "x", "for mine"]).ok();
    let _ = sandbox.proq(&["stop", "x"]).ok();
    let _ = sandbox.proq(&["run", "x", "theirs", "review"]).ok();
    sandbox.read_pipe("up");
    let refused = sandbox.proq(&["send", "x"]);
    insta::assert_snapshot!(refused.to_text(), @r"
    --- stderr
    error: cannot send to lane 'x': the queued messages are for another conversation (mine)
    hint: send them after that run: git proq wait x && git proq send x
    --- code 1
    ");
    let _ = sandbox.proq(&["send", "x", "for theirs"]).ok();
    sandbox.write_pipe("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(prompts_after_first_run(&sandbox), ["review", "for theirs"]);
    assert_eq!(waiting_count(&sandbox, "x"), 1);
    let _ = sandbox.follow_hint(&refused.stderr, "send them after that run").ok();
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(prompts_after_first_run(&sandbox), ["review", "for theirs", "for mine"]);
    assert_eq!(waiting_count(&sandbox, "x"), 0);
}

#[test]
fn message_is_delivered_after_retry() {
    let sandbox = sandbox_with_claude(
        r#"begin; if [ $n = 1 ]; then echo > "$ROOT/up"; read go < "$ROOT/go"; busy; exit 1; fi; echo $n >> work; well"#,
    );
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = sandbox.proq(&["spawn", "-n", "x", "claude", "do it"]).ok();
    sandbox.read_pipe("up");
    let _ = sandbox.proq(&["send", "x", "more"]).ok();
    sandbox.write_pipe("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(
        (prompts_after_first_run(&sandbox).last().map(String::as_str), waiting_count(&sandbox, "x")),
        (Some("more"), 0)
    );
}

/// Returns a lane `x` that was stopped before its agent received the message `more`.
fn stopped_with_message() -> Sandbox {
    let sandbox = waiting_agent_with_session();
    let _ = sandbox.proq(&["send", "x", "more"]).ok();
    let _ = sandbox.proq(&["stop", "x"]).ok();
    assert_eq!(waiting_count(&sandbox, "x"), 1);
    sandbox
}

/// Promise: concurrency/message-once
#[cfg(debug_assertions)]
#[test]
fn killed_send_keeps_message_until_delivered() {
    // At the first point the agent has started without a record; at the second the delivery is recorded.
    for (point, left) in [("run.begun", 1), ("inbox.told", 0)] {
        let sandbox = stopped_with_message();
        let mut command = sandbox.proq_command(&sandbox.repo, &["send", "x"]);
        command.env("PROQ_TEST_DIE_AT", point);
        let output = sandbox.output(command).fails(4);
        assert!(output.contains("its supervisor ended early, with signal 9"), "{output}");
        drop(sandbox.proq(&["stop", "x"]));
        assert_eq!(waiting_count(&sandbox, "x"), left, "{point}");
        let out = sandbox.proq(&["send", "x", "--wait"]);
        assert_eq!(out.code, i32::from(left == 0), "{point}: {}", out.to_text());
        let count = sandbox.proq(&["show", "x", "--json"]).json()["runs"].as_array().unwrap().len();
        assert_eq!(count, 2 + left, "{point}");
        sandbox.assert_healthy();
    }
}

/// Promise: concurrency/message-once
#[cfg(debug_assertions)]
#[test]
fn killed_delivery_at_turn_end_keeps_message() {
    for (point, left) in [("run.begun:2", 1), ("inbox.told", 0)] {
        let sandbox = sandbox_with_claude(
            r#"begin; if [ $n = 1 ]; then echo > "$ROOT/up"; read go < "$ROOT/go"; fi; echo $n >> work; well"#,
        );
        sandbox.pipe("up");
        sandbox.pipe("go");
        let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "-n", "x", "claude", "do it"]);
        command.env("PROQ_TEST_DIE_AT", point);
        let _ = sandbox.output(command).ok();
        sandbox.read_pipe("up");
        let _ = sandbox.proq(&["send", "x", "more"]).ok();
        sandbox.write_pipe("go");
        let _ = sandbox.proq(&["wait", "x"]).fails(4);
        drop(sandbox.proq(&["stop", "x"]));
        assert_eq!(waiting_count(&sandbox, "x"), left, "{point}");
        let _ = sandbox.proq(&["send", "x", "again", "--wait"]).ok();
        let last = if left == 1 { "more\n\nagain" } else { "again" };
        assert_eq!(prompts_after_first_run(&sandbox).last().map(String::as_str), Some(last), "{point}");
    }
}

/// Promise: concurrency/message-failed-send
#[test]
fn failed_send_keeps_nothing_and_repeat_sends_once() {
    let sandbox = sandbox_with_claude("begin; echo $n >> work; well");
    let _ = sandbox.proq(&["spawn", "-n", "x", "--wait", "claude", "do it"]).ok();
    let before = sandbox.row("x");
    let put = |first: &str| {
        sandbox.sh(&format!(r#"cd "$ROOT/bin"; mv claude old; {{ echo '{first}'; tail -n +2 old; }} > claude; chmod +x claude"#))
    };
    // The program exists but cannot be started; then it does not exist.
    put("#!/nowhere/sh");
    insta::assert_snapshot!(sandbox.proq(&["send", "x", "more"]).to_text(), @r"
    --- stderr
    error: cannot start the agent of lane 'x': cannot start '[ROOT]/bin/claude': its interpreter '/nowhere/sh' does not exist
    hint: list installed agents: git proq agents
    --- code 4
    ");
    assert_eq!(
        (waiting_count(&sandbox, "x"), sandbox.row("x")["state"].clone()),
        (0, before["state"].clone())
    );
    write_user_config(&sandbox, "[agents.claude]\nprogram = 'not-there'\n");
    insta::assert_snapshot!(sandbox.proq(&["send", "x", "more"]).to_text(), @"
    --- stderr
    error: cannot start 'not-there': there is no such program on PATH
    hint: list installed agents: git proq agents
    --- code 1
    ");
    assert_eq!(waiting_count(&sandbox, "x"), 0);
    write_user_config(&sandbox, "");
    put("#!/bin/sh");
    let _ = sandbox.proq(&["send", "x", "more", "--wait"]).ok();
    assert_eq!(prompts_after_first_run(&sandbox), ["more"]);
}

/// Promise: concurrency/message-failed-send
#[test]
fn failed_agent_start_leaves_lane_unchanged() {
    let sandbox = sandbox_with_claude("begin; echo $n >> work; well");
    let _ = sandbox.proq(&["spawn", "-n", "x", "--wait", "claude", "do it"]).ok();
    sandbox.program("broken", "true");
    sandbox.sh(r#"echo '#!/nowhere/sh' > "$ROOT/bin/broken""#);
    let before = sandbox.row("x");
    insta::assert_snapshot!(sandbox.proq(&["run", "x", "broken", "review"]).to_text(), @r"
    --- stderr
    error: cannot start the agent of lane 'x': cannot start '[ROOT]/bin/broken': its interpreter '/nowhere/sh' does not exist
    hint: list installed agents: git proq agents
    --- code 4
    ");
    let after = sandbox.row("x");
    for field in ["state", "detail", "agent"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    let run = sandbox.last_run("x");
    assert_eq!((&run["agent"], &run["outcome"]), (&"broken".into(), &"failed".into()), "{run}");
    // The recipient of messages has not changed either.
    let _ = sandbox.proq(&["send", "x", "more", "--wait"]).ok();
    assert_eq!(prompts_after_first_run(&sandbox), ["more"]);
    // A lane that was created for the failed run has nothing else.
    let output = sandbox.proq(&["spawn", "-n", "y", "broken", "do it"]).fails(4);
    assert!(output.contains("hint: remove the lane: git proq discard y\n"), "{output}");
}

/// Promise: concurrency/message-failed-send
#[test]
fn send_to_lane_being_removed_creates_nothing() {
    let sandbox = stopped_with_message();
    let proq = sandbox.repo.join(".git/proq");
    let lock = std::fs::File::open(proq.join("locks/store.lock")).unwrap();
    lock.lock().unwrap();
    let (mut child, mut lines) = start_proq(&sandbox, &["send", "x", "too late"]);
    // It has found the lane, and waits for the lock under which a removal moves the lane to the history.
    assert!(lines.next().unwrap().contains("waiting for the store"));
    std::fs::create_dir_all(proq.join("history")).unwrap();
    std::fs::rename(proq.join("lanes/x"), proq.join("history/x@1")).unwrap();
    lock.unlock().unwrap();
    let rest: Vec<String> = lines.collect();
    assert!(rest.iter().any(|line| line.contains("no lane 'x'")), "{rest:?}");
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(!proq.join("lanes/x").exists());
    assert_eq!(std::fs::read_dir(proq.join("history/x@1/inbox")).unwrap().count(), 1);
    // Moved back, for the sandbox's own cleanup.
    std::fs::rename(proq.join("history/x@1"), proq.join("lanes/x")).unwrap();
}

#[test]
fn message_of_killed_supervisor_waits() {
    let sandbox = waiting_agent_with_session();
    let _ = sandbox.proq(&["send", "x", "more"]).ok();
    kill_supervisor(&sandbox, "x");
    assert_eq!(waiting_count(&sandbox, "x"), 1);
    let stderr = sandbox.proq(&["stop", "x"]).stderr;
    assert!(stderr.contains("1 message in 'x' waits to be sent: git proq send x\n"), "{stderr}");
}

/// Promise: concurrency/message-once
#[test]
fn concurrent_sends_deliver_message_once() {
    let sandbox = stopped_with_message();
    // As a process of the run holds the lock while it delivers messages to its agent.
    let other = std::fs::File::create(sandbox.lane_lock("x", "inbox.lock")).unwrap();
    other.lock().unwrap();
    let (mut child, mut lines) = start_proq(&sandbox, &["send", "x", "again"]);
    assert!(lines.next().unwrap().contains("waiting for what was sent to lane 'x'"));
    assert_eq!((waiting_count(&sandbox, "x"), prompts_after_first_run(&sandbox).len()), (1, 0));
    other.unlock().unwrap();
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(prompts_after_first_run(&sandbox), ["more\n\nagain"]);
}
