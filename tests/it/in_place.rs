//! Owns the tests of `git proq spawn --in-place`: a run in the main checkout, what it commits there, and what it leaves alone.

use super::runs::with_claude;
use super::stop::kill_supervisor;
use super::support::{Output, Sandbox};

/// A repository with three files, in which the user has changed one, staged another and begun a third.
fn at_work() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("echo a > a; echo b > b; echo c > c");
    sandbox.commit_all("files");
    sandbox.sh("echo mine >> a; echo staged > staged; git add staged; echo loose > loose");
    sandbox
}

/// Runs a script in the main checkout as lane `x`, to its end.
fn in_place(sandbox: &Sandbox, script: &str) -> Output {
    sandbox.proq(&["spawn", "--in-place", "--wait", "-n", "x", "--", "sh", "-ec", script])
}

/// Starts a script in the main checkout as lane `x`.
fn begin(sandbox: &Sandbox, script: &str) {
    let _ = sandbox.proq(&["spawn", "--in-place", "-n", "x", "--", "sh", "-ec", script]).ok();
}

/// What is uncommitted, as git tells it.
fn status(sandbox: &Sandbox) -> String {
    sandbox.git(&["status", "--porcelain"])
}

/// The subjects of the commits on the branch that is checked out, without the first.
fn subjects(sandbox: &Sandbox) -> Vec<String> {
    let all = sandbox.git(&["log", "--format=%s"]);
    all.lines().map(str::to_owned).filter(|line| line != "first").collect()
}

/// The snapshot of what was uncommitted before the last run.
fn kept_before(sandbox: &Sandbox) -> String {
    let args =
        ["for-each-ref", "--sort=-refname", "--count=1", "--format=%(refname:lstrip=3)", "refs/proq/snap"];
    String::from_utf8(sandbox.raw(&sandbox.repo, &args)).unwrap().trim().to_owned()
}

