//! Owns killing what resolves a conflict, or starts a task afresh, at each of its steps.

use super::kit::{dies, recovers};
use crate::redispatch::old_lane;
use crate::resolve::{GOOD, RESOLVED, conflicting, desk};
use crate::support::Sandbox;

/// Everything that a resolution changes: refs, the lane's record, what is laid out.
fn look(sandbox: &Sandbox) -> (String, String, Option<String>) {
    let refs = ["refs/heads", "refs/proq/conflict", "refs/proq/resolve"];
    let refs = sandbox.git(&[&["for-each-ref"], &refs[..]].concat());
    let laid_out = desk(sandbox).exists().then(|| {
        let status = sandbox.git_in(&desk(sandbox), &["status", "--porcelain"]);
        let text = std::fs::read_to_string(desk(sandbox).join("long.txt")).unwrap();
        format!("{status}\n{text}")
    });
    (refs, sandbox.row("clash").to_string(), laid_out)
}

#[test]
fn a_killed_resolve_is_taken_back_or_done() {
    for at in ["resolve.added", "resolve.merged", "step.before:2", "step.after:1", "step.after:3"] {
        let sandbox = conflicting();
        let before = look(&sandbox);
        dies(&sandbox, at, &["resolve", "clash", "--agent", "good"]);
        recovers(&sandbox);
        assert_eq!(look(&sandbox), before, "{at}");
        sandbox.assert_healthy();
        let _ = sandbox.proq(&["resolve", "clash", "--agent", "good"]).ok();
    }
    for n in 1..=9 {
        let sandbox = conflicting();
        sandbox.program("bad", "true");
        let _ = sandbox.proq(&["resolve", "clash", "--agent", "bad"]).fails(3);
        sandbox.sh_in(&desk(&sandbox), GOOD);
        let before = look(&sandbox);
        dies(&sandbox, &format!("step.after:{n}"), &["resolve", "clash", "--continue"]);
        recovers(&sandbox);
        assert_eq!(look(&sandbox), before, "step {n}");
        sandbox.assert_healthy();
        let _ = sandbox.proq(&["resolve", "clash", "--continue"]).ok();
        assert_eq!(sandbox.git(&["show", "proq/clash:long.txt"]), RESOLVED.trim_end());
        assert_eq!(sandbox.git_in(&sandbox.lane("clash"), &["status", "--short"]), "");
    }
}

#[test]
fn a_killed_redispatch_is_taken_back() {
    for n in [1, 3, 5, 7, 9, 10, 11] {
        let sandbox = old_lane();
        let tip = sandbox.git(&["rev-parse", "proq/old"]);
        let row = sandbox.row("old");
        dies(&sandbox, &format!("step.after:{n}"), &["redispatch", "old"]);
        recovers(&sandbox);
        assert_eq!((sandbox.git(&["rev-parse", "proq/old"]), sandbox.row("old")), (tip, row), "step {n}");
        assert!(sandbox.lane("old").join("left.txt").exists());
        // The new lane's copy of the task is kept, as of any lane that was being made.
        let _ = sandbox.proq(&["doctor"]).ok();
        let _ = sandbox.proq(&["redispatch", "old"]).ok();
    }
}
