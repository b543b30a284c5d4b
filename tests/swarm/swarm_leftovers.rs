//! Tests of what a batch leaves behind: obligations of a killed scheduler, lanes with foreign work, and plans
//! that are run again.

use proq_test_kit::Sandbox;
use proq_test_kit::plans::{install_worker, repo_with_plan};
use proq_test_kit::runs::kill_supervisor;
use proq_test_kit::waiting::wait_until;

use super::swarm::{recorded_runs, task_status};
use super::swarm_control::{kill_scheduler, scheduler_is_running};

const BATCH: &str = "20260102-030405";

const ONE_TASK_PLAN: &str = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"x\"\ntitle = \"X\"\n";

fn ledger(sandbox: &Sandbox) -> String {
    std::fs::read_to_string(sandbox.repo.join(".git/proq/ledger.toml")).unwrap_or_default()
}

#[test]
fn resume_completes_batch_killed_at_any_event() {
    let mut completed = 0;
    for n in 1..12 {
        let sandbox = repo_with_plan(ONE_TASK_PLAN);
        sandbox.commit_all("the plan");
        let mut command = sandbox
            .proq_command(&sandbox.repo, &["swarm", "plan.toml", "--auto-merge", "--detach", "--yes", "-q"]);
        command.env("PROQ_TEST_DIE_AT", format!("batch.written:{n}"));
        let _begun_or_not = sandbox.output(command);
        wait_until("the end of its scheduler", || !scheduler_is_running(&sandbox));
        // The ledger does not name the batch after a run without a kill.
        if ledger(&sandbox).is_empty() || !ledger(&sandbox).contains(BATCH) {
            break;
        }
        let out = sandbox.proq(&["resume", BATCH]);
        assert_eq!(out.code, 0, "{n}: {}{}", out.stdout, out.stderr);
        completed += usize::from(out.stdout.contains("1 of 1"));
        wait_until("the end of the next", || !scheduler_is_running(&sandbox));
        assert!(!ledger(&sandbox).contains(BATCH), "{n}: {}", ledger(&sandbox));
        assert!(sandbox.read("plan.toml").contains("done = true"), "{n}");
        assert_eq!(sandbox.git(&["branch", "--list", "proq/*"]), "", "{n}");
        assert_eq!(recorded_runs(&sandbox).len(), 1, "{n}");
        sandbox.assert_healthy();
    }
    assert!(completed >= 4, "{completed}");
}

#[test]
fn next_batch_takes_over_tasks_of_killed_scheduler() {
    for n in 4..7 {
        let sandbox = repo_with_plan(ONE_TASK_PLAN);
        let mut command =
            sandbox.proq_command(&sandbox.repo, &["swarm", "plan.toml", "--detach", "--yes", "-q"]);
        command.env("PROQ_TEST_DIE_AT", format!("batch.written:{n}"));
        let _begun_or_not = sandbox.output(command);
        wait_until("the end of its scheduler", || !scheduler_is_running(&sandbox));
        let state = sandbox.proq(&["report", "--json"]).json()["state"].clone();
        if state != "over" {
            continue;
        }
        let out = sandbox.proq(&["swarm", "plan.toml", "--new", "--yes", "-q"]);
        assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
        assert_eq!(recorded_runs(&sandbox).len(), 2);
        return;
    }
    panic!("no kill was at the end of the batch");
}

#[test]
fn lane_with_foreign_file_is_kept() {
    let plan = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"x\"\ntitle = \"X\"\n[[task]]\nid = \"z\"\ntitle = \"Z\"\n";
    let sandbox = repo_with_plan(plan);
    sandbox.pipe("go");
    install_worker(&sandbox, "[ $name = x ] || read line < $ROOT/go");
    let _ = sandbox.proq(&["swarm", "plan.toml", "--waves", "--detach", "--yes", "-q"]).ok();
    wait_until("the end of x", || {
        let status = sandbox.proq(&["status", BATCH, "--json"]).json();
        status["tasks"][0]["state"] == "done"
    });
    sandbox.write_in(&sandbox.lane_path("x"), "mine.txt", "what I am at\n");
    sandbox.write_pipe("go");
    wait_until("its end", || !scheduler_is_running(&sandbox));
    assert_eq!(std::fs::read_to_string(sandbox.lane_path("x").join("mine.txt")).unwrap(), "what I am at\n");
    assert!(!sandbox.lane_path("z").exists());
    let report = sandbox.proq(&["report"]).ok();
    assert!(report.contains("lane 'x' stays: "), "{report}");
    sandbox.assert_healthy();
}

