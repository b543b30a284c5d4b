//! Owns the tests of plans by agents where something goes wrong: hostile answers, kills, two at once, no agent, escapes.

use std::process::Stdio;

use serde_json::json;

use super::looking::{repository, told_of_escapes};
use super::plan_ai::{PLAN, drafts, make, planner, says, times, told};
use super::stop::kill_supervisor;
use super::support::Sandbox;
use super::support::patience::{Beside, wait_until};

/// Insists that a terminal finds nothing to obey in what is shown of a draft.
#[track_caller]
fn is_harmless(sandbox: &Sandbox, name: &str) {
    for args in [
        &["plan", "--drafts"][..],
        &["plan", name],
        &["deps", name],
        &["deps", "--dot", name],
        &["plan", "--approve", name],
        &["plan", "--drafts", "--json"],
        &["plan", "--json", name],
        &["plan", "--toml", name],
    ] {
        let out = sandbox.proq(args);
        let text = format!("{}{}", out.stdout, out.stderr);
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{9b}']), "{args:?}: {text:?}");
        let is_for_people = !args.contains(&"--json") && !args.contains(&"--toml");
        assert!(!is_for_people || !text.contains('\u{202e}'), "{args:?}: {text:?}");
    }
}

#[test]
fn nothing_in_a_plan_is_obeyed_by_a_terminal() {
    let nasty = "\u{1b}[2J\u{7}\u{202e}x";
    let task = json!({"id": "a", "title": nasty, "prompt": nasty, "scope": ["src/\u{202e}x"], "checks": [nasty], "agent": "c\u{202e}x"});
    let plan = json!({"summary": nasty, "warnings": [nasty], "criteria": [nasty],
        "phase": [{"title": nasty, "group": [{"theme": nasty, "rationale": nasty, "task": [task]}]}]});
    let sandbox = planner(&plan.to_string());
    let out = sandbox.proq(&["plan", "--ai", &format!("pay{nasty}"), "--from", "a.txt"]);
    assert_eq!(out.code, 0, "{}", out.shown());
    assert!(
        !format!("{}{}", out.stdout, out.stderr).contains(['\u{1b}', '\u{7}', '\u{202e}']),
        "{}",
        out.shown()
    );
    let name = drafts(&sandbox)[0]["name"].as_str().unwrap().to_owned();
    is_harmless(&sandbox, &name);
    let _ = sandbox.proq(&["plan", "-o", "p.toml", &name]).ok();
    assert!(!sandbox.read("p.toml").contains(['\u{1b}', '\u{7}']));
    assert_eq!(
        sandbox.proq(&["plan", "--toml", &name]).ok(),
        sandbox.proq(&["plan", "--toml", "p.toml"]).ok()
    );
}

#[test]
fn answers_that_are_made_to_do_harm_are_refused() {
    let long = "x".repeat(70_000);
    let tasks: Vec<String> = (0..6000).map(|n| format!("{{\"id\":\"{n}\",\"title\":\"\"}}")).collect();
    for (answer, why) in [
        (json!({"task": [{"id": "a\nb\u{1b}[2J", "title": "A"}]}).to_string(), r"'a\nb\u{1b}[2J'"),
        (json!({"task": [{"id": "../../etc", "title": "A"}]}).to_string(), "'../../etc'"),
        (json!({"task": [{"id": "a", "title": "A\nB"}]}).to_string(), "more than one line"),
        (json!({"task": [{"id": "a", "title": "A", "\u{1b}key": 1}]}).to_string(), r"$.task[0].\u{1b}key"),
        (
            json!({"task": [{"id": "a", "title": "A", "prompt": "a\u{0}b"}]}).to_string(),
            "a text with a NUL in it",
        ),
        (json!({"task": [{"id": "a", "title": "A", "agent": "--help"}]}).to_string(), "'--help'"),
        ("[".repeat(50_000), "it nests too deep"),
        ("{\"task\":".repeat(5000), "it nests too deep"),
        (
            format!("{{\"task\": [{{\"id\": \"a\", \"title\": \"A\", \"prompt\": \"{long}\"}}]}}"),
            "its end was cut off",
        ),
        (format!("{{\"task\": [{}]}}", tasks[..1500].join(",")), "a task without 'title'"),
        ("{\"a\": {\"b\": [{\"".repeat(3000), "it nests too deep"),
    ] {
        let sandbox = planner(&answer);
        let out = make(&sandbox);
        assert_eq!(out.code, 4, "{why}: {}", out.shown());
        assert!(out.stderr.contains(why), "{why}: {}", out.stderr);
        assert!(!out.stderr.contains(['\u{1b}', '\u{0}']), "{:?}", out.stderr);
        assert!(out.stderr.lines().all(|line| line.len() < 2000), "{}", out.stderr);
        assert_eq!((times(&sandbox), &drafts(&sandbox)[0]["state"]), (3, &json!("empty")));
    }
}

