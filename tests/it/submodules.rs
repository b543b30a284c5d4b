//! Owns the tests of lanes that have their submodules.

use std::path::{Path, PathBuf};

use super::recovery::kit::{dies, recovers};
use super::support::{Image, Output, Sandbox, names};

/// A sandbox whose repository has the submodule `sub`, which has the submodule `in`, each from a bare repository of its own.
fn scene(setting: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh(
        "git config --global protocol.file.allow always
        git init -q --bare ../in.git; git init -q --bare ../lib.git
        git clone -q ../in.git ../in 2>/dev/null; cd ../in; echo in > in.txt; git add .; git commit -qm in; git push -q origin HEAD
        git clone -q ../lib.git ../lib 2>/dev/null; cd ../lib; echo 1 > lib.txt; git add .; git commit -qm 1
        git submodule --quiet add \"$ROOT/in.git\" in; git commit -qm in; git push -q origin HEAD
        cd ../repo; git submodule --quiet add \"$ROOT/lib.git\" sub; git submodule --quiet update --init --recursive; git commit -qm sub
        git config --global --unset protocol.file.allow",
    );
    if setting != "none" {
        sandbox.git(&["config", "proq.lane.submodules", setting]);
    }
    sandbox
}

#[track_caller]
fn spawn(sandbox: &Sandbox, name: &str) -> (PathBuf, Output) {
    let out = sandbox.proq(&["spawn", "--empty", "-n", name]);
    assert_eq!(out.code, 0, "{}", out.shown());
    (sandbox.lane(name), out)
}

fn git(sandbox: &Sandbox, dir: &Path, args: &[&str]) -> String {
    sandbox.git_in(dir, args)
}

#[test]
fn a_lane_has_the_submodules_of_the_main_checkout_without_a_network() {
    for (setting, sub, inner) in [("none", false, false), ("init", true, false), ("recursive", true, true)] {
        let sandbox = scene(setting);
        sandbox.sh("mv ../lib.git ../lib.away; mv ../in.git ../in.away");
        let (lane, out) = spawn(&sandbox, "x");
        assert!(!out.stderr.contains("submodule"), "{}", out.shown());
        let said = sandbox.proq(&["-v", "spawn", "--empty", "-n", "told"]).stderr;
        let copied =
            said.lines().find_map(|line| line.strip_prefix("submodules copied from the main checkout: "));
        assert_eq!(copied, sub.then_some(if inner { "sub, sub/in" } else { "sub" }), "{said}");
        let _ = sandbox.proq(&["discard", "told"]).ok();
        assert_eq!(lane.join("sub/lib.txt").exists(), sub, "{setting}");
        assert_eq!(lane.join("sub/in/in.txt").exists(), inner, "{setting}");
        assert_eq!(git(&sandbox, &lane, &["status", "--porcelain", "--ignore-submodules=none"]), "");
        assert_eq!(sandbox.git(&["status", "--porcelain", "--ignore-submodules=none"]), "");
        if sub {
            let url = git(&sandbox, &lane.join("sub"), &["remote", "get-url", "origin"]);
            assert_eq!(url, "[ROOT]/lib.git");
            assert_eq!(git(&sandbox, &lane.join("sub"), &["branch", "--list"]).lines().count(), 1);
            let status = git(&sandbox, &lane, &["submodule", "status", "--recursive"]);
            assert_eq!(
                status.lines().filter(|line| line.starts_with('-')).count(),
                usize::from(!inner),
                "{status}"
            );
            assert_eq!(status.lines().filter(|line| line.starts_with('+')).count(), 0, "{status}");
            // Nothing of it depends on what the main checkout's keeps.
            sandbox.sh("rm -rf .git/modules sub; mkdir sub");
            git(&sandbox, &lane.join("sub"), &["fsck", "--full", "--no-progress"]);
            sandbox.sh("mv ../lib.away ../lib.git");
            git(&sandbox, &lane.join("sub"), &["fetch", "-q"]);
        }
        let _ = sandbox.proq(&["discard", "x"]).ok();
        sandbox.assert_healthy();
    }
}

