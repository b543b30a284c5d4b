//! Task loops whose supervisor is killed: finished steps stay done, and `git proq run` continues.

use proq_test_kit::Sandbox;
use proq_test_kit::waiting::wait_until_unlocked;

use super::task_loop::{FOLDER, lane_files, run_parts, sandbox_with_task};

/// Spawns the task with a supervisor that is killed at a fault point, and waits until it has exited.
fn kill_supervisor_at(sandbox: &Sandbox, point: &str) {
    let mut spawn = sandbox.proq_command(&sandbox.repo, &["spawn", "claude", "--folder", FOLDER, "-n", "x"]);
    spawn.env("PROQ_TEST_DIE_AT", point);
    let _ = sandbox.output(spawn).ok();
    wait_until_unlocked(&sandbox.lane_lock("x", "run.lock"));
    wait_until_unlocked(&sandbox.lane_lock("x", "alive.lock"));
}

/// Promise: task-loop/no-step-twice
#[test]
fn no_step_runs_twice_after_supervisor_kill() {
    for point in ["step.ended", "step.taken", "step.written", "step.prepared"] {
        for time in [1, 3] {
            let sandbox = sandbox_with_task(0, "work; well");
            let at = format!("{point}:{time}");
            kill_supervisor_at(&sandbox, &at);
            let row = sandbox.row("x");
            assert_eq!(
                (&row["state"], &row["task"]["done"]),
                (&"failed".into(), &time.into()),
                "{at}: {row}"
            );
            let out = sandbox.proq(&["run", "x", "--wait"]).ok();
            assert!(out.starts_with("x: done (4 of 4 boxes in "), "{at}: {out}");
            assert_eq!(lane_files(&sandbox), "src/pay/1\nsrc/pay/2\nsrc/pay/3\nsrc/pay/4", "{at}");
            sandbox.assert_healthy();
        }
    }
}

/// Promise: task-loop/no-step-twice
#[test]
fn recorded_reviews_are_not_repeated() {
    let script = "case $what in plan) plan;; review) judge APPROVE;; *) work;; esac; well";
    // The plan, its review, the work and its review end one after the other.
    for (at, again) in [
        ("step.ended:2", 1),
        ("step.taken:2", 0),
        ("step.written:2", 0),
        ("step.ended:4", 1),
        ("step.taken:4", 0),
    ] {
        let sandbox = sandbox_with_task(2, script);
        kill_supervisor_at(&sandbox, at);
        let _ = sandbox.proq(&["run", "x", "--wait"]).ok();
        let parts = run_parts(&sandbox);
        let runs_of_part =
            |part: &str| parts.iter().filter(|entry| entry.starts_with(&format!("{part} 1 "))).count();
        let reviews = runs_of_part("plan-review") + runs_of_part("code-review");
        assert_eq!(
            (runs_of_part("plan"), runs_of_part("work"), reviews),
            (1, 1, 2 + again),
            "{at}: {parts:?}"
        );
        assert_eq!(lane_files(&sandbox).lines().count(), 4, "{at}");
    }
}

/// Promise: task-loop/reviewer-changes
#[test]
fn reviewer_changes_are_undone_after_supervisor_kill() {
    let script = "case $what in plan) plan;; review) if [ $n = 2 ]; then echo bad > bad; git add bad; git commit -qm bad; tick
        kill -9 $PPID; fi; judge APPROVE;; *) work;; esac; well";
    let sandbox = sandbox_with_task(1, script);
    let _ = sandbox.proq(&["spawn", "claude", "--folder", FOLDER, "-n", "x"]).ok();
    wait_until_unlocked(&sandbox.lane_lock("x", "run.lock"));
    wait_until_unlocked(&sandbox.lane_lock("x", "alive.lock"));
    let _ = sandbox.proq(&["run", "x", "--wait"]).ok();
    assert!(!lane_files(&sandbox).contains("bad"), "{}", lane_files(&sandbox));
    assert_eq!(lane_files(&sandbox).lines().count(), 4);
}

#[test]
fn finished_task_is_done_without_another_run() {
    let sandbox = sandbox_with_task(0, "work; well");
    kill_supervisor_at(&sandbox, "step.taken:4");
    assert_eq!(sandbox.row("x")["state"], "failed");
    let dry = sandbox.proq(&["run", "x", "--dry-run"]).ok();
    assert!(dry.starts_with("4 of 4 boxes of tasks/pay/PAY-3-refunds are ticked\n"), "{dry}");
    let out = sandbox.proq(&["run", "x"]);
    assert_eq!((out.code, out.stderr.as_str()), (0, "x: done (4 of 4 boxes in 4 iterations)\n"));
    assert_eq!((&sandbox.row("x")["state"], run_parts(&sandbox).len()), (&"done".into(), 4));
}

#[test]
fn partly_copied_task_is_not_started() {
    let sandbox = sandbox_with_task(0, "work; well");
    let mut spawn = sandbox.proq_command(&sandbox.repo, &["spawn", "claude", "--folder", FOLDER, "-n", "x"]);
    spawn.env("PROQ_TEST_DIE_AT", "packet.noted");
    let _ = sandbox.output(spawn).fails(137);
    let error = sandbox.proq(&["run", "x"]).fails(1);
    assert!(error.contains("tasks/pay/PAY-3-refunds/PROMPT.md is not in the lane"), "{error}");
    let _ = sandbox.proq(&["redispatch", "x"]).ok();
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!((&sandbox.row("x")["state"], run_parts(&sandbox).len()), (&"done".into(), 4));
}

#[test]
fn run_without_steps_requires_agent_name() {
    let sandbox = sandbox_with_task(0, "work; well");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["run", "y"]).fails(1), @r#"
    error: cannot start an agent in lane 'y': its task is not a folder with steps, so an agent has to be named
    hint: name one: git proq run y claude "implement payments"
    "#);
}
