//! Owns the tests of tasks that may not land: they end by name, the others go on, and what a person did about them counts.

use super::support::Sandbox;
use super::support::patience::wait_until;
use super::swarm::{planned, ran, task, worker};
use super::swarm_control::is_held;
use super::swarm_modes::{SOLVES, clashing};

const BATCH: &str = "20260102-030405";

/// One task that cannot land, one that needs it, and one that does not.
const THREE: &str = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"evil\"\ntitle = \"Evil\"\n\
                     [[task]]\nid = \"dep\"\ntitle = \"Builds on it\"\nneeds = [\"evil\"]\n\
                     [[task]]\nid = \"other\"\ntitle = \"Something else\"\n";

fn begin(sandbox: &Sandbox) {
    let out = sandbox.proq(&["swarm", "plan.toml", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
}

fn detail(sandbox: &Sandbox, name: &str) -> String {
    task(sandbox, name)["detail"].as_str().unwrap_or_default().to_owned()
}

fn all_landed(sandbox: &Sandbox) -> bool {
    ["evil", "dep", "other"].iter().all(|name| task(sandbox, name)["state"] == "landed")
}

#[test]
fn a_task_that_deletes_most_files_cannot_land_and_the_others_do() {
    let sandbox = planned(THREE);
    sandbox.sh("mkdir src; for n in $(seq 11); do echo $n > src/f$n.js; done");
    sandbox.commit_all("eleven more");
    worker(&sandbox, "[ $name != evil ] || git rm -q src/f[1-8].js");
    begin(&sandbox);
    wait_until("its end", || !is_held(&sandbox));
    assert_eq!(task(&sandbox, "evil")["state"], "check failed");
    assert_eq!(task(&sandbox, "other")["state"], "landed");
    let why = detail(&sandbox, "evil");
    // The other one may have landed before.
    let of = |count: u32| why.contains(&format!("it deletes 8 of {count} files of proq/batch-{BATCH}"));
    assert!(of(13) || of(14), "{why}");
    let (_, hint) = why.split_once("if that is meant: git proq ").unwrap();
    let said = sandbox.proq(&hint.split(' ').collect::<Vec<_>>()).ok();
    assert!(said.contains(&format!("landed evil on proq/batch-{BATCH}")), "{said}");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("3 of 3 tasks landed"), "{}", out.stdout);
    let files = sandbox.git(&["ls-tree", "-r", "--name-only", &format!("proq/batch-{BATCH}")]);
    assert!(files.contains("dep.txt") && !files.contains("f8.js"), "{files}");
    sandbox.assert_healthy();
}

/// A batch whose first task waits for a hook that refuses it; the third one is still at work.
fn refused_by_a_hook() -> Sandbox {
    let sandbox = planned(THREE);
    sandbox.sh("mkdir -p .git/hooks; printf '#!/bin/sh\\ntest ! -e evil.txt\\n' > .git/hooks/pre-merge-commit; chmod +x .git/hooks/pre-merge-commit");
    sandbox.pipe("go");
    worker(&sandbox, "[ $name != other ] || cat $ROOT/go");
    begin(&sandbox);
    wait_until("the hook", || {
        detail(&sandbox, "evil").contains("the landing is tried again: the repository's")
    });
    assert_eq!(task(&sandbox, "evil")["state"], "landing");
    sandbox.tell("go");
    wait_until("the other one", || task(&sandbox, "other")["state"] == "landed");
    sandbox
}

#[test]
fn a_landing_that_waits_for_a_hook_holds_nobody_up_and_one_by_hand_is_noticed() {
    let sandbox = refused_by_a_hook();
    let said = sandbox.proq(&["merge", "evil", "--no-verify"]).ok();
    assert!(said.contains(&format!("landed evil on proq/batch-{BATCH}")), "{said}");
    std::fs::remove_file(sandbox.repo.join(".git/hooks/pre-merge-commit")).unwrap();
    wait_until("its end", || !is_held(&sandbox));
    assert!(all_landed(&sandbox), "{}", sandbox.proq(&["status"]).shown());
    assert_eq!(ran(&sandbox).len(), 3);
    sandbox.assert_healthy();
}

#[test]
fn a_landing_that_waits_can_be_ended_and_gone_on_with() {
    let sandbox = refused_by_a_hook();
    let _ = sandbox.proq(&["abort"]).ok();
    wait_until("its end", || !is_held(&sandbox));
    assert_eq!(sandbox.proq(&["status", "--json"]).json()["why"], "aborted");
    std::fs::remove_file(sandbox.repo.join(".git/hooks/pre-merge-commit")).unwrap();
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(all_landed(&sandbox), "{}", sandbox.proq(&["status"]).shown());
    assert_eq!(ran(&sandbox).len(), 3);
}

#[test]
fn a_resolved_conflict_lands_with_rebase_as_one_commit() {
    let sandbox = clashing(SOLVES);
    sandbox.git(&["config", "proq.merge.strategy", "rebase"]);
    begin(&sandbox);
    wait_until("its end", || !is_held(&sandbox));
    let status = sandbox.proq(&["status", "--json"]).json();
    assert_eq!(status["why"], "complete", "{status:#}");
    let branch = format!("proq/batch-{BATCH}");
    let text = sandbox.git(&["show", &format!("{branch}:clash.txt")]);
    assert!(text == "start\nx\ny" || text == "start\ny\nx", "{text}");
    assert_eq!(sandbox.git(&["rev-list", "--merges", &branch]), "");
    assert_eq!(sandbox.git(&["rev-list", "--count", &format!("main..{branch}")]), "3");
    sandbox.assert_healthy();
}

#[test]
fn what_landed_elsewhere_or_was_taken_back_since_is_not_on_the_base() {
    let plan = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"x\"\ntitle = \"X\"\n";
    let sandbox = planned(plan);
    sandbox.git(&["branch", "release"]);
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).ok();
    let is_on_base = || {
        let on_base = sandbox.proq(&["status", BATCH, "--json"]).json()["on_base"] == true;
        let open = sandbox.proq(&["list", "--json"]).json()["unlanded_batches"].clone();
        assert_eq!(open.as_array().map_or(0, Vec::len), usize::from(!on_base), "{open}");
        assert_eq!(sandbox.proq(&["merge", "--all"]).shown().contains(BATCH), !on_base);
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

/// A batch whose first task fails its check. It runs one task at a time.
fn with_a_failed_check() -> Sandbox {
    let sandbox = planned(THREE);
    sandbox.git(&["config", "proq.swarm.maxParallel", "1"]);
    sandbox.git(&["config", "--add", "proq.verify.commands", "test ! -e BROKEN || test -e $ROOT/well"]);
    worker(&sandbox, "[ $name != evil ] || touch BROKEN");
    let out = sandbox.proq(&["swarm", "plan.toml", "-q"]);
    assert_eq!(out.code, 4, "{}{}", out.stdout, out.stderr);
    assert_eq!(task(&sandbox, "evil")["state"], "check failed");
    sandbox
}

#[track_caller]
fn goes_on_to_its_end(sandbox: &Sandbox) {
    let out = sandbox.proq(&["resume", BATCH]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(all_landed(sandbox), "{}", sandbox.proq(&["status"]).shown());
    assert_eq!(ran(sandbox).len(), 3, "nothing was run again");
    sandbox.assert_healthy();
}

#[test]
fn a_check_that_was_repaired_is_run_again_on_a_task_that_did_not_change() {
    let sandbox = with_a_failed_check();
    // Nothing was repaired: the others go on all the same, and are not held up by it once more.
    for _ in 0..2 {
        let out = sandbox.proq(&["resume", BATCH]);
        assert_eq!(out.code, 4, "{}{}", out.stdout, out.stderr);
        assert!(out.stderr.contains("evil: its checks run again"), "{}", out.stderr);
        assert_eq!(sandbox.proq(&["status", "--json"]).json()["why"], "partly");
        let states = ["evil", "dep", "other"].map(|name| task(&sandbox, name)["state"].clone());
        assert_eq!(states, ["check failed", "skipped", "landed"]);
    }
    sandbox.sh("touch $ROOT/well");
    goes_on_to_its_end(&sandbox);
}

#[test]
fn a_task_that_was_amended_after_a_failed_check_is_checked_again() {
    let sandbox = with_a_failed_check();
    let lane = sandbox.lane("evil");
    sandbox.git_in(&lane, &["rm", "-q", "BROKEN"]);
    sandbox.git_in(&lane, &["commit", "-q", "--amend", "-m", "repaired"]);
    goes_on_to_its_end(&sandbox);
}

#[test]
fn a_task_that_was_put_on_top_of_what_landed_since_is_checked_again() {
    let sandbox = with_a_failed_check();
    let _ = sandbox.proq(&["resume", BATCH]).fails(4);
    let branch = format!("proq/batch-{BATCH}");
    assert!(sandbox.git(&["ls-tree", "--name-only", &branch]).contains("other.txt"));
    let lane = sandbox.lane("evil");
    sandbox.git_in(&lane, &["rm", "-q", "BROKEN"]);
    sandbox.git_in(&lane, &["commit", "-q", "--amend", "-m", "repaired"]);
    sandbox.git_in(&lane, &["rebase", "-q", &branch]);
    goes_on_to_its_end(&sandbox);
}

#[test]
fn tasks_at_work_landed_and_done_before_are_counted_apart() {
    let sandbox = planned(&format!("{THREE}[[task]]\nid = \"old\"\ntitle = \"Old\"\ndone = true\n"));
    sandbox.pipe("go");
    worker(&sandbox, "[ $name != other ] || cat $ROOT/go");
    let _ = sandbox.proq(&["swarm", "plan.toml", "--waves", "--detach", "--yes", "-q"]).ok();
    wait_until("the end of evil", || {
        task(&sandbox, "evil")["state"] == "done" && task(&sandbox, "other")["state"] == "running"
    });
    let counts = sandbox.proq(&["status", "--json"]).json()["counts"].clone();
    let count = |what: &str| counts[what].as_u64().unwrap();
    assert_eq!(
        (count("at_work"), count("landing"), count("landed"), count("before")),
        (1, 1, 0, 1),
        "{counts}"
    );
    sandbox.tell("go");
    wait_until("its end", || !is_held(&sandbox));
    let shown = sandbox.proq(&["status"]).ok();
    assert!(shown.contains("3 of 4 tasks landed, 1 done before"), "{shown}");
    let shown = sandbox.proq(&["report"]).ok();
    assert!(shown.contains("3 of 4 tasks; 1 done before"), "{shown}");
}

#[test]
fn the_doctor_names_a_batch_that_nobody_goes_on_with() {
    let sandbox = planned(THREE);
    sandbox.pipe("go");
    worker(&sandbox, "cat $ROOT/go");
    begin(&sandbox);
    wait_until("a task to be at work", || task(&sandbox, "other")["state"] == "running");
    super::swarm_control::kill_scheduler(&sandbox);
    let said = sandbox.proq(&["doctor"]).shown();
    assert!(said.contains(&format!("batch {BATCH} is interrupted: nobody goes on with it")), "{said}");
    assert!(said.contains(&format!("git proq resume {BATCH}")), "{said}");
    worker(&sandbox, "");
    let _ = sandbox.proq(&["abort", "--hard"]).ok();
    wait_until("its end", || !is_held(&sandbox));
    sandbox.assert_healthy();
}