#[test]
fn what_the_main_checkout_has_not_got_stays_empty_and_is_named() {
    let sandbox = scene("recursive");
    sandbox
        .sh_in(&sandbox.root().join("lib"), "echo 2 > lib.txt; git commit -qam 2; git push -q origin HEAD");
    let new = git(&sandbox, &sandbox.root().join("lib"), &["rev-parse", "HEAD"]);
    sandbox.sh(&format!("git update-index --cacheinfo 160000,{new},sub; git commit -qm bump"));
    let (lane, out) = spawn(&sandbox, "x");
    // A short id of nothing but digits is a longer one.
    let told = format!("submodule sub of lane 'x' is empty: its commit {}", &new[..8]);
    assert!(out.stderr.contains(&told), "{}", out.shown());
    assert!(out.stderr.contains("is not in the main checkout's"), "{}", out.shown());
    assert_eq!(names(&lane.join("sub")), [""; 0]);
    sandbox.sh(
        "git reset -q --hard HEAD~1; git submodule --quiet deinit -f sub; rm -rf .git/modules/sub/modules",
    );
    let (lane, out) = spawn(&sandbox, "y");
    assert!(
        out.stderr.contains("submodule sub/in of lane 'y' is empty: the main checkout has not got it"),
        "{}",
        out.shown()
    );
    assert_eq!(std::fs::read_to_string(lane.join("sub/lib.txt")).unwrap(), "1\n");
    sandbox.sh("rm -rf .git/modules");
    let (lane, out) = spawn(&sandbox, "z");
    assert!(
        out.stderr.contains("submodule sub of lane 'z' is empty: the main checkout has not got it"),
        "{}",
        out.shown()
    );
    assert_eq!(names(&lane.join("sub")), [""; 0]);
    sandbox.assert_healthy();
}

#[test]
fn work_in_a_lanes_submodule_that_was_pushed_lands_and_comes_back() {
    let sandbox = scene("recursive");
    let (lane, _) = spawn(&sandbox, "x");
    sandbox.sh_in(
        &lane,
        "cd sub; echo 2 > lib.txt; git commit -qam 2; git push -q origin HEAD:refs/heads/work; cd ..; git commit -qam bump",
    );
    let new = git(&sandbox, &lane.join("sub"), &["rev-parse", "HEAD"]);
    let before = Image::of(&sandbox, &lane);
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert!(!lane.exists());
    assert_eq!(sandbox.git(&["rev-parse", "HEAD:sub"]), new);
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(before, Image::of(&sandbox, &lane));
    assert_eq!(git(&sandbox, &lane.join("sub"), &["rev-parse", "HEAD"]), new);
    assert_eq!(git(&sandbox, &lane, &["status", "--porcelain", "--ignore-submodules=none"]), "");
    sandbox.assert_healthy();
}

