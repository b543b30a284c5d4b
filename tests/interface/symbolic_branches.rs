//! Tests of branches that are symbolic refs to others, as the old name of a renamed branch may be. Work on
//! the symbolic branch belongs to its target.

use std::path::Path;

use proq_test_kit::Sandbox;

/// Creates a repository in which `master` leads to `main`, with the main checkout on branch `on`.
fn repo_with_symbolic_master(on: &str, ref_format: &str) -> Sandbox {
    let sandbox = Sandbox::empty();
    if ref_format != "files" {
        sandbox.sh(&format!("rm -rf .git; git init -q -b main --ref-format={ref_format}"));
    }
    sandbox.write("a.txt", "a\n");
    sandbox.commit_all("base");
    sandbox.sh(&format!("git symbolic-ref refs/heads/master refs/heads/main; git switch -q {on}"));
    sandbox
}

/// Ref formats that the installed git supports.
fn ref_formats(sandbox: &Sandbox) -> &'static [&'static str] {
    if sandbox.git_version() < (2, 46) { &["files"] } else { &["files", "reftable"] }
}

fn lane_with_file(sandbox: &Sandbox, name: &str, onto: &[&str]) {
    let _ = sandbox.proq(&[&["spawn", "--empty", "-n", name][..], onto].concat()).ok();
    sandbox.commit_in_lane(name, &format!("echo {name} > {name}.txt"));
}

/// Asserts that `master` still leads to `main`, and that only an edit of `a.txt` is uncommitted in a worktree
/// on branch `on`.
#[track_caller]
fn assert_intact(sandbox: &Sandbox, dir: &Path, on: &str) {
    assert_eq!(sandbox.git(&["symbolic-ref", "refs/heads/master"]), "refs/heads/main");
    let head = match sandbox.sh_in(dir, "cat $(git rev-parse --git-dir)/HEAD").trim() {
        "ref: refs/heads/.invalid" => sandbox.git_in(dir, &["symbolic-ref", "--no-recurse", "HEAD"]),
        name => name.trim_start_matches("ref: ").to_owned(),
    };
    assert_eq!(head, format!("refs/heads/{on}"));
    assert_eq!(sandbox.git_in(dir, &["status", "--short"]), " M a.txt");
}

/// Promise: worktree/symbolic-branches
#[test]
fn checkout_on_symbolic_branch_follows_its_target() {
    for format in ref_formats(&Sandbox::empty()) {
        for onto in [&["--onto", "main"][..], &[]] {
            let sandbox = repo_with_symbolic_master("master", format);
            lane_with_file(&sandbox, "one", onto);
            assert_eq!(sandbox.row("one")["base"], "main");
            sandbox.write("a.txt", "mine\n");
            let _ = sandbox.proq(&["merge", "one"]).ok();
            assert_intact(&sandbox, &sandbox.repo, "master");
            assert_eq!(sandbox.read("one.txt"), "one\n");
            let landed = sandbox.git(&["rev-parse", "main"]);
            for args in [&["undo", "--dry-run"][..], &["undo"]] {
                let _ = sandbox.proq(args).ok();
                assert_intact(&sandbox, &sandbox.repo, "master");
            }
            assert!(!sandbox.repo.join("one.txt").exists());
            let _ = sandbox.proq(&["op", "redo"]).ok();
            assert_intact(&sandbox, &sandbox.repo, "master");
            assert_eq!(sandbox.git(&["rev-parse", "main"]), landed);
            sandbox.assert_healthy();
        }
    }
}

/// Promise: worktree/symbolic-branches
#[test]
fn local_change_on_symbolic_branch_refuses_landing() {
    for format in ref_formats(&Sandbox::empty()) {
        let sandbox = repo_with_symbolic_master("master", format);
        let _ = sandbox.proq(&["spawn", "--empty", "-n", "one", "--onto", "main"]).ok();
        sandbox.commit_in_lane("one", "echo one > a.txt");
        sandbox.write("a.txt", "mine\n");
        for args in [&["merge", "one", "--dry-run"][..], &["merge", "one"]] {
            let text = sandbox.proq(args).fails(1);
            assert!(text.contains("are in the way: a.txt"), "{text}");
        }
        assert_intact(&sandbox, &sandbox.repo, "master");
    }
}

