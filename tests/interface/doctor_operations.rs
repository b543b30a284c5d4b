//! Tests of the doctor's checks of operations: interrupted ones, running ones, and the operation log.

use std::fs::File;

use proq_test_kit::Sandbox;

use super::doctor::{UNUSED_PID, assert_unfixable_finding, run_suggested_command};

const WORK_DIR: &str = ".git/proq/work/20250101-000000-4999999-0";

fn with_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox
}

/// Returns the first line of a journal whose process has exited.
fn header(command: &str) -> String {
    format!(
        r#"{{"open":{{"format":1,"id":"20250101-000000-4999999-1","at":"2025-01-01T00:00:00Z","command":"{command}","kind":"test","pid":{UNUSED_PID},"host":"h"}}}}"#
    )
}

/// Asserts that the doctor reports the recovery once.
#[track_caller]
fn assert_recovery_noted(sandbox: &Sandbox) {
    let out = sandbox.proq(&["doctor"]);
    assert!(
        out.code == 0 && out.stderr.contains("note: `git proq merge x` was interrupted (process 4999999"),
        "{out:?}"
    );
    sandbox.assert_healthy();
}

/// Writes the journal of a process that was killed while it wrote a record.
fn write_interrupted_operation(sandbox: &Sandbox) {
    let step = r#"{"do":"file","path":"lanes/x/note.toml","new":"what it writes"}"#;
    let lines =
        format!("{}\n{{\"plan\":{{\"steps\":[{step}]}}}}\n{{\"done\":0}}\n", header("git proq merge x"));
    sandbox.write(".git/proq/lanes/x/note.toml", "what it writes");
    sandbox.write(&format!("{WORK_DIR}/journal"), &lines);
}

#[test]
fn recovers_interrupted_operation_and_notes_it() {
    let sandbox = with_lane();
    sandbox.write(&format!("{WORK_DIR}/index"), "DIRC");
    sandbox.assert_healthy();
    assert!(!sandbox.repo.join(WORK_DIR).exists(), "nothing had been begun");
    write_interrupted_operation(&sandbox);
    assert_recovery_noted(&sandbox);
    assert!(!sandbox.repo.join(".git/proq/lanes/x/note.toml").exists());
}

#[test]
fn unrecoverable_operation_is_an_error_with_reason() {
    let sandbox = with_lane();
    // A folder is in the place of the record.
    let step = r#"{"do":"file","path":"lanes/x/runs","new":"what it writes"}"#;
    sandbox.sh(&format!("mkdir -p {WORK_DIR}/0 .git/proq/lanes/x/runs"));
    let lines = format!("{}\n{{\"plan\":{{\"steps\":[{step}]}}}}\n", header("git proq preview x"));
    sandbox.write(&format!("{WORK_DIR}/journal"), &lines);
    let found = assert_unfixable_finding(&sandbox, "operation", "error");
    let message = found["message"].as_str().unwrap();
    assert!(message.contains("the interrupted command `git proq preview x`"), "{message}");
    assert!(message.contains("directory"), "{message}");
    assert!(found["help"].is_string(), "{found:#?}");
}

#[test]
fn unreadable_journal_can_be_set_aside() {
    let sandbox = with_lane();
    sandbox.write(&format!("{WORK_DIR}/0/files/mine"), "m");
    sandbox.write(&format!("{WORK_DIR}/journal"), "{\"open\":{\"format\":9}}\n");
    let found = assert_unfixable_finding(&sandbox, "operation", "error");
    assert!(found["message"].as_str().unwrap().contains("format 9"), "{found:#?}");
    sandbox.write(&format!("{WORK_DIR}/journal"), &format!("{}\nnonsense\n", header("git proq merge x")));
    let refused = sandbox.proq(&["spawn", "--empty", "-n", "y"]).fails(1);
    assert!(refused.contains("aside-20250101-000000-4999999-0"), "{refused}");
    let found = assert_unfixable_finding(&sandbox, "operation", "error");
    assert!(
        found["message"].as_str().unwrap().contains("work/20250101-000000-4999999-0/journal"),
        "{found:#?}"
    );
    run_suggested_command(&sandbox, &found);
    sandbox.assert_healthy();
    assert_eq!(sandbox.read(".git/proq/aside-20250101-000000-4999999-0/0/files/mine"), "m");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y"]).ok();
}

#[test]
fn operation_of_a_live_process_is_no_finding() {
    let sandbox = with_lane();
    write_interrupted_operation(&sandbox);
    let alive = File::open(sandbox.repo.join(WORK_DIR)).unwrap();
    alive.lock().unwrap();
    sandbox.assert_healthy();
    assert!(sandbox.repo.join(WORK_DIR).join("journal").exists());
    drop(alive);
    assert_recovery_noted(&sandbox);
    assert!(!sandbox.repo.join(WORK_DIR).exists());
}

#[test]
fn damaged_operation_log_is_an_error() {
    let sandbox = with_lane();
    let answer = sandbox.proq(&["doctor", "--json"]).json();
    assert_eq!(answer["checked"]["operations"], 1, "{answer:#}");
    let log = sandbox.read(".git/proq/ops/1.jsonl");
    let ended = log.lines().last().unwrap();
    for (text, word) in [
        (log.replace(ended, "nonsense"), "cannot read the record"),
        (log.replace(&format!("{ended}\n"), ""), "is truncated"),
        (log.replace("\"format\":1", "\"format\":9"), "format 9"),
        (String::new(), "is empty"),
    ] {
        sandbox.write(".git/proq/ops/1.jsonl", &text);
        let found = assert_unfixable_finding(&sandbox, "operation-log", "error");
        assert!(found["message"].as_str().unwrap().contains(word), "{found:#?}");
        assert!(found["help"].is_string(), "{found:#?}");
    }
    sandbox.write(".git/proq/ops/1.jsonl", &log);
    sandbox.assert_healthy();
}

#[test]
fn operation_ref_to_missing_object_is_an_error() {
    let sandbox = with_lane();
    sandbox.git(&["update-ref", "refs/proq/op/1", "HEAD"]);
    sandbox.assert_healthy();
    if sandbox.repo.join(".git/refs/proq/op/1").exists() {
        sandbox.write(".git/refs/proq/op/1", &format!("{}\n", "1".repeat(40)));
        let found = assert_unfixable_finding(&sandbox, "objects", "error");
        assert!(found["message"].as_str().unwrap().contains("refs/proq/op/1"), "{found:#?}");
    }
}