#[test]
fn what_it_changed_is_committed_and_what_was_the_users_is_not() {
    let sandbox = at_work();
    let before = status(&sandbox);
    let shown = in_place(&sandbox, "echo more >> b; echo new > new; mkdir d; echo deep > d/e; rm c").shown();
    insta::assert_snapshot!(shown, @r"
    x: done
    --- code 0
    ");
    assert_eq!(status(&sandbox), before);
    assert_eq!(sandbox.git(&["show", "--format=", "--name-status", "HEAD"]), "M\tb\nD\tc\nA\td/e\nA\tnew");
    assert_eq!((sandbox.read("a"), sandbox.git(&["show", ":staged"])), ("a\nmine\n".into(), "staged".into()));
    assert_eq!(sandbox.row("x")["mode"], "in-place");
    sandbox.assert_healthy();

    let number = |args: &[&str]| sandbox.proq(args).ok();
    assert!(number(&["op", "log"]).contains("run 1 of lane x"));
    let _ = number(&["undo", "1"]);
    assert_eq!((status(&sandbox), subjects(&sandbox).len()), (before.clone(), 1));
    assert_eq!((sandbox.read("c"), sandbox.repo.join("d").exists()), ("c\n".into(), false));
    let _ = number(&["op", "redo"]);
    assert_eq!((status(&sandbox), subjects(&sandbox).len()), (before, 2));
    sandbox.assert_healthy();
}

#[test]
fn a_file_that_was_changed_by_both_stays_uncommitted_and_is_kept_as_it_was() {
    let sandbox = at_work();
    let out =
        in_place(&sandbox, "echo more >> a; echo more >> b; echo more >> loose; echo more >> staged").ok();
    assert!(
        out.contains(
            "it changed files that had changes of yours, which are not committed for you: a, loose, staged"
        ),
        "{out}"
    );
    assert_eq!(sandbox.git(&["show", "--format=", "--name-only", "HEAD"]), "b");
    assert_eq!(status(&sandbox), " M a\nAM staged\n?? loose");
    let id = kept_before(&sandbox);
    let kept =
        |file: &str| sandbox.proq(&["snap", "show", &id, "--json"]).ok().contains(&format!("\"{file}\""));
    assert!(["a", "staged", "loose"].iter().all(|file| kept(file)));
    let snap = format!("refs/proq/snap/{id}");
    assert_eq!(sandbox.git(&["show", &format!("{snap}:a")]), "a\nmine");
    assert_eq!(sandbox.git(&["show", &format!("{snap}^3:loose")]), "loose");
    sandbox.assert_healthy();
}

#[test]
fn commits_of_the_agents_own_are_undone_too_and_edits_stay() {
    let sandbox = at_work();
    let script =
        "echo more >> b; git add b; git commit -qm 'by hand' b; echo again >> b; git commit -qm again b";
    assert_eq!(in_place(&sandbox, script).ok(), "x: done\n");
    assert_eq!(subjects(&sandbox)[..2], ["again", "by hand"]);
    let _ = sandbox.proq(&["undo", "1"]).ok();
    assert_eq!((sandbox.read("b"), sandbox.read("a")), ("b\n".into(), "a\nmine\n".into()));
    // What was built on it meanwhile is nobody's to take back without being told.
    let _ = sandbox.proq(&["op", "redo"]).ok();
    sandbox.sh("git commit -qm mine --allow-empty");
    let refused = sandbox.proq(&["undo", "1"]).fails(1);
    assert!(refused.contains("main"), "{refused}");
}

#[test]
fn what_the_agent_committed_of_the_users_is_told_and_kept() {
    let sandbox = at_work();
    let out = in_place(&sandbox, "echo more >> b; git commit -qam everything").ok();
    // Nothing of it was lost, so there is nothing to tell but what became of it.
    assert_eq!(sandbox.git(&["show", "HEAD:a"]), "a\nmine");
    assert_eq!(out, "x: done\n");
    let out = sandbox.proq(&["discard", "x"]).ok();
    assert!(out.contains("discarded x"), "{out}");
    sandbox.sh("echo mine >> c");
    let out = in_place(&sandbox, "git checkout -q c").ok();
    assert!(out.contains("which are not committed for you: c"), "{out}");
    assert_eq!(sandbox.read("c"), "c\n");
    let id = kept_before(&sandbox);
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    assert_eq!(sandbox.read("c"), "c\nmine\n");
}

#[test]
fn there_is_one_at_a_time_and_none_beside_a_preview() {
    let sandbox = Sandbox::new();
    sandbox.pipe("go");
    sandbox.lane_of("y", "echo y > y");
    let _ = sandbox.proq(&["preview", "y"]).ok();
    let spawn = ["spawn", "--in-place", "-n", "x", "--", "sh", "-c", "echo one > one"];
    insta::assert_snapshot!(sandbox.proq(&spawn).shown(), @r"
    --- stderr
    error: the main checkout shows lane 'y'; nothing was changed
    hint: go back first: git proq preview --back
    --- code 1
    ");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    begin(&sandbox, "echo one > one; read line < \"$ROOT/go\"");
    let other = ["spawn", "--in-place", "-n", "z", "--", "sh", "-c", "echo two > two"];
    insta::assert_snapshot!(sandbox.proq(&other).shown(), @r"
    --- stderr
    error: the agent of lane 'x' works in the main checkout; nothing was changed
    hint: wait for it: git proq wait x
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["preview", "y"]).shown(), @r"
    --- stderr
    error: the agent of lane 'x' works in the main checkout; nothing was changed
    hint: wait for it: git proq wait x
    --- code 1
    ");
    assert!(sandbox.proq(&["show", "z"]).fails(1).contains("there is no lane 'z'"));
    kill_supervisor(&sandbox, "x");
    // Its agent is there still.
    assert!(sandbox.proq(&other).fails(1).contains("works in the main checkout"));
    sandbox.tell("go");
    let _ = sandbox.proq(&["wait", "x"]);
    let _ = sandbox.proq(&other).ok();
    let _ = sandbox.proq(&["wait", "z"]).ok();
    let _ = sandbox.proq(&["preview", "y"]).ok();
}

#[test]
fn it_takes_a_branch_and_nothing_half_done() {
    let sandbox = Sandbox::new();
    let spawn = ["spawn", "--in-place", "-n", "x", "--", "sh", "-c", "echo one > one"];
    let refused = |what: &str| {
        let said = sandbox.proq(&spawn).fails(1);
        assert!(said.contains(what) && said.contains("nothing was changed"), "{said}");
        assert!(sandbox.row("x").is_null());
    };
    sandbox.git(&["checkout", "-q", "--detach"]);
    refused("the main checkout is on no branch");
    sandbox.git(&["checkout", "-q", "main"]);
    sandbox.git(&["branch", "other"]);
    sandbox.sh("echo a > a; git add a; git commit -qm a; git checkout -q other; echo b > a; git add a; git commit -qm b");
    sandbox.sh("git merge -q main || true");
    refused("a merge is under way in the main checkout");
    sandbox.sh("git merge --abort");
    sandbox.git(&["branch", "-q", "-m", "other", "proq/mine"]);
    refused("which is git-proq's own");
    for flag in [&["--auto-merge"][..], &["--check", "true"], &["--onto", "main"], &["--count", "2"]] {
        let args = [&["spawn", "--in-place"][..], flag, &["--", "true"]].concat();
        let said = sandbox.proq(&args).fails(2);
        assert!(said.contains("does not go with --in-place"), "{said}");
    }
    let _ = sandbox.proq(&["spawn", "--in-place", "--mode", "plan", "claude", "x"]).fails(2);
}

#[test]
fn one_that_fails_leaves_what_it_did_uncommitted_and_one_that_did_nothing_says_so() {
    let sandbox = at_work();
    let out = in_place(&sandbox, "echo more >> b; echo new > new; exit 3").fails(4);
    assert!(out.contains("exit code 3; it left uncommitted: b, new"), "{out}");
    assert_eq!(
        (subjects(&sandbox).len(), status(&sandbox)),
        (1, " M a\n M b\nA  staged\n?? loose\n?? new".into())
    );
    let _ = sandbox.proq(&["discard", "x"]).ok();
    assert_eq!(in_place(&sandbox, "true").ok(), "x: no-change\n");
    assert_eq!(subjects(&sandbox).len(), 1);
    // What a person has is the person's, whatever the settings say.
    let _ = sandbox.proq(&["discard", "x"]).ok();
    sandbox.git(&["config", "proq.agent.autocommit", "never"]);
    let out = in_place(&sandbox, "echo more >> c").ok();
    assert!(out.contains("it left uncommitted: c"), "{out}");
    assert_eq!(subjects(&sandbox).len(), 1);
}

#[test]
fn a_commit_that_the_repositorys_hook_refuses_leaves_all_as_it_was() {
    let sandbox = at_work();
    sandbox.sh("printf '#!/bin/sh\\necho no such style >&2; exit 1\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit");
    let out = in_place(&sandbox, "echo more >> b; echo new > new").ok();
    assert!(
        out.contains("what it changed is not committed, git refused") && out.contains("no such style"),
        "{out}"
    );
    assert_eq!(status(&sandbox), " M a\n M b\nA  staged\n?? loose\n?? new");
}

#[test]
fn what_must_not_be_committed_is_not() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.agent.autocommitLimit", "1"]);
    let out = in_place(&sandbox, "echo one > one; head -c 2000000 /dev/zero > big").ok();
    assert!(out.contains("what it changed is not committed: big has 1 MiB"), "{out}");
    assert_eq!(status(&sandbox), "?? big\n?? one");
}