/// Promise: worktree/symbolic-branches
#[test]
fn linked_worktree_on_symbolic_branch_follows() {
    for format in ref_formats(&Sandbox::empty()) {
        let sandbox = repo_with_symbolic_master("main", format);
        sandbox.sh("git switch -q --detach; git worktree add -q ../w master");
        let worktree = sandbox.root().join("w");
        sandbox.write_in(&worktree, "a.txt", "mine\n");
        lane_with_file(&sandbox, "one", &["--onto", "main"]);
        let _ = sandbox.proq(&["merge", "one"]).ok();
        assert_intact(&sandbox, &worktree, "master");
        assert!(worktree.join("one.txt").exists());
        let _ = sandbox.proq(&["undo"]).ok();
        assert_intact(&sandbox, &worktree, "master");
        assert!(!worktree.join("one.txt").exists());
    }
}

/// Promise: worktree/symbolic-branches
#[test]
fn landing_onto_symbolic_branch_moves_its_target() {
    for format in ref_formats(&Sandbox::empty()) {
        let sandbox = repo_with_symbolic_master("main", format);
        sandbox.write("a.txt", "mine\n");
        lane_with_file(&sandbox, "one", &["--onto", "master"]);
        sandbox.git(&["branch", "other"]);
        lane_with_file(&sandbox, "two", &["--onto", "other"]);
        for merge in [&["merge", "one"][..], &["merge", "two", "--onto", "master"]] {
            assert!(sandbox.proq(merge).ok().contains(" on main ("), "{merge:?}");
            assert_intact(&sandbox, &sandbox.repo, "main");
        }
        assert!(sandbox.repo.join("one.txt").exists() && sandbox.repo.join("two.txt").exists());
        sandbox.sh("git stash -q; git switch -q --detach; git stash pop -q");
        lane_with_file(&sandbox, "three", &["--base", "master"]);
        let _ = sandbox.proq(&["merge", "three"]).ok();
        assert_eq!(sandbox.git(&["show", "main:three.txt"]), "three");
        let _ = sandbox.proq(&["undo"]).ok();
        assert_eq!(sandbox.git(&["symbolic-ref", "refs/heads/master"]), "refs/heads/main");
    }
}

/// Promise: worktree/symbolic-branches
#[test]
fn base_renamed_behind_symbolic_ref_lands_and_undoes() {
    for format in ref_formats(&Sandbox::empty()) {
        let sandbox = repo_with_symbolic_master("main", format);
        sandbox.sh("git symbolic-ref -d refs/heads/master");
        lane_with_file(&sandbox, "one", &[]);
        lane_with_file(&sandbox, "two", &[]);
        let _ = sandbox.proq(&["merge", "one"]).ok();
        sandbox.sh("git branch -m main trunk; git symbolic-ref refs/heads/main refs/heads/trunk");
        let _ = sandbox.proq(&["merge", "two"]).ok();
        assert_eq!(sandbox.git(&["show", "trunk:two.txt"]), "two");
        for file in ["two.txt", "one.txt"] {
            assert!(sandbox.repo.join(file).exists(), "{file}");
            let _ = sandbox.proq(&["undo"]).ok();
            assert_eq!(sandbox.git(&["symbolic-ref", "refs/heads/main"]), "refs/heads/trunk");
            assert_eq!(sandbox.git(&["status", "--short"]), "");
            assert!(!sandbox.repo.join(file).exists(), "{file}");
        }
        sandbox.assert_healthy();
    }
}

/// Promise: worktree/symbolic-branches
#[test]
fn preview_returns_to_symbolic_branch() {
    for format in ref_formats(&Sandbox::empty()) {
        for back in [&["preview", "--back"][..], &["undo"], &["merge", "one"]] {
            let sandbox = repo_with_symbolic_master("master", format);
            lane_with_file(&sandbox, "one", &[]);
            sandbox.write("a.txt", "mine\n");
            let _ = sandbox.proq(&["preview", "one"]).ok();
            assert!(sandbox.repo.join("one.txt").exists());
            let _ = sandbox.proq(back).ok();
            assert_intact(&sandbox, &sandbox.repo, "master");
            sandbox.assert_healthy();
        }
    }
}

/// Promise: worktree/symbolic-branches
#[test]
fn in_place_run_commits_to_target_of_symbolic_branch() {
    for format in ref_formats(&Sandbox::empty()) {
        let sandbox = repo_with_symbolic_master("master", format);
        sandbox.write("a.txt", "mine\n");
        let work = "echo new > new.txt; git add new.txt; git commit -qm new";
        let _ = sandbox.proq(&["spawn", "--in-place", "--wait", "-n", "one", "--", "sh", "-ec", work]).ok();
        assert_eq!(sandbox.git(&["log", "--format=%s", "main"]), "new\nbase");
        assert_intact(&sandbox, &sandbox.repo, "master");
    }
}
