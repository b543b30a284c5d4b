//! Owns the tests of deaths around a run in the main checkout, at each moment of its start and its end, and of what others do in
//! such a moment.

use std::process::Stdio;

use super::in_place::{assert_untouched, at_work, begin, kept_before, status};
use super::in_place_beside::with_claude;
use super::stop::kill_supervisor;
use super::support::Sandbox;
use super::support::patience::{Beside, wait_until, wait_until_free};

const SPAWN: [&str; 8] =
    ["spawn", "--in-place", "-n", "x", "--", "sh", "-ec", "echo more >> b; echo new > new; rm c"];

/// What must be so after any death: nothing of the user's has changed, the commit has all files, and the next one can begin once
/// what is staged is looked at.
fn assert_sound(sandbox: &Sandbox, when: &str) {
    assert_untouched(sandbox);
    let tree = sandbox.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
    assert!(["a", "b"].iter().all(|file| tree.lines().any(|line| line == *file)), "{when}: {tree}");
    assert!(!sandbox.repo.join(".git/index.lock").exists(), "{when}");
    if !sandbox.row("x").is_null() {
        let _ = sandbox.proq(&["discard", "x"]).ok();
    }
    sandbox.assert_healthy();
    sandbox.git(&["reset", "-q"]);
    let out = super::in_place::in_place(sandbox, "echo after > after").ok();
    assert_eq!(out, "x: done\n", "{when}");
    assert_eq!(sandbox.git(&["show", "--format=", "--name-only", "HEAD"]), "after", "{when}");
    assert_untouched(sandbox);
}

#[test]
fn a_start_that_is_killed_has_changed_nothing() {
    for point in
        ["look.drafted", "in-place.noted", "snap.put", "in-place.kept", "in-place.begun", "launch.prepared"]
    {
        let sandbox = at_work();
        let mut command = sandbox.proq_command(&sandbox.repo, &SPAWN);
        command.env("PROQ_TEST_DIE_AT", point);
        assert_ne!(sandbox.output(command).code, 0, "{point}");
        assert_eq!(status(&sandbox), " M a\n?? loose", "{point}");
        assert_sound(&sandbox, point);
    }
}

#[test]
fn an_end_that_is_killed_leaves_files_or_a_commit() {
    // With what git says of the files afterwards.
    let committed = " M a\n?? loose";
    let all = [
        ("in-place.looked", " M a\n M b\n D c\n?? loose\n?? new"),
        ("in-place.staged", " M a\nM  b\nD  c\nA  new\n?? loose"),
        ("in-place.committed", committed),
        ("in-place.filed", committed),
    ];
    for (point, left) in all {
        let sandbox = at_work();
        let mut command = sandbox.proq_command(&sandbox.repo, &SPAWN);
        command.env("PROQ_TEST_DIE_AT", point);
        let _ = sandbox.output(command);
        wait_until("it is dead", || sandbox.row("x")["state"] == "failed");
        let row = sandbox.row("x");
        assert_eq!(status(&sandbox), left, "{point}");
        let told =
            "its supervisor ended without a word; what it changed is in the main checkout as it left it";
        assert!(row["detail"].as_str().is_some_and(|d| d.starts_with(told)), "{point}: {row}");
        if point == "in-place.staged" {
            let said = sandbox.proq(&["spawn", "--in-place", "-n", "z", "--", "true"]).fails(1);
            assert!(said.contains("these files are staged in the main checkout: b, c, new"), "{said}");
        }
        assert_eq!(sandbox.read("new"), "new\n");
        assert_sound(&sandbox, point);
    }
}

#[test]
fn a_supervisor_that_is_killed_while_a_hook_runs_leaves_a_whole_commit_or_none() {
    let sandbox = at_work();
    sandbox.pipe("up");
    sandbox.pipe("go");
    sandbox.write(".git/hooks/pre-commit", "#!/bin/sh\necho > \"$ROOT/up\"; read line < \"$ROOT/go\"\n");
    sandbox.sh("chmod +x .git/hooks/pre-commit");
    begin(&sandbox, "echo more >> b; echo new > new");
    let _ = sandbox.hear("up");
    kill_supervisor(&sandbox, "x");
    // Git goes on by itself; until then what is staged keeps the next one from beginning.
    let said = sandbox.proq(&["spawn", "--in-place", "-n", "z", "--", "true"]).fails(1);
    assert!(said.contains("these files are staged in the main checkout: b, new"), "{said}");
    std::fs::remove_file(sandbox.repo.join(".git/hooks/pre-commit")).unwrap();
    sandbox.tell("go");
    wait_until("git has committed", || sandbox.git(&["log", "-1", "--format=%s"]) != "files");
    assert_eq!(sandbox.git(&["show", "--format=", "--name-only", "HEAD"]), "b\nnew");
    assert_sound(&sandbox, "killed in the hook");
}

