//! Tests of `git proq task`: which lane's task is read, and what happens to reports.

use proq_test_kit::{Output, Sandbox};

/// Runs the program in a lane's worktree; `claimed` is the lane that the environment names.
fn proq_in_lane(sandbox: &Sandbox, lane: &str, claimed: Option<&str>, args: &[&str]) -> Output {
    let mut command = sandbox.proq_command(&sandbox.lane_path(lane), args);
    command.envs(claimed.map(|lane| ("PROQ_LANE", lane)));
    sandbox.output(command)
}

fn sandbox_with_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program("robot", "true");
    let args = [
        "spawn",
        "--wait",
        "robot",
        "-n",
        "x",
        "# Fix it\n\nall of it",
        "--check",
        "true",
        "--scope",
        "src/",
    ];
    let _ = sandbox.proq(&args).ok();
    sandbox
}

#[test]
fn agent_reads_task_and_reports() {
    let sandbox = sandbox_with_lane();
    let update = [
        "task",
        "update",
        "--status",
        "half done",
        "--finding",
        "a",
        "--finding",
        "b\nb2",
        "--human-step",
        "c",
    ];
    insta::assert_snapshot!(proq_in_lane(&sandbox, "x", Some("x"), &update).to_text(), @r"
    reported on lane 'x': 2 findings, 1 step for a person
    --- code 0
    ");
    insta::assert_snapshot!(proq_in_lane(&sandbox, "x", Some("x"), &["task", "read"]).to_text(), @r"
    lane       x
    branch     proq/x, lands on main
    scope      src/
    lands if   `true` succeeds
    reported   half done
    found      a
    found      b
               b2
    to do      c
               said 03:04, in run 1

    # Fix it

    all of it
    --- code 0
    ");
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(shown.contains("found      b\n           b2\nto do      c\n"), "{shown}");
    assert_eq!(sandbox.proq(&["show", "x", "--json"]).json()["report"]["human_steps"][0], "c");
    let events = sandbox.proq(&["events"]).ok();
    assert!(events.contains("lane 'x' reported 2 findings and 1 step for a person"), "{events}");
    sandbox.assert_healthy();
}

/// Promise: agent-requests/report-kept
#[test]
fn report_replaces_earlier_one_unless_invalid() {
    let sandbox = sandbox_with_lane();
    let update = |args: &[&str]| proq_in_lane(&sandbox, "x", None, &[&["task", "update"][..], args].concat());
    let _ = update(&["--finding", "first", "--human-step", "step"]).ok();
    let _ = update(&["--finding", "second"]).ok();
    let report = || sandbox.proq(&["show", "x", "--json"]).json()["report"].clone();
    assert_eq!(
        (&report()["findings"], &report()["human_steps"]),
        (&["second"].into(), &serde_json::json!([]))
    );
    insta::assert_snapshot!(update(&[]).fails(1), @r"
    error: cannot save the report: it is empty; the earlier report is kept
    hint: report only what a person has to know; put long text into a file of the lane
    ");
    let file = sandbox.root().join("report");
    let path = file.to_str().unwrap();
    for text in
        ["x".repeat(1_000_000), "{\"findings\": [1]}".into(), "{\"more\": 1}".into(), "{".into(), " ".into()]
    {
        std::fs::write(&file, text).unwrap();
        assert!(update(&["-f", path]).fails(1).contains("the earlier report is kept"));
        assert_eq!(report()["findings"], serde_json::json!(["second"]));
    }
    assert!(update(&["--dry-run", "--finding", "third"]).ok().starts_with("would report"));
    assert_eq!(report()["findings"], serde_json::json!(["second"]));
    std::fs::write(&file, r#"{"status": "s", "findings": ["f"]}"#).unwrap();
    let _ = update(&["-f", path]).ok();
    assert_eq!((&report()["status"], &report()["findings"][0]), (&"s".into(), &"f".into()));
    let mut command = sandbox.proq_command(&sandbox.lane_path("x"), &["task", "update", "-f", "-"]);
    command.env("PROQ_LANE", "x");
    let _ = sandbox.output_with(command, b"# plain\n\ntext\n").ok();
    assert_eq!(report()["findings"], serde_json::json!(["# plain\n\ntext\n"]));
}

/// Promise: agent-requests/report-own-lane
#[test]
fn refuses_report_for_other_lane_or_outside_lane() {
    let sandbox = sandbox_with_lane();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y"]).ok();
    insta::assert_snapshot!(proq_in_lane(&sandbox, "x", Some("y"), &["task", "update", "--finding", "a"]).fails(1), @r"
    error: PROQ_LANE is 'y', but this is lane 'x'; nothing was changed
    hint: show the worktree of 'y': git proq show y
    ");
    insta::assert_snapshot!(sandbox.proq(&["task", "read"]).fails(1), @r"
    error: not inside a lane: [ROOT]/repo
    hint: list lanes: git proq list
    ");
    let mut command = sandbox.proq_command(&sandbox.repo, &["task", "update", "--finding", "a"]);
    command.env("PROQ_LANE", "x");
    insta::assert_snapshot!(sandbox.output(command).fails(1), @r"
    error: not inside a lane: [ROOT]/repo, although PROQ_LANE is 'x'
    hint: list lanes: git proq list
    ");
    for lane in ["x", "y"] {
        assert_eq!(sandbox.proq(&["show", lane, "--json"]).json()["report"], serde_json::Value::Null);
    }
}

/// Promise: agent-requests/report-escapes
#[test]
fn escapes_control_characters_in_report() {
    let sandbox = sandbox_with_lane();
    let text = "a\u{1b}[2J\u{1b}]0;title\u{7}\rb\u{9b}31m\u{202e}c\u{8}";
    let _ =
        proq_in_lane(&sandbox, "x", Some("x"), &["task", "update", "--finding", text, "--status", text]).ok();
    for out in [sandbox.proq(&["show", "x"]).ok(), proq_in_lane(&sandbox, "x", None, &["task", "read"]).ok()]
    {
        let bad = out.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert_eq!(bad, None, "{out:?}");
        assert!(out.contains(r"a\u{1b}[2J"), "{out}");
    }
    assert_eq!(sandbox.proq(&["show", "x", "--json"]).json()["report"]["findings"][0], text);
}

#[test]
fn report_is_kept_for_removed_lane() {
    let sandbox = sandbox_with_lane();
    let _ = proq_in_lane(&sandbox, "x", Some("x"), &["task", "update", "--finding", "kept"]).ok();
    let _ = sandbox.proq(&["discard", "x"]).ok();
    assert!(sandbox.proq(&["show", "x@1"]).ok().contains("found      kept\n"));
    let _ = sandbox.proq(&["undo"]).ok();
    assert!(sandbox.proq(&["show", "x"]).ok().contains("found      kept\n"));
    sandbox.assert_healthy();
}

/// Promise: agent-requests/report-kept
#[test]
fn unreadable_report_is_reported() {
    let sandbox = sandbox_with_lane();
    let path = sandbox.repo.join(".git/proq/lanes/x/report.toml");
    std::fs::write(&path, "format = 2\n").unwrap();
    assert!(sandbox.proq(&["show", "x"]).fails(1).contains("report.toml"));
    let _ = proq_in_lane(&sandbox, "x", Some("x"), &["task", "update", "--finding", "new"]).fails(1);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "format = 2\n");
}

#[test]
fn conflict_agent_reads_conflict_task() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo lane > a.txt");
    sandbox.write("a.txt", "main\n");
    sandbox.commit_all("main");
    let _ = sandbox.proq(&["merge", "x"]).fails(3);
    sandbox.program(
        "robot",
        "git-proq task read --json > \"$ROOT/read\"; git-proq task update --finding undecided",
    );
    let _ = sandbox.proq(&["resolve", "x", "--agent", "robot"]);
    let read = std::fs::read_to_string(sandbox.root().join("read")).unwrap();
    let read: serde_json::Value = serde_json::from_str(&read).unwrap();
    assert_eq!((&read["lane"], &read["errand"]), (&"x".into(), &"conflict".into()));
    assert!(read["prompt"].as_str().unwrap().contains("a.txt"), "{read}");
    let report = &sandbox.proq(&["show", "x", "--json"]).json()["report"];
    assert_eq!((&report["run"], &report["findings"][0]), (&1.into(), &"undecided".into()));
}
