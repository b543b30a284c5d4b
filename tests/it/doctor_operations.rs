//! Owns the doctor's tests of operations: those that were cut short, those that are under way, and the log of those that ended.

use std::fs::File;

use super::doctor::{NOBODY, finds_and_leaves, follow};
use super::support::Sandbox;

const WORK: &str = ".git/proq/work/20250101-000000-4999999-0";

fn with_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox
}

/// The first line of the journal of a process that is gone.
fn header(command: &str) -> String {
    format!(
        r#"{{"open":{{"format":1,"id":"20250101-000000-4999999-1","at":"2025-01-01T00:00:00Z","command":"{command}","kind":"test","pid":{NOBODY},"host":"h"}}}}"#
    )
}

/// The doctor says, once, what it put right.
#[track_caller]
fn tells_of_recovery(sandbox: &Sandbox) {
    let out = sandbox.proq(&["doctor"]);
    assert!(
        out.code == 0 && out.stderr.contains("note: `git proq merge x` was cut short (process 4999999"),
        "{out:?}"
    );
    sandbox.assert_healthy();
}

/// The journal of a process that was killed while it wrote a record.
fn half_done(sandbox: &Sandbox) {
    let step = r#"{"do":"file","path":"lanes/x/note.toml","new":"what it writes"}"#;
    let lines =
        format!("{}\n{{\"plan\":{{\"steps\":[{step}]}}}}\n{{\"done\":0}}\n", header("git proq merge x"));
    sandbox.write(".git/proq/lanes/x/note.toml", "what it writes");
    sandbox.write(&format!("{WORK}/journal"), &lines);
}

#[test]
fn what_was_cut_short_is_put_right_first_and_told() {
    let sandbox = with_lane();
    sandbox.write(&format!("{WORK}/index"), "DIRC");
    sandbox.assert_healthy();
    assert!(!sandbox.repo.join(WORK).exists(), "nothing had been begun");
    half_done(&sandbox);
    tells_of_recovery(&sandbox);
    assert!(!sandbox.repo.join(".git/proq/lanes/x/note.toml").exists());
}

#[test]
fn what_cannot_be_put_right_is_an_error_that_says_why() {
    let sandbox = with_lane();
    // A folder stands where the record was.
    let step = r#"{"do":"file","path":"lanes/x/runs","new":"what it writes"}"#;
    sandbox.sh(&format!("mkdir -p {WORK}/0 .git/proq/lanes/x/runs"));
    let lines = format!("{}\n{{\"plan\":{{\"steps\":[{step}]}}}}\n", header("git proq preview x"));
    sandbox.write(&format!("{WORK}/journal"), &lines);
    let found = finds_and_leaves(&sandbox, "operation", "error");
    let message = found["message"].as_str().unwrap();
    assert!(message.contains("`git proq preview x` was cut short"), "{message}");
    assert!(message.contains("directory"), "{message}");
    assert!(found["help"].is_string(), "{found:#?}");
}

#[test]
fn a_journal_that_cannot_be_read_is_an_error_and_its_folder_can_be_set_aside() {
    let sandbox = with_lane();
    sandbox.write(&format!("{WORK}/0/files/mine"), "m");
    sandbox.write(&format!("{WORK}/journal"), "{\"open\":{\"format\":9}}\n");
    let found = finds_and_leaves(&sandbox, "operation", "error");
    assert!(found["message"].as_str().unwrap().contains("format 9"), "{found:#?}");
    sandbox.write(&format!("{WORK}/journal"), &format!("{}\nnonsense\n", header("git proq merge x")));
    let refused = sandbox.proq(&["spawn", "--empty", "-n", "y"]).fails(1);
    assert!(refused.contains("aside-20250101-000000-4999999-0"), "{refused}");
    let found = finds_and_leaves(&sandbox, "operation", "error");
    assert!(
        found["message"].as_str().unwrap().contains("work/20250101-000000-4999999-0/journal"),
        "{found:#?}"
    );
    follow(&sandbox, &found);
    sandbox.assert_healthy();
    assert_eq!(sandbox.read(".git/proq/aside-20250101-000000-4999999-0/0/files/mine"), "m");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y"]).ok();
}

#[test]
fn what_a_living_process_has_in_hand_is_no_finding_whatever_its_number_says() {
    let sandbox = with_lane();
    half_done(&sandbox);
    let alive = File::open(sandbox.repo.join(WORK)).unwrap();
    alive.lock().unwrap();
    sandbox.assert_healthy();
    assert!(sandbox.repo.join(WORK).join("journal").exists());
    drop(alive);
    tells_of_recovery(&sandbox);
    assert!(!sandbox.repo.join(WORK).exists());
}

#[test]
fn the_operation_log_is_read() {
    let sandbox = with_lane();
    let answer = sandbox.proq(&["doctor", "--json"]).json();
    assert_eq!(answer["checked"]["operations"], 1, "{answer:#}");
    let log = sandbox.read(".git/proq/ops/1.jsonl");
    let ended = log.lines().last().unwrap();
    for (text, word) in [
        (log.replace(ended, "nonsense"), "cannot be read"),
        (log.replace(&format!("{ended}\n"), ""), "has lost its end"),
        (log.replace("\"format\":1", "\"format\":9"), "format 9"),
        (String::new(), "is empty"),
    ] {
        sandbox.write(".git/proq/ops/1.jsonl", &text);
        let found = finds_and_leaves(&sandbox, "operation-log", "error");
        assert!(found["message"].as_str().unwrap().contains(word), "{found:#?}");
        assert!(found["help"].is_string(), "{found:#?}");
    }
    sandbox.write(".git/proq/ops/1.jsonl", &log);
    sandbox.assert_healthy();
}

#[test]
fn a_ref_that_keeps_an_operation_and_names_nothing_is_an_error() {
    let sandbox = with_lane();
    sandbox.git(&["update-ref", "refs/proq/op/1", "HEAD"]);
    sandbox.assert_healthy();
    if sandbox.repo.join(".git/refs/proq/op/1").exists() {
        sandbox.write(".git/refs/proq/op/1", &format!("{}\n", "1".repeat(40)));
        let found = finds_and_leaves(&sandbox, "objects", "error");
        assert!(found["message"].as_str().unwrap().contains("refs/proq/op/1"), "{found:#?}");
    }
}
