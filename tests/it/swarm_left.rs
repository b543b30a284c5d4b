//! Owns what is left of a batch that ended badly or well: what a killed scheduler owes, lanes that somebody is in, plans run twice.

use super::stop::kill_supervisor;
use super::support::Sandbox;
use super::support::patience::wait_until;
use super::swarm::{planned, ran, task, worker};
use super::swarm_control::{is_held, kill_scheduler};

const BATCH: &str = "20260102-030405";

const ONE: &str = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"x\"\ntitle = \"X\"\n";

fn ledger(sandbox: &Sandbox) -> String {
    std::fs::read_to_string(sandbox.repo.join(".git/proq/ledger.toml")).unwrap_or_default()
}

#[test]
fn what_a_scheduler_owes_that_was_killed_at_any_event_is_made_up_for() {
    let mut over = 0;
    for n in 1..12 {
        let sandbox = planned(ONE);
        sandbox.commit_all("the plan");
        let mut command = sandbox
            .proq_command(&sandbox.repo, &["swarm", "plan.toml", "--auto-merge", "--detach", "--yes", "-q"]);
        command.env("PROQ_TEST_DIE_AT", format!("batch.written:{n}"));
        let _begun_or_not = sandbox.output(command);
        wait_until("the end of its scheduler", || !is_held(&sandbox));
        // That of a run in which nobody was killed has let go of all.
        if ledger(&sandbox).is_empty() || !ledger(&sandbox).contains(BATCH) {
            break;
        }
        let out = sandbox.proq(&["resume", BATCH]);
        assert_eq!(out.code, 0, "{n}: {}{}", out.stdout, out.stderr);
        over += usize::from(out.stdout.contains("1 of 1"));
        wait_until("the end of the next", || !is_held(&sandbox));
        assert!(!ledger(&sandbox).contains(BATCH), "{n}: {}", ledger(&sandbox));
        assert!(sandbox.read("plan.toml").contains("done = true"), "{n}");
        assert_eq!(sandbox.git(&["branch", "--list", "proq/*"]), "", "{n}");
        assert_eq!(ran(&sandbox).len(), 1, "{n}");
        sandbox.assert_healthy();
    }
    assert!(over >= 4, "{over}");
}

#[test]
fn what_a_killed_scheduler_still_had_is_free_for_the_next_batch() {
    for n in 4..7 {
        let sandbox = planned(ONE);
        let mut command =
            sandbox.proq_command(&sandbox.repo, &["swarm", "plan.toml", "--detach", "--yes", "-q"]);
        command.env("PROQ_TEST_DIE_AT", format!("batch.written:{n}"));
        let _begun_or_not = sandbox.output(command);
        wait_until("the end of its scheduler", || !is_held(&sandbox));
        let state = sandbox.proq(&["report", "--json"]).json()["state"].clone();
        if state != "over" {
            continue;
        }
        let out = sandbox.proq(&["swarm", "plan.toml", "--new", "--yes", "-q"]);
        assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
        assert_eq!(ran(&sandbox).len(), 2);
        return;
    }
    panic!("no kill was at the end of the batch");
}

#[test]
fn a_lane_that_somebody_is_in_stays() {
    let plan = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"x\"\ntitle = \"X\"\n[[task]]\nid = \"z\"\ntitle = \"Z\"\n";
    let sandbox = planned(plan);
    sandbox.pipe("go");
    worker(&sandbox, "[ $name = x ] || read line < $ROOT/go");
    let _ = sandbox.proq(&["swarm", "plan.toml", "--waves", "--detach", "--yes", "-q"]).ok();
    wait_until("the end of x", || {
        let status = sandbox.proq(&["status", BATCH, "--json"]).json();
        status["tasks"][0]["state"] == "done"
    });
    sandbox.write_in(&sandbox.lane("x"), "mine.txt", "what I am at\n");
    sandbox.tell("go");
    wait_until("its end", || !is_held(&sandbox));
    assert_eq!(std::fs::read_to_string(sandbox.lane("x").join("mine.txt")).unwrap(), "what I am at\n");
    assert!(!sandbox.lane("z").exists());
    let report = sandbox.proq(&["report"]).ok();
    assert!(report.contains("lane 'x' stays: "), "{report}");
    sandbox.assert_healthy();
}

