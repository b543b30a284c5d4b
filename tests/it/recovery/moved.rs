//! Owns the tests of what happens between a command that was cut short and the next one: the repository is moved or copied, with
//! operations that are undone then, git throws away what no ref leads to.

use super::kit::{dies, recovers};
use crate::support::Sandbox;

/// A lane and changes of the user's own.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo lane >one; echo lane >a.txt");
    sandbox.sh("echo mine >mine; echo staged >staged; git add staged");
    sandbox
}

/// Moves or copies the repository, with its lanes, and goes on there.
fn go(sandbox: &mut Sandbox, how: &str) {
    sandbox.sh_in(&sandbox.root(), &format!("{how} repo there"));
    sandbox.repo = sandbox.root().join("there");
    if how == "mv" {
        sandbox.sh("git worktree repair .proq-worktrees/*");
    }
}

const OWN: &str = "A  staged\n?? mine";

#[test]
fn a_landing_that_was_cut_short_is_ended_where_the_repository_is() {
    for how in ["mv", "cp -a"] {
        let mut sandbox = sandbox();
        dies(&sandbox, "transition.moved", &["merge", "--no-cleanup", "one"]);
        let first = sandbox.repo.clone();
        let there = |sandbox: &Sandbox| sandbox.sh_in(&first, "git status --short; cat a.txt");
        let before = if how == "mv" { String::new() } else { there(&sandbox) };
        go(&mut sandbox, how);
        let _ = recovers(&sandbox);
        assert_eq!(sandbox.git(&["status", "--short"]), OWN, "{how}");
        assert_eq!(sandbox.read("a.txt"), "lane\n", "{how}");
        if how != "mv" {
            assert_eq!(there(&sandbox), before);
            sandbox.repo = first.clone();
            let _ = recovers(&sandbox);
            assert_eq!(sandbox.git(&["status", "--short"]), OWN, "{how}");
        }
    }
}

#[test]
fn a_preview_that_was_cut_short_is_taken_back_where_the_repository_is() {
    for how in ["mv", "cp -a"] {
        let mut sandbox = sandbox();
        dies(&sandbox, "clear.moved", &["preview", "one"]);
        go(&mut sandbox, how);
        let _ = recovers(&sandbox);
        assert_eq!(sandbox.git(&["status", "--short", "--branch"]), format!("## main\n{OWN}"), "{how}");
        assert_eq!(sandbox.read("mine"), "mine\n");
    }
}

#[test]
fn what_was_done_before_a_repository_was_moved_can_be_undone() {
    let mut sandbox = sandbox();
    let tip = sandbox.git(&["rev-parse", "main"]);
    let _ = sandbox.proq(&["merge", "--no-cleanup", "one"]).ok();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    go(&mut sandbox, "mv");
    let _ = sandbox.proq(&["undo", "--dry-run"]).ok();
    for _ in 0..3 {
        let _ = sandbox.proq(&["undo"]).ok();
    }
    assert_eq!(sandbox.git(&["rev-parse", "main"]), tip);
    assert_eq!(sandbox.git(&["status", "--short", "--branch"]), format!("## main\n{OWN}"));
    assert_eq!(sandbox.read("mine"), "mine\n");
}

#[test]
fn a_landing_that_was_cut_short_is_taken_back_without_the_commit_that_it_had_made() {
    for how in ["merge", "squash"] {
        for at in ["transition.locked", "transition.linked", "transition.brought", "transition.staged"] {
            let sandbox = sandbox();
            sandbox.sh("echo b >b.txt; git add b.txt; git commit -qm meanwhile -- b.txt");
            dies(&sandbox, at, &["merge", "--no-cleanup", "--strategy", how, "one"]);
            sandbox.sh("git gc -q --prune=now");
            let _ = recovers(&sandbox);
            assert_eq!(sandbox.git(&["status", "--short"]), OWN, "{how}, {at}");
            let _ = sandbox.proq(&["merge", "--strategy", how, "one"]).ok();
            assert_eq!(sandbox.read("a.txt"), "lane\n", "{how}, {at}");
            assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/op"]), "", "{how}, {at}");
        }
    }
}
