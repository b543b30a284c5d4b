//! Tests of failures while an agent makes a plan: malicious answers, kills, concurrent commands, no agent,
//! writes by the agent.

use std::process::Stdio;

use proq_test_kit::Sandbox;
use proq_test_kit::runs::{escape_messages, kill_supervisor, repository_state};
use proq_test_kit::waiting::{KilledOnDrop, wait_until};
use serde_json::json;

use super::plan_ai::{
    PLAN, list_drafts, prompt_of_start, run_plan_ai, sandbox_with_planner, set_agent_reply, start_count,
};

/// Asserts that no output about a draft contains terminal control characters.
#[track_caller]
fn assert_no_control_characters(sandbox: &Sandbox, name: &str) {
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
        let is_human_readable = !args.contains(&"--json") && !args.contains(&"--toml");
        assert!(!is_human_readable || !text.contains('\u{202e}'), "{args:?}: {text:?}");
    }
}

/// Promise: strangers/plan-text-escapes
#[test]
fn plan_text_cannot_control_the_terminal() {
    let control_text = "\u{1b}[2J\u{7}\u{202e}x";
    let task = json!({"id": "a", "title": control_text, "prompt": control_text, "scope": ["src/\u{202e}x"], "checks": [control_text], "agent": "c\u{202e}x"});
    let plan = json!({"summary": control_text, "warnings": [control_text], "criteria": [control_text],
        "phase": [{"title": control_text, "group": [{"theme": control_text, "rationale": control_text, "task": [task]}]}]});
    let sandbox = sandbox_with_planner(&plan.to_string());
    let out = sandbox.proq(&["plan", "--ai", &format!("pay{control_text}"), "--from", "a.txt"]);
    assert_eq!(out.code, 0, "{}", out.to_text());
    assert!(
        !format!("{}{}", out.stdout, out.stderr).contains(['\u{1b}', '\u{7}', '\u{202e}']),
        "{}",
        out.to_text()
    );
    let name = list_drafts(&sandbox)[0]["name"].as_str().unwrap().to_owned();
    assert_no_control_characters(&sandbox, &name);
    let _ = sandbox.proq(&["plan", "-o", "p.toml", &name]).ok();
    assert!(!sandbox.read("p.toml").contains(['\u{1b}', '\u{7}']));
    assert_eq!(
        sandbox.proq(&["plan", "--toml", &name]).ok(),
        sandbox.proq(&["plan", "--toml", "p.toml"]).ok()
    );
}

/// Promise: strangers/answer-scan-bounded
#[test]
fn refuses_malicious_agent_answers() {
    let long = "x".repeat(70_000);
    let tasks: Vec<String> = (0..6000).map(|n| format!("{{\"id\":\"{n}\",\"title\":\"\"}}")).collect();
    for (answer, reason) in [
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
        let sandbox = sandbox_with_planner(&answer);
        let out = run_plan_ai(&sandbox);
        assert_eq!(out.code, 4, "{reason}: {}", out.to_text());
        assert!(out.stderr.contains(reason), "{reason}: {}", out.stderr);
        assert!(!out.stderr.contains(['\u{1b}', '\u{0}']), "{:?}", out.stderr);
        assert!(out.stderr.lines().all(|line| line.len() < 2000), "{}", out.stderr);
        assert_eq!((start_count(&sandbox), &list_drafts(&sandbox)[0]["state"]), (3, &json!("empty")));
    }
}

/// Promise: strangers/draft-complete
#[test]
fn feedback_continues_a_killed_planning_command() {
    for (point, state, runs) in [
        ("draft.begun", "empty", 0),
        ("look.drafted", "empty", 0),
        ("launch.prepared", "empty", 0),
        ("draft.written", "ready", 1),
    ] {
        let sandbox = sandbox_with_planner(PLAN);
        let mut command = sandbox.proq_command(&sandbox.repo, &["plan", "--ai", "pay by card"]);
        command.env("PROQ_TEST_DIE_AT", point);
        assert_ne!(sandbox.output(command).code, 0, "{point}");
        let draft = &list_drafts(&sandbox)[0];
        assert_eq!((&draft["state"], start_count(&sandbox)), (&json!(state), runs), "{point}: {draft}");
        let out = sandbox.proq(&["plan", "--feedback", "go on"]);
        assert_eq!(out.code, 0, "{point}: {}", out.to_text());
        let last = u32::try_from(start_count(&sandbox)).unwrap();
        assert!(prompt_of_start(&sandbox, last).contains("go on"), "{point}");
        assert!(runs == 1 || prompt_of_start(&sandbox, last).contains("pay by card"), "{point}");
        assert_eq!(
            (list_drafts(&sandbox).len(), &list_drafts(&sandbox)[0]["state"]),
            (1, &json!("ready")),
            "{point}"
        );
        sandbox.assert_healthy();
    }
}