#[test]
fn a_plan_that_has_not_landed_yet_is_not_done_once_more() {
    let sandbox = planned(ONE);
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).ok();
    let said = sandbox.proq(&["swarm", "plan.toml", "--yes"]).fails(1);
    insta::assert_snapshot!(said, @r"
    error: batch 20260102-030405 of this plan is over, and what it has done is not on main yet; nothing was begun
    hint: land it: git proq merge --batch 20260102-030405
    hint: try again what failed in it: git proq resume 20260102-030405 --retry ID
    hint: do all of the plan once more: git proq swarm PLAN --new
    ");
    assert_eq!(ran(&sandbox).len(), 1);
    let _ = sandbox.proq(&["swarm", "plan.toml", "--dry-run"]).ok();
    let _ = sandbox.proq(&["swarm", "plan.toml", "--new", "-q"]).ok();
    assert_eq!(ran(&sandbox).len(), 2);
}

#[test]
fn a_look_at_whether_a_batch_would_land_leaves_nothing() {
    let sandbox = planned(ONE);
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).ok();
    let before = sandbox.git(&["for-each-ref", "refs/heads"]);
    let said = sandbox.proq(&["merge", "--batch", BATCH, "--dry-run"]).ok();
    assert!(said.contains("would land"), "{said}");
    assert_eq!(sandbox.git(&["for-each-ref", "refs/heads"]), before);
    assert_eq!(sandbox.proq(&["list", "--json"]).json()["lanes"].as_array().unwrap().len(), 0);
    let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
    assert!(sandbox.repo.join("x.txt").exists());
}

#[test]
fn items_that_are_called_alike_in_two_milestones_are_two_tasks() {
    let sandbox = planned("");
    sandbox.write("ROADMAP.md", "# M1\n\n- [ ] Table\n- [ ] Form\n\n# M2\n\n- [ ] Table\n");
    sandbox.commit_all("the plan");
    sandbox.git(&["config", "proq.swarm.agent", "worker"]);
    worker(&sandbox, "[ $name = form ] || exit 3");
    let run = |milestone: &str| {
        let args = ["swarm", "ROADMAP.md", "--milestone", milestone, "--yes", "-q"];
        sandbox.proq(&args)
    };
    assert_ne!(run("M1").code, 0);
    worker(&sandbox, "");
    let out = run("M2");
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert_eq!(ran(&sandbox).last().unwrap(), "table 1");
}

#[test]
fn a_batch_whose_lanes_have_work_is_not_tidied_up_without_force() {
    let plan = format!("{ONE}checks = [\"false\"]\n");
    let sandbox = planned(&plan);
    let _ = sandbox.proq(&["approve", "--plan", "plan.toml", "--yes"]).ok();
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q", "--yes"]).fails(4);
    let said = sandbox.proq(&["cleanup", "--batch", BATCH]).fails(1);
    insta::assert_snapshot!(said, @r"
    error: batch 20260102-030405 is kept, because of 'x' (1 commit that is not on proq/batch-20260102-030405); nothing was removed
    hint: go on with it: git proq resume 20260102-030405
    hint: or let go of them, saved as by any removal: git proq cleanup --batch 20260102-030405 --force
    ");
    assert!(sandbox.lane("x").exists());
    let _ = sandbox.proq(&["cleanup", "--batch", BATCH, "--force"]).ok();
    assert!(!sandbox.lane("x").exists());
    let saved =
        sandbox.sh("git for-each-ref --format='%(refname)' refs/proq/saved | xargs git log --format=%s");
    assert!(saved.contains("work of x"), "{saved}");
}

#[test]
fn of_those_who_begin_a_plan_at_the_same_time_one_does() {
    let sandbox = planned(ONE);
    let begin = |_| {
        let mut command =
            sandbox.proq_command(&sandbox.repo, &["swarm", "plan.toml", "--detach", "--yes", "-q"]);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap()
    };
    let begun: Vec<_> = (0..4).map(begin).collect();
    let well = begun
        .into_iter()
        .filter_map(|mut child| child.wait().ok())
        .filter(std::process::ExitStatus::success)
        .count();
    assert_eq!(well, 1);
    wait_until("its end", || !is_held(&sandbox));
    assert_eq!(ran(&sandbox).len(), 1);
}

#[test]
fn what_is_made_and_thrown_away_can_be_taken_back_at_once() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "q"]).ok();
    let _ = sandbox.proq(&["discard", "q"]).ok();
    let _ = sandbox.proq(&["op", "restore", "0"]).ok();
    assert!(!sandbox.lane("q").exists());
    sandbox.assert_healthy();
}

