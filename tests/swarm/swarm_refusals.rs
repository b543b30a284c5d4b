//! Tests of tasks that may not land: the batch names them, the others continue, and repairs by the user
//! count.

use proq_test_kit::Sandbox;
use proq_test_kit::plans::{install_worker, repo_with_plan};
use proq_test_kit::waiting::wait_until;

use super::swarm::{recorded_runs, task_status};
use super::swarm_control::scheduler_is_running;
use super::swarm_modes::{SOLVE_SCRIPT, repo_with_conflicting_tasks};

const BATCH: &str = "20260102-030405";

/// One task that cannot land, one that needs it, and an independent one.
const THREE: &str = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"evil\"\ntitle = \"Evil\"\n\
                     [[task]]\nid = \"dep\"\ntitle = \"Builds on it\"\nneeds = [\"evil\"]\n\
                     [[task]]\nid = \"other\"\ntitle = \"Something else\"\n";

fn start_batch(sandbox: &Sandbox) {
    let out = sandbox.proq(&["swarm", "plan.toml", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
}

fn task_detail(sandbox: &Sandbox, name: &str) -> String {
    task_status(sandbox, name)["detail"].as_str().unwrap_or_default().to_owned()
}

fn all_landed(sandbox: &Sandbox) -> bool {
    ["evil", "dep", "other"].iter().all(|name| task_status(sandbox, name)["state"] == "landed")
}

/// Promise: operations/refused-task
#[test]
fn mass_deletion_is_refused_and_others_land() {
    let sandbox = repo_with_plan(THREE);
    sandbox.sh("mkdir src; for n in $(seq 11); do echo $n > src/f$n.js; done");
    sandbox.commit_all("eleven more");
    install_worker(&sandbox, "[ $name != evil ] || git rm -q src/f[1-8].js");
    start_batch(&sandbox);
    wait_until("its end", || !scheduler_is_running(&sandbox));
    assert_eq!(task_status(&sandbox, "evil")["state"], "check failed");
    assert_eq!(task_status(&sandbox, "other")["state"], "landed");
    let reason = task_detail(&sandbox, "evil");
    // The other task may have landed before.
    let deletes_8_of =
        |count: u32| reason.contains(&format!("it deletes 8 of {count} files of proq/batch-{BATCH}"));
    assert!(deletes_8_of(13) || deletes_8_of(14), "{reason}");
    let (_, hint) = reason.split_once("if that is intended: git proq ").unwrap();
    let message = sandbox.proq(&hint.split(' ').collect::<Vec<_>>()).ok();
    assert!(message.contains(&format!("landed evil on proq/batch-{BATCH}")), "{message}");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("3 of 3 tasks landed"), "{}", out.stdout);
    let files = sandbox.git(&["ls-tree", "-r", "--name-only", &format!("proq/batch-{BATCH}")]);
    assert!(files.contains("dep.txt") && !files.contains("f8.js"), "{files}");
    sandbox.assert_healthy();
}

/// Starts a batch in which a hook refuses the first task's landing, and waits until the third has landed.
fn batch_refused_by_hook() -> Sandbox {
    let sandbox = repo_with_plan(THREE);
    sandbox.sh("mkdir -p .git/hooks; printf '#!/bin/sh\\ntest ! -e evil.txt\\n' > .git/hooks/pre-merge-commit; chmod +x .git/hooks/pre-merge-commit");
    sandbox.pipe("go");
    install_worker(&sandbox, "[ $name != other ] || cat $ROOT/go");
    start_batch(&sandbox);
    wait_until("the hook", || task_detail(&sandbox, "evil").contains("retrying the merge: the repository's"));
    assert_eq!(task_status(&sandbox, "evil")["state"], "landing");
    sandbox.write_pipe("go");
    wait_until("the other one", || task_status(&sandbox, "other")["state"] == "landed");
    sandbox
}

/// Promise: operations/refused-task
#[test]
fn landing_refused_by_hook_is_noticed_when_done_by_hand() {
    let sandbox = batch_refused_by_hook();
    let message = sandbox.proq(&["merge", "evil", "--no-verify"]).ok();
    assert!(message.contains(&format!("landed evil on proq/batch-{BATCH}")), "{message}");
    std::fs::remove_file(sandbox.repo.join(".git/hooks/pre-merge-commit")).unwrap();
    wait_until("its end", || !scheduler_is_running(&sandbox));
    assert!(all_landed(&sandbox), "{}", sandbox.proq(&["batch", "status"]).to_text());
    assert_eq!(recorded_runs(&sandbox).len(), 3);
    sandbox.assert_healthy();
}

#[test]
fn scheduler_of_a_deleted_repository_ends() {
    let sandbox = batch_refused_by_hook();
    let lock = sandbox.repo.join(".git/proq/locks/batches/20260102-030405.lock");
    let lock = std::fs::File::open(lock).unwrap();
    // The scheduler may be writing while the folder is removed.
    wait_until("the removal", || std::fs::remove_dir_all(&sandbox.repo).is_ok());
    wait_until("its end", || lock.try_lock_shared().is_ok());
}

/// Promise: operations/refused-task
#[test]
fn waiting_landing_can_be_aborted_and_resumed() {
    let sandbox = batch_refused_by_hook();
    let _ = sandbox.proq(&["abort"]).ok();
    wait_until("its end", || !scheduler_is_running(&sandbox));
    assert_eq!(sandbox.proq(&["status", "--json"]).json()["why"], "aborted");
    std::fs::remove_file(sandbox.repo.join(".git/hooks/pre-merge-commit")).unwrap();
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(all_landed(&sandbox), "{}", sandbox.proq(&["batch", "status"]).to_text());
    assert_eq!(recorded_runs(&sandbox).len(), 3);
}

/// Promise: operations/resolved-any-strategy
#[test]
fn resolved_conflict_lands_as_one_commit_with_rebase() {
    let sandbox = repo_with_conflicting_tasks(SOLVE_SCRIPT);
    sandbox.git(&["config", "proq.merge.strategy", "rebase"]);
    start_batch(&sandbox);
    wait_until("its end", || !scheduler_is_running(&sandbox));
    let status = sandbox.proq(&["status", "--json"]).json();
    assert_eq!(status["why"], "complete", "{status:#}");
    let branch = format!("proq/batch-{BATCH}");
    let text = sandbox.git(&["show", &format!("{branch}:clash.txt")]);
    assert!(text == "start\nx\ny" || text == "start\ny\nx", "{text}");
    assert_eq!(sandbox.git(&["rev-list", "--merges", &branch]), "");
    assert_eq!(sandbox.git(&["rev-list", "--count", &format!("main..{branch}")]), "3");
    sandbox.assert_healthy();
}

/// Promise: operations/batch-not-on-base
#[test]
fn batch_on_other_branch_or_undone_is_not_on_base() {
    let plan = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"x\"\ntitle = \"X\"\n";
    let sandbox = repo_with_plan(plan);
    sandbox.git(&["branch", "release"]);
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).ok();
    let is_on_base = || {
        let on_base = sandbox.proq(&["status", BATCH, "--json"]).json()["on_base"] == true;
        let open = sandbox.proq(&["list", "--json"]).json()["unlanded_batches"].clone();
        assert_eq!(open.as_array().map_or(0, Vec::len), usize::from(!on_base), "{open}");
        assert_eq!(sandbox.proq(&["merge", "--all"]).to_text().contains(BATCH), !on_base);
        on_base
    };
    assert!(!is_on_base());
    let _ = sandbox.proq(&["merge", "--batch", BATCH, "--onto", "release", "--strategy", "squash"]).ok();
    assert!(!is_on_base(), "it is on release");
    let _ = sandbox.proq(&["merge", "--batch", BATCH, "--strategy", "squash"]).ok();
    assert!(sandbox.repo.join("x.txt").exists() && is_on_base());
    sandbox.git(&["reset", "-q", "--hard", "HEAD~1"]);
    assert!(!is_on_base(), "it was taken back");
    let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
    assert!(sandbox.repo.join("x.txt").exists() && is_on_base());
}

