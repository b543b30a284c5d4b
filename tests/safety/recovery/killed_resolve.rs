//! Kills of `git proq resolve` and `git proq redispatch` at each of their steps.

use proq_test_kit::Sandbox;
use proq_test_kit::conflict::{GOOD_SCRIPT, RESOLVED, resolve_worktree, sandbox_with_conflict};
use proq_test_kit::faults::{kill_at, recover};
use proq_test_kit::runs::sandbox_with_old_lane;

/// Returns everything that a resolution changes: refs, the lane's record, and the files of the resolve
/// worktree.
fn resolution_state(sandbox: &Sandbox) -> (String, String, Option<String>) {
    let refs = ["refs/heads", "refs/proq/conflict", "refs/proq/resolve"];
    let refs = sandbox.git(&[&["for-each-ref"], &refs[..]].concat());
    let files = resolve_worktree(sandbox).exists().then(|| {
        let status = sandbox.git_in(&resolve_worktree(sandbox), &["status", "--porcelain"]);
        let text = std::fs::read_to_string(resolve_worktree(sandbox).join("long.txt")).unwrap();
        format!("{status}\n{text}")
    });
    (refs, sandbox.row("clash").to_string(), files)
}

/// Promise: resolution/kill
#[test]
fn killed_resolve_is_undone() {
    for at in ["resolve.added", "resolve.merged", "step.before:2", "step.after:1", "step.after:3"] {
        let sandbox = sandbox_with_conflict();
        let before = resolution_state(&sandbox);
        kill_at(&sandbox, at, &["resolve", "clash", "--agent", "good"]);
        recover(&sandbox);
        assert_eq!(resolution_state(&sandbox), before, "{at}");
        sandbox.assert_healthy();
        let _ = sandbox.proq(&["resolve", "clash", "--agent", "good"]).ok();
    }
    for n in 1..=9 {
        let sandbox = sandbox_with_conflict();
        sandbox.program("bad", "true");
        let _ = sandbox.proq(&["resolve", "clash", "--agent", "bad"]).fails(3);
        sandbox.sh_in(&resolve_worktree(&sandbox), GOOD_SCRIPT);
        let before = resolution_state(&sandbox);
        kill_at(&sandbox, &format!("step.after:{n}"), &["resolve", "clash", "--continue"]);
        recover(&sandbox);
        assert_eq!(resolution_state(&sandbox), before, "step {n}");
        sandbox.assert_healthy();
        let _ = sandbox.proq(&["resolve", "clash", "--continue"]).ok();
        assert_eq!(sandbox.git(&["show", "proq/clash:long.txt"]), RESOLVED.trim_end());
        assert_eq!(sandbox.git_in(&sandbox.lane_path("clash"), &["status", "--short"]), "");
    }
}

/// Promise: resolution/redispatch
#[test]
fn killed_redispatch_is_undone() {
    for n in [1, 3, 5, 7, 9, 10, 11] {
        let sandbox = sandbox_with_old_lane();
        let tip = sandbox.git(&["rev-parse", "proq/old"]);
        let row = sandbox.row("old");
        kill_at(&sandbox, &format!("step.after:{n}"), &["redispatch", "old"]);
        recover(&sandbox);
        assert_eq!((sandbox.git(&["rev-parse", "proq/old"]), sandbox.row("old")), (tip, row), "step {n}");
        assert!(sandbox.lane_path("old").join("left.txt").exists());
        // The new lane's copy of the task is kept, as for any lane whose creation was interrupted.
        let _ = sandbox.proq(&["doctor"]).ok();
        let _ = sandbox.proq(&["redispatch", "old"]).ok();
    }
}
