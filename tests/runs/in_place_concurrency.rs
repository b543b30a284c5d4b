//! What happens beside a run in the main checkout: when it does not start, what is refused while it runs,
//! what the user does concurrently, and the commands that inspect it.

use proq_test_kit::Sandbox;
use proq_test_kit::claude::sandbox_with_claude;
use proq_test_kit::tmux::TmuxSandbox;

use super::in_place::{
    assert_user_changes_untouched, operation_count, run_in_place, sandbox_with_user_changes, start_in_place,
    status, subjects,
};

const SPAWN: [&str; 8] = ["spawn", "--in-place", "-n", "x", "--", "sh", "-c", "echo one > one"];

/// Returns a repository whose `claude` has enough time to exit on its own.
pub fn with_lingering_claude(script: &str) -> Sandbox {
    let sandbox = sandbox_with_claude(script);
    sandbox.git(&["config", "proq.agent.linger", "60"]);
    sandbox
}

/// Starts a run as lane `x` that has changed `b` and waits for `go`.
fn start_waiting_run(sandbox: &Sandbox) {
    sandbox.pipe("up");
    sandbox.pipe("go");
    start_in_place(sandbox, "echo more >> b; echo > \"$ROOT/up\"; read line < \"$ROOT/go\"; echo end >> b");
    let _ = sandbox.read_pipe("up");
}

/// Lets the run finish, and returns its outcome as `wait` prints it.
fn finish_run(sandbox: &Sandbox) -> String {
    sandbox.write_pipe("go");
    sandbox.proq(&["wait", "x"]).ok()
}

