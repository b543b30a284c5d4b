//! Owns the tests of branches that are symbolic refs to others, as the old name of a renamed branch may be: what is on one is on the
//! branch that it leads to.

use std::path::Path;

use super::support::Sandbox;

/// A sandbox in which `master` leads to `main`, and the main checkout is on one of the two.
fn sandbox(on: &str, ref_format: &str) -> Sandbox {
    let sandbox = Sandbox::empty();
    if ref_format != "files" {
        sandbox.sh(&format!("rm -rf .git; git init -q -b main --ref-format={ref_format}"));
    }
    sandbox.write("a.txt", "a\n");
    sandbox.commit_all("base");
    sandbox.sh(&format!("git symbolic-ref refs/heads/master refs/heads/main; git switch -q {on}"));
    sandbox
}

/// The ways in which git keeps refs, as far as this one can switch them.
fn formats(of: &Sandbox) -> &'static [&'static str] {
    if of.git_version() < (2, 46) { &["files"] } else { &["files", "reftable"] }
}

fn lane(sandbox: &Sandbox, name: &str, onto: &[&str]) {
    let _ = sandbox.proq(&[&["spawn", "--empty", "-n", name][..], onto].concat()).ok();
    sandbox.commit_in_lane(name, &format!("echo {name} > {name}.txt"));
}

/// Requires that `master` still leads to `main`, and that nothing but an edit of `a.txt` is uncommitted in a worktree of it.
#[track_caller]
fn is_whole(sandbox: &Sandbox, dir: &Path, on: &str) {
    assert_eq!(sandbox.git(&["symbolic-ref", "refs/heads/master"]), "refs/heads/main");
    let head = match sandbox.sh_in(dir, "cat $(git rev-parse --git-dir)/HEAD").trim() {
        "ref: refs/heads/.invalid" => sandbox.git_in(dir, &["symbolic-ref", "--no-recurse", "HEAD"]),
        name => name.trim_start_matches("ref: ").to_owned(),
    };
    assert_eq!(head, format!("refs/heads/{on}"));
    assert_eq!(sandbox.git_in(dir, &["status", "--short"]), " M a.txt");
}

#[test]
fn a_checkout_on_a_symbolic_branch_follows_what_lands_on_the_branch_behind_it() {
    for format in formats(&Sandbox::empty()) {
        for onto in [&["--onto", "main"][..], &[]] {
            let sandbox = sandbox("master", format);
            lane(&sandbox, "one", onto);
            assert_eq!(sandbox.row("one")["base"], "main");
            sandbox.write("a.txt", "mine\n");
            let _ = sandbox.proq(&["merge", "one"]).ok();
            is_whole(&sandbox, &sandbox.repo, "master");
            assert_eq!(sandbox.read("one.txt"), "one\n");
            let landed = sandbox.git(&["rev-parse", "main"]);
            for args in [&["undo", "--dry-run"][..], &["undo"]] {
                let _ = sandbox.proq(args).ok();
                is_whole(&sandbox, &sandbox.repo, "master");
            }
            assert!(!sandbox.repo.join("one.txt").exists());
            let _ = sandbox.proq(&["op", "redo"]).ok();
            is_whole(&sandbox, &sandbox.repo, "master");
            assert_eq!(sandbox.git(&["rev-parse", "main"]), landed);
            sandbox.assert_healthy();
        }
    }
}

#[test]
fn a_local_change_on_a_symbolic_branch_refuses_a_landing() {
    for format in formats(&Sandbox::empty()) {
        let sandbox = sandbox("master", format);
        let _ = sandbox.proq(&["spawn", "--empty", "-n", "one", "--onto", "main"]).ok();
        sandbox.commit_in_lane("one", "echo one > a.txt");
        sandbox.write("a.txt", "mine\n");
        for args in [&["merge", "one", "--dry-run"][..], &["merge", "one"]] {
            let text = sandbox.proq(args).fails(1);
            assert!(text.contains("stand in the way: a.txt"), "{text}");
        }
        is_whole(&sandbox, &sandbox.repo, "master");
    }
}

