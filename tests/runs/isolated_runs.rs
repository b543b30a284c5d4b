//! Read-only runs in a worktree apart from the main checkout: `--isolated`.

use proq_test_kit::claude::with_claude;
use proq_test_kit::runs::{escape_messages, kill_supervisor, repository_state};
use proq_test_kit::{Output, Sandbox};
use serde_json::json;

/// Starts a query as lane `x`, in a worktree that is created for it, and waits for the answer.
fn run_isolated_query(sandbox: &Sandbox) -> Output {
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

/// Asserts that nothing of an isolated run's worktree is left.
#[track_caller]
fn assert_worktree_removed(sandbox: &Sandbox) {
    assert!(!sandbox.repo.join(".proq-worktrees/.look").exists());
    assert_eq!(sandbox.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    let admin = std::fs::read_dir(sandbox.repo.join(".git/worktrees")).into_iter().flatten().count();
    assert_eq!(admin, 0);
    sandbox.assert_healthy();
}

/// Promise: agent-git/isolated-run
#[test]
fn isolated_run_reads_commit_and_leaves_no_worktree() {
    let sandbox = with_claude("say \"$(cat a.txt) in $(pwd)\"");
    sandbox.write("a.txt", "one\n");
    sandbox.commit_all("one");
    sandbox.git(&["tag", "v1"]);
    sandbox.write("a.txt", "two\n");
    sandbox.commit_all("two");
    sandbox.write("a.txt", "an edit of mine\n");
    let before = repository_state(&sandbox);
    let location = "in [ROOT]/repo/.proq-worktrees/.look/x\n";
    assert_eq!(sandbox.normalize(run_isolated_query(&sandbox).ok().as_bytes()), format!("two {location}"));
    assert_eq!(repository_state(&sandbox), before);
    assert_worktree_removed(&sandbox);
    assert_eq!((&sandbox.row("x")["missing"], &sandbox.row("x")["base"]), (&json!([]), &json!("main")));
    let _ = sandbox.proq(&["list"]).ok();
    // At the same path, so that the agent finds its conversation.
    assert_eq!(
        sandbox.normalize(sandbox.proq(&["send", "x", "and?", "--wait"]).ok().as_bytes()),
        format!("two {location}")
    );
    assert_worktree_removed(&sandbox);
    let old =
        ["spawn", "-n", "old", "--mode", "plan", "--isolated", "--base", "v1", "--wait", "claude", "how?"];
    assert!(sandbox.proq(&old).ok().starts_with("one in "));
    assert_eq!(sandbox.row("old")["base"], "v1");
    let _ = sandbox.proq(&["spawn", "--isolated", "claude", "x"]).fails(2);
    assert!(escape_messages(&sandbox).is_empty());
}

/// Promise: agent-git/isolated-run
#[test]
fn writes_of_isolated_run_are_saved_and_reported() {
    let sandbox = with_claude(
        "echo edited > a.txt; echo new > new.txt; git add a.txt; git commit -q -m astray; git branch mine 2> /dev/null; echo more > a.txt; say yes",
    );
    let _ = run_isolated_query(&sandbox).ok();
    assert_worktree_removed(&sandbox);
    assert_eq!(sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/heads"]), "refs/heads/main");
    let saved = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    assert_eq!(sandbox.git(&["show", &format!("{saved}:a.txt")]), "edited");
    let trash = sandbox.repo.join(".git/proq/trash");
    let entry = std::fs::read_dir(trash).unwrap().next().unwrap().unwrap().path();
    assert_eq!(std::fs::read_to_string(entry.join("worktree/new.txt")).unwrap(), "new\n");
    assert_eq!(std::fs::read_to_string(entry.join("worktree/a.txt")).unwrap(), "more\n");
    let messages = escape_messages(&sandbox);
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages[0].contains("made commits there; they are saved as refs/proq/saved/x-"), "{messages:?}");
    assert!(
        messages[1].contains("changed files there; they are in the trash: a.txt, new.txt"),
        "{messages:?}"
    );
}

/// Promise: agent-git/isolated-run
#[test]
fn next_command_removes_worktree_of_killed_run() {
    // Killed while the worktree is created, and while the agent runs in it.
    let sandbox = with_claude("say yes");
    let spawn = ["spawn", "-n", "x", "--mode", "answer", "--isolated", "--wait", "claude", "y?"];
    let mut command = sandbox.proq_command(&sandbox.repo, &spawn);
    command.env("PROQ_TEST_DIE_AT", "look.added");
    assert_ne!(sandbox.output(command).code, 0);
    assert!(sandbox.repo.join(".proq-worktrees/.look/x").exists());
    let _ = sandbox.proq(&["list"]).ok();
    assert_worktree_removed(&sandbox);
    assert_eq!(sandbox.row("x")["state"], "idle");
    assert_eq!(sandbox.proq(&["run", "x", "claude", "--wait"]).ok(), "yes\n");
    assert_worktree_removed(&sandbox);
    // The supervisor alone is killed, and then its agent is stopped.
    let sandbox = with_claude("echo work > new.txt; echo $$ > \"$ROOT/up\"; exec sleep 600");
    sandbox.pipe("up");
    let _ = sandbox.proq(&["spawn", "-n", "x", "--mode", "answer", "--isolated", "claude", "y?"]).ok();
    sandbox.read_pipe("up");
    kill_supervisor(&sandbox, "x");
    let _ = sandbox.proq(&["list"]).ok();
    assert!(sandbox.repo.join(".proq-worktrees/.look/x/new.txt").exists(), "its agent lives");
    let _ = sandbox.proq(&["stop", "x"]).ok();
    let _ = sandbox.proq(&["list"]).ok();
    assert_worktree_removed(&sandbox);
    assert_eq!(escape_messages(&sandbox).len(), 1);
    let _ = sandbox.proq(&["discard", "x"]).ok();
    assert_worktree_removed(&sandbox);
    // An unknown folder belongs to the user.
    sandbox.write(".proq-worktrees/.look/mine/notes", "mine\n");
    let _ = sandbox.proq(&["cleanup"]).ok();
    assert_eq!(sandbox.read(".proq-worktrees/.look/mine/notes"), "mine\n");
}