/// Promise: strangers/draft-complete
#[test]
fn uses_an_answer_that_arrives_after_the_command_was_killed() {
    let sandbox = sandbox_with_planner(PLAN);
    sandbox.pipe("up");
    sandbox.pipe("go");
    sandbox.write_in(&sandbox.root(), "before", "echo up > \"$ROOT/up\"; read line < \"$ROOT/go\"\n");
    let mut command = sandbox.proq_command(&sandbox.repo, &["plan", "--ai", "pay by card"]);
    let mut planner_process =
        KilledOnDrop(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    sandbox.read_pipe("up");
    planner_process.0.kill().unwrap();
    let _ = planner_process.exit_code();
    assert_eq!(list_drafts(&sandbox)[0]["state"], "at-work");
    // No other command changes the draft while its agent runs.
    for args in [&["plan", "--feedback", "x"][..], &["plan", "--approve", "--yes"]] {
        let refusal = sandbox.proq(args).fails(1);
        assert!(
            refusal.contains("cannot change draft 'plan-pay-by-card': its agent is running"),
            "{refusal}"
        );
    }
    sandbox.write_pipe("go");
    let _ = sandbox.proq(&["wait", "plan-pay-by-card"]).ok();
    assert!(sandbox.proq(&["plan", "plan-pay-by-card"]).ok().contains("b A form"));
    assert_eq!((start_count(&sandbox), &list_drafts(&sandbox)[0]["state"]), (1, &json!("ready")));
    sandbox.assert_healthy();
}

#[test]
fn draft_survives_a_killed_supervisor() {
    let sandbox = sandbox_with_planner(PLAN);
    sandbox.pipe("up");
    sandbox.write_in(&sandbox.root(), "before", "echo up > \"$ROOT/up\"; exec sleep 600\n");
    let mut command = sandbox.proq_command(&sandbox.repo, &["plan", "--ai", "pay by card"]);
    let mut planner_process =
        KilledOnDrop(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    sandbox.read_pipe("up");
    kill_supervisor(&sandbox, "plan-pay-by-card");
    assert_eq!(list_drafts(&sandbox)[0]["state"], "at-work");
    let _ = sandbox.proq(&["stop", "plan-pay-by-card"]).ok();
    assert_eq!(planner_process.exit_code(), Some(4), "it was told that nothing came of it");
    assert_eq!(list_drafts(&sandbox)[0]["state"], "empty");
    std::fs::remove_file(sandbox.root().join("before")).unwrap();
    let _ = sandbox.proq(&["plan", "--feedback", "once more"]).ok();
    assert_eq!(list_drafts(&sandbox)[0]["state"], "ready");
    sandbox.assert_healthy();
}

#[test]
fn concurrent_commands_create_separate_drafts() {
    let sandbox = sandbox_with_planner(PLAN);
    let start = |_| {
        let mut command = sandbox.proq_command(&sandbox.repo, &["plan", "--ai", "pay by card"]);
        KilledOnDrop(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    let mut processes: Vec<KilledOnDrop> = (0..4).map(start).collect();
    let codes: Vec<Option<i32>> = processes.iter_mut().map(KilledOnDrop::exit_code).collect();
    assert_eq!(codes, [Some(0); 4]);
    let mut names: Vec<String> =
        list_drafts(&sandbox).iter().map(|draft| draft["name"].to_string()).collect();
    names.sort();
    assert_eq!(names, ["", "-2", "-3", "-4"].map(|n| format!("\"plan-pay-by-card{n}\"")));
    assert!(list_drafts(&sandbox).iter().all(|draft| draft["state"] == "ready"));
    sandbox.assert_healthy();
}

#[test]
fn creates_nothing_without_a_usable_agent() {
    let sandbox = sandbox_with_planner(PLAN);
    let before = repository_state(&sandbox);
    let run = |args: &[&str]| {
        let mut command = sandbox.proq_command(&sandbox.repo, args);
        command.env("PATH", sandbox.path_without_agents(&[]));
        sandbox.output(command)
    };
    let _ = sandbox.sh("rm \"$ROOT/bin/claude\"");
    insta::assert_snapshot!(run(&["plan", "--ai", "pay by card"]).to_text(), @r"
    --- stderr
    error: cannot make a plan: no agent with a read-only mode is installed
    hint: install one of: aider, claude, codex, copilot, gemini, opencode, pi, qwen
    hint: list the agents: git proq agents
    --- code 1
    ");
    insta::assert_snapshot!(run(&["plan", "--ai", "pay by card", "--agent", "claude"]).to_text(), @r"
    --- stderr
    error: cannot start 'claude': Claude Code is not installed: there is no such program on PATH
    hint: install it: npm install -g @anthropic-ai/claude-code
    hint: list installed agents: git proq agents
    --- code 1
    ");
    sandbox.program("robot", "true");
    let refusal = run(&["plan", "--ai", "pay by card", "--agent", "robot"]).fails(1);
    assert!(
        refusal.contains("cannot start 'robot' with permission read: it has no read-only mode"),
        "{refusal}"
    );
    assert_eq!((repository_state(&sandbox), list_drafts(&sandbox).len()), (before, 0));
    assert!(!sandbox.repo.join(".git/proq/lanes").exists() && !sandbox.repo.join(".git/proq/plans").exists());
}

/// Promise: strangers/planning-agent-changes-nothing
#[test]
fn files_written_by_the_agent_are_reported_and_trashed() {
    let sandbox = sandbox_with_planner(PLAN);
    sandbox.write_in(&sandbox.root(), "before", "echo new > new.txt\n");
    let before = repository_state(&sandbox);
    let _ = run_plan_ai(&sandbox).ok();
    assert_eq!(repository_state(&sandbox), before);
    let messages = escape_messages(&sandbox);
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].contains("changed files there; they are in the trash: new.txt"), "{messages:?}");
    assert_eq!(list_drafts(&sandbox)[0]["state"], "ready");
    sandbox.assert_healthy();
}

#[test]
fn unreadable_draft_is_named_and_left_unchanged() {
    let sandbox = sandbox_with_planner(PLAN);
    let _ = run_plan_ai(&sandbox).ok();
    let record = ".git/proq/plans/plan-pay-by-card/draft.toml";
    sandbox.write(record, "format = 1\nname = ");
    let out = sandbox.proq(&["plan", "--drafts"]);
    assert!(out.stderr.contains("draft 'plan-pay-by-card': cannot read the record"), "{}", out.to_text());
    let _ = sandbox.proq(&["plan", "--feedback", "x", "plan-pay-by-card"]).fails(1);
    // A new draft gets another name.
    let _ = run_plan_ai(&sandbox).ok();
    assert_eq!(list_drafts(&sandbox)[0]["name"], "plan-pay-by-card-2");
    assert_eq!(sandbox.read(record), "format = 1\nname = ");
}

#[test]
fn killed_command_leaves_the_new_plan_readable() {
    // The plan's file is written before the record names it; neither exists without the folder.
    let sandbox = sandbox_with_planner(PLAN);
    let _ = run_plan_ai(&sandbox).ok();
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
    set_agent_reply(&sandbox, "say", &PLAN.replace("A form", "Another form"));
    let mut command = sandbox.proq_command(&sandbox.repo, &["plan", "--feedback", "x"]);
    command.env("PROQ_TEST_DIE_AT", "draft.written");
    assert_ne!(sandbox.output(command).code, 0);
    wait_until("its agent has ended", || sandbox.row("plan-pay-by-card")["state"] == "done");
    assert!(sandbox.proq(&["plan", "plan-pay-by-card"]).ok().contains("Another form"));
}
