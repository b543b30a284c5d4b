//! Owns the tests of runs that changed nothing: whether their task had been done before, and what becomes of such a lane.

use super::support::{Output, Sandbox};

/// Runs a shell script in a new lane to its end, as its agent.
fn spawn(sandbox: &Sandbox, name: &str, options: &[&str], script: &str) -> Output {
    let run = ["--", "sh", "-ec", script];
    sandbox.proq(&[&["spawn", "--wait", "-n", name], options, &run].concat())
}

#[test]
fn a_task_is_done_before_where_its_checks_succeed() {
    let sandbox = Sandbox::new();
    let checks =
        ["--check", "test -e a.txt", "--check", "test $PROQ_LANES.$PROQ_BASE.${PROQ_LANE-} = x.main."];
    let out = spawn(&sandbox, "x", &checks, "true").ok();
    assert_eq!(out, "x: done (already: nothing had to be changed, its checks succeed)\n");
    let run = sandbox.last_run("x");
    assert_eq!((&run["outcome"], &run["class"]), (&"done".into(), &"done".into()));
    insta::assert_snapshot!(sandbox.proq(&["merge", "x", "--dry-run"]).shown(), @r"
    nothing to do x: everything in it is on main already; its task had been done before
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["merge", "x"]).shown(), @r"
    nothing to do x: everything in it is on main already; its task had been done before
    --- code 0
    ");
    assert!(!sandbox.lane("x").exists());
    sandbox.assert_healthy();
}

#[test]
fn one_whose_checks_fail_is_not() {
    let sandbox = Sandbox::new();
    let checks = ["--check", "test -e a.txt", "--check", "test -e new.txt", "--check", "touch $ROOT/third"];
    let out = spawn(&sandbox, "x", &checks, "true").ok();
    assert_eq!(out, "x: no-change (`test -e new.txt` fails (exit code 1))\n");
    assert!(!sandbox.root().join("third").exists());
    assert!(sandbox.proq(&["merge", "x"]).fails(1).contains("it changed nothing"));
}

#[test]
fn a_check_has_its_time_and_can_be_stopped() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.verify.timeout", "1"]);
    let out = spawn(&sandbox, "late", &["--check", "sleep 600"], "true").ok();
    assert_eq!(out, "late: no-change (`sleep 600` fails (timed out after 1 s))\n");
    sandbox.git(&["config", "--unset", "proq.verify.timeout"]);
    sandbox.pipe("up");
    let check = "echo $$ > $ROOT/up; exec sleep 600";
    let _ = sandbox.proq(&["spawn", "-n", "x", "--check", check, "--", "true"]).ok();
    let pid = sandbox.hear("up");
    assert_eq!(sandbox.row("x")["state"], "running");
    let _ = sandbox.proq(&["stop", "x"]).ok();
    assert_eq!(sandbox.row("x")["state"], "no-change");
    assert!(!sandbox.lives(pid.trim()));
}

#[test]
fn checks_that_change_the_lane_say_nothing() {
    let sandbox = Sandbox::new();
    for (name, check) in [("file", "echo 1 > made"), ("commit", "git commit -q --allow-empty -m made")] {
        let out = spawn(&sandbox, name, &["--check", check], "true").ok();
        assert!(out.starts_with(&format!("{name}: no-change (its checks changed the lane")), "{out}");
    }
    let _ = sandbox.proq(&["cleanup", "--all"]).ok();
    assert!(sandbox.lane("file").join("made").exists());
}

#[test]
fn without_checks_nothing_says_that_a_task_was_done_before() {
    let sandbox = Sandbox::new();
    sandbox.write("src/b.txt", "b\n");
    sandbox.commit_all("b");
    // A task that is to change files that are there looks the same as one that has made them.
    for (name, scope) in [
        ("there", &["--scope", "a.txt", "--scope", "src/", "--scope", "*.md"][..]),
        ("one-not", &["--scope", "a.txt", "--scope", "new.txt"]),
        ("folder", &["--scope", "src/"]),
        ("pattern", &["--scope", "src/*"]),
        ("none", &[]),
    ] {
        assert_eq!(spawn(&sandbox, name, scope, "true").ok(), format!("{name}: no-change\n"));
        assert!(sandbox.proq(&["merge", name]).fails(1).contains("it changed nothing"));
    }
}

#[test]
fn with_checks_the_files_have_to_be_there_too_that_the_task_names() {
    let sandbox = Sandbox::new();
    sandbox.write("src/b.txt", "b\n");
    sandbox.commit_all("b");
    let done = "done (already: nothing had to be changed, its checks succeed)";
    let absent = |name: &str| format!("no-change ({name}, which its task names, is not there)");
    for (name, scope, end) in [
        ("there", &["--scope", "a.txt", "--scope", "src/", "--scope", "*.md"][..], done.to_owned()),
        ("pattern", &["--scope", "new/*"], done.to_owned()),
        ("file", &["--scope", "a.txt", "--scope", "new.txt"], absent("new.txt")),
        ("folder", &["--scope", "a.txt/"], absent("a.txt/")),
    ] {
        let options = [scope, &["--check", "true"]].concat();
        assert_eq!(spawn(&sandbox, name, &options, "true").ok(), format!("{name}: {end}\n"));
    }
}

#[test]
fn only_a_run_that_ended_well_and_changed_nothing_is_asked_about() {
    let sandbox = Sandbox::new();
    let check = ["--check", "touch $ROOT/asked"];
    assert_eq!(spawn(&sandbox, "failed", &check, "exit 3").fails(4), "failed: failed (exit code 3)\n");
    assert_eq!(spawn(&sandbox, "worked", &check, "echo 1 > one").ok(), "worked: done\n");
    assert!(!sandbox.root().join("asked").exists());
}

#[test]
fn it_goes_by_itself_or_when_lanes_are_tidied_up() {
    let sandbox = Sandbox::new();
    let check = ["--check", "true"];
    let out = spawn(&sandbox, "alone", &["--auto-merge", "--check", "true"], "true").ok();
    assert!(out.contains("nothing to do alone: everything in it is on main already"), "{out}");
    assert!(!sandbox.lane("alone").exists());
    for name in ["x", "y"] {
        let _ = spawn(&sandbox, name, &check, "true").ok();
    }
    let _ = sandbox.proq(&["cleanup"]).ok();
    assert!(sandbox.lane("x").exists());
    // What comes afterwards is work like any other.
    sandbox.commit_in_lane("y", "echo 1 > one");
    let _ = sandbox.proq(&["cleanup", "--all"]).ok();
    assert!(!sandbox.lane("x").exists() && sandbox.lane("y").exists());
    assert!(sandbox.proq(&["merge", "y"]).ok().contains("landed y"));
}
