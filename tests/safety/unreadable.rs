//! Tests of files, folders and records that the user may not read: each is named, and never treated as
//! missing.

use std::path::Path;

use proq_test_kit::{Output, Sandbox};

fn unprivileged_sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    assert_ne!(sandbox.sh("id -u"), "0", "this test needs an account whose permissions count");
    sandbox
}

/// Returns both streams of a command's output.
fn both_streams(out: &Output) -> String {
    format!("{}{}", out.stdout, out.stderr)
}

/// Empties the trash of entries older than a fixed time, and returns the output.
fn empty_trash(sandbox: &Sandbox) -> String {
    let mut command = sandbox.proq_command(&sandbox.repo, &["gc"]);
    command.env("PROQ_TRASH_KEEP", "0").env("PROQ_TEST_NOW", "2026-01-02T03:09:05Z");
    sandbox.output(command).fails(0)
}

/// Runs a command with `PROQ_MERGE_UNCOMMITTED=commit`, so that a landing commits uncommitted work.
fn proq_committing(sandbox: &Sandbox, args: &[&str]) -> Output {
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    command.env("PROQ_MERGE_UNCOMMITTED", "commit");
    sandbox.output(command)
}

/// Promise: worktree/unreadable-untracked
#[test]
#[ignore = "needs an account other than root"]
fn unreadable_files_of_discarded_lane_stay_in_trash() {
    for script in [
        "echo keep >secret; chmod 000 secret",
        "echo keep >secret; chmod 000 secret; echo r >readable",
        "mkdir secret; echo keep >secret/in; chmod 000 secret",
        "mkdir -p t/secret; echo keep >t/secret/in; chmod 000 t/secret; echo r >t/readable",
    ] {
        let sandbox = unprivileged_sandbox();
        let _ = sandbox.proq(&["spawn", "--empty", "-n", "one"]).ok();
        sandbox.sh_in(&sandbox.lane_path("one"), script);
        for args in [&["discard", "one", "--dry-run"][..], &["discard", "one"]] {
            let refused = sandbox.proq(args).fails(1);
            assert!(refused.contains("secret") || refused.contains("uncommitted"), "{script}: {refused}");
        }
        let message = both_streams(&sandbox.proq(&["discard", "--force", "one"]));
        assert!(message.contains("discarded one"), "{script}: {message}");
        assert!(message.contains("secret could not be read, and is in no snapshot"), "{script}: {message}");
        assert!(!message.contains("left as it is") && !message.contains("days"), "{script}: {message}");
        let mut output = String::new();
        for _ in 0..2 {
            output = empty_trash(&sandbox);
            assert!(output.contains("secret could not be read"), "{script}: {output}");
            assert_eq!(sandbox.sh("ls .git/proq/trash | wc -l").trim(), "1", "{script}: {output}");
        }
        // What the hint suggests: move the entry out of the trash.
        let entry = sandbox.repo.join(".git/proq/trash").read_dir().unwrap().next().unwrap().unwrap();
        assert!(output.contains("; mv '") && output.contains(" '[ROOT]'"), "{output}");
        sandbox.sh(&format!("mv '{}' '{}'", entry.path().display(), sandbox.root().display()));
        let moved = sandbox.root().join(entry.file_name());
        sandbox.sh_in(&moved, "chmod -R u+rwX worktree; grep -rq keep worktree");
        assert!(!empty_trash(&sandbox).contains("secret"), "{script}");
    }
}

#[test]
#[ignore = "needs an account other than root"]
fn trash_entry_is_freed_once_nothing_is_unreadable() {
    let sandbox = unprivileged_sandbox();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "one"]).ok();
    sandbox.sh_in(&sandbox.lane_path("one"), "echo keep >secret; chmod 000 secret; echo r >readable");
    let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
    let snaps = sandbox.proq(&["snap", "list", "--json"]).json();
    assert_eq!(snaps["snapshots"][0]["files"], 1, "{snaps:#}");
    sandbox.sh("rm -f .git/proq/trash/*/worktree/secret");
    let output = empty_trash(&sandbox);
    assert!(output.contains("freed 1 removed lane"), "{output}");
}

/// Promise: worktree/unreadable-untracked
#[test]
#[ignore = "needs an account other than root"]
fn undo_restores_unreadable_file() {
    let sandbox = unprivileged_sandbox();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "one"]).ok();
    sandbox.sh_in(&sandbox.lane_path("one"), "echo keep >secret; chmod 000 secret");
    let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
    let _ = empty_trash(&sandbox);
    let _ = sandbox.proq(&["undo"]).ok();
    sandbox.sh_in(&sandbox.lane_path("one"), "chmod 600 secret");
    assert_eq!(std::fs::read_to_string(sandbox.lane_path("one").join("secret")).unwrap(), "keep\n");
}

