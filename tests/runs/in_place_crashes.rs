//! Crashes around a run in the main checkout, at each moment of its start and its end, and what others do at
//! such a moment.

use std::process::Stdio;

use proq_test_kit::Sandbox;
use proq_test_kit::runs::kill_supervisor;
use proq_test_kit::waiting::{KilledOnDrop, wait_until, wait_until_unlocked};

use super::in_place::{
    assert_user_changes_untouched, sandbox_with_user_changes, snapshot_before_run, start_in_place, status,
};
use super::in_place_concurrency::with_lingering_claude;

const SPAWN: [&str; 8] =
    ["spawn", "--in-place", "-n", "x", "--", "sh", "-ec", "echo more >> b; echo new > new; rm c"];

/// Asserts what holds after any crash: the user's changes are intact, the commit has all files, and the next
/// run can start once staged files are unstaged.
fn assert_recoverable(sandbox: &Sandbox, when: &str) {
    assert_user_changes_untouched(sandbox);
    let tree = sandbox.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
    assert!(["a", "b"].iter().all(|file| tree.lines().any(|line| line == *file)), "{when}: {tree}");
    assert!(!sandbox.repo.join(".git/index.lock").exists(), "{when}");
    if !sandbox.row("x").is_null() {
        let _ = sandbox.proq(&["discard", "x"]).ok();
    }
    sandbox.assert_healthy();
    sandbox.git(&["reset", "-q"]);
    let out = super::in_place::run_in_place(sandbox, "echo after > after").ok();
    assert_eq!(out, "x: done\n", "{when}");
    assert_eq!(sandbox.git(&["show", "--format=", "--name-only", "HEAD"]), "after", "{when}");
    assert_user_changes_untouched(sandbox);
}

/// Promise: agent-git/in-place-crash
#[test]
fn killed_start_changes_nothing() {
    for point in
        ["look.drafted", "in-place.noted", "snap.put", "in-place.kept", "in-place.begun", "launch.prepared"]
    {
        let sandbox = sandbox_with_user_changes();
        let mut command = sandbox.proq_command(&sandbox.repo, &SPAWN);
        command.env("PROQ_TEST_DIE_AT", point);
        assert_ne!(sandbox.output(command).code, 0, "{point}");
        assert_eq!(status(&sandbox), " M a\n?? loose", "{point}");
        assert_recoverable(&sandbox, point);
    }
}

/// Promise: agent-git/in-place-crash
#[test]
fn killed_finish_leaves_files_or_commit() {
    // Each with the status that git prints afterwards.
    let committed = " M a\n?? loose";
    let all = [
        ("in-place.looked", " M a\n M b\n D c\n?? loose\n?? new"),
        ("in-place.staged", " M a\nM  b\nD  c\nA  new\n?? loose"),
        ("in-place.committed", committed),
        ("in-place.filed", committed),
    ];
    for (point, left) in all {
        let sandbox = sandbox_with_user_changes();
        let mut command = sandbox.proq_command(&sandbox.repo, &SPAWN);
        command.env("PROQ_TEST_DIE_AT", point);
        let _ = sandbox.output(command);
        wait_until("it is dead", || sandbox.row("x")["state"] == "failed");
        let row = sandbox.row("x");
        assert_eq!(status(&sandbox), left, "{point}");
        let message = "its supervisor crashed; its changes are still in the main checkout";
        assert!(row["detail"].as_str().is_some_and(|d| d.starts_with(message)), "{point}: {row}");
        if point == "in-place.staged" {
            let output = sandbox.proq(&["spawn", "--in-place", "-n", "z", "--", "true"]).fails(1);
            assert!(output.contains("these files are staged in the main checkout: b, c, new"), "{output}");
        }
        assert_eq!(sandbox.read("new"), "new\n");
        assert_recoverable(&sandbox, point);
    }
}