#[test]
fn one_that_leaves_the_branch_is_told_and_not_committed_for() {
    let sandbox = Sandbox::new();
    let out = in_place(&sandbox, "git checkout -q -b elsewhere; echo one > one").fails(4);
    assert!(out.contains("the main checkout is on elsewhere now, and nothing was committed for it"), "{out}");
    assert_eq!(status(&sandbox), "?? one");
    let said = sandbox.proq(&["run", "x", "claude", "go on"]).fails(1);
    assert!(said.contains("claude") || said.contains("lane 'x' works on 'main'"), "{said}");
}

#[test]
fn it_goes_on_where_it_was_and_begins_anew() {
    let sandbox = with_claude("begin; echo $n >> \"$cd_back/file\"; well");
    let spawn = ["spawn", "--in-place", "--wait", "-n", "x", "claude", "write into file"];
    assert_eq!(sandbox.proq(&spawn).ok(), "x: done\n");
    assert_eq!(sandbox.git(&["show", "HEAD:file"]), "1");
    let prompt = std::fs::read_to_string(sandbox.root().join("notes/prompt.1")).unwrap();
    assert!(prompt.is_empty() || prompt.contains("write into file"), "{prompt}");
    let all = sandbox.proq(&["show", "x", "--prompt"]).ok();
    assert!(all.contains("You work in the main checkout") && !all.contains("is to land"), "{all}");
    assert_eq!(sandbox.proq(&["send", "--wait", "x", "more"]).ok(), "x: done\n");
    assert_eq!(sandbox.git(&["show", "HEAD:file"]), "1\n2");
    sandbox.git(&["checkout", "-q", "-b", "other"]);
    let said = sandbox.proq(&["send", "x", "still more"]).fails(1);
    assert!(said.contains("the main checkout is on 'other', and lane 'x' works on 'main'"), "{said}");
    let _ = sandbox.proq(&["redispatch", "x"]).ok();
    assert_eq!(sandbox.proq(&["wait", "x"]).ok(), "x: done\n");
    assert_eq!(sandbox.git(&["show", "other:file"]), "1\n2\n3");
    assert_eq!(sandbox.git(&["show", "main:file"]), "1\n2");
}