/// Promise: agent-git/in-place-alone
#[test]
fn allows_only_one_run_and_none_during_preview() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("y", "echo y > y");
    let _ = sandbox.proq(&["preview", "y"]).ok();
    insta::assert_snapshot!(sandbox.proq(&SPAWN).to_text(), @r"
    --- stderr
    error: the main checkout shows lane 'y'; nothing was changed
    hint: leave the preview: git proq preview --back
    --- code 1
    ");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("echo b > b; git add b; git commit -qm b");
    start_waiting_run(&sandbox);
    let before = sandbox.lane_leftovers();
    let other = ["spawn", "--in-place", "-n", "z", "--", "sh", "-c", "echo two > two"];
    insta::assert_snapshot!(sandbox.proq(&other).to_text(), @r"
    --- stderr
    error: the agent of lane 'x' works in the main checkout; nothing was changed
    hint: wait for the agent: git proq wait x
    hint: or stop it: git proq stop x
    --- code 1
    ");
    assert_eq!(sandbox.lane_leftovers(), before);
    assert_eq!(finish_run(&sandbox), "x: done\n");
    let _ = sandbox.proq(&other).ok();
    let _ = sandbox.proq(&["wait", "z"]).ok();
    let _ = sandbox.proq(&["preview", "y"]).ok();
}

/// Promise: agent-git/in-place-alone
#[test]
fn refuses_detached_or_unfinished_checkout() {
    let sandbox = Sandbox::new();
    let before =
        || (sandbox.lane_leftovers(), status(&sandbox), sandbox.proq(&["op", "log", "--json"]).json());
    let refused = |reason: &str| {
        let was = before();
        for args in [&SPAWN[..], &[&SPAWN[..1], &["--dry-run"], &SPAWN[1..]].concat()] {
            let output = sandbox.proq(args).fails(1);
            assert!(output.contains(reason) && output.contains("nothing was changed"), "{output}");
        }
        assert!(before() == was && sandbox.row("x").is_null(), "{reason}");
    };
    sandbox.git(&["checkout", "-q", "--detach"]);
    refused("the main checkout is on no branch");
    sandbox.git(&["checkout", "-q", "main"]);
    sandbox.git(&["branch", "other"]);
    sandbox.sh("echo a > a; git add a; git commit -qm a; git checkout -q other; echo b > a; git add a; git commit -qm b");
    for (operation, subcommand) in [("merge", "merge"), ("rebase", "rebase"), ("cherry-pick", "cherry-pick")]
    {
        sandbox.sh(&format!("git {subcommand} main >/dev/null 2>&1 || true"));
        refused(&format!("a {operation} is in progress in the main checkout"));
        sandbox.git(&[subcommand, "--abort"]);
    }
    sandbox
        .sh("git revert -n HEAD; git reset -q --hard; git checkout -q HEAD -- . ; echo x > .git/REVERT_HEAD");
    refused("a revert is in progress");
    sandbox.sh("rm .git/REVERT_HEAD; git bisect start HEAD HEAD~1 >/dev/null");
    refused("the main checkout");
    sandbox.sh("git bisect reset >/dev/null 2>&1; git checkout -q other; git merge -q --squash main >/dev/null 2>&1 || true; rm -f .git/SQUASH_MSG");
    refused("has unresolved conflicts: a");
    sandbox.git(&["reset", "-q", "--hard"]);
    sandbox.sh("echo s > s; git add s");
    refused("these files are staged in the main checkout: s");
    sandbox.sh("git reset -q; git add -N s");
    refused("these files are staged in the main checkout: s");
    sandbox.sh("git reset -q; rm s; git rm -q --cached a");
    refused("these files are staged in the main checkout: a");
    sandbox.sh("git reset -q --hard; git branch -q -m other proq/mine");
    refused("which belongs to git-proq");
    for flag in [&["--auto-merge"][..], &["--check", "true"], &["--onto", "main"], &["--count", "2"]] {
        let args = [&["spawn", "--in-place"][..], flag, &["--", "true"]].concat();
        let output = sandbox.proq(&args).fails(2);
        assert!(output.contains(" with --in-place, which creates nothing to merge"), "{output}");
    }
    let _ = sandbox.proq(&["spawn", "--in-place", "--mode", "plan", "claude", "x"]).fails(2);
    let unborn = Sandbox::empty();
    assert!(unborn.proq(&SPAWN).fails(1).contains("has no commit yet"));
    sandbox.sh("git clone -q --bare . ../bare.git");
    let output = sandbox.proq_in(&sandbox.root().join("bare.git"), &SPAWN).fails(1);
    assert!(output.contains("bare"), "{output}");
}

/// Promise: agent-git/in-place-alone
#[test]
fn refuses_commands_that_change_checkout() {
    let sandbox = sandbox_with_user_changes();
    sandbox.lane_with_commit("y", "echo y > y");
    sandbox.lane_with_commit("w", "echo w > w");
    let _ = sandbox.proq(&["merge", "w"]).ok();
    sandbox.sh("git stash -q -u; git stash apply -q");
    start_waiting_run(&sandbox);
    let id = super::in_place::snapshot_before_run(&sandbox);
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
        assert_eq!(out.code, 1, "{args:?}: {}", out.to_text());
        let output = format!("{}{}", out.stdout, out.stderr);
        let reason = if args[0] == "discard" {
            "its agent is running"
        } else {
            "the agent of lane 'x' works in the main checkout"
        };
        assert!(output.contains(reason), "{args:?}: {output}");
        assert_eq!(
            (sandbox.read("b"), sandbox.git(&["rev-parse", "main"])),
            ("b\nmore\n".into(), tip.clone()),
            "{args:?}"
        );
    }
    let _ = sandbox.proq(&["cleanup", "x"]);
    assert_eq!(sandbox.row("x")["state"], "running");
    // Commands that do not touch the checkout still work.
    sandbox.git(&["branch", "side"]);
    let _ = sandbox.proq(&["merge", "y", "--onto", "side"]).ok();
    assert_user_changes_untouched(&sandbox);
    assert_eq!(finish_run(&sandbox), "x: done\n");
    assert_user_changes_untouched(&sandbox);
    let _ = sandbox.proq(&["undo", "2"]).fails(1);
    sandbox.assert_healthy();
}

#[test]
fn auto_merge_lands_after_in_place_run() {
    let sandbox = sandbox_with_user_changes();
    start_waiting_run(&sandbox);
    let args = ["spawn", "--auto-merge", "--wait", "-n", "y", "--", "sh", "-ec", "echo y > y"];
    let output = sandbox.proq(&args).fails(1);
    assert!(output.contains("the agent of lane 'x' works in the main checkout"), "{output}");
    assert_eq!(finish_run(&sandbox), "x: done\n");
    sandbox.wait_for_events("merge.landed", "y", 1);
    assert_eq!((sandbox.read("y"), sandbox.read("b")), ("y\n".into(), "b\nmore\nend\n".into()));
    assert_user_changes_untouched(&sandbox);
}

