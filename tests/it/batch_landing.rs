//! Owns the tests of how a batch gets to its base: as one operation, and without a trace when it does not.

use super::support::Sandbox;
use super::swarm::planned;

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
