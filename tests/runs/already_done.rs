//! Tests of runs that changed nothing: whether their task was done before, and how such a lane is removed.

use proq_test_kit::{Output, Sandbox};

/// Runs `script` as the agent of a new lane and waits until it has ended.
fn spawn(sandbox: &Sandbox, name: &str, options: &[&str], script: &str) -> Output {
    let run = ["--", "sh", "-ec", script];
    sandbox.proq(&[&["spawn", "--wait", "-n", name], options, &run].concat())
}

#[test]
fn unchanged_run_with_passing_checks_is_done() {
    let sandbox = Sandbox::new();
    let checks =
        ["--check", "test -e a.txt", "--check", "test $PROQ_LANES.$PROQ_BASE.${PROQ_LANE-} = x.main."];
    let out = spawn(&sandbox, "x", &checks, "true").ok();
    assert_eq!(out, "x: done (already: nothing had to be changed, its checks succeed)\n");
    let run = sandbox.last_run("x");
    assert_eq!((&run["outcome"], &run["class"]), (&"done".into(), &"done".into()));
    insta::assert_snapshot!(sandbox.proq(&["merge", "x", "--dry-run"]).to_text(), @r"
    nothing to do x: everything in it is on main already; its task had been done before
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["merge", "x"]).to_text(), @r"
    nothing to do x: everything in it is on main already; its task had been done before
    --- code 0
    ");
    assert!(!sandbox.lane_path("x").exists());
    sandbox.assert_healthy();
}

#[test]
fn unchanged_run_with_failing_check_is_no_change() {
    let sandbox = Sandbox::new();
    let checks = ["--check", "test -e a.txt", "--check", "test -e new.txt", "--check", "touch $ROOT/third"];
    let out = spawn(&sandbox, "x", &checks, "true").ok();
    assert_eq!(out, "x: no-change (`test -e new.txt` fails (exit code 1))\n");
    assert!(!sandbox.root().join("third").exists());
    assert!(sandbox.proq(&["merge", "x"]).fails(1).contains("it changed nothing"));
}

#[test]
fn check_times_out_and_can_be_stopped() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.verify.timeout", "1"]);
    let out = spawn(&sandbox, "late", &["--check", "sleep 600"], "true").ok();
    assert_eq!(out, "late: no-change (`sleep 600` fails (timed out after 1 s))\n");
    sandbox.git(&["config", "--unset", "proq.verify.timeout"]);
    sandbox.pipe("up");
    let check = "echo $$ > $ROOT/up; exec sleep 600";
    let _ = sandbox.proq(&["spawn", "-n", "x", "--check", check, "--", "true"]).ok();
    let pid = sandbox.read_pipe("up");
    assert_eq!(sandbox.row("x")["state"], "running");
    let _ = sandbox.proq(&["stop", "x"]).ok();
    assert_eq!(sandbox.row("x")["state"], "no-change");
    assert!(!sandbox.is_alive(pid.trim()));
}

#[test]
fn checks_that_change_the_lane_do_not_count() {
    let sandbox = Sandbox::new();
    for (name, check) in [("file", "echo 1 > made"), ("commit", "git commit -q --allow-empty -m made")] {
        let out = spawn(&sandbox, name, &["--check", check], "true").ok();
        assert!(out.starts_with(&format!("{name}: no-change (its checks changed the lane")), "{out}");
    }
    let _ = sandbox.proq(&["cleanup", "--all"]).ok();
    assert!(sandbox.lane_path("file").join("made").exists());
}

#[test]
fn unchanged_run_without_checks_is_no_change() {
    let sandbox = Sandbox::new();
    sandbox.write("src/b.txt", "b\n");
    sandbox.commit_all("b");
    // A task that edits existing files is indistinguishable from one that created them, so existing files
    // prove nothing.
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
fn already_done_requires_files_in_scope() {
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
fn checks_run_only_after_unchanged_success() {
    let sandbox = Sandbox::new();
    let check = ["--check", "touch $ROOT/asked"];
    assert_eq!(spawn(&sandbox, "failed", &check, "exit 3").fails(4), "failed: failed (exit code 3)\n");
    assert_eq!(spawn(&sandbox, "worked", &check, "echo 1 > one").ok(), "worked: done\n");
    assert!(!sandbox.root().join("asked").exists());
}

#[test]
fn auto_merge_or_cleanup_removes_already_done_lane() {
    let sandbox = Sandbox::new();
    let check = ["--check", "true"];
    let out = spawn(&sandbox, "alone", &["--auto-merge", "--check", "true"], "true").ok();
    assert!(out.contains("nothing to do alone: everything in it is on main already"), "{out}");
    assert!(!sandbox.lane_path("alone").exists());
    for name in ["x", "y"] {
        let _ = spawn(&sandbox, name, &check, "true").ok();
    }
    let _ = sandbox.proq(&["cleanup"]).ok();
    assert!(sandbox.lane_path("x").exists());
    // Commits made after that verdict are ordinary work.
    sandbox.commit_in_lane("y", "echo 1 > one");
    let _ = sandbox.proq(&["cleanup", "--all"]).ok();
    assert!(!sandbox.lane_path("x").exists() && sandbox.lane_path("y").exists());
    assert!(sandbox.proq(&["merge", "y"]).ok().contains("landed y"));
}
