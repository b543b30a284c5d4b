//! Tests of landing a batch on its base: as one operation, without traces when refused, and with renamed or
//! deleted branches.

use proq_test_kit::Sandbox;
use proq_test_kit::plans::{install_worker, repo_with_plan};
use proq_test_kit::waiting::wait_until;

use super::swarm_control::scheduler_is_running;

const BATCH: &str = "20260102-030405";

const ONE_TASK_PLAN: &str = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"x\"\ntitle = \"X\"\n";

/// Creates a finished batch of a committed plan.
fn finished_batch() -> Sandbox {
    let sandbox = repo_with_plan(ONE_TASK_PLAN);
    sandbox.commit_all("the plan");
    let _ = sandbox.proq(&["swarm", "plan.toml", "--yes", "-q"]).ok();
    sandbox
}

fn merge_batch(sandbox: &Sandbox, more: &[&str]) -> proq_test_kit::Output {
    sandbox.proq(&[&["merge", "--batch", BATCH], more].concat())
}

/// Returns all state that a command could change: refs, lanes and the operation log.
fn repository_state(sandbox: &Sandbox) -> (String, Vec<String>, String) {
    let log = sandbox.proq(&["op", "log", "--json"]).ok();
    (sandbox.git(&["for-each-ref"]), sandbox.lane_leftovers(), log)
}

/// Returns the command of the hint that begins with `start`.
fn hint_command(output: &str, start: &str) -> String {
    let start = format!("hint: {start}: ");
    let line = output.lines().find_map(|line| line.strip_prefix(&start));
    line.unwrap_or_else(|| panic!("no `{start}` in: {output}")).to_owned()
}

/// Promise: concurrency/batch-landing
#[test]
fn dry_run_changes_nothing_and_keeps_redo() {
    let sandbox = finished_batch();
    sandbox.lane_with_commit("other", "echo other > other.txt");
    let _ = sandbox.proq(&["merge", "other"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    let before = repository_state(&sandbox);
    assert_eq!(
        merge_batch(&sandbox, &["--dry-run"]).ok(),
        format!("would land swarm-{BATCH} on main\n1 file changed, 1 insertion(+)\n")
    );
    assert_eq!(repository_state(&sandbox), before);
    let _ = sandbox.proq(&["op", "redo"]).ok();
    assert_eq!(sandbox.read("other.txt"), "other\n");
}

/// Promise: concurrency/batch-landing
#[test]
fn one_undo_reverts_landing_and_status_mark() {
    let sandbox = finished_batch();
    let refs = || sandbox.git(&["for-each-ref", "refs/heads"]);
    let (before, plan) = (refs(), sandbox.read("plan.toml"));
    let _ = merge_batch(&sandbox, &[]).ok();
    assert!(sandbox.read("plan.toml").contains("done = true"));
    let landed = sandbox.git(&["rev-parse", "main"]);
    let output = sandbox.proq(&["undo", "--dry-run"]).ok();
    assert!(output.starts_with("would undo ") && sandbox.repo.join("x.txt").exists(), "{output}");
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!((refs(), sandbox.read("plan.toml")), (before, plan));
    assert!(!sandbox.repo.join("x.txt").exists());
    assert_eq!(sandbox.proq(&["list", "--json"]).json()["lanes"].as_array().unwrap().len(), 0);
    let _ = sandbox.proq(&["op", "redo"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "main"]), landed);
    // A batch that is on its base already makes no operation.
    let before = repository_state(&sandbox);
    assert!(merge_batch(&sandbox, &[]).ok().contains("everything in it is on main already"));
    assert_eq!(repository_state(&sandbox), before);
    // After an undo the batch can land with another strategy.
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = merge_batch(&sandbox, &["--strategy", "squash"]).ok();
    assert_eq!(sandbox.read("x.txt"), "work of x\n");
    sandbox.assert_healthy();
}

/// Promise: concurrency/batch-landing
#[test]
fn refused_landing_leaves_no_lane() {
    let sandbox = finished_batch();
    sandbox.write("x.txt", "mine\n");
    let before = repository_state(&sandbox);
    for more in [&["--dry-run"][..], &[]] {
        let output = merge_batch(&sandbox, more).fails(1);
        assert!(output.contains("x.txt"), "{output}");
        assert_eq!(repository_state(&sandbox), before);
    }
    assert_eq!(sandbox.read("x.txt"), "mine\n");
    std::fs::remove_file(sandbox.repo.join("x.txt")).unwrap();
    // The hook runs only for a real landing.
    sandbox.sh("printf '#!/bin/sh\\nexit 1\\n' > .git/hooks/commit-msg; chmod +x .git/hooks/commit-msg");
    let _ = merge_batch(&sandbox, &[]).fails(1);
    assert_eq!(sandbox.git(&["branch", "--list", "proq/swarm-*"]), "");
    assert_eq!(sandbox.proq(&["list", "--json"]).json()["lanes"].as_array().unwrap().len(), 0);
    let _ = merge_batch(&sandbox, &["--no-verify"]).ok();
    assert_eq!(sandbox.read("x.txt"), "work of x\n");
    sandbox.assert_healthy();
}

/// What the tasks wrote conflicts with a file of the user, which is in the way.
#[test]
fn autostash_saves_changes_in_the_way_of_a_batch() {
    let sandbox = finished_batch();
    sandbox.write("x.txt", "mine\n");
    let text = merge_batch(&sandbox, &["--autostash"]).fails(3);
    assert!(text.contains("conflict with main in x.txt; they are saved as snapshot "), "{text}");
    assert_eq!(sandbox.read("x.txt"), "work of x\n");
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.read("x.txt"), "mine\n");
    assert_eq!(sandbox.git(&["status", "--short"]), "?? x.txt");
    sandbox.assert_healthy();
}