#[test]
fn a_linked_worktree_on_a_symbolic_branch_follows_too() {
    for format in formats(&Sandbox::empty()) {
        let sandbox = sandbox("main", format);
        sandbox.sh("git switch -q --detach; git worktree add -q ../w master");
        let there = sandbox.root().join("w");
        sandbox.write_in(&there, "a.txt", "mine\n");
        lane(&sandbox, "one", &["--onto", "main"]);
        let _ = sandbox.proq(&["merge", "one"]).ok();
        is_whole(&sandbox, &there, "master");
        assert!(there.join("one.txt").exists());
        let _ = sandbox.proq(&["undo"]).ok();
        is_whole(&sandbox, &there, "master");
        assert!(!there.join("one.txt").exists());
    }
}

#[test]
fn what_is_for_a_symbolic_branch_lands_on_the_branch_behind_it() {
    for format in formats(&Sandbox::empty()) {
        let sandbox = sandbox("main", format);
        sandbox.write("a.txt", "mine\n");
        lane(&sandbox, "one", &["--onto", "master"]);
        sandbox.git(&["branch", "other"]);
        lane(&sandbox, "two", &["--onto", "other"]);
        for merge in [&["merge", "one"][..], &["merge", "two", "--onto", "master"]] {
            assert!(sandbox.proq(merge).ok().contains(" on main ("), "{merge:?}");
            is_whole(&sandbox, &sandbox.repo, "main");
        }
        assert!(sandbox.repo.join("one.txt").exists() && sandbox.repo.join("two.txt").exists());
        sandbox.sh("git stash -q; git switch -q --detach; git stash pop -q");
        lane(&sandbox, "three", &["--base", "master"]);
        let _ = sandbox.proq(&["merge", "three"]).ok();
        assert_eq!(sandbox.git(&["show", "main:three.txt"]), "three");
        let _ = sandbox.proq(&["undo"]).ok();
        assert_eq!(sandbox.git(&["symbolic-ref", "refs/heads/master"]), "refs/heads/main");
    }
}

#[test]
fn a_base_that_becomes_a_symbolic_name_of_its_new_one_is_landed_on_and_undone_there() {
    for format in formats(&Sandbox::empty()) {
        let sandbox = sandbox("main", format);
        sandbox.sh("git symbolic-ref -d refs/heads/master");
        lane(&sandbox, "one", &[]);
        lane(&sandbox, "two", &[]);
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

#[test]
fn a_preview_from_a_symbolic_branch_goes_back_to_it() {
    for format in formats(&Sandbox::empty()) {
        for back in [&["preview", "--back"][..], &["undo"], &["merge", "one"]] {
            let sandbox = sandbox("master", format);
            lane(&sandbox, "one", &[]);
            sandbox.write("a.txt", "mine\n");
            let _ = sandbox.proq(&["preview", "one"]).ok();
            assert!(sandbox.repo.join("one.txt").exists());
            let _ = sandbox.proq(back).ok();
            is_whole(&sandbox, &sandbox.repo, "master");
            sandbox.assert_healthy();
        }
    }
}

#[test]
fn a_run_on_a_symbolic_branch_commits_to_the_branch_behind_it() {
    for format in formats(&Sandbox::empty()) {
        let sandbox = sandbox("master", format);
        sandbox.write("a.txt", "mine\n");
        let work = "echo new > new.txt; git add new.txt; git commit -qm new";
        let _ = sandbox.proq(&["spawn", "--in-place", "--wait", "-n", "one", "--", "sh", "-ec", work]).ok();
        assert_eq!(sandbox.git(&["log", "--format=%s", "main"]), "new\nbase");
        is_whole(&sandbox, &sandbox.repo, "master");
    }
}
