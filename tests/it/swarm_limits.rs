//! Owns the tests of what ends a batch early or holds it up: its budget, an abort with grace, a task that cannot land, a pause over a
//! conflict, and an undo of its landings.

use super::runs::with_claude;
use super::support::patience::wait_until;
use super::swarm::{DIAMOND, planned, ran, task, worker};
use super::swarm_control::is_held;
use super::swarm_modes::{SOLVES, clashing};

const ID: &str = "20260102-030405";

#[test]
fn a_batch_that_has_cost_what_it_may_pauses_and_goes_on_with_more() {
    let sandbox = with_claude(
        "echo $PROQ_TASK >> $ROOT/ran; begin; if [ $PROQ_TASK = two ]; then cat $ROOT/go; fi
        echo $PROQ_TASK > $PROQ_TASK.txt; git add -A; git commit -qm $PROQ_TASK; well",
    );
    sandbox.pipe("go");
    let task_of = |name: &str| format!("[[task]]\nid = \"{name}\"\ntitle = \"{name}\"\n");
    let tasks = ["one", "two", "three"].map(task_of).concat();
    sandbox.write("plan.toml", &format!("format = 1\nagent = \"claude\"\n{tasks}"));
    let state = |name: &str| task(&sandbox, name)["state"].as_str().unwrap().to_owned();
    // Each run costs 0.0125.
    let out =
        sandbox.proq(&["swarm", "plan.toml", "--budget", "0.01", "--max-parallel", "2", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    wait_until("the first one to be paid for", || task(&sandbox, "one")["state"] == "landed");
    // What runs goes on; nothing begins.
    assert_eq!(state("two"), "running");
    assert_eq!(state("three"), "queued");
    sandbox.tell("go");
    wait_until("its rest", || !is_held(&sandbox));
    let status = sandbox.proq(&["status", "--json"]).json();
    assert_eq!((&status["state"], &status["why"]), (&"paused".into(), &"it has cost what it may".into()));
    assert_eq!(["one", "two", "three"].map(state), ["landed", "landed", "queued"]);
    // With no more money it pauses again before anything begins.
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 1, "{}{}", out.stdout, out.stderr);
    // What helps is said, by both.
    let hint = format!("hint: let it cost more in all: git proq resume {ID} --budget 1\n");
    for told in [out.stderr, sandbox.proq(&["status"]).stderr] {
        assert!(told.contains(&hint) && !told.contains(&format!("git proq resume {ID}\n")), "{told}");
    }
    let mut runs = ran(&sandbox);
    runs.sort();
    assert_eq!(runs, ["one", "two"]);
    let out = sandbox.proq(&["resume", "--budget", "1"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("3 of 3 tasks landed"), "{}", out.stdout);
}

#[test]
fn an_abort_asks_agents_to_wrap_up_and_gives_them_time() {
    let sandbox = planned(DIAMOND);
    worker(
        &sandbox,
        "if [ $name = top ]; then while [ ! -e $PROQ_WRAP_UP ]; do sleep 0.02; done; echo $PROQ_WRAP_UP > $ROOT/asked; fi",
    );
    let out = sandbox.proq(&["swarm", "plan.toml", "--max-parallel", "1", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    wait_until("it to be at work", || task(&sandbox, "top")["state"] == "running");
    let said = sandbox.proq(&["abort"]).ok();
    assert!(said.contains("its agents are told to wrap up") || said.contains("is aborted"), "{said}");
    wait_until("its end", || !is_held(&sandbox));
    assert!(sandbox.root().join("asked").exists());
    let run = sandbox.last_run("top");
    assert_eq!((&run["class"], &run["outcome"]), (&"stopped".into(), &"stopped".into()), "{run}");
    // It may have been in the middle of its work: it goes on before anything lands.
    std::fs::remove_file(sandbox.root().join("asked")).unwrap();
    worker(&sandbox, "echo rest > rest.txt");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert_eq!(ran(&sandbox).iter().filter(|run| run.starts_with("top")).count(), 2);
}

#[test]
fn an_agent_that_does_not_wrap_up_is_stopped_when_its_time_is_over() {
    let sandbox = planned(DIAMOND);
    for (key, value) in [("abortGrace", "1"), ("stopGrace", "1")] {
        sandbox.git(&["config", &format!("proq.agent.{key}"), value]);
    }
    worker(&sandbox, "if [ $name = top ]; then exec sleep 600; fi");
    let out = sandbox.proq(&["swarm", "plan.toml", "--max-parallel", "1", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    wait_until("it to be at work", || task(&sandbox, "top")["state"] == "running");
    let _ = sandbox.proq(&["abort"]).ok();
    wait_until("its end", || !is_held(&sandbox));
    assert!(sandbox.repo.join(".git/proq/lanes/top/runs/1.d/wrap-up").exists(), "it was not asked first");
    assert_eq!(sandbox.last_run("top")["class"], "stopped");
    assert_eq!(task(&sandbox, "top")["state"], "cut off");
}

#[test]
fn a_task_that_cannot_land_can_end_the_batch() {
    let sandbox = clashing("true");
    let plan = sandbox.read("plan.toml").replace("agent =", "criteria = [\"$ touch $ROOT/tried\"]\nagent =");
    sandbox.write("plan.toml", &plan);
    sandbox.commit_all("with a criterion");
    let _ = sandbox.proq(&["approve", "--yes", "--plan", "plan.toml"]).ok();
    let out = sandbox.proq(&["swarm", "plan.toml", "--on-merge-failure", "abort"]);
    assert_eq!(out.code, 3, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("was stopped by a failure: 1 of 3 tasks landed"), "{}", out.stdout);
    // What it was for is not looked at then, and why is said.
    assert!(out.stdout.contains("its criteria were not looked at: the conflict of "), "{}", out.stdout);
    assert!(!sandbox.root().join("tried").exists());
    let late = if task(&sandbox, "x")["state"] == "conflict" { "x" } else { "y" };
    let lane = task(&sandbox, late)["lane"].as_str().unwrap().to_owned();
    let _ = sandbox.proq(&["resolve", &lane, "--abort"]).ok();
    sandbox.program("solver", SOLVES);
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
fn a_pause_waits_for_who_is_at_a_conflict_and_can_be_taken_back() {
    let sandbox = clashing(&format!("touch $ROOT/solving; cat $ROOT/solve; {SOLVES}"));
    sandbox.pipe("solve");
    let out = sandbox.proq(&["swarm", "plan.toml", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    wait_until("somebody at the conflict", || sandbox.root().join("solving").exists());
    let state = || sandbox.proq(&["status", "--json"]).json()["state"].as_str().unwrap().to_owned();
    let said = sandbox.proq(&["pause"]).ok();
    assert!(said.contains("pauses once what runs has ended"), "{said}");
    assert_eq!(state(), "pausing");
    let _ = sandbox.proq(&["resume", "--detach"]).ok();
    assert_eq!(state(), "running");
    let _ = sandbox.proq(&["pause"]).ok();
    sandbox.tell("solve");
    wait_until("its rest", || !is_held(&sandbox));
    assert_eq!(state(), "paused");
    let of = |name: &str| task(&sandbox, name)["state"].as_str().unwrap().to_owned();
    assert_eq!([of("x"), of("y"), of("z")], ["landed", "landed", "queued"]);
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert_eq!(ran(&sandbox).len(), 3, "nothing was run again");
}

#[test]
fn what_a_batch_has_landed_is_not_undone_while_it_goes_on() {
    let sandbox = planned(DIAMOND);
    sandbox.pipe("go");
    worker(&sandbox, "case $name in left|right) cat $ROOT/go;; esac");
    let out = sandbox.proq(&["swarm", "plan.toml", "--max-parallel", "1", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    wait_until("the second task", || {
        ["left", "right"].iter().any(|name| task(&sandbox, name)["state"] == "running")
    });
    let tip = sandbox.git(&["rev-parse", &format!("proq/batch-{ID}")]);
    let said = sandbox.proq(&["op", "restore", "0", "--force"]).fails(1);
    assert!(
        said.contains(&format!("landed tasks of batch {ID}, which goes on; nothing was changed")),
        "{said}"
    );
    assert_eq!(sandbox.git(&["rev-parse", &format!("proq/batch-{ID}")]), tip);
    let _ = sandbox.proq(&["pause"]).ok();
    sandbox.tell("go");
    wait_until("its rest", || !is_held(&sandbox));
    let said = sandbox.proq(&["op", "restore", "0"]).fails(1);
    assert!(said.contains("which is not over; nothing was changed"), "{said}");
}
