//! Owns the tests of what goes on beside a run in the main checkout: what it does not begin beside, what is refused while it is
//! at work, what the user does meanwhile, and the commands that look at it.

use super::in_place::{assert_untouched, at_work, begin, in_place, operations, status, subjects};
use super::runs;
use super::support::Sandbox;
use super::tmux::Screen;

const SPAWN: [&str; 8] = ["spawn", "--in-place", "-n", "x", "--", "sh", "-c", "echo one > one"];

/// A repository whose `claude` has all the time to end by itself.
pub fn with_claude(script: &str) -> Sandbox {
    let sandbox = runs::with_claude(script);
    sandbox.git(&["config", "proq.agent.linger", "60"]);
    sandbox
}

/// A run as lane `x` that has changed `b` and waits for `go`.
fn waiting(sandbox: &Sandbox) {
    sandbox.pipe("up");
    sandbox.pipe("go");
    begin(sandbox, "echo more >> b; echo > \"$ROOT/up\"; read line < \"$ROOT/go\"; echo end >> b");
    let _ = sandbox.hear("up");
}

/// Lets it end, and says what came of it.
fn ended(sandbox: &Sandbox) -> String {
    sandbox.tell("go");
    sandbox.proq(&["wait", "x"]).ok()
}

#[test]
fn there_is_one_at_a_time_and_none_beside_a_preview() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("y", "echo y > y");
    let _ = sandbox.proq(&["preview", "y"]).ok();
    insta::assert_snapshot!(sandbox.proq(&SPAWN).shown(), @r"
    --- stderr
    error: the main checkout shows lane 'y'; nothing was changed
    hint: go back first: git proq preview --back
    --- code 1
    ");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("echo b > b; git add b; git commit -qm b");
    waiting(&sandbox);
    let before = sandbox.traces();
    let other = ["spawn", "--in-place", "-n", "z", "--", "sh", "-c", "echo two > two"];
    insta::assert_snapshot!(sandbox.proq(&other).shown(), @r"
    --- stderr
    error: the agent of lane 'x' works in the main checkout; nothing was changed
    hint: wait for it: git proq wait x   or stop it: git proq stop x
    --- code 1
    ");
    assert_eq!(sandbox.traces(), before);
    assert_eq!(ended(&sandbox), "x: done\n");
    let _ = sandbox.proq(&other).ok();
    let _ = sandbox.proq(&["wait", "z"]).ok();
    let _ = sandbox.proq(&["preview", "y"]).ok();
}

#[test]
fn it_takes_a_branch_and_nothing_half_done() {
    let sandbox = Sandbox::new();
    let before = || (sandbox.traces(), status(&sandbox), sandbox.proq(&["op", "log", "--json"]).json());
    let refused = |what: &str| {
        let was = before();
        for args in [&SPAWN[..], &[&SPAWN[..1], &["--dry-run"], &SPAWN[1..]].concat()] {
            let said = sandbox.proq(args).fails(1);
            assert!(said.contains(what) && said.contains("nothing was changed"), "{said}");
        }
        assert!(before() == was && sandbox.row("x").is_null(), "{what}");
    };
    sandbox.git(&["checkout", "-q", "--detach"]);
    refused("the main checkout is on no branch");
    sandbox.git(&["checkout", "-q", "main"]);
    sandbox.git(&["branch", "other"]);
    sandbox.sh("echo a > a; git add a; git commit -qm a; git checkout -q other; echo b > a; git add a; git commit -qm b");
    for (what, with) in [("merge", "merge"), ("rebase", "rebase"), ("cherry-pick", "cherry-pick")] {
        sandbox.sh(&format!("git {with} main >/dev/null 2>&1 || true"));
        refused(&format!("a {what} is under way in the main checkout"));
        sandbox.git(&[with, "--abort"]);
    }
    sandbox
        .sh("git revert -n HEAD; git reset -q --hard; git checkout -q HEAD -- . ; echo x > .git/REVERT_HEAD");
    refused("a revert is under way");
    sandbox.sh("rm .git/REVERT_HEAD; git bisect start HEAD HEAD~1 >/dev/null");
    refused("the main checkout");
    sandbox.sh("git bisect reset >/dev/null 2>&1; git checkout -q other; git merge -q --squash main >/dev/null 2>&1 || true; rm -f .git/SQUASH_MSG");
    refused("has conflicts that are open: a");
    sandbox.git(&["reset", "-q", "--hard"]);
    sandbox.sh("echo s > s; git add s");
    refused("these files are staged in the main checkout: s");
    sandbox.sh("git reset -q; git add -N s");
    refused("these files are staged in the main checkout: s");
    sandbox.sh("git reset -q; rm s; git rm -q --cached a");
    refused("these files are staged in the main checkout: a");
    sandbox.sh("git reset -q --hard; git branch -q -m other proq/mine");
    refused("which is git-proq's own");
    for flag in [&["--auto-merge"][..], &["--check", "true"], &["--onto", "main"], &["--count", "2"]] {
        let args = [&["spawn", "--in-place"][..], flag, &["--", "true"]].concat();
        let said = sandbox.proq(&args).fails(2);
        assert!(said.contains("does not go with --in-place"), "{said}");
    }
    let _ = sandbox.proq(&["spawn", "--in-place", "--mode", "plan", "claude", "x"]).fails(2);
    let unborn = Sandbox::empty();
    assert!(unborn.proq(&SPAWN).fails(1).contains("has no commit yet"));
    sandbox.sh("git clone -q --bare . ../bare.git");
    let said = sandbox.proq_in(&sandbox.root().join("bare.git"), &SPAWN).fails(1);
    assert!(said.contains("bare"), "{said}");
}

#[test]
fn nobody_changes_the_checkout_beneath_it() {
    let sandbox = at_work();
    sandbox.lane_of("y", "echo y > y");
    sandbox.lane_of("w", "echo w > w");
    let _ = sandbox.proq(&["merge", "w"]).ok();
    sandbox.sh("git stash -q -u; git stash apply -q");
    waiting(&sandbox);
    let id = super::in_place::kept_before(&sandbox);
    let tip = sandbox.git(&["rev-parse", "main"]);
    let all: [&[&str]; 8] = [
        &["preview", "y"],
        &["preview", "y", "--dry-run"],
        &["merge", "y"],
        &["merge", "--atomic", "y"],
        &["undo", "3"],
        &["op", "restore", "0"],
        &["snap", "restore", &id],
        &["discard", "x"],
    ];
    for args in all {
        let out = sandbox.proq(args);
        assert_eq!(out.code, 1, "{args:?}: {}", out.shown());
        let said = format!("{}{}", out.stdout, out.stderr);
        let why = if args[0] == "discard" {
            "its agent is running"
        } else {
            "the agent of lane 'x' works in the main checkout"
        };
        assert!(said.contains(why), "{args:?}: {said}");
        assert_eq!(
            (sandbox.read("b"), sandbox.git(&["rev-parse", "main"])),
            ("b\nmore\n".into(), tip.clone()),
            "{args:?}"
        );
    }
    let _ = sandbox.proq(&["cleanup", "x"]);
    assert_eq!(sandbox.row("x")["state"], "running");
    // What does not touch it goes on.
    sandbox.git(&["branch", "side"]);
    let _ = sandbox.proq(&["merge", "y", "--onto", "side"]).ok();
    assert_untouched(&sandbox);
    assert_eq!(ended(&sandbox), "x: done\n");
    assert_untouched(&sandbox);
    let _ = sandbox.proq(&["undo", "2"]).fails(1);
    sandbox.assert_healthy();
}

#[test]
fn a_lane_that_lands_by_itself_lands_when_it_is_over() {
    let sandbox = at_work();
    waiting(&sandbox);
    let args = ["spawn", "--auto-merge", "--wait", "-n", "y", "--", "sh", "-ec", "echo y > y"];
    let said = sandbox.proq(&args).fails(1);
    assert!(said.contains("the agent of lane 'x' works in the main checkout"), "{said}");
    assert_eq!(ended(&sandbox), "x: done\n");
    sandbox.until("merge.landed", "y", 1);
    assert_eq!((sandbox.read("y"), sandbox.read("b")), ("y\n".into(), "b\nmore\nend\n".into()));
    assert_untouched(&sandbox);
}

#[test]
fn what_the_user_does_meanwhile_stays() {
    // Each with what is committed by the run, and what is not committed at the end.
    let all = [
        ("echo mine >> c; git commit -qm mine c", "b", " M a\n?? loose"),
        ("git add a", "", "M  a\n M b\n?? loose"),
        ("git switch -q -c elsewhere", "", " M a\n M b\n?? loose"),
        ("git checkout -q --detach", "", " M a\n M b\n?? loose"),
        ("git commit -qm mine a", "b", "?? loose"),
        ("echo later >> loose", "b", " M a\n?? loose"),
    ];
    for (script, committed, left) in all {
        let sandbox = at_work();
        waiting(&sandbox);
        sandbox.sh(script);
        let (tip, main) = (sandbox.git(&["rev-parse", "HEAD"]), sandbox.git(&["rev-parse", "main"]));
        sandbox.tell("go");
        let out = sandbox.proq(&["wait", "x"]);
        assert_eq!(status(&sandbox), left, "{script}: {}", out.shown());
        let now = sandbox.git(&["rev-parse", "HEAD"]);
        assert_eq!(sandbox.git(&["diff", "--name-only", &tip, &now]), committed, "{script}: {}", out.shown());
        assert_eq!(sandbox.git(&["merge-base", "main", &main]), main, "{script}");
        assert!(sandbox.read("a") == "a\nmine\n" && sandbox.read("loose").starts_with("loose\n"), "{script}");
        assert_eq!(sandbox.read("b"), "b\nmore\nend\n", "{script}");
        sandbox.assert_healthy();
    }
}

#[test]
fn what_git_has_open_is_not_ended_by_a_commit() {
    let sandbox = at_work();
    sandbox.sh("echo d > d; git add d; git commit -qm d d");
    waiting(&sandbox);
    sandbox.sh("git revert -n HEAD");
    let out = ended(&sandbox);
    assert!(out.contains("a revert is under way there, so nothing is committed for it"), "{out}");
    assert!(sandbox.repo.join(".git/REVERT_HEAD").exists());
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s"]), "d");
}

#[test]
fn what_was_there_before_is_kept_for_as_long_as_it_is_at_work() {
    let sandbox = at_work();
    waiting(&sandbox);
    let id = super::in_place::kept_before(&sandbox);
    let gc = || {
        let _ = sandbox.proq_at("2026-05-01T00:00:00Z", &["gc"]).ok();
        sandbox.proq(&["snap", "show", &id]).code
    };
    assert_eq!(gc(), 0);
    let _ = ended(&sandbox);
    assert_eq!(gc(), 1);
}

#[test]
fn the_commands_that_look_at_it_know_it() {
    let sandbox = at_work();
    waiting(&sandbox);
    assert_eq!(
        (&sandbox.row("x")["state"], &sandbox.row("x")["mode"]),
        (&"running".into(), &"in-place".into())
    );
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(
        shown.contains("in-place: it works in the main checkout") && shown.contains("works on   main"),
        "{shown}"
    );
    let list = sandbox.proq(&["list"]).ok();
    assert!(list.contains("x ") && list.contains("in-place"), "{list}");
    let _ = sandbox.proq(&["logs", "x"]).ok();
    assert!(sandbox.proq(&["diff", "x"]).fails(2).contains("work in the main checkout"));
    assert!(sandbox.proq(&["merge", "x"]).fails(2).contains("work in the main checkout"));
    // One that is stopped leaves all uncommitted.
    let _ = sandbox.proq(&["stop", "x"]).ok();
    let out = sandbox.proq(&["wait", "x"]).fails(4);
    assert!(out.contains("it left uncommitted: b"), "{out}");
    assert_eq!((subjects(&sandbox).len(), operations(&sandbox)), (1, 0));
    assert_untouched(&sandbox);
    let _ = sandbox.proq(&["discard", "x"]).ok();
    assert_eq!(in_place(&sandbox, "echo more >> c").ok(), "x: done\n");
    assert!(sandbox.proq(&["cleanup", "--all"]).ok().contains('x'));
    assert!(sandbox.row("x").is_null());
}

#[test]
fn it_goes_on_where_it_was_and_begins_anew() {
    let sandbox = with_claude("begin; echo $n >> \"$cd_back/file\"; well");
    let spawn = ["spawn", "--in-place", "--wait", "-n", "x", "claude", "write into file"];
    assert_eq!(sandbox.proq(&spawn).ok(), "x: done\n");
    assert_eq!(sandbox.git(&["show", "HEAD:file"]), "1");
    let prompt = sandbox.note("prompt.1");
    assert!(prompt.is_empty() || prompt.contains("write into file"), "{prompt}");
    let all = sandbox.proq(&["show", "x", "--prompt"]).ok();
    assert!(all.contains("You work in the main checkout") && !all.contains("is to land"), "{all}");
    assert_eq!(sandbox.proq(&["send", "--wait", "x", "more"]).ok(), "x: done\n");
    assert_eq!(sandbox.git(&["show", "HEAD:file"]), "1\n2");
    assert_eq!(sandbox.proq(&["run", "--wait", "x", "claude", "and more"]).ok(), "x: done\n");
    assert_eq!(sandbox.git(&["show", "HEAD:file"]), "1\n2\n3");
    sandbox.git(&["checkout", "-q", "-b", "other"]);
    let said = sandbox.proq(&["send", "x", "still more"]).fails(1);
    assert!(said.contains("the main checkout is on 'other', and lane 'x' works on 'main'"), "{said}");
    let _ = sandbox.proq(&["redispatch", "x"]).ok();
    assert_eq!(sandbox.proq(&["wait", "x"]).ok(), "x: done\n");
    assert_eq!(sandbox.git(&["show", "other:file"]), "1\n2\n3\n4");
    assert_eq!(sandbox.git(&["show", "main:file"]), "1\n2\n3");
}

#[test]
fn what_it_did_before_it_went_on_by_itself_is_its_own_still() {
    let sandbox = with_claude(
        r#"begin; echo $n >> "$cd_back/file"; if [ $n = 1 ]; then echo > "$ROOT/up"; read go < "$ROOT/go"; fi; well"#,
    );
    sandbox.git(&["config", "proq.agent.autocommit", "never"]);
    sandbox.write("loose", "mine\n");
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = sandbox.proq(&["spawn", "--in-place", "-n", "x", "claude", "write"]).ok();
    let _ = sandbox.hear("up");
    let _ = sandbox.proq(&["send", "x", "more"]).ok();
    sandbox.tell("go");
    let out = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(out, "x: done (it left uncommitted: file)\n");
    assert_eq!(sandbox.last_run("x")["attempt"], 2);
    assert_eq!(status(&sandbox), "?? file\n?? loose");
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
fn one_in_a_window_commits_what_it_changed_too() {
    let screen = Screen::new();
    screen.0.write("loose", "mine\n");
    let spawn = ["spawn", "--in-place", "--tmux", "-n", "x", "claude", "do it"];
    let _ = screen.proq(&spawn).ok();
    let _ = screen.0.hear("up");
    screen.types("echo one > one");
    screen.types_last("exit 0");
    let _ = screen.proq(&["wait", "x"]).ok();
    assert_eq!(screen.0.git(&["show", "--format=", "--name-only", "HEAD"]), "one");
    assert_eq!(status(&screen.0), "?? loose");
}