#[test]
fn a_supervisor_that_was_killed_leaves_all_that_there_was() {
    let sandbox = at_work();
    sandbox.pipe("go");
    sandbox.pipe("up");
    begin(&sandbox, "echo more >> b; echo more >> a; echo > \"$ROOT/up\"; read line < \"$ROOT/go\"");
    let _ = sandbox.hear("up");
    kill_supervisor(&sandbox, "x");
    assert_eq!(sandbox.row("x")["state"], "orphaned");
    // Its agent is there still.
    let other = ["spawn", "--in-place", "-n", "z", "--", "true"];
    assert!(sandbox.proq(&other).fails(1).contains("the agent of lane 'x' works in the main checkout"));
    sandbox.tell("go");
    let _ = sandbox.proq(&["wait", "x"]);
    assert_eq!(sandbox.row("x")["state"], "failed");
    assert_eq!(sandbox.read("a"), "a\nmine\nmore\n");
    let snap = format!("refs/proq/snap/{}", kept_before(&sandbox));
    assert_eq!(sandbox.git(&["show", &format!("{snap}:a")]), "a\nmine");
    let _ = sandbox.proq(&["cleanup", "x"]).ok();
    let _ = sandbox.proq(&other).ok();
    sandbox.assert_healthy();
}

#[test]
fn after_a_death_its_lane_goes_on() {
    let sandbox = with_claude(
        r#"begin; echo $n >> "$cd_back/file$n"; if [ $n = 1 ]; then echo > "$ROOT/up"; read go < "$ROOT/go"; fi; well"#,
    );
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = sandbox.proq(&["spawn", "--in-place", "-n", "x", "claude", "write"]).ok();
    let _ = sandbox.hear("up");
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
    // Nobody knows whose this is any more.
    assert_eq!(status(&sandbox), "?? file1");
    let _ = sandbox.proq(&["discard", "x"]).ok();
    sandbox.assert_healthy();
}

#[test]
fn of_two_that_begin_at_once_one_does() {
    let sandbox = at_work();
    sandbox.pipe("go");
    // The first one has looked, and found nobody.
    let mut command =
        sandbox.proq_command(&sandbox.repo, &["spawn", "--in-place", "-n", "one", "--", "true"]);
    command.env("PROQ_TEST_STAND_AT", "look.drafted").stdout(Stdio::null()).stderr(Stdio::null());
    let mut first = Beside(command.spawn().unwrap());
    let standing = sandbox.standing(first.0.id());
    let second = ["spawn", "--in-place", "-n", "two", "--", "sh", "-c", "read line < \"$ROOT/go\""];
    let _ = sandbox.proq(&second).ok();
    let before = sandbox.traces();
    drop(standing);
    assert_eq!(first.code(), Some(1));
    let after: Vec<String> = sandbox.traces();
    let gone = |line: &&String| !line.starts_with("work ");
    assert_eq!(after.iter().filter(gone).collect::<Vec<_>>(), before.iter().filter(gone).collect::<Vec<_>>());
    assert!(sandbox.row("one").is_null());
    sandbox.tell("go");
    assert_eq!(sandbox.proq(&["wait", "two"]).ok(), "two: no-change\n");
    wait_until_free(&sandbox.lock("two", "run.lock"));
    assert_untouched(&sandbox);
}

#[test]
fn from_its_first_look_until_it_is_on_record_nobody_else_begins() {
    let sandbox = at_work();
    sandbox.git(&["config", "proq.lock.timeout", "1"]);
    let mut command =
        sandbox.proq_command(&sandbox.repo, &["spawn", "--in-place", "-n", "one", "--", "true"]);
    command.env("PROQ_TEST_STAND_AT", "launch.begun").stdout(Stdio::null()).stderr(Stdio::null());
    let mut first = Beside(command.spawn().unwrap());
    let standing = sandbox.standing(first.0.id());
    let _ = sandbox.proq(&["spawn", "--in-place", "-n", "two", "--", "true"]).fails(5);
    assert!(sandbox.row("two").is_null());
    drop(standing);
    assert_eq!(first.code(), Some(0));
    assert_eq!(sandbox.proq(&["wait", "one"]).ok(), "one: no-change\n");
    assert_untouched(&sandbox);
}

#[test]
fn what_the_user_stages_at_the_last_moment_is_not_committed() {
    let sandbox = at_work();
    let mut command = sandbox.proq_command(&sandbox.repo, &SPAWN);
    command.env("PROQ_TEST_STAND_AT", "in-place.looked");
    let _ = sandbox.output(command).ok();
    let standing = sandbox.standing(sandbox.holder("x", "run"));
    sandbox.git(&["add", "a"]);
    drop(standing);
    let out = sandbox.proq(&["wait", "x"]).ok();
    assert!(out.contains("files of yours would go with it: a"), "{out}");
    assert_eq!(status(&sandbox), "M  a\n M b\n D c\n?? loose\n?? new");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s"]), "files");
}

#[test]
fn what_somebody_else_commits_while_a_hook_says_no_is_not_taken_back() {
    let sandbox = at_work();
    let hook = "#!/bin/sh\n[ -n \"$THEIRS\" ] && exit 0\nTHEIRS=1 git commit -qm theirs; exit 1\n";
    sandbox.write(".git/hooks/pre-commit", hook);
    sandbox.sh("chmod +x .git/hooks/pre-commit");
    let out = super::in_place::in_place(&sandbox, "echo more >> b; echo new > new").ok();
    assert!(out.contains("HEAD has moved meanwhile, so the index is as it was left"), "{out}");
    assert_eq!(status(&sandbox), " M a\n?? loose");
    assert_eq!(sandbox.git(&["show", "--format=%s", "--name-only", "HEAD"]), "theirs\n\nb\nnew");
    assert_untouched(&sandbox);
}
