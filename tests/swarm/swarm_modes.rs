//! Tests of batch modes: waves, phases and one lane, and what becomes of a batch when a task fails or cannot
//! land.

use proq_test_kit::Sandbox;
use proq_test_kit::plans::{install_worker, repo_with_plan};
use proq_test_kit::waiting::wait_until;

use super::swarm::{DIAMOND, recorded_runs, task_status};

/// Returns the tasks of each landing, in order, from the batch's log.
fn landings(sandbox: &Sandbox) -> Vec<Vec<String>> {
    let plan = sandbox.proq(&["status", "--json"]).json();
    let name = |n: &serde_json::Value| {
        let at = usize::try_from(n.as_u64().unwrap()).unwrap();
        plan["tasks"][at]["name"].as_str().unwrap().to_owned()
    };
    let log = sandbox.sh("cat .git/proq/batches/*/log.jsonl");
    let lines = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let landed = lines.filter(|line| line["event"] == "landed");
    landed.map(|line| line["tasks"].as_array().unwrap().iter().map(name).collect()).collect()
}

#[test]
fn each_wave_lands_in_one_step() {
    let sandbox = repo_with_plan(DIAMOND);
    let _ = sandbox.proq(&["swarm", "plan.toml", "--waves", "-q"]).ok();
    let mut waves = landings(&sandbox);
    for wave in &mut waves {
        wave.sort();
    }
    assert_eq!(waves, [vec!["alone", "top"], vec!["left", "right"], vec!["bottom"], vec!["foot"]]);
    // Each wave moves the branch once, whatever the number of its tasks.
    let branch = "proq/batch-20260102-030405";
    assert_eq!(sandbox.git(&["reflog", "show", "--format=%gs", branch]).lines().count(), 5);
    sandbox.assert_healthy();
}

#[test]
fn one_lane_mode_runs_all_tasks_and_lands_once() {
    let sandbox = repo_with_plan(DIAMOND);
    install_worker(&sandbox, "echo $PROQ_LANE >> $ROOT/lanes");
    let _ = sandbox.proq(&["swarm", "plan.toml", "--one-lane", "-q"]).ok();
    assert_eq!(landings(&sandbox).len(), 1);
    assert_eq!(sandbox.sh("sort -u $ROOT/lanes | wc -l").trim(), "1");
    assert_eq!(recorded_runs(&sandbox).len(), 6);
    sandbox.assert_healthy();
}

const PHASES: &str = r#"format = 1
agent = "worker"
[[phase]]
title = "One"
[[phase.task]]
id = "a"
title = "a"
[[phase.task]]
id = "b"
title = "b"
needs = ["a"]
[[phase]]
title = "Two"
order = "serial"
[[phase.task]]
id = "c"
title = "c"
[[phase.task]]
id = "d"
title = "d"
"#;

#[test]
fn each_phase_lands_in_one_step() {
    let sandbox = repo_with_plan(PHASES);
    let _ = sandbox.proq(&["swarm", "plan.toml", "--phases", "-q"]).ok();
    assert_eq!(landings(&sandbox), [["a", "b"], ["c", "d"]]);
    assert_eq!(recorded_runs(&sandbox), ["a 1", "b 1", "c 1", "d 1"]);
    sandbox.assert_healthy();
}

/// Three tasks with the same scope, and one that needs the second.
const SHARED: &str = r#"format = 1
agent = "worker"
[[task]]
id = "one"
title = "one"
scope = ["src/"]
[[task]]
id = "two"
title = "two"
scope = ["src/"]
[[task]]
id = "three"
title = "three"
scope = ["src/"]
[[task]]
id = "four"
title = "four"
needs = ["two"]
"#;