/// Promise: agent-git/in-place-crash
#[test]
fn supervisor_killed_in_hook_leaves_full_commit_or_none() {
    let sandbox = sandbox_with_user_changes();
    sandbox.pipe("up");
    sandbox.pipe("go");
    sandbox.write(".git/hooks/pre-commit", "#!/bin/sh\necho > \"$ROOT/up\"; read line < \"$ROOT/go\"\n");
    sandbox.sh("chmod +x .git/hooks/pre-commit");
    start_in_place(&sandbox, "echo more >> b; echo new > new");
    let _ = sandbox.read_pipe("up");
    kill_supervisor(&sandbox, "x");
    // Git continues without its parent; until it is done, what is staged keeps the next run from starting.
    let output = sandbox.proq(&["spawn", "--in-place", "-n", "z", "--", "true"]).fails(1);
    assert!(output.contains("these files are staged in the main checkout: b, new"), "{output}");
    std::fs::remove_file(sandbox.repo.join(".git/hooks/pre-commit")).unwrap();
    sandbox.write_pipe("go");
    wait_until("git has committed", || sandbox.git(&["log", "-1", "--format=%s"]) != "files");
    assert_eq!(sandbox.git(&["show", "--format=", "--name-only", "HEAD"]), "b\nnew");
    assert_recoverable(&sandbox, "killed in the hook");
}

#[test]
fn killed_supervisor_leaves_all_changes() {
    let sandbox = sandbox_with_user_changes();
    sandbox.pipe("go");
    sandbox.pipe("up");
    start_in_place(&sandbox, "echo more >> b; echo more >> a; echo > \"$ROOT/up\"; read line < \"$ROOT/go\"");
    let _ = sandbox.read_pipe("up");
    kill_supervisor(&sandbox, "x");
    assert_eq!(sandbox.row("x")["state"], "orphaned");
    // Its agent is still running.
    let other = ["spawn", "--in-place", "-n", "z", "--", "true"];
    assert!(sandbox.proq(&other).fails(1).contains("the agent of lane 'x' works in the main checkout"));
    sandbox.write_pipe("go");
    let _ = sandbox.proq(&["wait", "x"]);
    assert_eq!(sandbox.row("x")["state"], "failed");
    assert_eq!(sandbox.read("a"), "a\nmine\nmore\n");
    let snap = format!("refs/proq/snap/{}", snapshot_before_run(&sandbox));
    assert_eq!(sandbox.git(&["show", &format!("{snap}:a")]), "a\nmine");
    let _ = sandbox.proq(&["cleanup", "x"]).ok();
    let _ = sandbox.proq(&other).ok();
    sandbox.assert_healthy();
}

#[test]
fn lane_continues_after_crash() {
    let sandbox = with_lingering_claude(
        r#"begin; echo $n >> "$cd_back/file$n"; if [ $n = 1 ]; then echo > "$ROOT/up"; read go < "$ROOT/go"; fi; well"#,
    );
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = sandbox.proq(&["spawn", "--in-place", "-n", "x", "claude", "write"]).ok();
    let _ = sandbox.read_pipe("up");
    kill_supervisor(&sandbox, "x");
    for args in [&["send", "x", "more"][..], &["run", "x", "claude"], &["redispatch", "x"]] {
        assert_eq!(sandbox.proq(args).code, 1, "{args:?}");
    }
    let _ = sandbox.proq(&["stop", "x"]);
    wait_until("its agent has ended", || {
        ["failed", "stopped"].map(Into::into).contains(&sandbox.row("x")["state"])
    });
    for (n, args) in
        [(2, &["send", "x", "more"][..]), (3, &["run", "x", "claude"]), (4, &["redispatch", "x"])]
    {
        let _ = sandbox.proq(args).ok();
        assert_eq!(sandbox.proq(&["wait", "x"]).ok(), "x: done\n", "{args:?}");
        assert_eq!(sandbox.git(&["show", "--format=", "--name-only", "HEAD"]), format!("file{n}"));
    }
    // By now it is unknown whose file this is.
    assert_eq!(status(&sandbox), "?? file1");
    let _ = sandbox.proq(&["discard", "x"]).ok();
    sandbox.assert_healthy();
}

