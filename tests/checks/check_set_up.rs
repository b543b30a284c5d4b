//! Set-up of the worktrees for checks, and checks that cannot be run.

use proq_test_kit::Sandbox;

/// Returns how often a command has written a line to a file of the sandbox.
fn line_count(sandbox: &Sandbox, file: &str) -> usize {
    std::fs::read_to_string(sandbox.root().join(file)).map_or(0, |text| text.lines().count())
}

/// Returns a repository with ignored files in its main checkout: `.env` and the folder `node_modules`.
fn sandbox_with_ignored_files() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", ".env\nnode_modules\nready\n");
    sandbox.write(".worktreeinclude", ".env\n");
    sandbox.commit_all("ignore rules");
    sandbox.write(".env", "KEY=1\n");
    sandbox.write("node_modules/dep/index.js", "dep\n");
    sandbox.git(&["config", "proq.lane.link", "node_modules"]);
    sandbox
}

/// Promise: checks/set-up
#[test]
fn checks_get_copies_and_links_of_lanes() {
    let sandbox = sandbox_with_ignored_files();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    sandbox.lane_with_commit("two", "echo two > two.txt");
    let merge = |lane, check| sandbox.proq(&["merge", lane, "--verify", check]);
    let _ =
        merge("one", "grep -q KEY=1 .env && test -L node_modules && test -e node_modules/dep/index.js").ok();
    // A changed file is copied again, also over what a check wrote.
    sandbox.write(".env", "KEY=two\n");
    let _ = merge("two", "grep -q KEY=two .env && echo KEY=check > .env").ok();
    assert_eq!(sandbox.read(".env"), "KEY=two\n");
    sandbox.lane_with_commit("three", "echo three > three.txt");
    let _ = merge("three", "grep -q KEY=two .env").ok();
    // Without the link the worktree is created again, and the linked folder stays.
    sandbox.git(&["config", "--unset", "proq.lane.link"]);
    sandbox.lane_with_commit("four", "echo four > four.txt");
    let _ = merge("four", "test ! -e node_modules && test ! -L node_modules").ok();
    assert_eq!(sandbox.read("node_modules/dep/index.js"), "dep\n");
    sandbox.assert_healthy();
}

/// A lane may commit files below a path that is a link in the worktree for checks.
/// Promise: checks/set-up
#[test]
fn links_for_checks_never_lead_a_reset_outside() {
    let sandbox = sandbox_with_ignored_files();
    sandbox.lane_with_commit("first", "echo first > first.txt");
    let _ = sandbox.proq(&["merge", "first", "--verify", "test -L node_modules"]).ok();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "own"]).ok();
    let script = "rm node_modules; mkdir -p node_modules/dep; echo own > node_modules/dep/index.js;\n\
        echo own > .env; git add -f node_modules .env; git commit -qm own";
    sandbox.sh_in(&sandbox.lane_path("own"), script);
    let check = "grep -q own node_modules/dep/index.js && grep -q own .env";
    let out = sandbox.proq(&["merge", "own", "--verify", check]);
    // The checks pass; the user's own files are in the way of the landing.
    let output = out.fails(1);
    assert!(output.contains("refused own") && !output.contains("check failed"), "{output}");
    for _ in 0..2 {
        let _ = sandbox.proq(&["merge", "own", "--verify", "false"]).fails(4);
    }
    assert_eq!(sandbox.read("node_modules/dep/index.js"), "dep\n");
    assert_eq!(sandbox.read(".env"), "KEY=1\n");
}

#[test]
fn set_up_runs_once_and_again_when_changed() {
    let sandbox = sandbox_with_ignored_files();
    let set_up = "echo run >> $ROOT/runs; touch ready";
    sandbox.git(&["config", "proq.verify.setup", set_up]);
    for lane in ["one", "two", "three"] {
        sandbox.lane_with_commit(lane, &format!("echo {lane} > {lane}.txt"));
    }
    let merge =
        |lane| sandbox.proq(&["merge", lane, "--verify", "test -e ready && test -e node_modules/dep"]);
    let _ = merge("one").ok();
    let _ = merge("two").ok();
    assert_eq!(line_count(&sandbox, "runs"), 1);
    sandbox.git(&["config", "proq.verify.setup", &format!("{set_up}; true")]);
    let _ = merge("three").ok();
    assert_eq!(line_count(&sandbox, "runs"), 2);
    sandbox.assert_healthy();
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