/// Promise: operations/failed-task-work
#[test]
fn failed_task_is_removed_from_its_shared_lane() {
    let sandbox = repo_with_plan(SHARED);
    sandbox.git(&["config", "proq.swarm.maxAttempts", "2"]);
    install_worker(
        &sandbox,
        "echo $PROQ_LANE >> $ROOT/lanes; ls > $ROOT/seen-$name; if [ $name = two ]; then echo half > half.txt; git add -A; git commit -qm half; echo more > more.txt; exit 3; fi",
    );
    let out = sandbox.proq(&["swarm", "plan.toml", "--waves"]);
    assert_eq!(out.code, 4, "{}{}", out.stdout, out.stderr);
    assert_eq!(task_status(&sandbox, "two")["state"], "set aside");
    assert_eq!(task_status(&sandbox, "four")["state"], "skipped");
    assert_eq!(task_status(&sandbox, "four")["detail"], "because of two");
    assert_eq!(task_status(&sandbox, "three")["state"], "landed");
    let mut runs = recorded_runs(&sandbox);
    runs.sort();
    assert_eq!(runs, ["one 1", "three 1", "two 1", "two 2"]);
    assert_eq!(sandbox.sh("sort -u $ROOT/lanes").lines().count(), 1, "they share a lane");
    let files = sandbox.git(&["ls-tree", "--name-only", "proq/batch-20260102-030405"]);
    assert_eq!(files, "a.txt\none.txt\nthree.txt");
    let files_at_start = std::fs::read_to_string(sandbox.root().join("seen-three")).unwrap();
    assert_eq!(files_at_start, "a.txt\none.txt\n", "what failed was taken off the lane before");
    // The failed task's commits are saved.
    let saved =
        sandbox.sh("git for-each-ref --format='%(refname)' refs/proq/saved/ | xargs git log --format=%s");
    assert!(saved.lines().any(|subject| subject == "half"), "{saved}");
    assert!(out.stderr.contains("two: set aside after 2 failures"), "{}", out.stderr);
    sandbox.assert_healthy();
}