/// Promise: agent-git/in-place-alone
#[test]
fn only_one_of_two_concurrent_starts_succeeds() {
    let sandbox = sandbox_with_user_changes();
    sandbox.pipe("go");
    // The first start has checked, and found no other run.
    let mut command =
        sandbox.proq_command(&sandbox.repo, &["spawn", "--in-place", "-n", "one", "--", "true"]);
    command.env("PROQ_TEST_STAND_AT", "look.drafted").stdout(Stdio::null()).stderr(Stdio::null());
    let mut first = KilledOnDrop(command.spawn().unwrap());
    let paused = sandbox.wait_until_stopped(first.0.id());
    let second = ["spawn", "--in-place", "-n", "two", "--", "sh", "-c", "read line < \"$ROOT/go\""];
    let _ = sandbox.proq(&second).ok();
    let before = sandbox.lane_leftovers();
    drop(paused);
    assert_eq!(first.exit_code(), Some(1));
    let after: Vec<String> = sandbox.lane_leftovers();
    let is_not_work = |line: &&String| !line.starts_with("work ");
    assert_eq!(
        after.iter().filter(is_not_work).collect::<Vec<_>>(),
        before.iter().filter(is_not_work).collect::<Vec<_>>()
    );
    assert!(sandbox.row("one").is_null());
    sandbox.write_pipe("go");
    assert_eq!(sandbox.proq(&["wait", "two"]).ok(), "two: no-change\n");
    wait_until_unlocked(&sandbox.lane_lock("two", "run.lock"));
    assert_user_changes_untouched(&sandbox);
}

#[test]
fn start_blocks_others_until_it_is_recorded() {
    let sandbox = sandbox_with_user_changes();
    sandbox.git(&["config", "proq.lock.timeout", "1"]);
    let mut command =
        sandbox.proq_command(&sandbox.repo, &["spawn", "--in-place", "-n", "one", "--", "true"]);
    command.env("PROQ_TEST_STAND_AT", "launch.begun").stdout(Stdio::null()).stderr(Stdio::null());
    let mut first = KilledOnDrop(command.spawn().unwrap());
    let paused = sandbox.wait_until_stopped(first.0.id());
    let _ = sandbox.proq(&["spawn", "--in-place", "-n", "two", "--", "true"]).fails(5);
    assert!(sandbox.row("two").is_null());
    drop(paused);
    assert_eq!(first.exit_code(), Some(0));
    assert_eq!(sandbox.proq(&["wait", "one"]).ok(), "one: no-change\n");
    assert_user_changes_untouched(&sandbox);
}

#[test]
fn file_staged_at_last_moment_is_not_committed() {
    let sandbox = sandbox_with_user_changes();
    let mut command = sandbox.proq_command(&sandbox.repo, &SPAWN);
    command.env("PROQ_TEST_STAND_AT", "in-place.looked");
    let _ = sandbox.output(command).ok();
    let paused = sandbox.wait_until_stopped(sandbox.lock_holder("x", "run"));
    sandbox.git(&["add", "a"]);
    drop(paused);
    let out = sandbox.proq(&["wait", "x"]).ok();
    assert!(out.contains("it would include files of yours: a"), "{out}");
    assert_eq!(status(&sandbox), "M  a\n M b\n D c\n?? loose\n?? new");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s"]), "files");
}

#[test]
fn commit_made_in_refusing_hook_is_kept() {
    let sandbox = sandbox_with_user_changes();
    let hook = "#!/bin/sh\n[ -n \"$THEIRS\" ] && exit 0\nTHEIRS=1 git commit -qm theirs; exit 1\n";
    sandbox.write(".git/hooks/pre-commit", hook);
    sandbox.sh("chmod +x .git/hooks/pre-commit");
    let out = super::in_place::run_in_place(&sandbox, "echo more >> b; echo new > new").ok();
    assert!(out.contains("HEAD has moved meanwhile, so the index was not changed"), "{out}");
    assert_eq!(status(&sandbox), " M a\n?? loose");
    assert_eq!(sandbox.git(&["show", "--format=%s", "--name-only", "HEAD"]), "theirs\n\nb\nnew");
    assert_user_changes_untouched(&sandbox);
}
