//! Set-up of the worktrees for checks, and checks that cannot be run.

use proq_test_kit::Sandbox;

/// Returns how often a command has written a line to a file of the sandbox.
fn line_count(sandbox: &Sandbox, file: &str) -> usize {
    std::fs::read_to_string(sandbox.root().join(file)).map_or(0, |text| text.lines().count())
}

#[test]
fn set_up_runs_once_and_again_when_changed() {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "ready\n");
    sandbox.commit_all("ignore rules");
    let set_up = "echo run >> $ROOT/runs; touch ready";
    sandbox.git(&["config", "proq.verify.setup", set_up]);
    for lane in ["one", "two", "three"] {
        sandbox.lane_with_commit(lane, &format!("echo {lane} > {lane}.txt"));
    }
    let merge = |lane| sandbox.proq(&["merge", lane, "--verify", "test -e ready"]);
    let _ = merge("one").ok();
    let _ = merge("two").ok();
    assert_eq!(line_count(&sandbox, "runs"), 1);
    sandbox.git(&["config", "proq.verify.setup", &format!("{set_up}; true")]);
    let _ = merge("three").ok();
    assert_eq!(line_count(&sandbox, "runs"), 2);
    sandbox.assert_healthy();
}

/// Only what the commit has, and ignored files, may decide about a check.
/// Promise: checks/set-up
#[test]
fn set_up_changes_no_file_that_is_checked() {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "ready\n");
    sandbox.commit_all("ignore rules");
    let set_up = "touch ready; echo ok > a.txt; echo ok > new.txt; git add a.txt; git commit -qm changed";
    sandbox.git(&["config", "proq.verify.setup", set_up]);
    sandbox.lane_with_commit("one", "echo one > one.txt");
    let _ = sandbox.proq(&["merge", "one", "--verify", "grep -q ok a.txt"]).fails(4);
    let _ = sandbox.proq(&["merge", "one", "--verify", "test -e new.txt"]).fails(4);
    let _ = sandbox.proq(&["merge", "one", "--verify", "test -e ready && ! grep -q ok a.txt"]).ok();
}

/// Promise: checks/set-up
#[test]
fn leftovers_of_a_failed_set_up_are_gone() {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "half\n");
    sandbox.commit_all("ignore rules");
    sandbox.git(&["config", "proq.verify.setup", "touch half; exit 3"]);
    sandbox.lane_with_commit("one", "echo one > one.txt");
    let _ = sandbox.proq(&["merge", "one", "--verify", "true"]).fails(4);
    sandbox.git(&["config", "--unset", "proq.verify.setup"]);
    let _ = sandbox.proq(&["merge", "one", "--verify", "test -e half"]).fails(4);
    let _ = sandbox.proq(&["merge", "one", "--verify", "test ! -e half"]).ok();
}

/// Promise: checks/no-evidence
#[test]
fn failed_set_up_refuses_landing_without_blame() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.verify.setup", "echo no network; exit 3"]);
    sandbox.lane_with_commit("one", "echo one > one.txt");
    let before = sandbox.git(&["rev-parse", "main"]);
    for _ in 0..2 {
        let out = sandbox.proq(&["merge", "one", "--verify", "true"]);
        insta::allow_duplicates! { insta::assert_snapshot!(out.to_text(), @"
        refused one: cannot prepare the worktree for checks: `echo no network; exit 3` failed (exit code 3)
            $ echo no network; exit 3
            no network
        --- stderr
        hint: read its output: cat '[ROOT]/repo/.git/proq/cache/refused-check.log'
        hint: merge without checks: git proq merge --no-checks one
        --- code 4
        ") };
    }
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
    assert_eq!(sandbox.row("one")["state"], "idle");
    sandbox.git(&["config", "proq.verify.setup", "true"]);
    let _ = sandbox.proq(&["merge", "one", "--verify", "true"]).ok();
}

/// Promise: checks/set-up
#[test]
fn set_up_of_repository_needs_approval() {
    let sandbox = Sandbox::new();
    sandbox.write("proq.toml", "[verify]\ncommands = ['test -e done']\nsetup = ['touch $ROOT/ran']\n");
    sandbox.commit_all("settings");
    sandbox.lane_with_commit("one", "touch done");
    let output = sandbox.proq(&["merge", "one"]).fails(1);
    assert!(output.contains("touch $ROOT/ran"), "{output}");
    assert!(!sandbox.root().join("ran").exists());
    let _ = sandbox.proq(&["approve", "--yes"]).ok();
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert!(sandbox.root().join("ran").exists());
}

/// Promise: checks/no-evidence
#[test]
fn check_that_cannot_be_run_blames_no_lane() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    let before = sandbox.git(&["rev-parse", "main"]);
    insta::assert_snapshot!(sandbox.proq(&["merge", "one", "--verify", "no-such-program"]).to_text(), @"
    refused one: cannot run check `no-such-program` on main with one: command not found (exit code 127)
        $ no-such-program
        sh: 1: no-such-program: not found
    --- stderr
    hint: read its output: cat '[ROOT]/repo/.git/proq/cache/refused-check.log'
    hint: merge without checks: git proq merge --no-checks one
    --- code 4
    ");
    let output = sandbox.proq(&["merge", "one", "--verify", "./a.txt"]).fails(4);
    assert!(output.contains("cannot run check `./a.txt` on main with one: permission denied"), "{output}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
    assert_eq!(sandbox.row("one")["state"], "idle");
    // It counts as little as evidence for a comparison.
    sandbox.git(&["config", "proq.verify.commands", "no-such-program"]);
    let output = sandbox.proq(&["compare", "--check", "one"]).ok();
    assert!(output.contains("one: cannot run check `no-such-program`"), "{output}");
}

/// A check of one lane's task that cannot be run holds up only that lane.
/// Promise: checks/no-evidence
#[test]
fn own_check_that_cannot_be_run_refuses_only_its_lane() {
    let sandbox = Sandbox::new();
    for lane in ["one", "two", "three"] {
        sandbox.lane_with_commit(lane, &format!("echo {lane} > {lane}.txt"));
    }
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "typo", "--check", "./no-such-script"]).ok();
    sandbox.commit_in_lane("typo", "echo typo > typo.txt");
    let output = sandbox.proq(&["merge", "one", "typo", "two", "three", "--order", "given"]).fails(4);
    assert!(output.contains("refused typo: cannot run check `./no-such-script`"), "{output}");
    assert_eq!(sandbox.git(&["ls-files"]), "a.txt\none.txt\nthree.txt\ntwo.txt");
    assert_eq!(sandbox.row("typo")["state"], "idle");
}
