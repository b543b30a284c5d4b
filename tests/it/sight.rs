//! Owns the tests of what is told when something changed outside of a lane while its agent ran, and nothing names it.

use serde_json::{Value, json};

use super::looking::told_of_escapes;
use super::support::Sandbox;

/// A repository with files, changes of the user's, and a lane in which nothing runs.
fn lived_in() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("for f in tracked edited fine; do echo 1 > $f; done");
    sandbox.commit_all("files");
    sandbox.lane_of("idle", "echo 1 > work");
    sandbox.sh("echo mine >> edited; echo mine > untracked; mkdir -p d; echo mine > d/deep; rm fine");
    std::fs::write(sandbox.lane("idle").join("draft"), "mine\n").unwrap();
    sandbox
}

/// A lane whose agent does this once it is told to go, and which is at work.
fn waiting(sandbox: &Sandbox, lane: &str, script: &str) {
    sandbox.pipe(&format!("up-{lane}"));
    sandbox.pipe(&format!("go-{lane}"));
    sandbox
        .start_lane(lane, &format!("echo > \"$ROOT/up-{lane}\"; read -r _ < \"$ROOT/go-{lane}\"; {script}"));
    let _ = sandbox.hear(&format!("up-{lane}"));
}

fn ended(sandbox: &Sandbox, lane: &str) {
    sandbox.tell(&format!("go-{lane}"));
    let _ = sandbox.proq(&["wait", lane]);
}

#[test]
fn a_quiet_run_tells_of_nothing() {
    let sandbox = lived_in();
    sandbox.lane_with("x", "echo new > new; git add new; git commit -qm new; cat \"$ROOT/repo/edited\"");
    assert_eq!(sandbox.events("lane.escape"), [Value::Null; 0]);
}

#[test]
fn what_a_run_wrote_in_the_main_checkout_is_told_though_nothing_names_it() {
    let sandbox = lived_in();
    let script = "cd \"$ROOT/repo\"; echo 2 > tracked; echo more >> edited; echo new > new; rm untracked; echo 1 > fine";
    sandbox.lane_with("x", script);
    let all = sandbox.events("lane.escape");
    assert_eq!(
        told_of_escapes(&sandbox),
        [
            "while the agent of lane 'x' ran, these changed in the main checkout: edited, fine, new, tracked and 1 more; that may have been you: nothing says who it was"
        ]
    );
    assert_eq!(
        (&all[0]["certainty"], &all[0]["lane"], &all[0]["other"]),
        (&"possible".into(), &"x".into(), &Value::Null)
    );
    assert_eq!(all[0]["paths"], json!(["edited", "fine", "new", "tracked", "untracked"]));
    // What is there since then is nobody's escape any more.
    sandbox.lane_with("y", "true");
    assert_eq!(sandbox.events("lane.escape").len(), 1);
}

#[test]
fn so_is_what_changed_in_a_lane_in_which_nothing_runs() {
    let sandbox = lived_in();
    sandbox.lane_with("x", "cd ../idle; echo 2 > work; echo 2 > draft; echo new > new");
    assert_eq!(
        told_of_escapes(&sandbox),
        [
            "while the agent of lane 'x' ran, these changed in lane 'idle': draft, new, work; that may have been you: nothing says who it was"
        ]
    );
    let all = sandbox.events("lane.escape");
    assert_eq!((&all[0]["certainty"], &all[0]["other"]), (&"possible".into(), &"idle".into()));
}

#[test]
fn what_the_user_did_meanwhile_may_be_the_users_and_what_commits_and_commands_did_is_explained() {
    let sandbox = lived_in();
    waiting(&sandbox, "x", "true");
    sandbox.write("notes", "mine\n");
    sandbox.sh(
        "echo more >> edited; echo 3 > committed; git add edited untracked committed; git commit -qm mine",
    );
    ended(&sandbox, "x");
    assert_eq!(
        told_of_escapes(&sandbox),
        [
            "while the agent of lane 'x' ran, these changed in the main checkout: notes; that may have been you: nothing says who it was"
        ]
    );
    // A landing moves the files of the main checkout; a preview takes edits away and brings them back.
    sandbox.git(&["config", "proq.merge.uncommitted", "snapshot"]);
    waiting(&sandbox, "y", "true");
    let _ = sandbox.proq(&["merge", "idle"]).ok();
    sandbox.lane_of("shown", "echo 5 > five");
    let _ = sandbox.proq(&["preview", "shown"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    ended(&sandbox, "y");
    assert_eq!(sandbox.events("lane.escape").len(), 1, "{:?}", told_of_escapes(&sandbox));
}

#[test]
fn agents_that_run_at_the_same_time_are_not_taken_for_one_another() {
    let sandbox = lived_in();
    waiting(&sandbox, "x", "echo by x > \"$ROOT/repo/odd\"; echo x > ../y/from-x");
    waiting(&sandbox, "y", "echo y > own; echo y > ../x/from-y");
    ended(&sandbox, "x");
    ended(&sandbox, "y");
    let told = told_of_escapes(&sandbox);
    let said = |lane: &str, other: &str| {
        format!(
            "while the agent of lane '{lane}' ran, these changed in the main checkout: odd; that may have been you, or the agent of lane '{other}': nothing says who it was"
        )
    };
    assert_eq!(told, [said("x", "y"), said("y", "x")]);
    // Neither lane was without a run, so nothing is said of what is in them.
    let others = sandbox.events("lane.escape");
    assert!(others.iter().all(|event| event["other"].is_null()));
}

#[test]
fn any_change_beside_a_run_that_only_looks_is_told() {
    let sandbox = super::looking::with_claude("echo x > \"$ROOT/repo/made\"; say yes");
    let _ = sandbox.proq(&["spawn", "-n", "x", "--mode", "plan", "--wait", "claude", "how?"]).ok();
    assert_eq!(
        told_of_escapes(&sandbox),
        [
            "while the agent of lane 'x', which was only to look, ran, these changed in the main checkout: made; that may have been you: nothing says who it was"
        ]
    );
}

#[test]
fn what_changes_while_another_run_works_in_the_main_checkout_is_that_runs() {
    let sandbox = Sandbox::new();
    waiting(&sandbox, "x", "true");
    let place = ["spawn", "--in-place", "--wait", "-n", "here", "--", "sh", "-c", "echo one > one"];
    let _ = sandbox.proq(&place).ok();
    ended(&sandbox, "x");
    assert_eq!(told_of_escapes(&sandbox), [""; 0]);
}