#[test]
fn set_aside_task_runs_only_with_retry() {
    let sandbox = repo_with_plan(SHARED);
    sandbox.git(&["config", "proq.swarm.maxAttempts", "1"]);
    install_worker(&sandbox, "if [ $name = two ] && [ ! -e $ROOT/well ]; then exit 3; fi");
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).fails(4);
    sandbox.sh("touch $ROOT/well");
    // Another batch of the same plan does not try it either.
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q", "--new"]).fails(4);
    assert_eq!(recorded_runs(&sandbox).iter().filter(|run| run.starts_with("two")).count(), 1);
    let out = sandbox.proq(&["resume", "20260102-030405-2", "--retry", "two"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("4 of 4 tasks landed"), "{}", out.stdout);
    assert_eq!(recorded_runs(&sandbox).last().unwrap(), "four 1");
    // After the success its failures no longer count.
    let out = sandbox.proq(&["swarm", "plan.toml", "-q", "--new"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
}

#[test]
fn stop_all_ends_batch_and_retry_resumes_it() {
    let sandbox = repo_with_plan(DIAMOND);
    sandbox.git(&["config", "proq.swarm.maxAttempts", "1"]);
    install_worker(&sandbox, "if [ $name = top ] && [ ! -e $ROOT/well ]; then exit 3; fi");
    let out = sandbox.proq(&["swarm", "plan.toml", "--max-parallel", "1", "--on-task-failure", "stop-all"]);
    assert_eq!(out.code, 4, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("was stopped by a failure: 0 of 6 tasks landed"), "{}", out.stdout);
    sandbox.sh("touch $ROOT/well");
    let message = sandbox.proq(&["swarm", "plan.toml"]).fails(1);
    assert!(
        message.contains(
            "cannot run this plan: batch 20260102-030405 of it has not ended (stopped); nothing was started"
        ),
        "{message}"
    );
    let out = sandbox.proq(&["resume", "--retry", "top"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
}

#[test]
fn stop_all_stops_agents_without_wrap_up() {
    let sandbox = repo_with_plan(DIAMOND);
    sandbox.git(&["config", "proq.swarm.maxAttempts", "1"]);
    sandbox.pipe("up");
    install_worker(
        &sandbox,
        "if [ $name = top ]; then cat $ROOT/up; exit 3; fi
        if [ $name = alone ]; then echo up > $ROOT/up; while :; do [ ! -e \"$PROQ_WRAP_UP\" ] || touch $ROOT/asked; sleep 0.05; done; fi",
    );
    let out = sandbox.proq(&["swarm", "plan.toml", "--on-task-failure", "stop-all"]);
    assert_eq!(out.code, 4, "{}{}", out.stdout, out.stderr);
    let output = format!("{}{}", out.stdout, out.stderr);
    assert!(output.contains("'top' failed and stop-all is set: stopping 1 agent"), "{output}");
    assert!(!sandbox.root().join("asked").exists(), "it was waited for");
    assert_eq!(super::swarm::task_status(&sandbox, "alone")["state"], "cut off");
}

/// Creates a plan with two tasks that change the same line, each once the other has started, and a conflict
/// agent.
pub(super) fn repo_with_conflicting_tasks(solver_script: &str) -> Sandbox {
    let plan = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"x\"\ntitle = \"x\"\n[[task]]\nid = \"y\"\ntitle = \"y\"\n\
                [[task]]\nid = \"z\"\ntitle = \"z\"\nneeds = [\"x\", \"y\"]\n";
    let sandbox = repo_with_plan(plan);
    sandbox.write("clash.txt", "start\n");
    sandbox.commit_all("a file to quarrel about");
    install_worker(
        &sandbox,
        "[ $name = z ] || { touch $ROOT/at-$name; while [ ! -e $ROOT/at-x ] || [ ! -e $ROOT/at-y ]; do sleep 0.05; done; echo $name >> clash.txt; }",
    );
    sandbox.program("solver", solver_script);
    sandbox.git(&["config", "proq.merge.conflictAgent", "solver"]);
    sandbox
}

pub(super) const SOLVE_SCRIPT: &str =
    r"sed -i -e '/^|||||||/,/^=======/d' -e '/^<<<<<<< /d' -e '/^=======/d' -e '/^>>>>>>> /d' clash.txt";

#[test]
fn conflict_agent_unblocks_dependent_task() {
    let sandbox = repo_with_conflicting_tasks(SOLVE_SCRIPT);
    let out = sandbox.proq(&["swarm", "plan.toml"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(
        out.stderr.contains("it conflicts with proq/batch-20260102-030405 in clash.txt"),
        "{}",
        out.stderr
    );
    assert!(out.stderr.contains("its conflict is resolved by solver"), "{}", out.stderr);
    let text = sandbox.git(&["show", "proq/batch-20260102-030405:clash.txt"]);
    assert!(text == "start\nx\ny" || text == "start\ny\nx", "{text}");
    sandbox.assert_healthy();
}

#[test]
fn unresolved_conflict_pauses_batch_until_resolved() {
    let sandbox = repo_with_conflicting_tasks("true");
    let out = sandbox.proq(&["swarm", "plan.toml"]);
    assert_eq!(out.code, 3, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("is paused, since"), "{}", out.stdout);
    assert!(out.stdout.contains("cannot land: 1 of 3 tasks landed"), "{}", out.stdout);
    let conflicting = if task_status(&sandbox, "x")["state"] == "conflict" { "x" } else { "y" };
    let lane = task_status(&sandbox, conflicting)["lane"].as_str().unwrap().to_owned();
    for hints in [&out.stderr, &sandbox.proq(&["batch", "status"]).stderr] {
        let hint = format!("hint: resolve its conflict: git proq resolve {lane}\n");
        assert!(
            hints.contains(&hint) && hints.contains(": git proq batch resume 20260102-030405\n"),
            "{hints}"
        );
    }
    // Resuming too early loses nothing.
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 3, "{}{}", out.stdout, out.stderr);
    // The batch is finished then, the same hints are printed, and no event is repeated.
    let hints = sandbox.proq(&["batch", "status"]).stderr;
    let hint = format!(
        "hint: resolve its conflict, then run git proq batch resume 20260102-030405: git proq resolve {lane}\n"
    );
    assert!(hints.contains(&hint) && hints.contains("git proq merge --batch 20260102-030405"), "{hints}");
    let _ = sandbox.proq(&["resume"]);
    assert_eq!(sandbox.events("task.failed").len(), 1);
    let _ = sandbox.proq(&["resolve", &lane, "--abort"]).ok();
    sandbox.program("solver", SOLVE_SCRIPT);
    let _ = sandbox.proq(&["resolve", &lane, "--agent", "solver"]).ok();
    // No conflict is left to resolve.
    let hints = sandbox.proq(&["batch", "status"]).stderr;
    assert!(hints.contains("hint: resume it: git proq batch resume 20260102-030405\n"), "{hints}");
    assert!(!hints.contains("git proq resolve"), "{hints}");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("3 of 3 tasks landed"), "{}", out.stdout);
    assert_eq!(recorded_runs(&sandbox).len(), 3, "nothing was run again");
}

#[test]
fn status_drops_resolve_hint_after_manual_resolution() {
    let sandbox = repo_with_conflicting_tasks("true");
    assert_eq!(sandbox.proq(&["swarm", "plan.toml", "-q"]).code, 3);
    let conflicting = if task_status(&sandbox, "x")["state"] == "conflict" { "x" } else { "y" };
    let lane = task_status(&sandbox, conflicting)["lane"].as_str().unwrap().to_owned();
    let _ = sandbox.proq(&["resolve", &lane, "--abort"]).ok();
    sandbox.program("solver", SOLVE_SCRIPT);
    let _ = sandbox.proq(&["resolve", &lane, "--agent", "solver"]).ok();
    let assert_hints = || {
        let hints = sandbox.proq(&["batch", "status"]).stderr;
        assert!(hints.contains("hint: resume it: git proq batch resume 20260102-030405\n"), "{hints}");
        assert!(!hints.contains("git proq resolve"), "{hints}");
    };
    assert_hints();
    let _ = sandbox.proq(&["merge", &lane]).ok();
    assert_hints();
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}", out.to_text());
    assert!(out.stdout.contains("3 of 3 tasks landed"), "{}", out.to_text());
}

#[test]
fn task_with_failed_checks_does_not_land() {
    let plan = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"x\"\ntitle = \"x\"\nchecks = [\"test -e nowhere\"]\n\
                [[task]]\nid = \"y\"\ntitle = \"y\"\n";
    let sandbox = repo_with_plan(plan);
    let _ = sandbox.proq(&["approve", "--yes", "--plan", "plan.toml"]).ok();
    let out = sandbox.proq(&["swarm", "plan.toml"]);
    assert_eq!(out.code, 4, "{}{}", out.stdout, out.stderr);
    assert_eq!(task_status(&sandbox, "x")["state"], "check failed");
    let files = sandbox.git(&["ls-tree", "--name-only", "proq/batch-20260102-030405"]);
    assert!(!files.contains("x.txt"), "{files}");
    sandbox.assert_healthy();
}

#[test]
fn auto_merge_lands_tasks_on_the_base() {
    let sandbox = repo_with_plan(DIAMOND);
    let out = sandbox.proq(&["swarm", "plan.toml", "--auto-merge"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(sandbox.repo.join("foot.txt").exists(), "the checkout follows");
    assert_eq!(sandbox.git(&["branch", "--list", "proq/*"]), "");
    let message = sandbox.proq(&["merge", "--batch", "20260102-030405"]).fails(1);
    assert!(message.contains("are merged into main directly; nothing was changed"), "{message}");
}

/// Two tasks of one phase that conflict, and one of the next phase.
const CONFLICTING_PHASES: &str = r#"format = 1
agent = "worker"
[[phase]]
[[phase.task]]
id = "x"
title = "x"
[[phase.task]]
id = "y"
title = "y"
[[phase]]
[[phase.task]]
id = "later"
title = "later"
"#;

#[test]
fn next_phase_waits_for_conflict_resolution() {
    for mode in [&["--phases"][..], &["--waves"], &[]] {
        let sandbox = repo_with_conflicting_tasks(&format!(
            "touch $ROOT/solving; while [ ! -e $ROOT/go ]; do sleep 0.05; done; {SOLVE_SCRIPT}"
        ));
        sandbox.write("plan.toml", CONFLICTING_PHASES);
        sandbox.commit_all("the plan");
        let out = sandbox.proq(&[&["swarm", "plan.toml", "-q", "--detach"], mode].concat());
        assert_eq!(out.code, 0, "{}", out.to_text());
        wait_until("the conflict", || sandbox.root().join("solving").exists());
        let other_has_landed = || sandbox.proq(&["status", "--json"]).json()["counts"]["landed"] != 0;
        wait_until("the other one", other_has_landed);
        assert_eq!(task_status(&sandbox, "later")["state"], "queued", "{mode:?}");
        assert_eq!(recorded_runs(&sandbox).len(), 2, "{mode:?}");
        sandbox.write_in(&sandbox.root(), "go", "");
        let _ = sandbox.proq(&["resume"]);
        assert_eq!(recorded_runs(&sandbox)[2..], ["later 1"], "{mode:?}");
        assert_eq!(task_status(&sandbox, "later")["state"], "landed");
    }
}

#[test]
fn unresolved_conflict_blocks_next_phase_until_resume() {
    let sandbox = repo_with_conflicting_tasks("exit 1");
    sandbox.write("plan.toml", CONFLICTING_PHASES);
    sandbox.commit_all("the plan");
    let out = sandbox.proq(&["swarm", "plan.toml", "-q", "--phases"]);
    assert_eq!(out.code, 3, "{}", out.to_text());
    assert_eq!(recorded_runs(&sandbox).len(), 2);
    assert_eq!(task_status(&sandbox, "later")["state"], "queued");
    let _ = sandbox.proq(&["resume"]);
    assert_eq!(task_status(&sandbox, "later")["state"], "landed");
}
