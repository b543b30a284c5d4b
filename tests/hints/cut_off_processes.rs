//! Hints about supervisors and schedulers that hang, crash or do not start, and about processes that outlive
//! their agent.

use proq_test_kit::Sandbox;
use proq_test_kit::plans::repo_with_plan;
use proq_test_kit::runs::kill_supervisor;
use proq_test_kit::waiting::wait_until_unlocked;

/// Plan of two tasks, one after the other.
const PLAN: &str = "format = 1\nsummary = \"Two\"\nagent = \"worker\"\n[[task]]\nid = \"one\"\ntitle = \"One\"\n\
                    [[task]]\nid = \"two\"\ntitle = \"Two\"\nneeds = [\"one\"]\n";

/// Id of the only batch.
const BATCH: &str = "20260102-030405";

#[cfg(debug_assertions)]
#[test]
fn hint_to_start_a_killed_scheduler_again_works() {
    let sandbox = repo_with_plan(PLAN);
    let mut swarm = sandbox.proq_command(&sandbox.repo, &["swarm", "plan.toml"]);
    swarm.env("PROQ_TEST_DIE_AT", "scheduler.begun");
    let failed = sandbox.output(swarm).fails(1);
    assert!(failed.contains("cannot start the scheduler of batch"), "{failed}");
    assert!(!sandbox.root().join("ran").exists(), "a task ran without a scheduler");
    let resumed = sandbox.follow_hint(&failed, "try again");
    assert!(resumed.to_text().contains("complete: 2 of 2 tasks landed"), "{}", resumed.to_text());
    let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
    assert_eq!(sandbox.read("two.txt"), "work of two\n");
}

#[cfg(debug_assertions)]
#[test]
fn hint_to_stop_again_works_after_a_supervisor_hung() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.agent.stopGrace", "0"]);
    sandbox.start_lane("x", "exec sleep 600");
    let _ = sandbox.started_row("x");
    let agent = sandbox.last_run("x")["pid"].to_string();
    let supervisor = sandbox.lock_holder("x", "run");
    sandbox.sh(&format!("kill -STOP {supervisor}"));
    let hung = sandbox.wait_until_stopped(&supervisor);
    let refused = sandbox.proq(&["stop", "x"]).fails(1);
    assert!(refused.contains("it still runs after 20 s"), "{refused}");
    assert!(sandbox.is_alive(&agent));
    kill_supervisor(&sandbox, "x");
    drop(hung);
    let stopped = sandbox.follow_hint(&refused, "try again");
    assert_eq!((stopped.code, sandbox.is_alive(&agent)), (0, false), "{}", stopped.to_text());
    assert_eq!(sandbox.row("x")["state"], "stopped");
}

#[test]
fn hint_about_a_leftover_that_cannot_be_found_works() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.agent.stopGrace", "0"]);
    sandbox.pipe("up");
    sandbox.pipe("go");
    // The agent leaves a shell behind, in which the user stops the lane. That command itself has inherited
    // the agent's lock, and does not end itself.
    let leftover = r#"echo > "$ROOT/up"; read go < "$ROOT/go"; exec git-proq stop x > "$ROOT/out" 2>&1"#;
    let agent = format!(
        r#"setsid env -i PATH="$PATH" HOME="$HOME" ROOT="$ROOT" PROQ_TEST_NOW="$PROQ_TEST_NOW" sh -c '{leftover}' & exec sleep 600"#
    );
    sandbox.start_lane("x", &agent);
    sandbox.read_pipe("up");
    kill_supervisor(&sandbox, "x");
    assert_eq!(sandbox.row("x")["state"], "orphaned");
    sandbox.write_pipe("go");
    wait_until_unlocked(&sandbox.lane_lock("x", "alive.lock"));
    let refused = sandbox.sh("cat ../out");
    assert!(refused.contains("its process id is unknown"), "{refused}");
    let shown = sandbox.follow_hint(&refused, "kill it").ok();
    assert!(shown.contains("failed (its supervisor crashed)"), "{shown}");
}
