//! Owns the tests of `git proq events`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use super::support::Sandbox;

#[test]
fn what_happened_is_told_in_order_and_numbered() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(sandbox.proq(&["events"]).shown(), @r"
    --- stderr
    nothing has happened yet
    --- code 0
    ");
    sandbox.lane_with("x", "echo 1 > one");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "y", "--", "false"]).fails(4);
    let _ = sandbox.proq(&["merge", "x"]).ok();
    let _ = sandbox.proq(&["discard", "y"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["events"]).shown(), @r"
    2026-01-02T03:04:05Z    1  lane 'x' made from main
    2026-01-02T03:04:05Z    2  lane 'x': command started
    2026-01-02T03:04:05Z    3  lane 'x': done
    2026-01-02T03:04:05Z    4  lane 'y' made from main
    2026-01-02T03:04:05Z    5  lane 'y': command started
    2026-01-02T03:04:05Z    6  lane 'y': failed (exit code 1)
    2026-01-02T03:04:05Z    7  lane 'x' landed on main
    2026-01-02T03:04:05Z    8  lane 'x' cleaned up
    2026-01-02T03:04:05Z    9  lane 'y' discarded
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["events", "--last", "1"]).shown(), @r"
    2026-01-02T03:04:05Z    9  lane 'y' discarded
    --- code 0
    ");
    assert_eq!(sandbox.proq(&["events", "--last", "0"]).ok(), "");
}

#[test]
fn programs_get_every_event_with_its_lane_and_state() {
    let sandbox = Sandbox::new();
    sandbox.lane_with("x", "echo 1 > one");
    insta::assert_snapshot!(sandbox.proq(&["events", "--json"]).shown(), @r#"
    {
      "events": [
        {
          "at": "2026-01-02T03:04:05Z",
          "event": "lane.created",
          "lane": "x",
          "message": "lane 'x' made from main",
          "n": 1,
          "state": "idle"
        },
        {
          "at": "2026-01-02T03:04:05Z",
          "event": "run.started",
          "lane": "x",
          "message": "lane 'x': command started",
          "n": 2,
          "state": "running"
        },
        {
          "at": "2026-01-02T03:04:05Z",
          "event": "run.ended",
          "lane": "x",
          "message": "lane 'x': done",
          "n": 3,
          "state": "done"
        }
      ],
      "schema": 1
    }
    --- code 0
    "#);
}

#[test]
fn following_tells_of_what_comes() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "old"]).ok();
    let mut follow = sandbox.proq_command(&sandbox.repo, &["events", "-f", "--json", "--last", "1"]);
    let mut follow = follow.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let mut next = || -> serde_json::Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["lane"], "old");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "new"]).ok();
    let event = next();
    assert_eq!(
        (&event["n"], &event["event"], &event["lane"]),
        (&2.into(), &"lane.created".into(), &"new".into())
    );
    assert_eq!(event["schema"], 1);
    follow.kill().unwrap();
    follow.wait().unwrap();
}

#[test]
fn a_torn_line_is_passed_over_and_the_numbers_go_on() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "a"]).ok();
    let path = sandbox.repo.join(".git/proq/events.jsonl");
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("{\"n\":2,\"at\":\"20");
    std::fs::write(&path, text).unwrap();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "b"]).ok();
    let numbers: Vec<u64> = sandbox.proq(&["events", "--json"]).json()["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["n"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [1, 2]);
}
