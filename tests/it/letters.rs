//! Owns the tests of what waits to be told to a lane's agent: that it is told once, to whom it was sent, and seen until then.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use super::profiles::configure;
use super::runs::with_claude;
use super::stop::kill_supervisor;
use super::support::Sandbox;
use super::talk::in_session;

/// How an agent notes what it is called, waits for a word in its first run, and goes on.
const FIRST_WAITS: &str = r#"echo "${0##*/}" > "$notes/who.$n"; begin
    if [ $n = 1 ]; then echo > "$ROOT/up"; read go < "$ROOT/go"; fi"#;

/// A lane `x` whose agent `mine` waits for a word in its first run. It can be moved away, and nothing else has that name.
fn with_mine(before: &str, spawn: &[&str]) -> Sandbox {
    let sandbox = with_claude(&format!("{before}; echo $n >> work; well"));
    sandbox.sh(r#"ln -s claude "$ROOT/bin/mine"; ln -s claude "$ROOT/bin/theirs""#);
    configure(
        &sandbox,
        "[agents.mine]\nlike = 'claude'\nprogram = 'mine'\n[agents.theirs]\nlike = 'claude'\nprogram = 'theirs'\n",
    );
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = sandbox.proq(&[&["spawn", "-n", "x", "mine", "do it"], spawn].concat()).ok();
    sandbox.hear("up");
    sandbox
}

/// How many messages wait in a lane, as `show` and `list` have it.
#[track_caller]
fn waiting(sandbox: &Sandbox, lane: &str) -> usize {
    let shown = sandbox.proq(&["show", lane, "--json"]).json();
    let count = shown["waiting"].as_array().map_or(0, Vec::len);
    if !lane.contains('@') {
        assert_eq!(sandbox.row(lane)["waiting"].as_u64().unwrap_or_default(), count as u64, "{shown}");
    }
    count
}

/// What an agent was told in its runs, those that there were.
fn told(sandbox: &Sandbox) -> Vec<String> {
    let prompt = |n: usize| std::fs::read_to_string(sandbox.root().join(format!("notes/prompt.{n}")));
    (2..).map_while(|n| prompt(n).ok()).collect()
}

/// The program at work, and what it says.
fn started(sandbox: &Sandbox, args: &[&str]) -> (Child, impl Iterator<Item = String>) {
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    (child, said)
}

/// How often a run was told to be over.
fn ends(sandbox: &Sandbox) -> usize {
    sandbox.events("run.ended").len()
}

#[test]
fn a_run_without_a_new_commit_is_said_to_be_one_before_it_goes_on() {
    let waits = r#"if [ $n = 2 ]; then echo > "$ROOT/up"; read go < "$ROOT/go"; fi"#;
    let sandbox = with_claude(&format!("begin; [ $n = 1 ] && echo > work; {waits}; well"));
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = sandbox.proq(&["spawn", "-n", "x", "--wait", "claude", "do it"]).ok();
    let _ = sandbox.proq(&["send", "x", "look"]).ok();
    sandbox.hear("up");
    let _ = sandbox.proq(&["send", "x", "more"]).ok();
    sandbox.tell("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    let told = sandbox.events("agent.told");
    assert_eq!(told.len(), 1);
    let message = told[0]["message"].as_str().unwrap();
    assert!(
        message.starts_with("lane 'x': done") && message.ends_with(", with no new commit in this run"),
        "{message}"
    );
}

#[test]
fn what_comes_while_a_run_is_judged_is_told_before_the_lane_lands() {
    let sandbox = with_claude("begin; if [ $n = 2 ]; then echo > work; fi; well");
    sandbox.pipe("up");
    sandbox.pipe("go");
    // A run that has changed nothing is judged by its checks, and by then nobody looks for messages any more.
    let check = r#"test -e work || { echo > "$ROOT/up"; read go < "$ROOT/go"; }"#;
    let _ = sandbox.proq(&["spawn", "-n", "x", "--auto-merge", "--check", check, "claude", "do it"]).ok();
    sandbox.hear("up");
    let sent = sandbox.proq(&["send", "x", "more"]).ok();
    assert_eq!(sent, "kept for 'x' until its agent's turn has ended\n");
    sandbox.tell("go");
    sandbox.until("merge.landed", "x", 1);
    assert!(sandbox.repo.join("work").exists());
    assert_eq!(told(&sandbox), ["more"]);
    assert_eq!((ends(&sandbox), sandbox.events("merge.refused").len()), (1, 0));
}

/// Lane `x`, whose first run is over and is being landed by itself: the base has moved, and the landing goes on until `end` is told.
/// The lane stays when it has landed.
pub fn with_a_landing_under_way() -> Sandbox {
    let sandbox = with_claude(
        r#"begin; if [ $n = 1 ]; then echo > "$ROOT/up"; read go < "$ROOT/go"; fi; echo $n >> work; well"#,
    );
    for pipe in ["up", "go", "landed", "end"] {
        sandbox.pipe(pipe);
    }
    let hook =
        r#"test -e "$ROOT/once" || { echo > "$ROOT/once"; echo > "$ROOT/landed"; read go < "$ROOT/end"; }"#;
    sandbox.sh(&format!(
        "printf '#!/bin/sh\n%s\n' '{hook}' > .git/hooks/post-merge; chmod +x .git/hooks/post-merge"
    ));
    let _ = sandbox.proq(&["spawn", "-n", "x", "--auto-merge", "claude", "do it"]).ok();
    sandbox.hear("up");
    // So it stays.
    sandbox.git(&["worktree", "lock", ".proq-worktrees/x"]);
    sandbox.tell("go");
    sandbox.hear("landed");
    sandbox
}

#[test]
fn what_a_run_adds_while_a_lane_lands_by_itself_lands_too() {
    let sandbox = with_a_landing_under_way();
    let _ = sandbox.proq(&["send", "x", "more"]).ok();
    let _ = sandbox.proq(&["wait", "x"]).ok();
    sandbox.tell("end");
    sandbox.until("merge.landed", "x", 2);
    assert_eq!(sandbox.read("work"), "1\n2\n");
}

#[test]
fn a_good_run_stays_good_when_what_was_sent_cannot_be_told() {
    let sandbox = with_mine(FIRST_WAITS, &["--auto-merge"]);
    let _ = sandbox.proq(&["send", "x", "more"]).ok();
    sandbox.sh(r#"mv "$ROOT/bin/mine" "$ROOT/bin/gone""#);
    sandbox.tell("go");
    let out = sandbox.proq(&["wait", "x"]);
    let why = "what was sent could not be told: there is no program 'mine' on PATH)\n";
    assert!(
        out.code == 0 && out.stdout.starts_with("x: done (") && out.stdout.ends_with(why),
        "{}",
        out.shown()
    );
    sandbox.until("merge.refused", "x", 1);
    assert_eq!((ends(&sandbox), waiting(&sandbox, "x")), (1, 1));
    assert_eq!(sandbox.row("x")["state"], "done");
    assert!(!sandbox.repo.join("work").exists(), "it does not land without what was sent");
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(shown.contains("waits      to be told to mine, in the conversation of run 1; "), "{shown}");
    assert!(shown.contains("by itself  refused: 1 message in"), "{shown}");
    sandbox.sh(r#"mv "$ROOT/bin/gone" "$ROOT/bin/mine""#);
    let _ = sandbox.proq(&["send", "x"]).ok();
    sandbox.until("merge.landed", "x", 1);
    assert_eq!(told(&sandbox), ["more"]);
}

#[test]
fn what_is_too_long_for_one_turn_is_told_in_several() {
    let sandbox = with_claude(
        r#"begin; shift $(($# - 1)); printf %s "$1" | cut -c 1-3 > "$notes/last.$n"
        if [ $n = 1 ]; then echo > "$ROOT/up"; read go < "$ROOT/go"; fi; echo $n >> work; well"#,
    );
    configure(
        &sandbox,
        "[agents.arg]\nlike = 'claude'\nprogram = 'claude'\nprompt = 'argument'\n[agents.arg.args]\nstart = ['{prompt}']\n\
         resume = ['--resume', '{session}', '{prompt}']\n",
    );
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = sandbox.proq(&["spawn", "-n", "x", "arg", "do it"]).ok();
    sandbox.hear("up");
    for word in ["one", "two"] {
        sandbox.write("long", &word.repeat(25_000));
        let _ = sandbox.proq(&["send", "x", "-f", "long"]).ok();
    }
    sandbox.write("long", &"long".repeat(50_000));
    let refused = sandbox.proq(&["send", "x", "-f", "long"]).fails(2);
    assert!(refused.contains("longer than an argument"), "{refused}");
    sandbox.tell("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!([sandbox.note("last.2"), sandbox.note("last.3")], ["one\n", "two\n"]);
    assert_eq!((ends(&sandbox), waiting(&sandbox, "x")), (1, 0));
}

#[test]
fn what_nobody_was_told_is_seen_wherever_the_lane_is() {
    let sandbox = in_session();
    let _ = sandbox.proq(&["send", "x", "also handle refunds"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["list"]).shown(), @r"
    LANE  STATE               AGENT   COMMITS  CHANGES  AGE  TITLE
    x     running, 1 to tell  claude  -        -        0s   do it
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["stop", "x"]).shown(), @r"
    --- stderr
    x: stopped
    1 message in 'x' waits to be told: git proq send x passes on what waits
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["list"]).shown(), @r"
    LANE  STATE               AGENT   COMMITS  CHANGES  AGE  TITLE
    x     stopped, 1 to tell  claude  -        -        0s   do it
    --- stderr
    1 message in 'x' waits to be told: git proq send x passes on what waits
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
    1 message was never told to the agent of 'x'; git proq show x@1 shows what was sent
    ");
    let shown = sandbox.proq(&["show", "x@1"]).ok();
    assert!(shown.contains("\n             also handle refunds\n"), "{shown}");
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["send", "x", "--wait"]).ok();
    assert_eq!((told(&sandbox), waiting(&sandbox, "x")), (vec!["also handle refunds".to_owned()], 0));
}

#[test]
fn a_lane_that_lands_or_starts_afresh_says_what_nobody_was_told() {
    for args in [&["merge", "--stop", "x"][..], &["redispatch", "x"]] {
        let sandbox = in_session();
        sandbox.commit_in_lane("x", "echo > mine");
        let _ = sandbox.proq(&["send", "x", "more"]).ok();
        if args[0] == "redispatch" {
            let _ = sandbox.proq(&["stop", "x"]).ok();
        }
        let out = sandbox.proq(args);
        let said = "1 message was never told to the agent of 'x'; git proq show x@1 shows what was sent\n";
        assert!(out.stderr.contains(said), "{}", out.shown());
        assert_eq!((out.code, waiting(&sandbox, "x@1")), (0, 1));
        if args[0] == "redispatch" {
            let _ = sandbox.proq(&["wait", "x"]).ok();
            assert_eq!(waiting(&sandbox, "x"), 0);
        }
    }
}

#[test]
fn what_is_for_one_conversation_is_told_in_no_other() {
    let sandbox = with_mine(FIRST_WAITS, &[]);
    let _ = sandbox.proq(&["send", "x", "for mine"]).ok();
    let _ = sandbox.proq(&["stop", "x"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["run", "x", "theirs", "review"]).stderr, @r"
    1 message in 'x' waits to be told: git proq send x passes on what waits
    hint: follow it: git proq logs -f x   wait for it: git proq wait x
    ");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(told(&sandbox), ["review"]);
    assert_eq!(waiting(&sandbox, "x"), 1);
    let _ = sandbox.proq(&["send", "x", "for theirs", "--wait"]).ok();
    let _ = sandbox.proq(&["send", "x", "--wait"]).ok();
    assert_eq!(told(&sandbox), ["review", "for theirs", "for mine"]);
    let who: Vec<String> = (1..5).map(|n| sandbox.note(&format!("who.{n}"))).collect();
    assert_eq!(who, ["mine\n", "theirs\n", "theirs\n", "mine\n"]);
    assert_eq!(waiting(&sandbox, "x"), 0);
}

#[test]
fn what_is_for_a_conversation_waits_while_another_goes_on() {
    let sandbox = with_mine(
        r#"echo "${0##*/}" > "$notes/who.$n"; begin; if [ $n -lt 3 ]; then echo > "$ROOT/up"; read go < "$ROOT/go"; fi"#,
        &[],
    );
    let _ = sandbox.proq(&["send", "x", "for mine"]).ok();
    let _ = sandbox.proq(&["stop", "x"]).ok();
    let _ = sandbox.proq(&["run", "x", "theirs", "review"]).ok();
    sandbox.hear("up");
    insta::assert_snapshot!(sandbox.proq(&["send", "x"]).shown(), @r"
    --- stderr
    error: what waits is for another conversation of lane 'x' (mine) than the one that goes on there; nothing was sent
    hint: when that run has ended: git proq wait x && git proq send x
    --- code 1
    ");
    let _ = sandbox.proq(&["send", "x", "for theirs"]).ok();
    sandbox.tell("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(told(&sandbox), ["review", "for theirs"]);
    assert_eq!(waiting(&sandbox, "x"), 1);
}

#[test]
fn a_further_try_is_the_conversation_that_it_is_for() {
    let sandbox = with_claude(
        r#"begin; if [ $n = 1 ]; then echo > "$ROOT/up"; read go < "$ROOT/go"; busy; exit 1; fi; echo $n >> work; well"#,
    );
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = sandbox.proq(&["spawn", "-n", "x", "claude", "do it"]).ok();
    sandbox.hear("up");
    let _ = sandbox.proq(&["send", "x", "more"]).ok();
    sandbox.tell("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!((told(&sandbox).last().map(String::as_str), waiting(&sandbox, "x")), (Some("more"), 0));
}

/// A lane `x` that was stopped before its agent was told `more`.
fn stopped_with_a_letter() -> Sandbox {
    let sandbox = in_session();
    let _ = sandbox.proq(&["send", "x", "more"]).ok();
    let _ = sandbox.proq(&["stop", "x"]).ok();
    assert_eq!(waiting(&sandbox, "x"), 1);
    sandbox
}

#[cfg(debug_assertions)]
#[test]
fn who_is_killed_before_it_is_told_leaves_it_and_after_that_it_is_gone() {
    // The agent has been started and nothing says so yet; it is on record that it was told.
    for (point, left) in [("run.begun", 1), ("inbox.told", 0)] {
        let sandbox = stopped_with_a_letter();
        let mut command = sandbox.proq_command(&sandbox.repo, &["send", "x"]);
        command.env("PROQ_TEST_DIE_AT", point);
        let said = sandbox.output(command).fails(4);
        assert!(said.contains("its supervisor ended early, with signal 9"), "{said}");
        drop(sandbox.proq(&["stop", "x"]));
        assert_eq!(waiting(&sandbox, "x"), left, "{point}");
        let out = sandbox.proq(&["send", "x", "--wait"]);
        assert_eq!(out.code, i32::from(left == 0), "{point}: {}", out.shown());
        let count = sandbox.proq(&["show", "x", "--json"]).json()["runs"].as_array().unwrap().len();
        assert_eq!(count, 2 + left, "{point}");
        sandbox.assert_healthy();
    }
}

#[cfg(debug_assertions)]
#[test]
fn the_same_holds_at_the_end_of_a_turn() {
    for (point, left) in [("run.begun:2", 1), ("inbox.told", 0)] {
        let sandbox = with_claude(
            r#"begin; if [ $n = 1 ]; then echo > "$ROOT/up"; read go < "$ROOT/go"; fi; echo $n >> work; well"#,
        );
        sandbox.pipe("up");
        sandbox.pipe("go");
        let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "-n", "x", "claude", "do it"]);
        command.env("PROQ_TEST_DIE_AT", point);
        let _ = sandbox.output(command).ok();
        sandbox.hear("up");
        let _ = sandbox.proq(&["send", "x", "more"]).ok();
        sandbox.tell("go");
        let _ = sandbox.proq(&["wait", "x"]).fails(4);
        drop(sandbox.proq(&["stop", "x"]));
        assert_eq!(waiting(&sandbox, "x"), left, "{point}");
        let _ = sandbox.proq(&["send", "x", "again", "--wait"]).ok();
        let last = if left == 1 { "more\n\nagain" } else { "again" };
        assert_eq!(told(&sandbox).last().map(String::as_str), Some(last), "{point}");
    }
}

#[test]
fn a_send_that_fails_keeps_nothing_and_the_same_again_tells_it_once() {
    let sandbox = with_claude("begin; echo $n >> work; well");
    let _ = sandbox.proq(&["spawn", "-n", "x", "--wait", "claude", "do it"]).ok();
    let before = sandbox.row("x");
    let put = |first: &str| {
        sandbox.sh(&format!(r#"cd "$ROOT/bin"; mv claude old; {{ echo '{first}'; tail -n +2 old; }} > claude; chmod +x claude"#))
    };
    // It is there, and cannot be started; then it is not there.
    put("#!/nowhere/sh");
    insta::assert_snapshot!(sandbox.proq(&["send", "x", "more"]).shown(), @r"
    --- stderr
    error: the agent could not be started: '[ROOT]/bin/claude' could not be started: No such file or directory (os error 2); lane 'x' is as it was before
    hint: see which agents can be started: git proq agents
    --- code 4
    ");
    assert_eq!((waiting(&sandbox, "x"), sandbox.row("x")["state"].clone()), (0, before["state"].clone()));
    configure(&sandbox, "[agents.claude]\nprogram = 'not-there'\n");
    insta::assert_snapshot!(sandbox.proq(&["send", "x", "more"]).shown(), @r"
    --- stderr
    error: there is no program 'not-there' on PATH; nothing was made
    hint: see which agents are installed: git proq agents
    hint: or give a command of your own: git proq spawn -n NAME -- CMD ARGS…
    --- code 1
    ");
    assert_eq!(waiting(&sandbox, "x"), 0);
    configure(&sandbox, "");
    put("#!/bin/sh");
    let _ = sandbox.proq(&["send", "x", "more", "--wait"]).ok();
    assert_eq!(told(&sandbox), ["more"]);
}

#[test]
fn an_agent_that_cannot_be_started_leaves_the_lane_as_it_was() {
    let sandbox = with_claude("begin; echo $n >> work; well");
    let _ = sandbox.proq(&["spawn", "-n", "x", "--wait", "claude", "do it"]).ok();
    sandbox.program("broken", "true");
    sandbox.sh(r#"echo '#!/nowhere/sh' > "$ROOT/bin/broken""#);
    let before = sandbox.row("x");
    insta::assert_snapshot!(sandbox.proq(&["run", "x", "broken", "review"]).shown(), @r"
    --- stderr
    error: the agent could not be started: '[ROOT]/bin/broken' could not be started: No such file or directory (os error 2); lane 'x' is as it was before
    hint: see which agents can be started: git proq agents
    --- code 4
    ");
    let after = sandbox.row("x");
    for what in ["state", "detail", "agent"] {
        assert_eq!(after[what], before[what], "{what}");
    }
    let run = sandbox.last_run("x");
    assert_eq!((&run["agent"], &run["outcome"]), (&"broken".into(), &"failed".into()), "{run}");
    // Whom a message goes to has not changed either.
    let _ = sandbox.proq(&["send", "x", "more", "--wait"]).ok();
    assert_eq!(told(&sandbox), ["more"]);
    // A lane that was made for it has nothing else.
    let said = sandbox.proq(&["spawn", "-n", "y", "broken", "do it"]).fails(4);
    assert!(said.contains("hint: take the lane away again: git proq discard y\n"), "{said}");
}

#[test]
fn what_is_sent_to_a_lane_that_goes_makes_nothing() {
    let sandbox = stopped_with_a_letter();
    let proq = sandbox.repo.join(".git/proq");
    let lock = std::fs::File::open(proq.join("locks/store.lock")).unwrap();
    lock.lock().unwrap();
    let (mut child, mut said) = started(&sandbox, &["send", "x", "too late"]);
    // It has found the lane, and waits for the lock under which a removal files it away.
    assert!(said.next().unwrap().contains("waiting for the store"));
    std::fs::create_dir_all(proq.join("history")).unwrap();
    std::fs::rename(proq.join("lanes/x"), proq.join("history/x@1")).unwrap();
    lock.unlock().unwrap();
    let rest: Vec<String> = said.collect();
    assert!(rest.iter().any(|line| line.contains("no lane 'x'")), "{rest:?}");
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(!proq.join("lanes/x").exists());
    assert_eq!(std::fs::read_dir(proq.join("history/x@1/inbox")).unwrap().count(), 1);
    // As it was, for the sandbox's own end.
    std::fs::rename(proq.join("history/x@1"), proq.join("lanes/x")).unwrap();
}

#[test]
fn what_a_dead_supervisor_was_left_with_waits() {
    let sandbox = in_session();
    let _ = sandbox.proq(&["send", "x", "more"]).ok();
    kill_supervisor(&sandbox, "x");
    assert_eq!(waiting(&sandbox, "x"), 1);
    let said = sandbox.proq(&["stop", "x"]).stderr;
    assert!(
        said.contains("1 message in 'x' waits to be told: git proq send x passes on what waits\n"),
        "{said}"
    );
}

#[test]
fn what_somebody_else_is_telling_is_not_told_meanwhile() {
    let sandbox = stopped_with_a_letter();
    // As a process of the run does that tells its agent while it lives.
    let other = std::fs::File::create(sandbox.lock("x", "inbox.lock")).unwrap();
    other.lock().unwrap();
    let (mut child, mut said) = started(&sandbox, &["send", "x", "again"]);
    assert!(said.next().unwrap().contains("waiting for what was sent to lane 'x'"));
    assert_eq!((waiting(&sandbox, "x"), told(&sandbox).len()), (1, 0));
    other.unlock().unwrap();
    said.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(told(&sandbox), ["more\n\nagain"]);
}