/// Promise: agent-git/in-place-commit
#[test]
fn user_actions_during_run_are_kept() {
    // Each script with what the run commits, and what is uncommitted at the end.
    let all = [
        ("echo mine >> c; git commit -qm mine c", "b", " M a\n?? loose"),
        ("git add a", "", "M  a\n M b\n?? loose"),
        ("git switch -q -c elsewhere", "", " M a\n M b\n?? loose"),
        ("git checkout -q --detach", "", " M a\n M b\n?? loose"),
        ("git commit -qm mine a", "b", "?? loose"),
        ("echo later >> loose", "b", " M a\n?? loose"),
    ];
    for (script, committed, left) in all {
        let sandbox = sandbox_with_user_changes();
        start_waiting_run(&sandbox);
        sandbox.sh(script);
        let (tip, main) = (sandbox.git(&["rev-parse", "HEAD"]), sandbox.git(&["rev-parse", "main"]));
        sandbox.write_pipe("go");
        let out = sandbox.proq(&["wait", "x"]);
        assert_eq!(status(&sandbox), left, "{script}: {}", out.to_text());
        let now = sandbox.git(&["rev-parse", "HEAD"]);
        assert_eq!(
            sandbox.git(&["diff", "--name-only", &tip, &now]),
            committed,
            "{script}: {}",
            out.to_text()
        );
        assert_eq!(sandbox.git(&["merge-base", "main", &main]), main, "{script}");
        assert!(sandbox.read("a") == "a\nmine\n" && sandbox.read("loose").starts_with("loose\n"), "{script}");
        assert_eq!(sandbox.read("b"), "b\nmore\nend\n", "{script}");
        sandbox.assert_healthy();
    }
}

#[test]
fn open_revert_prevents_commit() {
    let sandbox = sandbox_with_user_changes();
    sandbox.sh("echo d > d; git add d; git commit -qm d d");
    start_waiting_run(&sandbox);
    sandbox.sh("git revert -n HEAD");
    let out = finish_run(&sandbox);
    assert!(out.contains("a revert is in progress there, so its changes are not committed"), "{out}");
    assert!(sandbox.repo.join(".git/REVERT_HEAD").exists());
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s"]), "d");
}

/// Promise: agent-git/in-place-commit
#[test]
fn gc_keeps_snapshot_while_run_is_active() {
    let sandbox = sandbox_with_user_changes();
    start_waiting_run(&sandbox);
    let id = super::in_place::snapshot_before_run(&sandbox);
    let gc = || {
        let _ = sandbox.proq_at("2026-05-01T00:00:00Z", &["gc"]).ok();
        sandbox.proq(&["snap", "show", &id]).code
    };
    assert_eq!(gc(), 0);
    let _ = finish_run(&sandbox);
    assert_eq!(gc(), 1);
}

#[test]
fn inspection_commands_know_in_place_lanes() {
    let sandbox = sandbox_with_user_changes();
    start_waiting_run(&sandbox);
    assert_eq!(
        (&sandbox.row("x")["state"], &sandbox.row("x")["mode"]),
        (&"running".into(), &"in-place".into())
    );
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(
        shown.contains("in-place: works in the main checkout") && shown.contains("works on   main"),
        "{shown}"
    );
    let list = sandbox.proq(&["list"]).ok();
    assert!(list.contains("x ") && list.contains("in-place"), "{list}");
    let _ = sandbox.proq(&["logs", "x"]).ok();
    assert!(sandbox.proq(&["diff", "x"]).fails(2).contains("work in the main checkout"));
    assert!(sandbox.proq(&["merge", "x"]).fails(2).contains("work in the main checkout"));
    // A run that is stopped leaves everything uncommitted.
    let _ = sandbox.proq(&["stop", "x"]).ok();
    let out = sandbox.proq(&["wait", "x"]).fails(4);
    assert!(out.contains("it left uncommitted: b"), "{out}");
    assert_eq!((subjects(&sandbox).len(), operation_count(&sandbox)), (1, 0));
    assert_user_changes_untouched(&sandbox);
    let _ = sandbox.proq(&["discard", "x"]).ok();
    assert_eq!(run_in_place(&sandbox, "echo more >> c").ok(), "x: done\n");
    assert!(sandbox.proq(&["cleanup", "--all"]).ok().contains('x'));
    assert!(sandbox.row("x").is_null());
}