#[test]
fn refuses_to_repeat_plan_that_has_not_landed() {
    let sandbox = repo_with_plan(ONE_TASK_PLAN);
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).ok();
    let message = sandbox.proq(&["swarm", "plan.toml", "--yes"]).fails(1);
    insta::assert_snapshot!(message, @r"
    error: cannot run this plan: batch 20260102-030405 of it has ended and is not merged into main; nothing was started
    hint: merge it: git proq merge --batch 20260102-030405
    hint: or show its tasks: git proq batch status 20260102-030405
    ");
    assert_eq!(recorded_runs(&sandbox).len(), 1);
    assert_eq!(sandbox.proq(&["swarm", "plan.toml", "--dry-run"]).fails(1), message);
    let _ = sandbox.proq(&["swarm", "plan.toml", "--new", "--dry-run"]).ok();
    let _ = sandbox.proq(&["swarm", "plan.toml", "--new", "-q"]).ok();
    assert_eq!(recorded_runs(&sandbox).len(), 2);
}

#[test]
fn dry_run_of_batch_landing_changes_nothing() {
    let sandbox = repo_with_plan(ONE_TASK_PLAN);
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).ok();
    let before = sandbox.git(&["for-each-ref", "refs/heads"]);
    let message = sandbox.proq(&["merge", "--batch", BATCH, "--dry-run"]).ok();
    assert!(message.contains("would land"), "{message}");
    assert_eq!(sandbox.git(&["for-each-ref", "refs/heads"]), before);
    assert_eq!(sandbox.proq(&["list", "--json"]).json()["lanes"].as_array().unwrap().len(), 0);
    let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
    assert!(sandbox.repo.join("x.txt").exists());
}

#[test]
fn equal_item_names_in_two_milestones_are_two_tasks() {
    let sandbox = repo_with_plan("");
    sandbox.write("ROADMAP.md", "# M1\n\n- [ ] Table\n- [ ] Form\n\n# M2\n\n- [ ] Table\n");
    sandbox.commit_all("the plan");
    sandbox.git(&["config", "proq.swarm.agent", "worker"]);
    install_worker(&sandbox, "[ $name = form ] || exit 3");
    let run = |milestone: &str| {
        let args = ["swarm", "ROADMAP.md", "--milestone", milestone, "--yes", "-q"];
        sandbox.proq(&args)
    };
    assert_ne!(run("M1").code, 0);
    install_worker(&sandbox, "");
    let out = run("M2");
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert_eq!(recorded_runs(&sandbox).last().unwrap(), "table 1");
}

#[test]
fn cleanup_keeps_batch_with_unlanded_work() {
    let plan = format!("{ONE_TASK_PLAN}checks = [\"false\"]\n");
    let sandbox = repo_with_plan(&plan);
    let _ = sandbox.proq(&["approve", "--plan", "plan.toml", "--yes"]).ok();
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q", "--yes"]).fails(4);
    let message = sandbox.proq(&["cleanup", "--batch", BATCH]).fails(1);
    insta::assert_snapshot!(message, @r"
    error: cannot clean up batch 20260102-030405: these lanes have work: 'x' (1 commit that is not on proq/batch-20260102-030405); nothing was removed
    hint: resume it: git proq batch resume 20260102-030405
    hint: or delete them; their work is saved: git proq cleanup --batch 20260102-030405 --force
    ");
    assert!(sandbox.lane_path("x").exists());
    let _ = sandbox.proq(&["cleanup", "--batch", BATCH, "--force"]).ok();
    assert!(!sandbox.lane_path("x").exists());
    let saved =
        sandbox.sh("git for-each-ref --format='%(refname)' refs/proq/saved | xargs git log --format=%s");
    assert!(saved.contains("work of x"), "{saved}");
}

#[test]
fn only_one_of_concurrent_starts_runs_a_plan() {
    let sandbox = repo_with_plan(ONE_TASK_PLAN);
    let start = |_| {
        let mut command =
            sandbox.proq_command(&sandbox.repo, &["swarm", "plan.toml", "--detach", "--yes", "-q"]);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap()
    };
    let children: Vec<_> = (0..4).map(start).collect();
    let succeeded = children
        .into_iter()
        .filter_map(|mut child| child.wait().ok())
        .filter(std::process::ExitStatus::success)
        .count();
    assert_eq!(succeeded, 1);
    wait_until("its end", || !scheduler_is_running(&sandbox));
    assert_eq!(recorded_runs(&sandbox).len(), 1);
}

#[test]
fn restores_state_before_created_and_discarded_lane() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "q"]).ok();
    let _ = sandbox.proq(&["discard", "q"]).ok();
    let _ = sandbox.proq(&["op", "restore", "0"]).ok();
    assert!(!sandbox.lane_path("q").exists());
    sandbox.assert_healthy();
}

