//! Tests of `git proq events`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use proq_test_kit::waiting::{KilledOnDrop, OutputLines};
use proq_test_kit::{Sandbox, file_names};

#[test]
fn lists_events_in_order_with_numbers() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.proq(&["events"]).to_text(), @r"
    --- stderr
    nothing has happened yet
    --- code 0
    ");
    sandbox.run_lane("x", "echo 1 > one");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "y", "--", "false"]).fails(4);
    let _ = sandbox.proq(&["merge", "x"]).ok();
    let _ = sandbox.proq(&["discard", "y"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["events"]).to_text(), @r"
    2026-01-02T03:04:05Z    1  operation 1: spawn
    2026-01-02T03:04:05Z    2  created lane 'x' from main
    2026-01-02T03:04:05Z    3  lane 'x': command started
    2026-01-02T03:04:05Z    4  lane 'x': done
    2026-01-02T03:04:05Z    5  operation 2: spawn
    2026-01-02T03:04:05Z    6  created lane 'y' from main
    2026-01-02T03:04:05Z    7  lane 'y': command started
    2026-01-02T03:04:05Z    8  lane 'y': failed (exit code 1)
    2026-01-02T03:04:05Z    9  operation 3: merge
    2026-01-02T03:04:05Z   10  lane 'x' landed on main
    2026-01-02T03:04:05Z   11  lane 'x' cleaned up
    2026-01-02T03:04:05Z   12  operation 4: discard
    2026-01-02T03:04:05Z   13  lane 'y' discarded
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["events", "--last", "1"]).to_text(), @r"
    2026-01-02T03:04:05Z   13  lane 'y' discarded
    --- code 0
    ");
    assert_eq!(sandbox.proq(&["events", "--last", "0"]).ok(), "");
}

#[test]
fn json_lists_events_with_lane_and_state() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("x", "echo 1 > one");
    insta::assert_snapshot!(sandbox.proq(&["events", "--json"]).to_text(), @r#"
    {
      "events": [
        {
          "at": "2026-01-02T03:04:05Z",
          "event": "op.ended",
          "message": "operation 1: spawn",
          "n": 1,
          "operation": {
            "kind": "spawn",
            "number": 1,
            "outcome": "done",
            "via": "terminal"
          }
        },
        {
          "at": "2026-01-02T03:04:05Z",
          "event": "lane.created",
          "lane": "x",
          "message": "created lane 'x' from main",
          "n": 2,
          "state": "idle"
        },
        {
          "at": "2026-01-02T03:04:05Z",
          "event": "run.started",
          "lane": "x",
          "message": "lane 'x': command started",
          "n": 3,
          "state": "running"
        },
        {
          "at": "2026-01-02T03:04:05Z",
          "event": "run.ended",
          "lane": "x",
          "message": "lane 'x': done",
          "n": 4,
          "state": "done"
        }
      ],
      "schema": 1
    }
    --- code 0
    "#);
}

#[test]
fn follow_prints_new_events() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "old"]).ok();
    let mut follow = sandbox.proq_command(&sandbox.repo, &["events", "-f", "--json", "--last", "1"]);
    let mut follow = KilledOnDrop(follow.stdout(Stdio::piped()).spawn().unwrap());
    let lines = OutputLines::read_from(follow.0.stdout.take().unwrap());
    let next = || -> serde_json::Value { serde_json::from_str(&lines.next()).unwrap() };
    assert_eq!(next()["lane"], "old");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "new"]).ok();
    let ended = next();
    assert_eq!((&ended["n"], &ended["event"]), (&3.into(), &"op.ended".into()));
    let event = next();
    assert_eq!(
        (&event["n"], &event["event"], &event["lane"]),
        (&4.into(), &"lane.created".into(), &"new".into())
    );
    assert_eq!(event["schema"], 1);
}

#[test]
fn torn_line_is_skipped_and_numbering_continues() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "a"]).ok();
    let path = sandbox.repo.join(".git/proq/events.jsonl");
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("{\"n\":3,\"at\":\"20");
    std::fs::write(&path, text).unwrap();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "b"]).ok();
    let numbers: Vec<u64> = sandbox.proq(&["events", "--json"]).json()["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["n"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
}

/// Returns the event numbers of the JSON output.
fn event_numbers(sandbox: &Sandbox, args: &[&str]) -> Vec<u64> {
    let args = [&["events", "--json"], args].concat();
    let answer = sandbox.proq(&args).json();
    answer["events"].as_array().unwrap().iter().map(|e| e["n"].as_u64().unwrap()).collect()
}

/// Returns the names of the full, rotated files of the event log.
fn rotated_files(sandbox: &Sandbox) -> Vec<String> {
    let mut names = file_names(&sandbox.repo.join(".git/proq"));
    names.retain(|name| name.starts_with("events.") && name != "events.jsonl");
    names
}