#[test]
fn send_run_and_redispatch_work_in_place() {
    let sandbox = with_lingering_claude("begin; echo $n >> \"$cd_back/file\"; well");
    let spawn = ["spawn", "--in-place", "--wait", "-n", "x", "claude", "write into file"];
    assert_eq!(sandbox.proq(&spawn).ok(), "x: done\n");
    assert_eq!(sandbox.git(&["show", "HEAD:file"]), "1");
    let prompt = sandbox.agent_record("prompt.1");
    assert!(prompt.is_empty() || prompt.contains("write into file"), "{prompt}");
    let all = sandbox.proq(&["show", "x", "--prompt"]).ok();
    assert!(all.contains("You are working in the main checkout") && !all.contains("will be merged"), "{all}");
    assert_eq!(sandbox.proq(&["send", "--wait", "x", "more"]).ok(), "x: done\n");
    assert_eq!(sandbox.git(&["show", "HEAD:file"]), "1\n2");
    assert_eq!(sandbox.proq(&["run", "--wait", "x", "claude", "and more"]).ok(), "x: done\n");
    assert_eq!(sandbox.git(&["show", "HEAD:file"]), "1\n2\n3");
    sandbox.git(&["checkout", "-q", "-b", "other"]);
    let output = sandbox.proq(&["send", "x", "still more"]).fails(1);
    assert!(output.contains("the main checkout is on 'other', and lane 'x' works on 'main'"), "{output}");
    let _ = sandbox.proq(&["redispatch", "x"]).ok();
    assert_eq!(sandbox.proq(&["wait", "x"]).ok(), "x: done\n");
    assert_eq!(sandbox.git(&["show", "other:file"]), "1\n2\n3\n4");
    assert_eq!(sandbox.git(&["show", "main:file"]), "1\n2\n3");
}

#[test]
fn changes_before_follow_up_run_belong_to_agent() {
    let sandbox = with_lingering_claude(
        r#"begin; echo $n >> "$cd_back/file"; if [ $n = 1 ]; then echo > "$ROOT/up"; read go < "$ROOT/go"; fi; well"#,
    );
    sandbox.git(&["config", "proq.agent.autocommit", "never"]);
    sandbox.write("loose", "mine\n");
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = sandbox.proq(&["spawn", "--in-place", "-n", "x", "claude", "write"]).ok();
    let _ = sandbox.read_pipe("up");
    let _ = sandbox.proq(&["send", "x", "more"]).ok();
    sandbox.write_pipe("go");
    let out = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(out, "x: done (it left uncommitted: file)\n");
    assert_eq!(sandbox.last_run("x")["attempt"], 2);
    assert_eq!(status(&sandbox), "?? file\n?? loose");
}

/// Promise: agent-git/in-place-alone
#[test]
fn attempt_that_changed_files_is_not_retried() {
    let sandbox = with_lingering_claude(
        "begin; if [ $n = 1 ]; then busy; exit 1; fi; echo $n >> \"$cd_back/file\"; busy; exit 1",
    );
    let out = sandbox.proq(&["spawn", "--in-place", "--wait", "-n", "x", "claude", "write"]).fails(4);
    assert!(out.contains("the main checkout has changed and is not restored"), "{out}");
    assert_eq!(sandbox.read("file"), "2\n");
    assert!(!sandbox.root().join("notes/3").exists());
}

#[test]
fn tmux_run_commits_its_changes() {
    let screen = TmuxSandbox::new();
    screen.0.write("loose", "mine\n");
    let spawn = ["spawn", "--in-place", "--tmux", "-n", "x", "claude", "do it"];
    let _ = screen.proq(&spawn).ok();
    let _ = screen.0.read_pipe("up");
    screen.type_line("echo one > one");
    screen.type_last_line("exit 0");
    let _ = screen.proq(&["wait", "x"]).ok();
    assert_eq!(screen.0.git(&["show", "--format=", "--name-only", "HEAD"]), "one");
    assert_eq!(status(&screen.0), "?? loose");
}
