//! Worktrees whose HEAD is a symbolic link to a branch, as in old repositories and with
//! `core.preferSymlinkRefs`: git reads the name of the branch from the link.

use std::path::Path;

use proq_test_kit::{Sandbox, WorktreeState};

/// Replaces HEAD of a git directory by a link to the branch that it names.
fn link_head(sandbox: &Sandbox, dir: &Path) {
    sandbox.sh_in(
        dir,
        "name=$(git symbolic-ref HEAD); cd $(git rev-parse --git-dir); rm HEAD; ln -s $name HEAD",
    );
}

/// Returns a sandbox in which git writes HEAD as a link.
fn sandbox_with_linked_heads() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "core.preferSymlinkRefs", "true"]);
    sandbox.sh("git switch -qc dev; git switch -q main");
    assert!(sandbox.repo.join(".git/HEAD").is_symlink());
    sandbox
}

/// Promise: worktree/linked-head
#[test]
fn merge_updates_checkout_with_linked_head() {
    let sandbox = Sandbox::new();
    sandbox.write("b.txt", "b\n");
    sandbox.commit_all("more");
    link_head(&sandbox, &sandbox.repo);
    sandbox.lane_with_commit("one", "echo one > one.txt");
    sandbox.write("b.txt", "mine\n");
    let out = sandbox.proq(&["merge", "one"]);
    assert_eq!(out.stderr, "hint: undo it: git proq undo\n");
    let _ = out.ok();
    assert_eq!(sandbox.git(&["status", "--short"]), " M b.txt");
    assert_eq!(sandbox.read("one.txt"), "one\n");
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git(&["status", "--short"]), " M b.txt");
    assert!(!sandbox.repo.join("one.txt").exists());
    sandbox.assert_healthy();
}

/// Promise: worktree/linked-head
#[test]
fn local_change_on_linked_head_blocks_merge() {
    let sandbox = sandbox_with_linked_heads();
    sandbox.lane_with_commit("one", "echo one > a.txt");
    sandbox.write("a.txt", "mine\n");
    for args in [&["merge", "one", "--dry-run"][..], &["merge", "one"]] {
        let text = sandbox.proq(args).fails(1);
        assert!(text.contains("are in the way: a.txt"), "{text}");
    }
    assert_eq!(sandbox.git(&["status", "--short"]), " M a.txt");
}

/// Promise: worktree/linked-head
#[test]
fn preview_returns_to_linked_head() {
    for ways in [&[&["preview", "one"][..], &["preview", "--back"]][..], &[&["preview", "one"], &["undo"]]] {
        let sandbox = sandbox_with_linked_heads();
        sandbox.lane_with_commit("one", "echo one > one.txt; echo one > a.txt");
        sandbox.write("a.txt", "mine\n");
        let before = WorktreeState::capture(&sandbox, &sandbox.repo);
        for args in ways {
            let _ = sandbox.proq(args).ok();
        }
        assert_eq!(before, WorktreeState::capture(&sandbox, &sandbox.repo));
        assert_eq!(sandbox.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
        sandbox.assert_healthy();
    }
}

/// Promise: worktree/linked-head
#[test]
fn linked_worktree_with_linked_head_works() {
    let sandbox = sandbox_with_linked_heads();
    sandbox.sh("git worktree add -q ../dev dev");
    let dev = sandbox.root().join("dev");
    assert!(sandbox.repo.join(".git/worktrees/dev/HEAD").is_symlink());
    let _ = sandbox.proq_in(&dev, &["spawn", "--empty", "-n", "one"]).ok();
    sandbox.commit_in_lane("one", "echo one > one.txt");
    assert_eq!(sandbox.row("one")["base"], "dev");
    let _ = sandbox.proq_in(&dev, &["merge", "one"]).ok();
    assert_eq!(sandbox.git_in(&dev, &["status", "--short"]), "");
    assert!(dev.join("one.txt").exists() && !sandbox.repo.join("one.txt").exists());
    sandbox.assert_healthy();
}

#[test]
fn lane_with_linked_head_lands() {
    let sandbox = sandbox_with_linked_heads();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    link_head(&sandbox, &sandbox.lane_path("one"));
    let list = sandbox.proq(&["list"]);
    assert_eq!(list.stderr, "");
    let _ = sandbox.proq_in(&sandbox.lane_path("one"), &["list"]).ok();
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(sandbox.git(&["status", "--short"]), "");
}

#[test]
fn linked_head_to_packed_branch_gives_hint() {
    let sandbox = sandbox_with_linked_heads();
    sandbox.git(&["worktree", "add", "-q", "../dev", "dev"]);
    sandbox.git(&["pack-refs", "--all"]);
    let out = sandbox.proq(&["list"]);
    insta::assert_snapshot!(out.to_text(), @r"
    --- stderr
    error: cannot open [ROOT]/repo/.git: HEAD is a symbolic link to refs/heads/main, which has no file of its own
    hint: make HEAD a regular file: git --git-dir='[ROOT]/repo/.git' -c core.preferSymlinkRefs=false symbolic-ref HEAD refs/heads/main
    --- code 1
    ");
    assert_eq!(sandbox.proq_in(&sandbox.root().join("dev"), &["list"]).to_text(), out.to_text());
    let hint = out.stderr.lines().find_map(|line| line.strip_prefix("hint: make HEAD a regular file: "));
    sandbox.sh(&hint.unwrap().replace("[ROOT]", sandbox.root().to_str().unwrap()));
    assert_eq!(sandbox.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    for dir in [sandbox.repo.clone(), sandbox.root().join("dev")] {
        let _ = sandbox.proq_in(&dir, &["list"]).ok();
    }
}