/// Promise: concurrency/batch-branch
#[test]
fn hint_lands_batch_of_renamed_base() {
    let sandbox = finished_batch();
    sandbox.git(&["branch", "-m", "main", "trunk"]);
    let command = format!("git proq merge --batch {BATCH} --onto trunk");
    for args in [&["status", BATCH][..], &["list"], &["merge", "--all"]] {
        assert_eq!(hint_command(&sandbox.proq(args).stderr, "merge it into trunk"), command, "{args:?}");
    }
    let before = repository_state(&sandbox);
    for more in [&["--dry-run"][..], &[]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(merge_batch(&sandbox, more).to_text(), @r"
            --- stderr
            error: cannot merge batch 20260102-030405: its base 'main' no longer exists
            hint: merge it into trunk: git proq merge --batch 20260102-030405 --onto trunk
            --- code 1
            ");
        }
    }
    assert_eq!(repository_state(&sandbox), before);
    let _ = sandbox.proq(&["cleanup", "--batch", BATCH]).fails(1);
    let _ = merge_batch(&sandbox, &["--onto", "trunk"]).ok();
    assert_eq!(sandbox.read("x.txt"), "work of x\n");
    let status = sandbox.proq(&["status", BATCH]);
    assert!(!status.stderr.contains("merge it into"), "{}", status.stderr);
    assert!(status.stdout.contains("; merged into trunk\n"), "{}", status.stdout);
    assert!(!sandbox.proq(&["list"]).stderr.contains("not on main yet"));
    let _ = sandbox.proq(&["cleanup", "--batch", BATCH]).ok();
    sandbox.assert_healthy();
}

/// Promise: concurrency/batch-branch
#[test]
fn hint_restores_deleted_batch_branch() {
    let sandbox = finished_batch();
    let branch = format!("proq/batch-{BATCH}");
    let tip = sandbox.git(&["rev-parse", &branch]);
    sandbox.git(&["branch", "-q", "-D", &branch]);
    let command = hint_command(&sandbox.proq(&["status", BATCH]).stderr, "create its branch again");
    let before = repository_state(&sandbox);
    for more in [&["--dry-run"][..], &[]] {
        let output = merge_batch(&sandbox, more).fails(1);
        assert!(
            output.contains(&format!(
                "cannot merge batch {BATCH}: its branch no longer exists: {branch}, which was at "
            )),
            "{output}"
        );
        assert_eq!(hint_command(&output, "create it again"), command);
    }
    let output = sandbox.proq(&["cleanup", "--batch", BATCH]).fails(1);
    assert!(output.contains("main lacks 1 task of it"), "{output}");
    assert_eq!(hint_command(&output, "create its branch again"), command);
    assert_eq!(repository_state(&sandbox), before);
    // A forced cleanup saves the tip.
    let _ = sandbox.proq(&["cleanup", "--batch", BATCH, "--force"]).ok();
    let saved = sandbox.git(&["for-each-ref", "--contains", &tip, "--format=%(refname)", "refs/proq/saved"]);
    assert!(saved.starts_with("refs/proq/saved/batch-"), "{saved}");
    let _ = sandbox.proq(&["undo"]).ok();
    sandbox.sh(&command);
    assert_eq!(sandbox.git(&["rev-parse", &branch]), tip);
    let _ = merge_batch(&sandbox, &[]).ok();
    assert_eq!(sandbox.read("x.txt"), "work of x\n");
    sandbox.assert_healthy();
}

/// Promise: concurrency/batch-branch
#[test]
fn recreates_batch_branch_deleted_during_run() {
    let sandbox = repo_with_plan(&format!("{ONE_TASK_PLAN}[[task]]\nid = \"z\"\ntitle = \"Z\"\n"));
    sandbox.commit_all("the plan");
    sandbox.pipe("go");
    install_worker(&sandbox, "[ $name = x ] || read line < $ROOT/go");
    let _ = sandbox.proq(&["swarm", "plan.toml", "--detach", "--yes", "-q"]).ok();
    wait_until("the landing of x", || {
        let status = sandbox.proq(&["status", BATCH, "--json"]).json();
        status["tasks"][0]["state"] == "landed"
    });
    let branch = format!("proq/batch-{BATCH}");
    sandbox.git(&["branch", "-q", "-D", &branch]);
    sandbox.write_pipe("go");
    wait_until("its end", || !scheduler_is_running(&sandbox));
    let files = sandbox.git(&["ls-tree", "--name-only", &branch]);
    assert_eq!(files, "a.txt\nplan.toml\nx.txt\nz.txt");
    let status = sandbox.proq(&["status", BATCH, "--json"]).json();
    assert_eq!((&status["state"], &status["why"]), (&"over".into(), &"complete".into()));
    sandbox.assert_healthy();
}

#[test]
fn dry_run_ends_as_the_landing_without_approval() {
    let sandbox = repo_with_plan(ONE_TASK_PLAN);
    sandbox.commit_all("the plan");
    let _ = sandbox.proq(&["swarm", "plan.toml", "--yes", "-q"]).ok();
    sandbox.write("proq.toml", "[verify]\ncommands = ['true']\n");
    sandbox.commit_all("checks");
    let approve = "hint: read and approve the checks: git proq approve\n";
    let planned = merge_batch(&sandbox, &["--dry-run"]);
    assert!(planned.code == 1 && planned.stderr.contains(approve), "{}", planned.to_text());
    assert_eq!(merge_batch(&sandbox, &[]).code, planned.code);
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    let planned = merge_batch(&sandbox, &["--dry-run"]);
    assert!(planned.code == 0 && !planned.stderr.contains(approve), "{}", planned.to_text());
    let _ = merge_batch(&sandbox, &[]).ok();
}
