//! Owns the tests of repositories that are moved or copied with a command that was cut short, or with operations that are undone then:
//! what the operations name is where the repository is now.

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