/// Creates a batch whose first task fails its check. It runs one task after the other.
fn batch_with_failed_check() -> Sandbox {
    let sandbox = repo_with_plan(THREE);
    sandbox.git(&["config", "proq.swarm.maxParallel", "1"]);
    sandbox.git(&["config", "--add", "proq.verify.commands", "test ! -e BROKEN || test -e $ROOT/well"]);
    install_worker(&sandbox, "[ $name != evil ] || touch BROKEN");
    let out = sandbox.proq(&["swarm", "plan.toml", "-q"]);
    assert_eq!(out.code, 4, "{}{}", out.stdout, out.stderr);
    assert_eq!(task_status(&sandbox, "evil")["state"], "check failed");
    sandbox
}

#[track_caller]
fn assert_resumes_to_completion(sandbox: &Sandbox) {
    let out = sandbox.proq(&["resume", BATCH]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(all_landed(sandbox), "{}", sandbox.proq(&["batch", "status"]).to_text());
    assert_eq!(recorded_runs(sandbox).len(), 3, "nothing was run again");
    sandbox.assert_healthy();
}

/// Promise: operations/repaired-task
#[test]
fn resume_reruns_failed_check_on_unchanged_task() {
    let sandbox = batch_with_failed_check();
    // Without a repair the other tasks continue all the same, and are not delayed by the failed one again.
    for _ in 0..2 {
        let out = sandbox.proq(&["resume", BATCH]);
        assert_eq!(out.code, 4, "{}{}", out.stdout, out.stderr);
        assert!(out.stderr.contains("evil: its checks run again"), "{}", out.stderr);
        assert_eq!(sandbox.proq(&["status", "--json"]).json()["why"], "partly");
        let states = ["evil", "dep", "other"].map(|name| task_status(&sandbox, name)["state"].clone());
        assert_eq!(states, ["check failed", "skipped", "landed"]);
    }
    sandbox.sh("touch $ROOT/well");
    assert_resumes_to_completion(&sandbox);
}

/// Promise: operations/repaired-task
#[test]
fn amended_task_is_checked_again() {
    let sandbox = batch_with_failed_check();
    let lane = sandbox.lane_path("evil");
    sandbox.git_in(&lane, &["rm", "-q", "BROKEN"]);
    sandbox.git_in(&lane, &["commit", "-q", "--amend", "-m", "repaired"]);
    assert_resumes_to_completion(&sandbox);
}

/// Promise: operations/repaired-task
#[test]
fn rebased_task_is_checked_again() {
    let sandbox = batch_with_failed_check();
    let _ = sandbox.proq(&["resume", BATCH]).fails(4);
    let branch = format!("proq/batch-{BATCH}");
    assert!(sandbox.git(&["ls-tree", "--name-only", &branch]).contains("other.txt"));
    let lane = sandbox.lane_path("evil");
    sandbox.git_in(&lane, &["rm", "-q", "BROKEN"]);
    sandbox.git_in(&lane, &["commit", "-q", "--amend", "-m", "repaired"]);
    sandbox.git_in(&lane, &["rebase", "-q", &branch]);
    assert_resumes_to_completion(&sandbox);
}

#[test]
fn status_counts_running_landed_and_earlier_tasks() {
    let sandbox = repo_with_plan(&format!("{THREE}[[task]]\nid = \"old\"\ntitle = \"Old\"\ndone = true\n"));
    sandbox.pipe("go");
    install_worker(&sandbox, "[ $name != other ] || cat $ROOT/go");
    let _ = sandbox.proq(&["swarm", "plan.toml", "--waves", "--detach", "--yes", "-q"]).ok();
    wait_until("the end of evil", || {
        task_status(&sandbox, "evil")["state"] == "done"
            && task_status(&sandbox, "other")["state"] == "running"
    });
    let counts = sandbox.proq(&["status", "--json"]).json()["counts"].clone();
    let count = |field: &str| counts[field].as_u64().unwrap();
    assert_eq!(
        (count("at_work"), count("landing"), count("landed"), count("before")),
        (1, 1, 0, 1),
        "{counts}"
    );
    sandbox.write_pipe("go");
    wait_until("its end", || !scheduler_is_running(&sandbox));
    let shown = sandbox.proq(&["batch", "status"]).ok();
    assert!(shown.contains("3 of 4 tasks landed, 1 done before"), "{shown}");
    let shown = sandbox.proq(&["report"]).ok();
    assert!(shown.contains("3 of 4 tasks; 1 done before"), "{shown}");
}

#[test]
fn doctor_reports_interrupted_batch() {
    let sandbox = repo_with_plan(THREE);
    sandbox.pipe("go");
    install_worker(&sandbox, "cat $ROOT/go");
    start_batch(&sandbox);
    wait_until("a task to be at work", || task_status(&sandbox, "other")["state"] == "running");
    super::swarm_control::kill_scheduler(&sandbox);
    let report = sandbox.proq(&["doctor"]).to_text();
    assert!(report.contains(&format!("batch {BATCH} is interrupted")), "{report}");
    assert!(report.contains(&format!("git proq batch resume {BATCH}")), "{report}");
    install_worker(&sandbox, "");
    let _ = sandbox.proq(&["abort", "--hard"]).ok();
    wait_until("its end", || !scheduler_is_running(&sandbox));
    sandbox.assert_healthy();
}