#[test]
fn edits_and_commits_in_a_lanes_submodule_keep_it_and_come_back() {
    let sandbox = scene("recursive");
    for (script, told) in [
        ("echo mine > sub/lib.txt", "1 uncommitted file (sub)"),
        ("echo mine > sub/in/new.txt", "1 uncommitted file (sub)"),
        (
            "cd sub; echo mine > lib.txt; git commit -qam mine; git checkout -q HEAD~1 2>&1; git stash list",
            "",
        ),
        (
            "cd sub; git checkout -qb side; echo mine > lib.txt; git commit -qam mine; git checkout -q --detach HEAD~1",
            "commits in its submodule sub that",
        ),
        (
            "cd sub/in; git checkout -qb side; git commit -qm mine --allow-empty; git checkout -q --detach HEAD~1",
            "commits in its submodule sub/modules/in that",
        ),
    ] {
        let (lane, _) = spawn(&sandbox, "x");
        sandbox.sh_in(&lane, script);
        let state = || {
            let status = "git status --porcelain; git log --all --format=%H%d; cat lib.txt; git -C in status --porcelain; git -C in log --all --format=%H";
            (Image::of(&sandbox, &lane), sandbox.sh_in(&lane.join("sub"), status))
        };
        let before = state();
        if !told.is_empty() {
            for command in [&["discard", "x"][..], &["cleanup", "x"]] {
                let said = sandbox.proq(command).shown();
                assert!(said.contains(told), "{script}: {said}");
            }
        }
        assert!(lane.join("sub/lib.txt").exists());
        let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
        assert!(!lane.exists());
        let _ = sandbox.proq(&["undo"]).ok();
        assert_eq!(before, state(), "{script}");
        let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    }
    // What the main checkout has is nobody's in the lane.
    sandbox.sh("cd sub; git checkout -q --detach; git commit -qm 'not pushed' --allow-empty; cd ..; git commit -qam bump");
    let (_, out) = spawn(&sandbox, "y");
    assert!(!out.stderr.contains("submodule"), "{}", out.shown());
    sandbox.sh("cd sub; git checkout -q HEAD~1");
    sandbox.sh_in(&sandbox.lane("y"), "echo y > y; git add y; git commit -qm y");
    let _ = sandbox.proq(&["merge", "y"]).ok();
    assert!(!sandbox.lane("y").exists());
}

#[test]
fn what_strangers_write_into_gitmodules_leads_nowhere() {
    let sandbox = scene("init");
    let link = sandbox.git(&["rev-parse", "HEAD:sub"]);
    sandbox.sh("git init -q ../target; git -C ../target commit -q --allow-empty -m t; ln -s \"$ROOT/target/.git\" .git/modules/linked");
    for (name, url, told) in [
        ("../../../evil", "x", "its name in .gitmodules is none that git takes"),
        ("a/../../b", "x", "its name in .gitmodules is none that git takes"),
        ("sub/modules/in", "-u./evil", ""),
        ("other", "ext::sh -c touch% \"$ROOT/evil\"", "the main checkout has not got it"),
        ("linked", "x", "the main checkout has not got it"),
    ] {
        sandbox.sh(&format!(
            "git switch -q -C hostile main; git config -f .gitmodules 'submodule.{name}.path' bad; git config -f .gitmodules 'submodule.{name}.url' '{url}'
            git update-index --add --cacheinfo 160000,{link},bad; git add .gitmodules; git commit -qm hostile; git switch -q main; rmdir bad 2>/dev/null || :"
        ));
        let out = sandbox.proq(&["spawn", "--empty", "-n", "x", "--base", "hostile"]);
        assert_eq!(out.code, 0, "{}", out.shown());
        assert!(out.stderr.contains("submodule bad of lane 'x' is empty"), "{name}: {}", out.shown());
        assert!(out.stderr.contains(told), "{name}: {}", out.shown());
        assert!(sandbox.lane("x").join("sub/lib.txt").exists());
        assert_eq!(names(&sandbox.lane("x").join("bad")), [""; 0]);
        assert_eq!(names(&sandbox.repo.join(".git/worktrees/x/modules")), ["sub"]);
        let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
        assert!(!sandbox.root().join("evil").exists() && !sandbox.repo.join("evil").exists());
    }
    sandbox.sh("git switch -q -C hostile main; echo '[sub' > .gitmodules; git commit -qam broken; git switch -q main");
    let out = sandbox.proq(&["spawn", "--empty", "-n", "x", "--base", "hostile"]);
    assert!(out.code == 0 && out.stderr.contains("has no entry for it in .gitmodules"), "{}", out.shown());
}

#[test]
fn a_spawn_that_is_killed_with_its_submodules_leaves_no_lane() {
    let sandbox = scene("recursive");
    dies(&sandbox, "set-up.submodules", &["spawn", "--empty", "-n", "x"]);
    let _ = recovers(&sandbox);
    assert_eq!(sandbox.traces(), [""; 0]);
    let _ = spawn(&sandbox, "x");
    sandbox.assert_healthy();
}
