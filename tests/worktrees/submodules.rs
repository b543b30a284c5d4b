//! Tests of lanes with submodules.

use std::path::{Path, PathBuf};

use proq_test_kit::faults::{kill_at, recover};
use proq_test_kit::{Output, Sandbox, WorktreeState, file_names};

/// Creates a repository with the submodule `sub`, which has the submodule `in`, each from a bare repository
/// of its own.
fn repo_with_nested_submodules(setting: &str) -> Sandbox {
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
fn spawn_lane(sandbox: &Sandbox, name: &str) -> (PathBuf, Output) {
    let out = sandbox.proq(&["spawn", "--empty", "-n", name]);
    assert_eq!(out.code, 0, "{}", out.to_text());
    (sandbox.lane_path(name), out)
}

fn git(sandbox: &Sandbox, dir: &Path, args: &[&str]) -> String {
    sandbox.git_in(dir, args)
}

/// Promise: new-lane/submodules
#[test]
fn copies_submodules_from_main_checkout_without_network() {
    for (setting, sub, inner) in [("none", false, false), ("init", true, false), ("recursive", true, true)] {
        let sandbox = repo_with_nested_submodules(setting);
        sandbox.sh("mv ../lib.git ../lib.away; mv ../in.git ../in.away");
        let (lane, out) = spawn_lane(&sandbox, "x");
        assert!(!out.stderr.contains("submodule"), "{}", out.to_text());
        let message = sandbox.proq(&["-v", "spawn", "--empty", "-n", "told"]).stderr;
        let copied =
            message.lines().find_map(|line| line.strip_prefix("submodules copied from the main checkout: "));
        assert_eq!(copied, sub.then_some(if inner { "sub, sub/in" } else { "sub" }), "{message}");
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
            // The lane's submodules depend on no object in the main checkout's.
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
fn missing_submodule_stays_empty_with_warning() {
    let sandbox = repo_with_nested_submodules("recursive");
    sandbox
        .sh_in(&sandbox.root().join("lib"), "echo 2 > lib.txt; git commit -qam 2; git push -q origin HEAD");
    let new = git(&sandbox, &sandbox.root().join("lib"), &["rev-parse", "HEAD"]);
    sandbox.sh(&format!("git update-index --cacheinfo 160000,{new},sub; git commit -qm bump"));
    let (lane, out) = spawn_lane(&sandbox, "x");
    // A short id that consists of digits only is longer.
    let expected =
        format!("submodule sub of lane 'x' is empty: the main checkout lacks its commit {}", &new[..8]);
    assert!(out.stderr.contains(&expected), "{}", out.to_text());
    assert!(out.stderr.contains("the main checkout lacks its commit"), "{}", out.to_text());
    assert_eq!(file_names(&lane.join("sub")), [""; 0]);
    sandbox.sh(
        "git reset -q --hard HEAD~1; git submodule --quiet deinit -f sub; rm -rf .git/modules/sub/modules",
    );
    let (lane, out) = spawn_lane(&sandbox, "y");
    assert!(
        out.stderr.contains("submodule sub/in of lane 'y' is empty: the main checkout lacks it"),
        "{}",
        out.to_text()
    );
    assert_eq!(std::fs::read_to_string(lane.join("sub/lib.txt")).unwrap(), "1\n");
    sandbox.sh("rm -rf .git/modules");
    let (lane, out) = spawn_lane(&sandbox, "z");
    assert!(
        out.stderr.contains("submodule sub of lane 'z' is empty: the main checkout lacks it"),
        "{}",
        out.to_text()
    );
    assert_eq!(file_names(&lane.join("sub")), [""; 0]);
    sandbox.assert_healthy();
}

#[test]
fn pushed_submodule_work_lands_and_is_undone() {
    let sandbox = repo_with_nested_submodules("recursive");
    let (lane, _) = spawn_lane(&sandbox, "x");
    sandbox.sh_in(
        &lane,
        "cd sub; echo 2 > lib.txt; git commit -qam 2; git push -q origin HEAD:refs/heads/work; cd ..; git commit -qam bump",
    );
    let new = git(&sandbox, &lane.join("sub"), &["rev-parse", "HEAD"]);
    let before = WorktreeState::capture(&sandbox, &lane);
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert!(!lane.exists());
    assert_eq!(sandbox.git(&["rev-parse", "HEAD:sub"]), new);
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(before, WorktreeState::capture(&sandbox, &lane));
    assert_eq!(git(&sandbox, &lane.join("sub"), &["rev-parse", "HEAD"]), new);
    assert_eq!(git(&sandbox, &lane, &["status", "--porcelain", "--ignore-submodules=none"]), "");
    sandbox.assert_healthy();
}

/// Promise: new-lane/submodule-work
#[test]
fn keeps_lane_with_submodule_work_and_undo_restores_it() {
    let sandbox = repo_with_nested_submodules("recursive");
    for (script, expected) in [
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
        let (lane, _) = spawn_lane(&sandbox, "x");
        sandbox.sh_in(&lane, script);
        let state = || {
            let status = "git status --porcelain; git log --all --format=%H%d; cat lib.txt; git -C in status --porcelain; git -C in log --all --format=%H";
            (WorktreeState::capture(&sandbox, &lane), sandbox.sh_in(&lane.join("sub"), status))
        };
        let before = state();
        if !expected.is_empty() {
            for command in [&["discard", "x"][..], &["cleanup", "x"]] {
                let message = sandbox.proq(command).to_text();
                assert!(message.contains(expected), "{script}: {message}");
            }
        }
        assert!(lane.join("sub/lib.txt").exists());
        let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
        assert!(!lane.exists());
        let _ = sandbox.proq(&["undo"]).ok();
        assert_eq!(before, state(), "{script}");
        let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    }
    // Commits that the main checkout's submodule has do not count as the lane's work.
    sandbox.sh("cd sub; git checkout -q --detach; git commit -qm 'not pushed' --allow-empty; cd ..; git commit -qam bump");
    let (_, out) = spawn_lane(&sandbox, "y");
    assert!(!out.stderr.contains("submodule"), "{}", out.to_text());
    sandbox.sh("cd sub; git checkout -q HEAD~1");
    sandbox.sh_in(&sandbox.lane_path("y"), "echo y > y; git add y; git commit -qm y");
    let _ = sandbox.proq(&["merge", "y"]).ok();
    assert!(!sandbox.lane_path("y").exists());
}

/// Promise: new-lane/submodules
#[test]
fn hostile_gitmodules_entries_have_no_effect() {
    let sandbox = repo_with_nested_submodules("init");
    let link = sandbox.git(&["rev-parse", "HEAD:sub"]);
    sandbox.sh("git init -q ../target; git -C ../target commit -q --allow-empty -m t; ln -s \"$ROOT/target/.git\" .git/modules/linked");
    for (name, url, expected) in [
        ("../../../evil", "x", "git does not accept its name in .gitmodules"),
        ("a/../../b", "x", "git does not accept its name in .gitmodules"),
        ("sub/modules/in", "-u./evil", ""),
        ("other", "ext::sh -c touch% \"$ROOT/evil\"", "the main checkout lacks it"),
        ("linked", "x", "the main checkout lacks it"),
    ] {
        sandbox.sh(&format!(
            "git switch -q -C hostile main; git config -f .gitmodules 'submodule.{name}.path' bad; git config -f .gitmodules 'submodule.{name}.url' '{url}'
            git update-index --add --cacheinfo 160000,{link},bad; git add .gitmodules; git commit -qm hostile; git switch -q main; rmdir bad 2>/dev/null || :"
        ));
        let out = sandbox.proq(&["spawn", "--empty", "-n", "x", "--base", "hostile"]);
        assert_eq!(out.code, 0, "{}", out.to_text());
        assert!(out.stderr.contains("submodule bad of lane 'x' is empty"), "{name}: {}", out.to_text());
        assert!(out.stderr.contains(expected), "{name}: {}", out.to_text());
        assert!(sandbox.lane_path("x").join("sub/lib.txt").exists());
        assert_eq!(file_names(&sandbox.lane_path("x").join("bad")), [""; 0]);
        assert_eq!(file_names(&sandbox.repo.join(".git/worktrees/x/modules")), ["sub"]);
        let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
        assert!(!sandbox.root().join("evil").exists() && !sandbox.repo.join("evil").exists());
    }
    sandbox.sh("git switch -q -C hostile main; echo '[sub' > .gitmodules; git commit -qam broken; git switch -q main");
    let out = sandbox.proq(&["spawn", "--empty", "-n", "x", "--base", "hostile"]);
    assert!(out.code == 0 && out.stderr.contains("has no entry for it in .gitmodules"), "{}", out.to_text());
}

#[test]
fn killed_spawn_with_submodules_leaves_no_lane() {
    let sandbox = repo_with_nested_submodules("recursive");
    kill_at(&sandbox, "set-up.submodules", &["spawn", "--empty", "-n", "x"]);
    let _ = recover(&sandbox);
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
    let _ = spawn_lane(&sandbox, "x");
    sandbox.assert_healthy();
}
