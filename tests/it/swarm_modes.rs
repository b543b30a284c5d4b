//! Owns what lands together, who shares a lane, and what becomes of a batch when a task fails or cannot land.

use super::support::Sandbox;
use super::support::patience::wait_until;
use super::swarm::{DIAMOND, planned, ran, task, worker};

/// The tasks of each landing, in order, from the log.
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
fn waves_land_together_and_the_next_begins_then() {
    let sandbox = planned(DIAMOND);
    let _ = sandbox.proq(&["swarm", "plan.toml", "--waves", "-q"]).ok();
    let mut waves = landings(&sandbox);
    for wave in &mut waves {
        wave.sort();
    }
    assert_eq!(waves, [vec!["alone", "top"], vec!["left", "right"], vec!["bottom"], vec!["foot"]]);
    // By one move of the branch, however many there are.
    let branch = "proq/batch-20260102-030405";
    assert_eq!(sandbox.git(&["reflog", "show", "--format=%gs", branch]).lines().count(), 5);
    sandbox.assert_healthy();
}

#[test]
fn one_lane_does_all_of_it_and_lands_once() {
    let sandbox = planned(DIAMOND);
    worker(&sandbox, "echo $PROQ_LANE >> $ROOT/lanes");
    let _ = sandbox.proq(&["swarm", "plan.toml", "--one-lane", "-q"]).ok();
    assert_eq!(landings(&sandbox).len(), 1);
    assert_eq!(sandbox.sh("sort -u $ROOT/lanes | wc -l").trim(), "1");
    assert_eq!(ran(&sandbox).len(), 6);
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
fn phases_land_together_with_what_stands_on_each_other() {
    let sandbox = planned(PHASES);
    let _ = sandbox.proq(&["swarm", "plan.toml", "--phases", "-q"]).ok();
    assert_eq!(landings(&sandbox), [["a", "b"], ["c", "d"]]);
    assert_eq!(ran(&sandbox), ["a 1", "b 1", "c 1", "d 1"]);
    sandbox.assert_healthy();
}

/// Three tasks about the same files, and one that needs the second.
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

#[test]
fn a_task_that_fails_is_taken_back_and_set_aside_and_what_shares_its_lane_goes_on() {
    let sandbox = planned(SHARED);
    sandbox.git(&["config", "proq.swarm.maxAttempts", "2"]);
    worker(
        &sandbox,
        "echo $PROQ_LANE >> $ROOT/lanes; ls > $ROOT/seen-$name; if [ $name = two ]; then echo half > half.txt; git add -A; git commit -qm half; echo more > more.txt; exit 3; fi",
    );
    let out = sandbox.proq(&["swarm", "plan.toml", "--waves"]);
    assert_eq!(out.code, 4, "{}{}", out.stdout, out.stderr);
    assert_eq!(task(&sandbox, "two")["state"], "set aside");
    assert_eq!(task(&sandbox, "four")["state"], "skipped");
    assert_eq!(task(&sandbox, "four")["detail"], "because of two");
    assert_eq!(task(&sandbox, "three")["state"], "landed");
    let mut runs = ran(&sandbox);
    runs.sort();
    assert_eq!(runs, ["one 1", "three 1", "two 1", "two 2"]);
    assert_eq!(sandbox.sh("sort -u $ROOT/lanes").lines().count(), 1, "they share a lane");
    let files = sandbox.git(&["ls-tree", "--name-only", "proq/batch-20260102-030405"]);
    assert_eq!(files, "a.txt\none.txt\nthree.txt");
    let seen = std::fs::read_to_string(sandbox.root().join("seen-three")).unwrap();
    assert_eq!(seen, "a.txt\none.txt\n", "what failed was taken off the lane before");
    // Nothing that it did is lost.
    let saved =
        sandbox.sh("git for-each-ref --format='%(refname)' refs/proq/saved/ | xargs git log --format=%s");
    assert!(saved.lines().any(|subject| subject == "half"), "{saved}");
    assert!(out.stderr.contains("two: set aside, it has failed 2 times"), "{}", out.stderr);
    sandbox.assert_healthy();
}

#[test]
fn what_failed_too_often_is_left_alone_until_a_person_asks_for_it() {
    let sandbox = planned(SHARED);
    sandbox.git(&["config", "proq.swarm.maxAttempts", "1"]);
    worker(&sandbox, "if [ $name = two ] && [ ! -e $ROOT/well ]; then exit 3; fi");
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).fails(4);
    sandbox.sh("touch $ROOT/well");
    // Another batch of the same plan does not try it either.
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q", "--new"]).fails(4);
    assert_eq!(ran(&sandbox).iter().filter(|run| run.starts_with("two")).count(), 1);
    let out = sandbox.proq(&["resume", "20260102-030405-2", "--retry", "two"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("4 of 4 tasks landed"), "{}", out.stdout);
    assert_eq!(ran(&sandbox).last().unwrap(), "four 1");
    // It is forgotten, then.
    let out = sandbox.proq(&["swarm", "plan.toml", "-q", "--new"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
}

#[test]
fn a_failure_can_stop_all_of_it_and_it_can_be_gone_on_with() {
    let sandbox = planned(DIAMOND);
    sandbox.git(&["config", "proq.swarm.maxAttempts", "1"]);
    worker(&sandbox, "if [ $name = top ] && [ ! -e $ROOT/well ]; then exit 3; fi");
    let out = sandbox.proq(&["swarm", "plan.toml", "--max-parallel", "1", "--on-task-failure", "stop-all"]);
    assert_eq!(out.code, 4, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("was stopped by a failure: 0 of 6 tasks landed"), "{}", out.stdout);
    sandbox.sh("touch $ROOT/well");
    let said = sandbox.proq(&["swarm", "plan.toml"]).fails(1);
    assert!(
        said.contains("batch 20260102-030405 of this plan is not over (stopped); nothing was begun"),
        "{said}"
    );
    let out = sandbox.proq(&["resume", "--retry", "top"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
}

#[test]
fn stopping_all_stops_agents_at_once_and_says_so() {
    let sandbox = planned(DIAMOND);
    sandbox.git(&["config", "proq.swarm.maxAttempts", "1"]);
    sandbox.pipe("up");
    worker(
        &sandbox,
        "if [ $name = top ]; then cat $ROOT/up; exit 3; fi
        if [ $name = alone ]; then echo up > $ROOT/up; while :; do [ ! -e \"$PROQ_WRAP_UP\" ] || touch $ROOT/asked; sleep 0.05; done; fi",
    );
    let out = sandbox.proq(&["swarm", "plan.toml", "--on-task-failure", "stop-all"]);
    assert_eq!(out.code, 4, "{}{}", out.stdout, out.stderr);
    let said = format!("{}{}", out.stdout, out.stderr);
    assert!(said.contains("'top' failed and stop-all is set: 1 agent is being stopped at once"), "{said}");
    assert!(!sandbox.root().join("asked").exists(), "it was waited for");
    assert_eq!(super::swarm::task(&sandbox, "alone")["state"], "cut off");
}

/// Two tasks that change the same line, each once the other has begun.
pub(super) fn clashing(agents: &str) -> Sandbox {
    let plan = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"x\"\ntitle = \"x\"\n[[task]]\nid = \"y\"\ntitle = \"y\"\n\
                [[task]]\nid = \"z\"\ntitle = \"z\"\nneeds = [\"x\", \"y\"]\n";
    let sandbox = planned(plan);
    sandbox.write("clash.txt", "start\n");
    sandbox.commit_all("a file to quarrel about");
    worker(
        &sandbox,
        "[ $name = z ] || { touch $ROOT/at-$name; while [ ! -e $ROOT/at-x ] || [ ! -e $ROOT/at-y ]; do sleep 0.05; done; echo $name >> clash.txt; }",
    );
    sandbox.program("solver", agents);
    sandbox.git(&["config", "proq.merge.conflictAgent", "solver"]);
    sandbox
}

pub(super) const SOLVES: &str =
    r"sed -i -e '/^|||||||/,/^=======/d' -e '/^<<<<<<< /d' -e '/^=======/d' -e '/^>>>>>>> /d' clash.txt";

#[test]
fn a_conflict_is_given_to_an_agent_and_what_needs_it_goes_on() {
    let sandbox = clashing(SOLVES);
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
fn a_conflict_that_stays_pauses_the_batch_and_one_resolved_by_hand_lands() {
    let sandbox = clashing("true");
    let out = sandbox.proq(&["swarm", "plan.toml"]);
    assert_eq!(out.code, 3, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("is paused, since"), "{}", out.stdout);
    assert!(out.stdout.contains("cannot land: 1 of 3 tasks landed"), "{}", out.stdout);
    let late = if task(&sandbox, "x")["state"] == "conflict" { "x" } else { "y" };
    let lane = task(&sandbox, late)["lane"].as_str().unwrap().to_owned();
    for told in [&out.stderr, &sandbox.proq(&["status"]).stderr] {
        let hint = format!("hint: resolve its conflict: git proq resolve {lane}\n");
        assert!(told.contains(&hint) && told.contains(": git proq resume 20260102-030405\n"), "{told}");
    }
    // Whoever goes on too early has lost nothing.
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 3, "{}{}", out.stdout, out.stderr);
    // It is over then, and the ways on are named as before, and nothing is told twice.
    let told = sandbox.proq(&["status"]).stderr;
    let hint = format!(
        "hint: resolve its conflict, and go on with git proq resume 20260102-030405: git proq resolve {lane}\n"
    );
    assert!(told.contains(&hint) && told.contains("git proq merge --batch 20260102-030405"), "{told}");
    let _ = sandbox.proq(&["resume"]);
    assert_eq!(sandbox.events("task.failed").len(), 1);
    let _ = sandbox.proq(&["resolve", &lane, "--abort"]).ok();
    sandbox.program("solver", SOLVES);
    let _ = sandbox.proq(&["resolve", &lane, "--agent", "solver"]).ok();
    // There is nothing left to resolve.
    let told = sandbox.proq(&["status"]).stderr;
    assert!(told.contains("hint: go on with it: git proq resume 20260102-030405\n"), "{told}");
    assert!(!told.contains("git proq resolve"), "{told}");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("3 of 3 tasks landed"), "{}", out.stdout);
    assert_eq!(ran(&sandbox).len(), 3, "nothing was run again");
}

#[test]
fn a_conflict_of_a_paused_batch_that_a_person_resolved_or_landed_is_not_to_be_resolved_again() {
    let sandbox = clashing("true");
    assert_eq!(sandbox.proq(&["swarm", "plan.toml", "-q"]).code, 3);
    let late = if task(&sandbox, "x")["state"] == "conflict" { "x" } else { "y" };
    let lane = task(&sandbox, late)["lane"].as_str().unwrap().to_owned();
    let _ = sandbox.proq(&["resolve", &lane, "--abort"]).ok();
    sandbox.program("solver", SOLVES);
    let _ = sandbox.proq(&["resolve", &lane, "--agent", "solver"]).ok();
    let assert_hints = || {
        let told = sandbox.proq(&["status"]).stderr;
        assert!(told.contains("hint: go on with it: git proq resume 20260102-030405\n"), "{told}");
        assert!(!told.contains("git proq resolve"), "{told}");
    };
    assert_hints();
    let _ = sandbox.proq(&["merge", &lane]).ok();
    assert_hints();
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}", out.shown());
    assert!(out.stdout.contains("3 of 3 tasks landed"), "{}", out.shown());
}

#[test]
fn a_task_whose_checks_fail_does_not_land() {
    let plan = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"x\"\ntitle = \"x\"\nchecks = [\"test -e nowhere\"]\n\
                [[task]]\nid = \"y\"\ntitle = \"y\"\n";
    let sandbox = planned(plan);
    let _ = sandbox.proq(&["approve", "--yes", "--plan", "plan.toml"]).ok();
    let out = sandbox.proq(&["swarm", "plan.toml"]);
    assert_eq!(out.code, 4, "{}{}", out.stdout, out.stderr);
    assert_eq!(task(&sandbox, "x")["state"], "check failed");
    let files = sandbox.git(&["ls-tree", "--name-only", "proq/batch-20260102-030405"]);
    assert!(!files.contains("x.txt"), "{files}");
    sandbox.assert_healthy();
}

#[test]
fn tasks_can_land_on_the_base_itself() {
    let sandbox = planned(DIAMOND);
    let out = sandbox.proq(&["swarm", "plan.toml", "--auto-merge"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(sandbox.repo.join("foot.txt").exists(), "the checkout follows");
    assert_eq!(sandbox.git(&["branch", "--list", "proq/*"]), "");
    let said = sandbox.proq(&["merge", "--batch", "20260102-030405"]).fails(1);
    assert!(said.contains("land on main themselves; nothing was moved"), "{said}");
}

/// Two tasks of one phase that conflict, and one of the next.
const QUARREL: &str = r#"format = 1
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
fn a_phase_begins_once_the_conflicts_of_the_one_before_are_over() {
    for way in [&["--phases"][..], &["--waves"], &[]] {
        let sandbox =
            clashing(&format!("touch $ROOT/solving; while [ ! -e $ROOT/go ]; do sleep 0.05; done; {SOLVES}"));
        sandbox.write("plan.toml", QUARREL);
        sandbox.commit_all("the plan");
        let out = sandbox.proq(&[&["swarm", "plan.toml", "-q", "--detach"], way].concat());
        assert_eq!(out.code, 0, "{}", out.shown());
        wait_until("the conflict", || sandbox.root().join("solving").exists());
        let held = || sandbox.proq(&["status", "--json"]).json()["counts"]["landed"] != 0;
        wait_until("the other one", held);
        assert_eq!(task(&sandbox, "later")["state"], "queued", "{way:?}");
        assert_eq!(ran(&sandbox).len(), 2, "{way:?}");
        sandbox.write_in(&sandbox.root(), "go", "");
        let _ = sandbox.proq(&["resume"]);
        assert_eq!(ran(&sandbox)[2..], ["later 1"], "{way:?}");
        assert_eq!(task(&sandbox, "later")["state"], "landed");
    }
}

#[test]
fn a_conflict_that_is_left_keeps_the_next_phase_waiting_until_a_person_goes_on() {
    let sandbox = clashing("exit 1");
    sandbox.write("plan.toml", QUARREL);
    sandbox.commit_all("the plan");
    let out = sandbox.proq(&["swarm", "plan.toml", "-q", "--phases"]);
    assert_eq!(out.code, 3, "{}", out.shown());
    assert_eq!(ran(&sandbox).len(), 2);
    assert_eq!(task(&sandbox, "later")["state"], "queued");
    let _ = sandbox.proq(&["resume"]);
    assert_eq!(task(&sandbox, "later")["state"], "landed");
}
