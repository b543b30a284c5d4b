//! Owns the tests of what a death of the supervisor leaves of a task with steps: what is done stays done, and `git proq run` goes on.

use super::steps::{FOLDER, with_task};
use super::support::Sandbox;
use super::support::patience::wait_until_free;

/// Has the task begun by a supervisor that dies at a point, and waits until that is so.
fn begin(sandbox: &Sandbox, point: &str) {
    let mut spawn = sandbox.proq_command(&sandbox.repo, &["spawn", "claude", "--folder", FOLDER, "-n", "x"]);
    spawn.env("PROQ_TEST_DIE_AT", point);
    let _ = sandbox.output(spawn).ok();
    wait_until_free(&sandbox.lock("x", "run.lock"));
    wait_until_free(&sandbox.lock("x", "alive.lock"));
}

#[test]
fn no_step_is_done_twice_wherever_the_supervisor_died() {
    for point in ["step.ended", "step.taken", "step.written", "step.prepared"] {
        for time in [1, 3] {
            let sandbox = with_task(0, "work; well");
            let at = format!("{point}:{time}");
            begin(&sandbox, &at);
            let row = sandbox.row("x");
            assert_eq!(
                (&row["state"], &row["task"]["done"]),
                (&"failed".into(), &time.into()),
                "{at}: {row}"
            );
            let out = sandbox.proq(&["run", "x", "--wait"]).ok();
            assert!(out.starts_with("x: done (4 of 4 boxes in "), "{at}: {out}");
            assert_eq!(sandbox.new_files(), "src/pay/1\nsrc/pay/2\nsrc/pay/3\nsrc/pay/4", "{at}");
            sandbox.assert_healthy();
        }
    }
}

#[test]
fn reviews_that_were_taken_into_account_are_not_asked_for_again() {
    let script = "case $what in plan) plan;; review) judge APPROVE;; *) work;; esac; well";
    // The plan, its review, the work, and its review end one after the other.
    for (at, again) in [
        ("step.ended:2", 1),
        ("step.taken:2", 0),
        ("step.written:2", 0),
        ("step.ended:4", 1),
        ("step.taken:4", 0),
    ] {
        let sandbox = with_task(2, script);
        begin(&sandbox, at);
        let _ = sandbox.proq(&["run", "x", "--wait"]).ok();
        let parts = sandbox.parts();
        let of_step = |part: &str| parts.iter().filter(|one| one.starts_with(&format!("{part} 1 "))).count();
        let reviews = of_step("plan-review") + of_step("code-review");
        assert_eq!((of_step("plan"), of_step("work"), reviews), (1, 1, 2 + again), "{at}: {parts:?}");
        assert_eq!(sandbox.new_files().lines().count(), 4, "{at}");
    }
}

#[test]
fn what_a_reviewer_changed_is_taken_back_though_its_supervisor_died() {
    let script = "case $what in plan) plan;; review) if [ $n = 2 ]; then echo bad > bad; git add bad; git commit -qm bad; tick
        kill -9 $PPID; fi; judge APPROVE;; *) work;; esac; well";
    let sandbox = with_task(1, script);
    let _ = sandbox.proq(&["spawn", "claude", "--folder", FOLDER, "-n", "x"]).ok();
    wait_until_free(&sandbox.lock("x", "run.lock"));
    wait_until_free(&sandbox.lock("x", "alive.lock"));
    let _ = sandbox.proq(&["run", "x", "--wait"]).ok();
    assert!(!sandbox.new_files().contains("bad"), "{}", sandbox.new_files());
    assert_eq!(sandbox.new_files().lines().count(), 4);
}

#[test]
fn a_task_that_was_done_when_the_supervisor_died_is_done_without_another_run() {
    let sandbox = with_task(0, "work; well");
    begin(&sandbox, "step.taken:4");
    assert_eq!(sandbox.row("x")["state"], "failed");
    let dry = sandbox.proq(&["run", "x", "--dry-run"]).ok();
    assert!(dry.starts_with("4 of 4 boxes of tasks/pay/PAY-3-refunds are ticked\n"), "{dry}");
    let out = sandbox.proq(&["run", "x"]);
    assert_eq!((out.code, out.stderr.as_str()), (0, "x: done (4 of 4 boxes in 4 iterations)\n"));
    assert_eq!((&sandbox.row("x")["state"], sandbox.parts().len()), (&"done".into(), 4));
}

#[test]
fn a_task_that_was_not_brought_whole_is_not_begun() {
    let sandbox = with_task(0, "work; well");
    let mut spawn = sandbox.proq_command(&sandbox.repo, &["spawn", "claude", "--folder", FOLDER, "-n", "x"]);
    spawn.env("PROQ_TEST_DIE_AT", "packet.noted");
    let _ = sandbox.output(spawn).fails(137);
    let said = sandbox.proq(&["run", "x"]).fails(1);
    assert!(said.contains("tasks/pay/PAY-3-refunds/PROMPT.md is not in the lane"), "{said}");
    let _ = sandbox.proq(&["redispatch", "x"]).ok();
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!((&sandbox.row("x")["state"], sandbox.parts().len()), (&"done".into(), 4));
}

#[test]
fn a_lane_without_steps_says_that_an_agent_has_to_be_named() {
    let sandbox = with_task(0, "work; well");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["run", "y"]).fails(1), @r"
    error: the task of lane 'y' is no folder with steps, so it has to be said which agent is to be started; nothing was started
    hint: name one: git proq run y claude
    ");
}