/// Running `events --follow` process.
struct FollowProcess {
    lines: OutputLines,
    _process: KilledOnDrop,
}

impl FollowProcess {
    fn start(sandbox: &Sandbox, since: &str) -> FollowProcess {
        let mut command = sandbox.proq_command(&sandbox.repo, &["events", "-f", "--json", "--since", since]);
        let mut child = KilledOnDrop(command.stdout(Stdio::piped()).spawn().unwrap());
        FollowProcess { lines: OutputLines::read_from(child.0.stdout.take().unwrap()), _process: child }
    }

    fn numbers(&mut self, count: usize) -> Vec<u64> {
        let number = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["n"].as_u64();
        (0..count).map(|_| number(&self.lines.next()).unwrap()).collect()
    }
}

/// Promise: concurrency/event-numbers
#[test]
fn since_and_last_span_rotated_files() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.event.rotate", "1"]);
    sandbox.git(&["config", "proq.event.keep", "99"]);
    let mut follow = FollowProcess::start(&sandbox, "0");
    for n in 0..20 {
        let _ = sandbox.proq(&["spawn", "--empty", "-n", &format!("lane-{n}")]).ok();
    }
    assert!(rotated_files(&sandbox).len() >= 2, "{:?}", rotated_files(&sandbox));
    assert_eq!(event_numbers(&sandbox, &[]), (1..=40).collect::<Vec<_>>());
    assert_eq!(event_numbers(&sandbox, &["--since", "4"]), (5..=40).collect::<Vec<_>>());
    assert_eq!(event_numbers(&sandbox, &["--since", "40"]), [0; 0]);
    assert_eq!(event_numbers(&sandbox, &["--last", "12"]), (29..=40).collect::<Vec<_>>());
    assert_eq!(follow.numbers(40), (1..=40).collect::<Vec<_>>());
    assert_eq!(FollowProcess::start(&sandbox, "7").numbers(33), (8..=40).collect::<Vec<_>>());
    insta::assert_snapshot!(sandbox.proq(&["events", "--since", "39"]).to_text(), @r"
    2026-01-02T03:04:05Z   40  created lane 'lane-19' from main
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["events", "--since", "40"]).to_text(), @r"
    --- stderr
    nothing has happened since
    --- code 0
    ");
}

/// Promise: concurrency/event-numbers
#[test]
fn killed_rotation_keeps_numbers_consecutive() {
    for point in ["events.full", "events.renamed", "events.opened", "events.written"] {
        let sandbox = Sandbox::new();
        sandbox.git(&["config", "proq.event.rotate", "1"]);
        sandbox.git(&["config", "proq.event.keep", "99"]);
        let mut follow = FollowProcess::start(&sandbox, "0");
        let mut killed = 0;
        for n in 0..20 {
            let name = format!("lane-{n}");
            let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "-n", &name]);
            if n % 2 == 0 {
                command.env("PROQ_TEST_DIE_AT", point);
            }
            killed += usize::from(sandbox.output(command).code == 137);
        }
        assert!(killed > 0 && !rotated_files(&sandbox).is_empty(), "{point}: {killed}");
        let _ = sandbox.proq(&["spawn", "--empty", "-n", "last"]).ok();
        let all = event_numbers(&sandbox, &[]);
        assert_eq!(all, (1..=all.len() as u64).collect::<Vec<_>>(), "{point}");
        assert_eq!(follow.numbers(all.len()), all, "{point}");
        // A reused number would make `--last` skip the event.
        let last = sandbox.proq(&["events", "--last", "1"]).ok();
        assert!(last.ends_with("created lane 'last' from main\n"), "{point}: {last}");
        sandbox.assert_healthy();
    }
}

#[test]
fn keeps_configured_number_of_rotated_files() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.event.rotate", "1"]);
    sandbox.git(&["config", "proq.event.keep", "1"]);
    for n in 0..40 {
        let _ = sandbox.proq(&["spawn", "--empty", "-n", &format!("lane-{n}")]).ok();
    }
    assert_eq!(rotated_files(&sandbox).len(), 1, "{:?}", rotated_files(&sandbox));
    let left = event_numbers(&sandbox, &[]);
    assert_eq!((left.len() < 30, left.last()), (true, Some(&80)), "{left:?}");
    // A reader that continues from a deleted number is warned about the gap, on standard error even with
    // `--json`.
    let first = left[0];
    let warning = format!(
        "warning: events 4 to {} have expired (event.keep): the first one here is number {first}\n",
        first - 1
    );
    for json in [&[][..], &["--json"]] {
        let out = sandbox.proq(&[&["events", "--since", "3"], json].concat());
        assert_eq!((out.code, out.stderr.as_str()), (0, warning.as_str()));
    }
    assert_eq!(event_numbers(&sandbox, &["--since", "3"]), left);
    let output = sandbox.proq(&["events", "--since", &(first - 1).to_string()]);
    assert_eq!(output.stderr, "", "{}", output.to_text());
}

