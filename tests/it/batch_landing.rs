//! Owns the tests of how a batch gets to its base: as one operation, without a trace when it does not, and though a branch is gone.

use super::support::Sandbox;
use super::support::patience::wait_until;
use super::swarm::{planned, worker};
use super::swarm_control::is_held;

const BATCH: &str = "20260102-030405";

const ONE: &str = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"x\"\ntitle = \"X\"\n";

/// A batch that is over, of a plan that is committed.
fn over() -> Sandbox {
    let sandbox = planned(ONE);
    sandbox.commit_all("the plan");
    let _ = sandbox.proq(&["swarm", "plan.toml", "--yes", "-q"]).ok();
    sandbox
}

fn merge(sandbox: &Sandbox, more: &[&str]) -> super::support::Output {
    sandbox.proq(&[&["merge", "--batch", BATCH], more].concat())
}

/// All that a command could change: refs, lanes, and the log of operations.
fn state(sandbox: &Sandbox) -> (String, Vec<String>, String) {
    let log = sandbox.proq(&["op", "log", "--json"]).ok();
    (sandbox.git(&["for-each-ref"]), sandbox.traces(), log)
}

/// The hint of this beginning.
fn hint(said: &str, start: &str) -> String {
    let start = format!("hint: {start}: ");
    let line = said.lines().find_map(|line| line.strip_prefix(&start));
    line.unwrap_or_else(|| panic!("no `{start}` in: {said}")).to_owned()
}

