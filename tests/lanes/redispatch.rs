//! `git proq redispatch`: the task is started again from the current base, and the old work is kept.

use proq_test_kit::runs::sandbox_with_old_lane;

/// Promise: resolution/redispatch
#[test]
fn redispatch_restarts_task_from_base_and_keeps_work() {
    let sandbox = sandbox_with_old_lane();
    let tip = sandbox.git(&["rev-parse", "proq/old"]);
    let stdout = sandbox.proq(&["redispatch", "old"]).ok();
    let main = sandbox.git(&["rev-parse", "main"]);
    assert!(stdout.starts_with("restarted lane 'old' from main ("), "{stdout}");
    assert!(stdout.contains("with writer; the old one is old@1"), "{stdout}");
    let _ = sandbox.proq(&["wait", "old"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "proq/old~1"]), main);
    assert_eq!(sandbox.git(&["show", "proq/old:said.txt"]), "Say it");
    assert!(sandbox.git(&["show", "proq/old:seen.txt"]).contains("new.txt"));
    assert_eq!(sandbox.git_in(&sandbox.lane_path("old"), &["status", "--short"]), "");
    let saved_refs =
        sandbox.git(&["for-each-ref", "--contains", &tip, "--format=%(objectname)", "refs/proq/saved"]);
    assert!(!saved_refs.is_empty());
    let shown = sandbox.proq(&["list", "--all", "--json"]).json();
    assert_eq!(shown["lanes"].as_array().unwrap().len(), 2);
    sandbox.assert_healthy();
}

/// Promise: resolution/redispatch
#[test]
fn redispatch_is_undone_and_redone_as_one() {
    let sandbox = sandbox_with_old_lane();
    let tip = sandbox.git(&["rev-parse", "proq/old"]);
    let _ = sandbox.proq(&["redispatch", "old"]).ok();
    let _ = sandbox.proq(&["wait", "old"]).ok();
    let new = sandbox.git(&["rev-parse", "proq/old"]);
    let error = sandbox.proq(&["undo"]).fails(1);
    assert!(error.contains("1 commit that is not on main"), "{error}");
    assert_eq!(sandbox.git(&["rev-parse", "proq/old"]), new);
    let _ = sandbox.proq(&["undo", "--force"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "proq/old"]), tip);
    assert_eq!(std::fs::read_to_string(sandbox.lane_path("old").join("left.txt")).unwrap(), "left\n");
    assert_eq!(sandbox.row("old")["state"], "done");
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["op", "redo"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "proq/old"]), new);
    sandbox.assert_healthy();
}

#[test]
fn refuses_lanes_that_cannot_be_redispatched() {
    let sandbox = sandbox_with_old_lane();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "bare"]).ok();
    let error = sandbox.proq(&["redispatch", "bare"]).fails(1);
    assert!(error.contains("cannot restart lane 'bare': it has no task"), "{error}");
    sandbox.write("task.md", "Do it\n");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "own", "-f", "task.md", "--", "true"]);
    let error = sandbox.proq(&["redispatch", "own"]).fails(1);
    assert!(error.contains("its agent cannot be started again"), "{error}");
    let _ = sandbox.proq(&["redispatch", "old", "--agent", "not-there"]).fails(1);
    let stdout = sandbox.proq(&["redispatch", "old", "--dry-run"]).ok();
    assert!(stdout.starts_with("would save and remove lane 'old', create it again from main ("), "{stdout}");
    assert!(sandbox.lane_path("old").join("left.txt").exists());
    sandbox.pipe("up");
    sandbox.program("slow", "echo up > \"$ROOT/up\"; exec sleep 600");
    let _ = sandbox.proq(&["redispatch", "own", "--agent", "slow"]).ok();
    assert_eq!(sandbox.read_pipe("up"), "up\n");
    let error = sandbox.proq(&["redispatch", "own"]).fails(1);
    assert!(error.contains("cannot change lane 'own': its agent is running"), "{error}");
    let _ = sandbox.proq(&["stop", "own"]).ok();
    sandbox.assert_healthy();
}