#[cfg(debug_assertions)]
#[test]
fn each_logged_operation_has_one_event() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo 1 > one");
    sandbox.lane_with_commit("y", "echo 2 > two");
    let _ = sandbox.proq(&["merge", "x", "--verify", "test ! -e one"]).fails(4);
    // It leaves nothing in the log.
    let _ = sandbox.proq(&["compare", "x", "y", "--check", "--verify", "true"]).ok();
    let checks = sandbox.events("merge.checking");
    assert_eq!(checks.iter().map(|event| &event["command"]).collect::<Vec<_>>(), ["test ! -e one"]);
    let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "x"]);
    command.env("PROQ_TEST_DIE_AT", "transition.moved");
    assert_eq!(sandbox.output(command).code, 137);
    let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "-n", "z"]);
    command.env("PROQ_TEST_DIE_AT", "journal.ended");
    assert_eq!(sandbox.output(command).code, 137);
    let _ = sandbox.proq(&["merge", "y"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["op", "redo"]).ok();
    let log = sandbox.proq(&["op", "log", "--json"]).json();
    let mut logged: Vec<_> = log["operations"].as_array().unwrap().iter().collect();
    logged.sort_by_key(|operation| operation["operation"].as_u64());
    let events = sandbox.events("op.ended");
    let mut ended: Vec<_> = events.iter().map(|event| &event["operation"]).collect();
    ended.sort_by_key(|operation| operation["number"].as_u64());
    assert_eq!(ended.len(), logged.len(), "{ended:#?}");
    for (ended, logged) in ended.iter().zip(logged) {
        assert_eq!(ended["number"], logged["operation"]);
        for key in ["kind", "via", "undoes", "redoes"] {
            assert_eq!(ended[key], logged[key], "{ended}");
        }
        let outcome = if logged["recovered"] == true { "recovered" } else { "done" };
        assert_eq!(ended["outcome"], outcome, "{ended}");
    }
    assert_eq!(ended.iter().filter(|operation| operation["outcome"] == "recovered").count(), 1);
}

#[test]
fn stopped_operation_names_what_stays_and_has_its_event() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    sandbox.git(&["branch", "other"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "two", "--base", "other"]).ok();
    sandbox.commit_in_lane("two", "echo two > stop.txt");
    sandbox.pipe("here");
    let check = "test ! -e stop.txt || { echo here > $ROOT/here; sleep 600; }";
    let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "one", "two", "--verify", check]);
    let mut landing = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(sandbox.read_pipe("here"), "here\n");
    let lock = std::fs::File::open(sandbox.repo.join(".git/proq/locks/events.lock")).unwrap();
    lock.lock().unwrap();
    let _ = sandbox.sh(&format!("kill -TERM {}", landing.id()));
    let mut lines = BufReader::new(landing.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("waiting for the event log")));
    lock.unlock().unwrap();
    let rest: Vec<String> = lines.collect();
    assert_eq!(landing.wait().unwrap().code(), Some(143));
    let ended = &sandbox.events("op.ended").pop().unwrap()["operation"];
    assert_eq!((&ended["kind"], &ended["outcome"]), (&"merge".into(), &"failed".into()));
    let hint = format!("hint: show what is kept: git proq op show {}", ended["number"]);
    assert_eq!(rest, ["error: interrupted; merged lanes and what could not be undone are kept", &hint]);
    assert_eq!(sandbox.read("one.txt"), "one\n");
}

#[test]
fn since_takes_durations_and_dates() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "old"]).ok();
    let later = |args: &[&str]| {
        let mut command = sandbox.proq_command(&sandbox.repo, args);
        command.env("PROQ_TEST_NOW", "2026-01-02T15:04:05Z").env("TZ", "UTC");
        sandbox.output(command)
    };
    let _ = later(&["spawn", "--empty", "-n", "new"]).ok();
    let numbers = |since: &str| -> Vec<u64> {
        let events = later(&["events", "--json", "--since", since]).json();
        events["events"].as_array().unwrap().iter().map(|event| event["n"].as_u64().unwrap()).collect()
    };
    for recent in ["1h", "3 hours ago", "2026-01-02 12:00", "0s"] {
        assert_eq!(numbers(recent), [3, 4], "{recent}");
    }
    for all in ["12h", "2d", "yesterday", "2025-12-31", "0"] {
        assert_eq!(numbers(all), [1, 2, 3, 4], "{all}");
    }
    assert_eq!(numbers("3"), [4]);
    let out = later(&["events", "--since", "soon"]).fails(2);
    assert!(out.contains("neither the number of an event nor a time"), "{out}");
}