#[test]
fn refuses_milestone_that_an_older_batch_has_not_landed() {
    let sandbox = repo_with_plan("");
    sandbox.write("ROADMAP.md", "# M1\n\n- [ ] Table\n\n# M2\n\n- [ ] Form\n");
    sandbox.commit_all("the plan");
    sandbox.git(&["config", "proq.swarm.agent", "worker"]);
    let run =
        |milestone: &str| sandbox.proq(&["swarm", "ROADMAP.md", "--milestone", milestone, "--yes", "-q"]);
    for milestone in ["M1", "M2"] {
        let _ = run(milestone).ok();
    }
    let message = run("M1").fails(1);
    assert!(message.contains(&format!("batch {BATCH} of it has ended")), "{message}");
    assert_eq!(recorded_runs(&sandbox).len(), 2);
}

#[test]
fn failed_agent_start_counts_as_no_attempt() {
    let plan = format!("{ONE_TASK_PLAN}[[task]]\nid = \"y\"\ntitle = \"Y\"\nneeds = [\"x\"]\n");
    let sandbox = repo_with_plan(&plan);
    install_worker(&sandbox, "rm \"$0\"");
    let out = sandbox.proq(&["swarm", "plan.toml", "--auto-merge", "--yes"]);
    assert_eq!(out.code, 4, "{}", out.to_text());
    assert!(out.to_text().contains("y: failed: no agent could be started for it"), "{}", out.to_text());
    assert!(!ledger(&sandbox).contains("failures = 3"), "{}", ledger(&sandbox));
    let status = sandbox.proq(&["status", BATCH, "--json"]).json();
    assert_eq!(status["tasks"][1]["attempts"], 0, "{status}");
    install_worker(&sandbox, "");
    let _ = sandbox.proq(&["resume", BATCH, "--retry", "y"]).ok();
    assert_eq!(recorded_runs(&sandbox), ["x 1", "y 1"]);
    sandbox.assert_healthy();
}

#[test]
fn waits_for_agent_without_scheduler_and_supervisor() {
    let sandbox = repo_with_plan(ONE_TASK_PLAN);
    sandbox.pipe("go");
    install_worker(&sandbox, "[ $PROQ_TASK_ATTEMPT != 1 ] || cat $ROOT/go");
    let _ = sandbox.proq(&["swarm", "plan.toml", "--detach", "--yes", "-q"]).ok();
    let is_recorded = || task_status(&sandbox, "x")["state"] == "running";
    wait_until("the agent to be at work", || !recorded_runs(&sandbox).is_empty() && is_recorded());
    kill_scheduler(&sandbox);
    kill_supervisor(&sandbox, "x");
    let _ = sandbox.proq(&["resume", BATCH, "--detach"]).ok();
    wait_until("the next scheduler", || scheduler_is_running(&sandbox));
    for _ in 0..30 {
        let x = task_status(&sandbox, "x");
        assert_eq!((&x["state"], &x["attempts"]), (&"running".into(), &1.into()), "{x}");
    }
    sandbox.write_pipe("go");
    wait_until("its end", || !scheduler_is_running(&sandbox));
    assert_eq!(recorded_runs(&sandbox), ["x 1", "x 2"]);
    let x = task_status(&sandbox, "x");
    assert_eq!((&x["state"], &x["attempts"]), (&"landed".into(), &2.into()), "{x}");
    sandbox.assert_healthy();
}

#[test]
fn dry_run_is_refused_where_the_batch_would_be() {
    let sandbox = repo_with_plan(ONE_TASK_PLAN);
    let assert_both_refuse = |reason: &str| {
        let refused = sandbox.proq(&["swarm", "plan.toml", "--yes"]).fails(1);
        assert!(refused.contains(reason), "{refused}");
        let dry_run = sandbox.proq(&["swarm", "plan.toml", "--yes", "--dry-run"]).fails(1);
        assert_eq!(dry_run.lines().last(), refused.lines().last());
        assert!(dry_run.contains(reason), "{dry_run}");
        assert_eq!(recorded_runs(&sandbox), [""; 0]);
    };
    sandbox.write("a.txt", "mine\n");
    assert_both_refuse("its lanes would lack your uncommitted changes");
    sandbox.git(&["checkout", "-q", "a.txt"]);
    sandbox.write("proq.toml", "[verify]\ncommands = [\"true\"]\n");
    sandbox.commit_all("a check");
    assert_both_refuse("you have not approved");
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    let _ = sandbox.proq(&["swarm", "plan.toml", "--yes", "--dry-run"]).ok();
}