#[test]
fn a_plan_that_was_killed_half_way_is_taken_up_by_the_next_command() {
    for (point, state, runs) in [
        ("draft.begun", "empty", 0),
        ("look.drafted", "empty", 0),
        ("launch.prepared", "empty", 0),
        ("draft.written", "ready", 1),
    ] {
        let sandbox = planner(PLAN);
        let mut command = sandbox.proq_command(&sandbox.repo, &["plan", "--ai", "pay by card"]);
        command.env("PROQ_TEST_DIE_AT", point);
        assert_ne!(sandbox.output(command).code, 0, "{point}");
        let draft = &drafts(&sandbox)[0];
        assert_eq!((&draft["state"], times(&sandbox)), (&json!(state), runs), "{point}: {draft}");
        let out = sandbox.proq(&["plan", "--feedback", "go on"]);
        assert_eq!(out.code, 0, "{point}: {}", out.shown());
        let last = u32::try_from(times(&sandbox)).unwrap();
        assert!(told(&sandbox, last).contains("go on"), "{point}");
        assert!(runs == 1 || told(&sandbox, last).contains("pay by card"), "{point}");
        assert_eq!((drafts(&sandbox).len(), &drafts(&sandbox)[0]["state"]), (1, &json!("ready")), "{point}");
        sandbox.assert_healthy();
    }
}

