//! Owns the tests of worktrees whose HEAD is a symbolic link to a branch, as old repositories and `core.preferSymlinkRefs` have
//! it: git reads the name of the branch from the link.

use std::path::Path;

use super::support::{Image, Sandbox};

/// Makes HEAD of a git directory a link to the branch that it names.
fn link(sandbox: &Sandbox, dir: &Path) {
    sandbox.sh_in(
        dir,
        "name=$(git symbolic-ref HEAD); cd $(git rev-parse --git-dir); rm HEAD; ln -s $name HEAD",
    );
}

/// A sandbox in which git makes links.
fn linking() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "core.preferSymlinkRefs", "true"]);
    sandbox.sh("git switch -qc dev; git switch -q main");
    assert!(sandbox.repo.join(".git/HEAD").is_symlink());
    sandbox
}

#[test]
fn a_checkout_on_a_linked_head_follows_a_landing() {
    let sandbox = Sandbox::new();
    sandbox.write("b.txt", "b\n");
    sandbox.commit_all("more");
    link(&sandbox, &sandbox.repo);
    sandbox.lane_of("one", "echo one > one.txt");
    sandbox.write("b.txt", "mine\n");
    let out = sandbox.proq(&["merge", "one"]);
    assert_eq!(out.stderr, "");
    let _ = out.ok();
    assert_eq!(sandbox.git(&["status", "--short"]), " M b.txt");
    assert_eq!(sandbox.read("one.txt"), "one\n");
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git(&["status", "--short"]), " M b.txt");
    assert!(!sandbox.repo.join("one.txt").exists());
    sandbox.assert_healthy();
}

#[test]
fn a_local_change_on_a_linked_head_refuses_a_landing() {
    let sandbox = linking();
    sandbox.lane_of("one", "echo one > a.txt");
    sandbox.write("a.txt", "mine\n");
    for args in [&["merge", "one", "--dry-run"][..], &["merge", "one"]] {
        let text = sandbox.proq(args).fails(1);
        assert!(text.contains("stand in the way: a.txt"), "{text}");
    }
    assert_eq!(sandbox.git(&["status", "--short"]), " M a.txt");
}

#[test]
fn a_preview_from_a_linked_head_ends_where_it_began() {
    for ways in [&[&["preview", "one"][..], &["preview", "--back"]][..], &[&["preview", "one"], &["undo"]]] {
        let sandbox = linking();
        sandbox.lane_of("one", "echo one > one.txt; echo one > a.txt");
        sandbox.write("a.txt", "mine\n");
        let before = Image::of(&sandbox, &sandbox.repo);
        for args in ways {
            let _ = sandbox.proq(args).ok();
        }
        assert_eq!(before, Image::of(&sandbox, &sandbox.repo));
        assert_eq!(sandbox.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
        sandbox.assert_healthy();
    }
}

#[test]
fn a_linked_worktree_on_a_linked_head_follows_and_can_be_worked_from() {
    let sandbox = linking();
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
fn a_lane_whose_head_became_a_link_is_whole_and_lands() {
    let sandbox = linking();
    sandbox.lane_of("one", "echo one > one.txt");
    link(&sandbox, &sandbox.lane("one"));
    let list = sandbox.proq(&["list"]);
    assert_eq!(list.stderr, "");
    let _ = sandbox.proq_in(&sandbox.lane("one"), &["list"]).ok();
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(sandbox.git(&["status", "--short"]), "");
}

#[test]
fn a_linked_head_whose_branch_has_no_file_is_named_with_what_helps() {
    let sandbox = linking();
    sandbox.git(&["worktree", "add", "-q", "../dev", "dev"]);
    sandbox.git(&["pack-refs", "--all"]);
    let out = sandbox.proq(&["list"]);
    insta::assert_snapshot!(out.shown(), @r"
    --- stderr
    error: cannot open [ROOT]/repo/.git: HEAD is a symbolic link to refs/heads/main, which has no file of its own
    hint: have git write the name there: git --git-dir='[ROOT]/repo/.git' -c core.preferSymlinkRefs=false symbolic-ref HEAD refs/heads/main
    --- code 1
    ");
    assert_eq!(sandbox.proq_in(&sandbox.root().join("dev"), &["list"]).shown(), out.shown());
    let hint = out.stderr.lines().find_map(|line| line.strip_prefix("hint: have git write the name there: "));
    sandbox.sh(&hint.unwrap().replace("[ROOT]", sandbox.root().to_str().unwrap()));
    assert_eq!(sandbox.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    for dir in [sandbox.repo.clone(), sandbox.root().join("dev")] {
        let _ = sandbox.proq_in(&dir, &["list"]).ok();
    }
}