#[test]
fn a_dry_run_changes_nothing_and_leaves_what_can_be_redone() {
    let sandbox = over();
    sandbox.lane_of("other", "echo other > other.txt");
    let _ = sandbox.proq(&["merge", "other"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    let before = state(&sandbox);
    assert_eq!(merge(&sandbox, &["--dry-run"]).ok(), format!("would land swarm-{BATCH} on main\n"));
    assert_eq!(state(&sandbox), before);
    let _ = sandbox.proq(&["op", "redo"]).ok();
    assert_eq!(sandbox.read("other.txt"), "other\n");
}

#[test]
fn one_undo_takes_the_landing_back_with_its_note() {
    let sandbox = over();
    let refs = || sandbox.git(&["for-each-ref", "refs/heads"]);
    let (before, plan) = (refs(), sandbox.read("plan.toml"));
    let _ = merge(&sandbox, &[]).ok();
    assert!(sandbox.read("plan.toml").contains("done = true"));
    let landed = sandbox.git(&["rev-parse", "main"]);
    let said = sandbox.proq(&["undo", "--dry-run"]).ok();
    assert!(said.starts_with("would undo ") && sandbox.repo.join("x.txt").exists(), "{said}");
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!((refs(), sandbox.read("plan.toml")), (before, plan));
    assert!(!sandbox.repo.join("x.txt").exists());
    assert_eq!(sandbox.proq(&["list", "--json"]).json()["lanes"].as_array().unwrap().len(), 0);
    let _ = sandbox.proq(&["op", "redo"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "main"]), landed);
    // What is on its base already is nothing to take back.
    let before = state(&sandbox);
    assert!(merge(&sandbox, &[]).ok().contains("everything in it is on main already"));
    assert_eq!(state(&sandbox), before);
    // Other commands are taken back one by one.
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = merge(&sandbox, &["--strategy", "squash"]).ok();
    assert_eq!(sandbox.read("x.txt"), "work of x\n");
    sandbox.assert_healthy();
}

#[test]
fn what_is_refused_leaves_no_lane() {
    let sandbox = over();
    sandbox.write("x.txt", "mine\n");
    let before = state(&sandbox);
    for more in [&["--dry-run"][..], &[]] {
        let said = merge(&sandbox, more).fails(1);
        assert!(said.contains("x.txt"), "{said}");
        assert_eq!(state(&sandbox), before);
    }
    assert_eq!(sandbox.read("x.txt"), "mine\n");
    std::fs::remove_file(sandbox.repo.join("x.txt")).unwrap();
    // A hook is only asked when it lands.
    sandbox.sh("printf '#!/bin/sh\\nexit 1\\n' > .git/hooks/commit-msg; chmod +x .git/hooks/commit-msg");
    let _ = merge(&sandbox, &[]).fails(1);
    assert_eq!(sandbox.git(&["branch", "--list", "proq/swarm-*"]), "");
    assert_eq!(sandbox.proq(&["list", "--json"]).json()["lanes"].as_array().unwrap().len(), 0);
    let _ = merge(&sandbox, &["--no-verify"]).ok();
    assert_eq!(sandbox.read("x.txt"), "work of x\n");
    sandbox.assert_healthy();
}

#[test]
fn a_batch_whose_base_was_renamed_lands_by_the_hint() {
    let sandbox = over();
    sandbox.git(&["branch", "-m", "main", "trunk"]);
    let command = format!("git proq merge --batch {BATCH} --onto trunk");
    for args in [&["status", BATCH][..], &["list"], &["merge", "--all"]] {
        assert_eq!(hint(&sandbox.proq(args).stderr, "land it on trunk"), command, "{args:?}");
    }
    let before = state(&sandbox);
    for more in [&["--dry-run"][..], &[]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(merge(&sandbox, more).shown(), @r"
            --- stderr
            error: 'main', which batch 20260102-030405 is for, is gone; nothing was moved
            hint: land it on trunk: git proq merge --batch 20260102-030405 --onto trunk
            --- code 1
            ");
        }
    }
    assert_eq!(state(&sandbox), before);
    let _ = sandbox.proq(&["cleanup", "--batch", BATCH]).fails(1);
    let _ = merge(&sandbox, &["--onto", "trunk"]).ok();
    assert_eq!(sandbox.read("x.txt"), "work of x\n");
    let status = sandbox.proq(&["status", BATCH]);
    assert!(!status.stderr.contains("land it on"), "{}", status.stderr);
    assert!(status.stdout.contains("; all of that is on trunk\n"), "{}", status.stdout);
    assert!(!sandbox.proq(&["list"]).stderr.contains("is not on main yet"));
    let _ = sandbox.proq(&["cleanup", "--batch", BATCH]).ok();
    sandbox.assert_healthy();
}

#[test]
fn a_batch_whose_branch_was_deleted_comes_back_by_the_hint() {
    let sandbox = over();
    let branch = format!("proq/batch-{BATCH}");
    let tip = sandbox.git(&["rev-parse", &branch]);
    sandbox.git(&["branch", "-q", "-D", &branch]);
    let command = hint(&sandbox.proq(&["status", BATCH]).stderr, "bring its branch back first");
    let before = state(&sandbox);
    for more in [&["--dry-run"][..], &[]] {
        let said = merge(&sandbox, more).fails(1);
        assert!(
            said.contains(&format!("the branch of batch {BATCH} is gone: {branch}, which was at ")),
            "{said}"
        );
        assert_eq!(hint(&said, "bring it back"), command);
    }
    let said = sandbox.proq(&["cleanup", "--batch", BATCH]).fails(1);
    assert!(said.contains("has landed 1 task that main does not have"), "{said}");
    assert_eq!(hint(&said, "bring its branch back first"), command);
    assert_eq!(state(&sandbox), before);
    // Whoever lets go of it keeps it all the same.
    let _ = sandbox.proq(&["cleanup", "--batch", BATCH, "--force"]).ok();
    let saved = sandbox.git(&["for-each-ref", "--contains", &tip, "--format=%(refname)", "refs/proq/saved"]);
    assert!(saved.starts_with("refs/proq/saved/batch-"), "{saved}");
    let _ = sandbox.proq(&["undo"]).ok();
    sandbox.sh(&command);
    assert_eq!(sandbox.git(&["rev-parse", &branch]), tip);
    let _ = merge(&sandbox, &[]).ok();
    assert_eq!(sandbox.read("x.txt"), "work of x\n");
    sandbox.assert_healthy();
}

#[test]
fn a_branch_that_is_deleted_while_tasks_are_at_work_is_made_again() {
    let sandbox = planned(&format!("{ONE}[[task]]\nid = \"z\"\ntitle = \"Z\"\n"));
    sandbox.commit_all("the plan");
    sandbox.pipe("go");
    worker(&sandbox, "[ $name = x ] || read line < $ROOT/go");
    let _ = sandbox.proq(&["swarm", "plan.toml", "--detach", "--yes", "-q"]).ok();
    wait_until("the landing of x", || {
        let status = sandbox.proq(&["status", BATCH, "--json"]).json();
        status["tasks"][0]["state"] == "landed"
    });
    let branch = format!("proq/batch-{BATCH}");
    sandbox.git(&["branch", "-q", "-D", &branch]);
    sandbox.tell("go");
    wait_until("its end", || !is_held(&sandbox));
    let files = sandbox.git(&["ls-tree", "--name-only", &branch]);
    assert_eq!(files, "a.txt\nplan.toml\nx.txt\nz.txt");
    let status = sandbox.proq(&["status", BATCH, "--json"]).json();
    assert_eq!((&status["state"], &status["why"]), (&"over".into(), &"complete".into()));
    sandbox.assert_healthy();
}