#[test]
fn a_try_that_changed_something_is_not_tried_again() {
    let sandbox = with_claude(
        "begin; if [ $n = 1 ]; then busy; exit 1; fi; echo $n >> \"$cd_back/file\"; busy; exit 1",
    );
    let out = sandbox.proq(&["spawn", "--in-place", "--wait", "-n", "x", "claude", "write"]).fails(4);
    assert!(out.contains("the main checkout is not as it was, and is not put back"), "{out}");
    assert_eq!(sandbox.read("file"), "2\n");
    assert!(!sandbox.root().join("notes/3").exists());
}

#[test]
fn its_git_may_write_its_branch_and_nobody_elses() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("y", "echo y > y");
    let tip = sandbox.git(&["rev-parse", "proq/y"]);
    let script = "git commit -q --allow-empty -m own; git proq task read | grep 'main, in the main checkout'; git branch -f proq/y HEAD && exit 9; echo one > one";
    assert_eq!(in_place(&sandbox, script).ok(), "x: done\n");
    assert_eq!(sandbox.git(&["rev-parse", "proq/y"]), tip);
    assert_eq!(sandbox.events("lane.escape").len(), 0);
}

#[test]
fn a_supervisor_that_was_killed_leaves_all_that_there_was() {
    let sandbox = at_work();
    sandbox.pipe("go");
    begin(&sandbox, "echo more >> b; echo more >> a; read line < \"$ROOT/go\"");
    kill_supervisor(&sandbox, "x");
    assert_eq!(sandbox.row("x")["state"], "orphaned");
    sandbox.tell("go");
    let _ = sandbox.proq(&["wait", "x"]);
    assert_eq!(sandbox.row("x")["state"], "failed");
    assert_eq!(sandbox.read("a"), "a\nmine\nmore\n");
    let snap = format!("refs/proq/snap/{}", kept_before(&sandbox));
    assert_eq!(sandbox.git(&["show", &format!("{snap}:a")]), "a\nmine");
    let _ = sandbox.proq(&["cleanup", "x"]).ok();
    sandbox.assert_healthy();
}