#[test]
fn what_an_agent_says_after_its_asker_was_killed_is_taken_up() {
    let sandbox = planner(PLAN);
    sandbox.pipe("up");
    sandbox.pipe("go");
    sandbox.write_in(&sandbox.root(), "before", "echo up > \"$ROOT/up\"; read line < \"$ROOT/go\"\n");
    let mut command = sandbox.proq_command(&sandbox.repo, &["plan", "--ai", "pay by card"]);
    let mut asker = Beside(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    sandbox.hear("up");
    asker.0.kill().unwrap();
    let _ = asker.code();
    assert_eq!(drafts(&sandbox)[0]["state"], "at-work");
    // Nobody gets in between.
    for args in [&["plan", "--feedback", "x"][..], &["plan", "--approve", "--yes"]] {
        let said = sandbox.proq(args).fails(1);
        assert!(said.contains("the agent of draft 'plan-pay-by-card' is at work on it"), "{said}");
    }
    sandbox.tell("go");
    let _ = sandbox.proq(&["wait", "plan-pay-by-card"]).ok();
    assert!(sandbox.proq(&["plan", "plan-pay-by-card"]).ok().contains("b A form"));
    assert_eq!((times(&sandbox), &drafts(&sandbox)[0]["state"]), (1, &json!("ready")));
    sandbox.assert_healthy();
}

#[test]
fn a_draft_survives_the_supervisor_of_its_agent() {
    let sandbox = planner(PLAN);
    sandbox.pipe("up");
    sandbox.write_in(&sandbox.root(), "before", "echo up > \"$ROOT/up\"; exec sleep 600\n");
    let mut command = sandbox.proq_command(&sandbox.repo, &["plan", "--ai", "pay by card"]);
    let mut asker = Beside(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    sandbox.hear("up");
    kill_supervisor(&sandbox, "plan-pay-by-card");
    assert_eq!(drafts(&sandbox)[0]["state"], "at-work");
    let _ = sandbox.proq(&["stop", "plan-pay-by-card"]).ok();
    assert_eq!(asker.code(), Some(4), "it was told that nothing came of it");
    assert_eq!(drafts(&sandbox)[0]["state"], "empty");
    std::fs::remove_file(sandbox.root().join("before")).unwrap();
    let _ = sandbox.proq(&["plan", "--feedback", "once more"]).ok();
    assert_eq!(drafts(&sandbox)[0]["state"], "ready");
    sandbox.assert_healthy();
}

#[test]
fn two_at_once_are_two_drafts() {
    let sandbox = planner(PLAN);
    let start = |_| {
        let mut command = sandbox.proq_command(&sandbox.repo, &["plan", "--ai", "pay by card"]);
        Beside(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    let mut all: Vec<Beside> = (0..4).map(start).collect();
    let codes: Vec<Option<i32>> = all.iter_mut().map(Beside::code).collect();
    assert_eq!(codes, [Some(0); 4]);
    let mut names: Vec<String> = drafts(&sandbox).iter().map(|draft| draft["name"].to_string()).collect();
    names.sort();
    assert_eq!(names, ["", "-2", "-3", "-4"].map(|n| format!("\"plan-pay-by-card{n}\"")));
    assert!(drafts(&sandbox).iter().all(|draft| draft["state"] == "ready"));
    sandbox.assert_healthy();
}

#[test]
fn without_an_agent_nothing_is_made() {
    let sandbox = planner(PLAN);
    let before = repository(&sandbox);
    let run = |args: &[&str]| {
        let mut command = sandbox.proq_command(&sandbox.repo, args);
        command.env("PATH", sandbox.path_without_agents(&[]));
        sandbox.output(command)
    };
    let _ = sandbox.sh("rm \"$ROOT/bin/claude\"");
    insta::assert_snapshot!(run(&["plan", "--ai", "pay by card"]).shown(), @r"
    --- stderr
    error: no agent is installed that can be kept from changing things; nothing was made
    hint: install one of: aider, claude, codex, copilot, gemini, opencode, pi, qwen
    hint: see what is known of each: git proq agents
    --- code 1
    ");
    insta::assert_snapshot!(run(&["plan", "--ai", "pay by card", "--agent", "claude"]).shown(), @r"
    --- stderr
    error: there is no program 'claude' on PATH; nothing was made
    hint: see which agents are installed: git proq agents
    hint: or give a command of your own: git proq spawn -n NAME -- CMD ARGS…
    --- code 1
    ");
    sandbox.program("robot", "true");
    let said = run(&["plan", "--ai", "pay by card", "--agent", "robot"]).fails(1);
    assert!(said.contains("nothing is known that keeps 'robot' from changing things"), "{said}");
    assert_eq!((repository(&sandbox), drafts(&sandbox).len()), (before, 0));
    assert!(!sandbox.repo.join(".git/proq/lanes").exists() && !sandbox.repo.join(".git/proq/plans").exists());
}

#[test]
fn an_agent_that_writes_all_the_same_is_told_of_and_its_plan_counts() {
    let sandbox = planner(PLAN);
    sandbox.write_in(&sandbox.root(), "before", "echo new > new.txt\n");
    let before = repository(&sandbox);
    let _ = make(&sandbox).ok();
    assert_eq!(repository(&sandbox), before);
    let told = told_of_escapes(&sandbox);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("changed files there, which go to the trash: new.txt"), "{told:?}");
    assert_eq!(drafts(&sandbox)[0]["state"], "ready");
    sandbox.assert_healthy();
}

#[test]
fn a_record_that_cannot_be_read_is_named_and_left_alone() {
    let sandbox = planner(PLAN);
    let _ = make(&sandbox).ok();
    let record = ".git/proq/plans/plan-pay-by-card/draft.toml";
    sandbox.write(record, "format = 1\nname = ");
    let out = sandbox.proq(&["plan", "--drafts"]);
    assert!(out.stderr.contains("draft 'plan-pay-by-card': the record"), "{}", out.shown());
    let _ = sandbox.proq(&["plan", "--feedback", "x", "plan-pay-by-card"]).fails(1);
    // Another one is made beside it.
    let _ = make(&sandbox).ok();
    assert_eq!(drafts(&sandbox)[0]["name"], "plan-pay-by-card-2");
    assert_eq!(sandbox.read(record), "format = 1\nname = ");
}

#[test]
fn a_full_answer_is_not_kept_half() {
    // The plan's file is there before its record names it; without the folder neither is.
    let sandbox = planner(PLAN);
    let _ = make(&sandbox).ok();
    let folder = sandbox.repo.join(".git/proq/plans/plan-pay-by-card");
    let files = || {
        let mut names: Vec<String> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(files(), ["3.toml", "draft.toml", "prompt.md"].map(String::from));
    says(&sandbox, "say", &PLAN.replace("A form", "Another form"));
    let mut command = sandbox.proq_command(&sandbox.repo, &["plan", "--feedback", "x"]);
    command.env("PROQ_TEST_DIE_AT", "draft.written");
    assert_ne!(sandbox.output(command).code, 0);
    wait_until("its agent has ended", || sandbox.row("plan-pay-by-card")["state"] == "done");
    assert!(sandbox.proq(&["plan", "plan-pay-by-card"]).ok().contains("Another form"));
}
