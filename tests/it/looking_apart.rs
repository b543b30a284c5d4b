//! Owns the tests of runs that only look and do so apart from the main checkout: `--isolated`.

use serde_json::json;

use super::looking::{repository, told_of_escapes, with_claude};
use super::stop::kill_supervisor;
use super::support::{Output, Sandbox};

/// Asks, as lane `x`, in a worktree that is made for it.
fn ask_apart(sandbox: &Sandbox) -> Output {
    sandbox.proq(&[
        "spawn",
        "-n",
        "x",
        "--mode",
        "answer",
        "--isolated",
        "--wait",
        "claude",
        "where is the tax?",
    ])
}

/// Insists that nothing of such a worktree is left.
#[track_caller]
fn is_put_away(sandbox: &Sandbox) {
    assert!(!sandbox.repo.join(".proq-worktrees/.look").exists());
    assert_eq!(sandbox.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    let admin = std::fs::read_dir(sandbox.repo.join(".git/worktrees")).into_iter().flatten().count();
    assert_eq!(admin, 0);
    sandbox.assert_healthy();
}

#[test]
fn one_that_is_isolated_sees_the_commit_and_leaves_no_worktree() {
    let sandbox = with_claude("say \"$(cat a.txt) in $(pwd)\"");
    sandbox.write("a.txt", "one\n");
    sandbox.commit_all("one");
    sandbox.git(&["tag", "v1"]);
    sandbox.write("a.txt", "two\n");
    sandbox.commit_all("two");
    sandbox.write("a.txt", "an edit of mine\n");
    let before = repository(&sandbox);
    let place = "in [ROOT]/repo/.proq-worktrees/.look/x\n";
    assert_eq!(sandbox.plain(ask_apart(&sandbox).ok().as_bytes()), format!("two {place}"));
    assert_eq!(repository(&sandbox), before);
    is_put_away(&sandbox);
    assert_eq!((&sandbox.row("x")["missing"], &sandbox.row("x")["base"]), (&json!([]), &json!("main")));
    let _ = sandbox.proq(&["list"]).ok();
    // In the same place, so that an agent finds its conversation.
    assert_eq!(
        sandbox.plain(sandbox.proq(&["send", "x", "and?", "--wait"]).ok().as_bytes()),
        format!("two {place}")
    );
    is_put_away(&sandbox);
    let old =
        ["spawn", "-n", "old", "--mode", "plan", "--isolated", "--base", "v1", "--wait", "claude", "how?"];
    assert!(sandbox.proq(&old).ok().starts_with("one in "));
    assert_eq!(sandbox.row("old")["base"], "v1");
    let _ = sandbox.proq(&["spawn", "--isolated", "claude", "x"]).fails(2);
    assert!(told_of_escapes(&sandbox).is_empty());
}

#[test]
fn what_one_that_is_isolated_wrote_is_kept_and_told() {
    let sandbox = with_claude(
        "echo edited > a.txt; echo new > new.txt; git add a.txt; git commit -q -m astray; git branch mine 2> /dev/null; echo more > a.txt; say yes",
    );
    let _ = ask_apart(&sandbox).ok();
    is_put_away(&sandbox);
    assert_eq!(sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/heads"]), "refs/heads/main");
    let saved = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    assert_eq!(sandbox.git(&["show", &format!("{saved}:a.txt")]), "edited");
    let trash = sandbox.repo.join(".git/proq/trash");
    let entry = std::fs::read_dir(trash).unwrap().next().unwrap().unwrap().path();
    assert_eq!(std::fs::read_to_string(entry.join("worktree/new.txt")).unwrap(), "new\n");
    assert_eq!(std::fs::read_to_string(entry.join("worktree/a.txt")).unwrap(), "more\n");
    let told = told_of_escapes(&sandbox);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("made commits there; they are kept: refs/proq/saved/x-"), "{told:?}");
    assert!(told[1].contains("changed files there, which go to the trash: a.txt, new.txt"), "{told:?}");
}

#[test]
fn what_a_kill_leaves_of_one_that_is_isolated_goes_with_the_next_command() {
    // While the worktree is made, and while it is put away.
    let sandbox = with_claude("say yes");
    let spawn = ["spawn", "-n", "x", "--mode", "answer", "--isolated", "--wait", "claude", "y?"];
    let mut command = sandbox.proq_command(&sandbox.repo, &spawn);
    command.env("PROQ_TEST_DIE_AT", "look.added");
    assert_ne!(sandbox.output(command).code, 0);
    assert!(sandbox.repo.join(".proq-worktrees/.look/x").exists());
    let _ = sandbox.proq(&["list"]).ok();
    is_put_away(&sandbox);
    assert_eq!(sandbox.row("x")["state"], "idle");
    assert_eq!(sandbox.proq(&["run", "x", "claude", "--wait"]).ok(), "yes\n");
    is_put_away(&sandbox);
    // The supervisor alone, and then its agent.
    let sandbox = with_claude("echo work > new.txt; echo $$ > \"$ROOT/up\"; exec sleep 600");
    sandbox.pipe("up");
    let _ = sandbox.proq(&["spawn", "-n", "x", "--mode", "answer", "--isolated", "claude", "y?"]).ok();
    sandbox.hear("up");
    kill_supervisor(&sandbox, "x");
    let _ = sandbox.proq(&["list"]).ok();
    assert!(sandbox.repo.join(".proq-worktrees/.look/x/new.txt").exists(), "its agent lives");
    let _ = sandbox.proq(&["stop", "x"]).ok();
    let _ = sandbox.proq(&["list"]).ok();
    is_put_away(&sandbox);
    assert_eq!(told_of_escapes(&sandbox).len(), 1);
    let _ = sandbox.proq(&["discard", "x"]).ok();
    is_put_away(&sandbox);
    // What nobody knows is somebody's.
    sandbox.write(".proq-worktrees/.look/mine/notes", "mine\n");
    let _ = sandbox.proq(&["cleanup"]).ok();
    assert_eq!(sandbox.read(".proq-worktrees/.look/mine/notes"), "mine\n");
}
