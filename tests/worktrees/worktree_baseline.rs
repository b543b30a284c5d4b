//! Reports of changes outside of a lane while its agent ran, where nothing names their author.

use proq_test_kit::Sandbox;
use proq_test_kit::runs::escape_messages;
use serde_json::{Value, json};

/// Returns a repository with files, changes of the user, and a lane in which nothing runs.
fn sandbox_with_user_changes() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("for f in tracked edited fine; do echo 1 > $f; done");
    sandbox.commit_all("files");
    sandbox.lane_with_commit("idle", "echo 1 > work");
    sandbox.sh("echo mine >> edited; echo mine > untracked; mkdir -p d; echo mine > d/deep; rm fine");
    std::fs::write(sandbox.lane_path("idle").join("draft"), "mine\n").unwrap();
    sandbox
}

/// Starts a lane whose agent waits, and runs this script when it is released.
fn start_waiting_run(sandbox: &Sandbox, lane: &str, script: &str) {
    sandbox.pipe(&format!("up-{lane}"));
    sandbox.pipe(&format!("go-{lane}"));
    sandbox
        .start_lane(lane, &format!("echo > \"$ROOT/up-{lane}\"; read -r _ < \"$ROOT/go-{lane}\"; {script}"));
    let _ = sandbox.read_pipe(&format!("up-{lane}"));
}

fn finish_run(sandbox: &Sandbox, lane: &str) {
    sandbox.write_pipe(&format!("go-{lane}"));
    let _ = sandbox.proq(&["wait", lane]);
}

/// Promise: agent-git/unexplained-changes
#[test]
fn quiet_run_reports_no_change() {
    let sandbox = sandbox_with_user_changes();
    sandbox.run_lane("x", "echo new > new; git add new; git commit -qm new; cat \"$ROOT/repo/edited\"");
    assert_eq!(sandbox.events("lane.escape"), [Value::Null; 0]);
}

/// Promise: agent-git/unexplained-changes
#[test]
fn reports_changes_in_main_checkout() {
    let sandbox = sandbox_with_user_changes();
    let script = "cd \"$ROOT/repo\"; echo 2 > tracked; echo more >> edited; echo new > new; rm untracked; echo 1 > fine";
    sandbox.run_lane("x", script);
    let all = sandbox.events("lane.escape");
    assert_eq!(
        escape_messages(&sandbox),
        [
            "while the agent of lane 'x' ran, these changed in the main checkout: edited, fine, new, tracked and 1 more; git-proq cannot tell who changed them: this agent, you"
        ]
    );
    assert_eq!(
        (&all[0]["certainty"], &all[0]["lane"], &all[0]["other"]),
        (&"possible".into(), &"x".into(), &Value::Null)
    );
    assert_eq!(all[0]["paths"], json!(["edited", "fine", "new", "tracked", "untracked"]));
    // A change from before the next run is not reported again.
    sandbox.run_lane("y", "true");
    assert_eq!(sandbox.events("lane.escape").len(), 1);
}

/// Promise: agent-git/unexplained-changes
#[test]
fn reports_changes_in_idle_lane() {
    let sandbox = sandbox_with_user_changes();
    sandbox.run_lane("x", "cd ../idle; echo 2 > work; echo 2 > draft; echo new > new");
    assert_eq!(
        escape_messages(&sandbox),
        [
            "while the agent of lane 'x' ran, these changed in lane 'idle': draft, new, work; git-proq cannot tell who changed them: this agent, you"
        ]
    );
    let all = sandbox.events("lane.escape");
    assert_eq!((&all[0]["certainty"], &all[0]["other"]), (&"possible".into(), &"idle".into()));
}

/// Promise: agent-git/unexplained-changes
#[test]
fn explained_changes_are_not_reported() {
    let sandbox = sandbox_with_user_changes();
    start_waiting_run(&sandbox, "x", "true");
    sandbox.write("notes", "mine\n");
    sandbox.sh(
        "echo more >> edited; echo 3 > committed; git add edited untracked committed; git commit -qm mine",
    );
    finish_run(&sandbox, "x");
    assert_eq!(
        escape_messages(&sandbox),
        [
            "while the agent of lane 'x' ran, these changed in the main checkout: notes; git-proq cannot tell who changed them: this agent, you"
        ]
    );
    // A landing changes the files of the main checkout; a preview parks edits and restores them.
    sandbox.git(&["config", "proq.merge.uncommitted", "snapshot"]);
    start_waiting_run(&sandbox, "y", "true");
    let _ = sandbox.proq(&["merge", "idle"]).ok();
    sandbox.lane_with_commit("shown", "echo 5 > five");
    let _ = sandbox.proq(&["preview", "shown"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    finish_run(&sandbox, "y");
    assert_eq!(sandbox.events("lane.escape").len(), 1, "{:?}", escape_messages(&sandbox));
}

/// Promise: agent-git/unexplained-changes
#[test]
fn concurrent_agents_are_both_named() {
    let sandbox = sandbox_with_user_changes();
    start_waiting_run(&sandbox, "x", "echo by x > \"$ROOT/repo/odd\"; echo x > ../y/from-x");
    start_waiting_run(&sandbox, "y", "echo y > own; echo y > ../x/from-y");
    finish_run(&sandbox, "x");
    finish_run(&sandbox, "y");
    let messages = escape_messages(&sandbox);
    let message = |lane: &str, other: &str| {
        format!(
            "while the agent of lane '{lane}' ran, these changed in the main checkout: odd; git-proq cannot tell who changed them: this agent, you, or the agent of lane '{other}'"
        )
    };
    assert_eq!(messages, [message("x", "y"), message("y", "x")]);
    // Both lanes had a run, so changes in them are not reported.
    let others = sandbox.events("lane.escape");
    assert!(others.iter().all(|event| event["other"].is_null()));
}

/// Promise: agent-git/unexplained-changes
#[test]
fn reports_changes_beside_read_only_run() {
    let sandbox = proq_test_kit::claude::with_claude("echo x > \"$ROOT/repo/made\"; say yes");
    let _ = sandbox.proq(&["spawn", "-n", "x", "--mode", "plan", "--wait", "claude", "how?"]).ok();
    assert_eq!(
        escape_messages(&sandbox),
        [
            "while the agent of lane 'x', which was read-only, ran, these changed in the main checkout: made; git-proq cannot tell who changed them: this agent, you"
        ]
    );
}

/// Promise: agent-git/unexplained-changes
#[test]
fn changes_of_in_place_run_are_not_reported() {
    let sandbox = Sandbox::new();
    start_waiting_run(&sandbox, "x", "true");
    let spawn_args = ["spawn", "--in-place", "--wait", "-n", "here", "--", "sh", "-c", "echo one > one"];
    let _ = sandbox.proq(&spawn_args).ok();
    finish_run(&sandbox, "x");
    assert_eq!(escape_messages(&sandbox), [""; 0]);
}