/// Promise: worktree/unreadable-untracked
#[test]
#[ignore = "needs an account other than root"]
fn landing_names_unreadable_file() {
    let sandbox = unprivileged_sandbox();
    sandbox.lane_with_commit("one", "echo one >one");
    sandbox.sh_in(&sandbox.lane_path("one"), "echo keep >secret; chmod 000 secret");
    let refused = sandbox.proq(&["merge", "one"]);
    let message = both_streams(&refused);
    let path = "[ROOT]/repo/.proq-worktrees/one/secret";
    assert!(refused.code == 1 && message.contains(&format!("chmod u+rwX '{path}'")), "{message}");
    assert!(!message.contains("add -A"), "{message}");
    for args in [&["merge", "one", "--dry-run"][..], &["merge", "one"]] {
        let refused = proq_committing(&sandbox, args);
        let message = both_streams(&refused);
        assert!(refused.code == 1 && message.contains("secret is not readable"), "{message}");
        assert!(!message.contains("Permission denied") && !message.contains("git add"), "{message}");
    }
    sandbox.sh_in(&sandbox.lane_path("one"), "chmod u+r secret");
    let _ = proq_committing(&sandbox, &["merge", "one"]).ok();
    assert_eq!(sandbox.read("secret"), "keep\n");
}

/// Promise: worktree/unreadable-untracked
#[test]
#[ignore = "needs an account other than root"]
fn in_place_run_names_files_missing_from_snapshot() {
    for (more, both) in [("", false), ("echo r >readable", true)] {
        let sandbox = unprivileged_sandbox();
        sandbox.sh(&format!("echo keep >secret; chmod 000 secret; {more}"));
        let args = ["spawn", "--in-place", "-n", "i", "--wait", "--", "sh", "-c", "rm -f secret readable"];
        let output = both_streams(&sandbox.proq(&args));
        assert!(output.contains("warning: secret is not readable: it is in no snapshot"), "{output}");
        assert!(output.contains("no copy of secret, which was not readable"), "{output}");
        assert_eq!(output.contains("as they were: git proq snap show"), both, "{output}");
    }
}

/// Creates a lane with a commit and runs `check` while one path of its repository has the given mode.
fn with_mode(path: &str, mode: &str, check: impl Fn(&Sandbox)) {
    let sandbox = unprivileged_sandbox();
    sandbox.lane_with_commit("one", "echo one >one");
    let old_mode = sandbox.sh(&format!("stat -c %a {path}"));
    sandbox.sh(&format!("chmod {mode} {path}"));
    check(&sandbox);
    sandbox.sh(&format!("chmod {old_mode} {path}"));
    let _ = sandbox.proq(&["merge", "one", "--dry-run"]).ok();
    sandbox.assert_healthy();
}

/// Asserts that an output never treats a lane as missing.
fn assert_no_lane_treated_as_missing(output: &str) {
    for wrong in [
        "belongs to no lane",
        "no lane has on record",
        "creation was not completed",
        "git proq cleanup",
        "git branch -m",
        "no lanes yet",
    ] {
        assert!(!output.contains(wrong), "{wrong}: {output}");
    }
}

/// Promise: worktree/unreadable-records
#[test]
#[ignore = "needs an account other than root"]
fn unreadable_records_are_not_treated_as_missing() {
    for (path, mode) in [
        (".git/proq/lanes", "000"),
        (".git/proq/lanes", "111"),
        (".git/proq/lanes/one", "000"),
        (".git/proq/lanes/one/lane.toml", "000"),
    ] {
        with_mode(path, mode, |sandbox| {
            for args in [&["list"][..], &["doctor"], &["cleanup", "--dry-run"], &["cleanup"]] {
                let output = both_streams(&sandbox.proq(args));
                assert_no_lane_treated_as_missing(&output);
                let full_path = format!("[ROOT]/repo/{path}");
                assert!(output.contains(&full_path) && output.contains("read"), "{path} {args:?}: {output}");
            }
            let doctor = sandbox.proq(&["doctor"]);
            assert!(
                doctor.code == 1 && both_streams(&doctor).contains("ermission denied"),
                "{}",
                both_streams(&doctor)
            );
            assert!(sandbox.lane_path("one").join("one").exists());
            assert_ne!(sandbox.git(&["for-each-ref", "refs/heads/proq/one"]), "");
        });
    }
}

/// Promise: worktree/unreadable-records
#[test]
#[ignore = "needs an account other than root"]
fn unreadable_worktree_is_not_treated_as_missing() {
    for (path, mode) in [
        (".proq-worktrees/one", "000"),
        (".proq-worktrees/one", "111"),
        (".proq-worktrees/one", "444"),
        (".proq-worktrees", "000"),
    ] {
        with_mode(path, mode, |sandbox| {
            let hint = format!("chmod u+rwX '[ROOT]/repo/{path}'");
            for args in [
                &["list"][..],
                &["doctor"],
                &["merge", "one", "--dry-run"],
                &["merge", "one"],
                &["merge", "--all"],
                &["discard", "one"],
                &["discard", "--force", "one"],
            ] {
                let out = sandbox.proq(args);
                let message = both_streams(&out);
                assert!(
                    message.contains("cannot be read") && message.contains(&hint),
                    "{path} {args:?}: {message}"
                );
                assert!(
                    !message.contains("git worktree") && !message.contains("is missing"),
                    "{path} {args:?}: {message}"
                );
                assert_eq!(out.code, i32::from(args != ["list"]), "{path} {args:?}: {message}");
            }
            assert!(Path::new(&sandbox.repo.join(".git/proq/lanes/one/lane.toml")).exists());
            sandbox.sh(&hint.replace("[ROOT]", sandbox.root().to_str().unwrap()));
            let _ = sandbox.proq(&["merge", "one", "--dry-run"]).ok();
        });
    }
}
