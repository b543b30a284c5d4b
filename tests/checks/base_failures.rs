//! Checks that fail on the base itself: they refuse a landing, or are ignored if the user wants that.

use proq_test_kit::Sandbox;

/// A check that fails on the base too shows nothing about the lanes, so none of them lands.
/// Promise: checks/no-evidence
#[test]
fn check_that_fails_on_base_refuses_landing() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    sandbox.lane_with_commit("two", "echo two > two.txt");
    let check = "echo no config; test -e missing";
    insta::assert_snapshot!(sandbox.proq(&["merge", "one", "two", "--verify", check]).to_text(), @r"
    refused one: cannot check lanes on 'main': `echo no config; test -e missing` fails on main itself (exit code 1)
        $ echo no config; test -e missing
        no config
    refused two: cannot check lanes on 'main': `echo no config; test -e missing` fails on main itself (exit code 1)
    --- stderr
    hint: read its output: cat '[ROOT]/repo/.git/proq/cache/refused-check.log'
    hint: land without that check: git proq merge --ignore-base-failures one two
    --- code 4
    ");
    assert!(!sandbox.repo.join("one.txt").exists());
    assert_eq!(sandbox.row("one")["state"], "idle");
    let out = sandbox.proq(&["merge", "one", "--verify", check, "--json"]);
    assert_eq!(out.code, 4, "{}", out.to_text());
    let json = out.json();
    assert_eq!(json["lanes"][0]["check"]["ended"]["code"], 1);
    assert_eq!(json["lanes"][0]["result"], "refused");
    let _ = sandbox.proq(&["merge", "--ignore-base-failures", "one", "--verify", check]).ok();
    assert_eq!(sandbox.read("one.txt"), "one\n");
    sandbox.git(&["config", "proq.verify.baseFailures", "warn"]);
    let _ = sandbox.proq(&["merge", "two", "--verify", check]).ok();
    assert_eq!(sandbox.read("two.txt"), "two\n");
    sandbox.assert_healthy();
}

/// Promise: checks/no-evidence
#[test]
fn auto_merge_waits_for_a_failing_base() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.verify.commands", "test -e fixed"]);
    let before = sandbox.git(&["rev-parse", "main"]);
    let script = "echo x > x; git add x; git commit -qm x";
    let spawn = ["spawn", "-q", "--wait", "--auto-merge", "-n", "x", "--", "sh", "-c", script];
    let _ = sandbox.proq(&spawn).fails(4);
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
    assert_eq!(sandbox.row("x")["state"], "done");
    let refused = &sandbox.events("merge.refused")[0];
    assert!(
        refused["message"].as_str().unwrap().contains("`test -e fixed` fails on main itself"),
        "{refused}"
    );
}

/// A lane may mend what fails on the base.
#[test]
fn lane_that_mends_the_base_lands() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("mend", "touch config");
    assert!(sandbox.proq(&["merge", "mend", "--verify", "test -e config"]).ok().contains("landed mend"));
}

/// Promise: checks/blame
#[test]
fn ignored_base_failure_does_not_block() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.verify.baseFailures", "warn"]);
    sandbox.lane_with_commit("one", "echo one > one.txt");
    let out = sandbox.proq(&["merge", "one", "--verify", "test -e missing", "--verify", "test -e one.txt"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(
        out.stderr.contains("warning: `test -e missing` fails on main itself (exit code 1)"),
        "{}",
        out.stderr
    );
    assert_eq!(sandbox.read("one.txt"), "one\n");
    // The other commands still apply.
    sandbox.lane_with_commit("two", "git rm -q one.txt");
    let out = sandbox.proq(&["merge", "two", "--verify", "test -e missing", "--verify", "test -e one.txt"]);
    assert!(out.fails(4).contains("check failed on two: `test -e one.txt`"));
    assert_eq!(sandbox.read("one.txt"), "one\n");
    sandbox.assert_healthy();
}