#[test]
fn a_milestone_that_has_not_landed_is_found_behind_another_one() {
    let sandbox = planned("");
    sandbox.write("ROADMAP.md", "# M1\n\n- [ ] Table\n\n# M2\n\n- [ ] Form\n");
    sandbox.commit_all("the plan");
    sandbox.git(&["config", "proq.swarm.agent", "worker"]);
    let run =
        |milestone: &str| sandbox.proq(&["swarm", "ROADMAP.md", "--milestone", milestone, "--yes", "-q"]);
    for milestone in ["M1", "M2"] {
        let _ = run(milestone).ok();
    }
    let said = run("M1").fails(1);
    assert!(said.contains(&format!("batch {BATCH} of this plan is over")), "{said}");
    assert_eq!(ran(&sandbox).len(), 2);
}

#[test]
fn what_no_agent_could_be_started_for_has_had_no_attempt() {
    let plan = format!("{ONE}[[task]]\nid = \"y\"\ntitle = \"Y\"\nneeds = [\"x\"]\n");
    let sandbox = planned(&plan);
    worker(&sandbox, "rm \"$0\"");
    let out = sandbox.proq(&["swarm", "plan.toml", "--auto-merge", "--yes"]);
    assert_eq!(out.code, 4, "{}", out.shown());
    assert!(out.shown().contains("y: failed: no agent could be started for it"), "{}", out.shown());
    assert!(!ledger(&sandbox).contains("failures = 3"), "{}", ledger(&sandbox));
    let status = sandbox.proq(&["status", BATCH, "--json"]).json();
    assert_eq!(status["tasks"][1]["attempts"], 0, "{status}");
    worker(&sandbox, "");
    let _ = sandbox.proq(&["resume", BATCH, "--retry", "y"]).ok();
    assert_eq!(ran(&sandbox), ["x 1", "y 1"]);
    sandbox.assert_healthy();
}

#[test]
fn an_agent_that_outlives_scheduler_and_supervisor_is_waited_for() {
    let sandbox = planned(ONE);
    sandbox.pipe("go");
    worker(&sandbox, "[ $PROQ_TASK_ATTEMPT != 1 ] || cat $ROOT/go");
    let _ = sandbox.proq(&["swarm", "plan.toml", "--detach", "--yes", "-q"]).ok();
    let is_noted = || task(&sandbox, "x")["state"] == "running";
    wait_until("the agent to be at work", || !ran(&sandbox).is_empty() && is_noted());
    kill_scheduler(&sandbox);
    kill_supervisor(&sandbox, "x");
    let _ = sandbox.proq(&["resume", BATCH, "--detach"]).ok();
    wait_until("the next scheduler", || is_held(&sandbox));
    for _ in 0..30 {
        let x = task(&sandbox, "x");
        assert_eq!((&x["state"], &x["attempts"]), (&"running".into(), &1.into()), "{x}");
    }
    sandbox.tell("go");
    wait_until("its end", || !is_held(&sandbox));
    assert_eq!(ran(&sandbox), ["x 1", "x 2"]);
    let x = task(&sandbox, "x");
    assert_eq!((&x["state"], &x["attempts"]), (&"landed".into(), &2.into()), "{x}");
    sandbox.assert_healthy();
}
