//! Tests of what ends or delays a batch: its budget, an abort with grace, a task that cannot land, a pause
//! during a conflict, and an undo of its landings.

use proq_test_kit::claude::sandbox_with_claude;
use proq_test_kit::plans::{install_worker, repo_with_plan};
use proq_test_kit::waiting::wait_until;

use super::swarm::{DIAMOND, recorded_runs, task_status};
use super::swarm_control::scheduler_is_running;
use super::swarm_modes::{SOLVE_SCRIPT, repo_with_conflicting_tasks};

const ID: &str = "20260102-030405";

#[test]
fn batch_pauses_at_its_budget_and_resumes_with_more() {
    let sandbox = sandbox_with_claude(
        "echo $PROQ_TASK >> $ROOT/ran; begin; if [ $PROQ_TASK = two ]; then cat $ROOT/go; fi
        echo $PROQ_TASK > $PROQ_TASK.txt; git add -A; git commit -qm $PROQ_TASK; well",
    );
    sandbox.pipe("go");
    let task_toml = |name: &str| format!("[[task]]\nid = \"{name}\"\ntitle = \"{name}\"\n");
    let tasks = ["one", "two", "three"].map(task_toml).concat();
    sandbox.write("plan.toml", &format!("format = 1\nagent = \"claude\"\n{tasks}"));
    let state = |name: &str| task_status(&sandbox, name)["state"].as_str().unwrap().to_owned();
    // Each run costs 0.0125.
    let out =
        sandbox.proq(&["swarm", "plan.toml", "--budget", "0.01", "--max-parallel", "2", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    wait_until("the first one to be paid for", || task_status(&sandbox, "one")["state"] == "landed");
    // Running tasks continue; no new task starts.
    assert_eq!(state("two"), "running");
    assert_eq!(state("three"), "queued");
    sandbox.write_pipe("go");
    wait_until("its rest", || !scheduler_is_running(&sandbox));
    let status = sandbox.proq(&["status", "--json"]).json();
    assert_eq!((&status["state"], &status["why"]), (&"paused".into(), &"it has used up its budget".into()));
    assert_eq!(["one", "two", "three"].map(state), ["landed", "landed", "queued"]);
    // With no more budget it pauses again before any task starts.
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 1, "{}{}", out.stdout, out.stderr);
    // Both commands print the hint that helps.
    let hint = format!("hint: raise its budget: git proq batch resume {ID} --budget 1\n");
    for output in [out.stderr, sandbox.proq(&["batch", "status"]).stderr] {
        assert!(
            output.contains(&hint) && !output.contains(&format!("git proq batch resume {ID}\n")),
            "{output}"
        );
    }
    let mut runs = recorded_runs(&sandbox);
    runs.sort();
    assert_eq!(runs, ["one", "two"]);
    let out = sandbox.proq(&["resume", "--budget", "1"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("3 of 3 tasks landed"), "{}", out.stdout);
}

#[test]
fn abort_lets_agents_wrap_up() {
    let sandbox = repo_with_plan(DIAMOND);
    install_worker(
        &sandbox,
        "if [ $name = top ]; then while [ ! -e $PROQ_WRAP_UP ]; do sleep 0.02; done; echo $PROQ_WRAP_UP > $ROOT/asked; fi",
    );
    let out = sandbox.proq(&["swarm", "plan.toml", "--max-parallel", "1", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    wait_until("it to be at work", || task_status(&sandbox, "top")["state"] == "running");
    let message = sandbox.proq(&["abort"]).ok();
    assert!(
        message.contains("its agents were asked to finish up") || message.contains("is aborted"),
        "{message}"
    );
    wait_until("its end", || !scheduler_is_running(&sandbox));
    assert!(sandbox.root().join("asked").exists());
    let run = sandbox.last_run("top");
    assert_eq!((&run["class"], &run["outcome"]), (&"stopped".into(), &"stopped".into()), "{run}");
    // The agent may have been in the middle of its work: the task continues before it lands.
    std::fs::remove_file(sandbox.root().join("asked")).unwrap();
    install_worker(&sandbox, "echo rest > rest.txt");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert_eq!(recorded_runs(&sandbox).iter().filter(|run| run.starts_with("top")).count(), 2);
}

#[test]
fn abort_stops_agent_after_grace_period() {
    let sandbox = repo_with_plan(DIAMOND);
    for (key, value) in [("abortGrace", "1"), ("stopGrace", "1")] {
        sandbox.git(&["config", &format!("proq.agent.{key}"), value]);
    }
    install_worker(&sandbox, "if [ $name = top ]; then exec sleep 600; fi");
    let out = sandbox.proq(&["swarm", "plan.toml", "--max-parallel", "1", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    wait_until("it to be at work", || task_status(&sandbox, "top")["state"] == "running");
    let _ = sandbox.proq(&["abort"]).ok();
    wait_until("its end", || !scheduler_is_running(&sandbox));
    assert!(sandbox.repo.join(".git/proq/lanes/top/runs/1.d/wrap-up").exists(), "it was not asked first");
    assert_eq!(sandbox.last_run("top")["class"], "stopped");
    assert_eq!(task_status(&sandbox, "top")["state"], "cut off");
}

#[test]
fn merge_failure_can_abort_the_batch() {
    let sandbox = repo_with_conflicting_tasks("true");
    let plan = sandbox.read("plan.toml").replace("agent =", "criteria = [\"$ touch $ROOT/tried\"]\nagent =");
    sandbox.write("plan.toml", &plan);
    sandbox.commit_all("with a criterion");
    let _ = sandbox.proq(&["approve", "--yes", "--plan", "plan.toml"]).ok();
    let out = sandbox.proq(&["swarm", "plan.toml", "--on-merge-failure", "abort"]);
    assert_eq!(out.code, 3, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("was stopped by a failure: 1 of 3 tasks landed"), "{}", out.stdout);
    // The criteria are not checked then, and the output gives the reason.
    assert!(out.stdout.contains("its criteria were not checked: the conflict of "), "{}", out.stdout);
    assert!(!sandbox.root().join("tried").exists());
    let unlanded = if task_status(&sandbox, "x")["state"] == "conflict" { "x" } else { "y" };
    let lane = task_status(&sandbox, unlanded)["lane"].as_str().unwrap().to_owned();
    let _ = sandbox.proq(&["resolve", &lane, "--abort"]).ok();
    sandbox.program("solver", SOLVE_SCRIPT);
    let _ = sandbox.proq(&["resolve", &lane, "--agent", "solver"]).ok();
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(
        out.stdout.contains("3 of 3 tasks landed") && out.stdout.contains("1 of 1 criterion met"),
        "{}",
        out.stdout
    );
}

#[test]
fn pause_waits_for_conflict_agent_and_can_be_revoked() {
    let sandbox =
        repo_with_conflicting_tasks(&format!("touch $ROOT/solving; cat $ROOT/solve; {SOLVE_SCRIPT}"));
    sandbox.pipe("solve");
    let out = sandbox.proq(&["swarm", "plan.toml", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    wait_until("somebody at the conflict", || sandbox.root().join("solving").exists());
    let state = || sandbox.proq(&["status", "--json"]).json()["state"].as_str().unwrap().to_owned();
    let message = sandbox.proq(&["pause"]).ok();
    assert!(message.contains("will pause when its running tasks have ended"), "{message}");
    assert_eq!(state(), "pausing");
    let _ = sandbox.proq(&["resume", "--detach"]).ok();
    assert_eq!(state(), "running");
    let _ = sandbox.proq(&["pause"]).ok();
    sandbox.write_pipe("solve");
    wait_until("its rest", || !scheduler_is_running(&sandbox));
    assert_eq!(state(), "paused");
    let task_state = |name: &str| task_status(&sandbox, name)["state"].as_str().unwrap().to_owned();
    assert_eq!([task_state("x"), task_state("y"), task_state("z")], ["landed", "landed", "queued"]);
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert_eq!(recorded_runs(&sandbox).len(), 3, "nothing was run again");
}

/// Promise: checks/batch-undo
#[test]
fn refuses_undo_of_landings_of_unfinished_batch() {
    let sandbox = repo_with_plan(DIAMOND);
    sandbox.pipe("go");
    install_worker(&sandbox, "case $name in left|right) cat $ROOT/go;; esac");
    let out = sandbox.proq(&["swarm", "plan.toml", "--max-parallel", "1", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    wait_until("the second task", || {
        ["left", "right"].iter().any(|name| task_status(&sandbox, name)["state"] == "running")
    });
    let tip = sandbox.git(&["rev-parse", &format!("proq/batch-{ID}")]);
    let message = sandbox.proq(&["op", "restore", "0", "--force"]).fails(1);
    assert!(
        message.contains(&format!("merged tasks of batch {ID}, which is running; nothing was changed")),
        "{message}"
    );
    assert_eq!(sandbox.git(&["rev-parse", &format!("proq/batch-{ID}")]), tip);
    let _ = sandbox.proq(&["pause"]).ok();
    sandbox.write_pipe("go");
    wait_until("its rest", || !scheduler_is_running(&sandbox));
    let message = sandbox.proq(&["op", "restore", "0"]).fails(1);
    assert!(message.contains("which has not ended; nothing was changed"), "{message}");
}
