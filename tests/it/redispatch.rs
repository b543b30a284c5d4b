//! Owns the tests of `git proq redispatch`: the task once more from today's base, the old work kept.

use super::support::Sandbox;

/// A lane with commits and uncommitted work, on a base that has moved on.
pub fn old_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.program(
        "writer",
        "cat \"$PROQ_TASK_FILE\" > said.txt; ls > seen.txt; git add .; git commit -qm said",
    );
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "old", "writer", "Say it"]).ok();
    sandbox.write_in(&sandbox.lane("old"), "left.txt", "left\n");
    sandbox.sh("echo new > new.txt; git add new.txt; git commit -qm 'main goes on'");
    sandbox
}

#[test]
fn the_task_starts_afresh_from_todays_base_and_the_old_work_is_kept() {
    let sandbox = old_lane();
    let tip = sandbox.git(&["rev-parse", "proq/old"]);
    let said = sandbox.proq(&["redispatch", "old"]).ok();
    let main = sandbox.git(&["rev-parse", "main"]);
    assert!(said.starts_with("lane 'old' starts afresh from main ("), "{said}");
    assert!(said.contains("with writer; the old one is old@1"), "{said}");
    let _ = sandbox.proq(&["wait", "old"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "proq/old~1"]), main);
    assert_eq!(sandbox.git(&["show", "proq/old:said.txt"]), "Say it");
    assert!(sandbox.git(&["show", "proq/old:seen.txt"]).contains("new.txt"));
    assert_eq!(sandbox.git_in(&sandbox.lane("old"), &["status", "--short"]), "");
    let kept =
        sandbox.git(&["for-each-ref", "--contains", &tip, "--format=%(objectname)", "refs/proq/saved"]);
    assert!(!kept.is_empty());
    let shown = sandbox.proq(&["list", "--all", "--json"]).json();
    assert_eq!(shown["lanes"].as_array().unwrap().len(), 2);
    sandbox.assert_healthy();
}

#[test]
fn it_is_undone_as_one_and_done_again() {
    let sandbox = old_lane();
    let tip = sandbox.git(&["rev-parse", "proq/old"]);
    let _ = sandbox.proq(&["redispatch", "old"]).ok();
    let _ = sandbox.proq(&["wait", "old"]).ok();
    let new = sandbox.git(&["rev-parse", "proq/old"]);
    let said = sandbox.proq(&["undo"]).fails(1);
    assert!(said.contains("1 commit that is not on main"), "{said}");
    assert_eq!(sandbox.git(&["rev-parse", "proq/old"]), new);
    let _ = sandbox.proq(&["undo", "--force"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "proq/old"]), tip);
    assert_eq!(std::fs::read_to_string(sandbox.lane("old").join("left.txt")).unwrap(), "left\n");
    assert_eq!(sandbox.row("old")["state"], "done");
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["op", "redo"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "proq/old"]), new);
    sandbox.assert_healthy();
}

#[test]
fn what_cannot_start_afresh_is_refused_and_stays() {
    let sandbox = old_lane();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "bare"]).ok();
    let said = sandbox.proq(&["redispatch", "bare"]).fails(1);
    assert!(said.contains("lane 'bare' has no task to start afresh"), "{said}");
    sandbox.write("task.md", "Do it\n");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "own", "-f", "task.md", "--", "true"]);
    let said = sandbox.proq(&["redispatch", "own"]).fails(1);
    assert!(said.contains("was not made by an agent that can be started again"), "{said}");
    let _ = sandbox.proq(&["redispatch", "old", "--agent", "not-there"]).fails(1);
    let said = sandbox.proq(&["redispatch", "old", "--dry-run"]).ok();
    assert!(said.starts_with("would save and remove lane 'old', make it anew from main ("), "{said}");
    assert!(sandbox.lane("old").join("left.txt").exists());
    sandbox.pipe("up");
    sandbox.program("slow", "echo up > \"$ROOT/up\"; exec sleep 600");
    let _ = sandbox.proq(&["redispatch", "own", "--agent", "slow"]).ok();
    assert_eq!(sandbox.hear("up"), "up\n");
    let said = sandbox.proq(&["redispatch", "own"]).fails(1);
    assert!(said.contains("the agent of lane 'own' is running"), "{said}");
    let _ = sandbox.proq(&["stop", "own"]).ok();
    sandbox.assert_healthy();
}
