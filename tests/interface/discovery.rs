//! Tests of finding the repository: from every folder, by environment, bare, shallow, and at unusual paths.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use proq_test_kit::Sandbox;

/// Returns the names of the lanes that are listed from `dir`.
fn lanes_seen_from(sandbox: &Sandbox, dir: &Path) -> Vec<String> {
    let all = sandbox.proq_in(dir, &["list", "--json"]).json();
    all["lanes"].as_array().unwrap().iter().map(|l| l["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn finds_same_lanes_from_every_folder() {
    let sandbox = Sandbox::new();
    sandbox.write("deep/er/file", "");
    sandbox.commit_all("deep");
    let _ = sandbox.proq_in(&sandbox.repo.join("deep/er"), &["spawn", "--empty", "-n", "x"]).ok();
    assert!(sandbox.lane_path("x").join("deep/er/file").exists());
    for dir in
        ["", "deep/er", ".git", ".git/refs", ".proq-worktrees", ".proq-worktrees/x", ".proq-worktrees/x/deep"]
    {
        assert_eq!(lanes_seen_from(&sandbox, &sandbox.repo.join(dir)), ["x"], "{dir}");
    }
    let out = sandbox.proq_in(&sandbox.root(), &["-C", "repo/deep", "list", "--json"]).json();
    assert_eq!(out["lanes"][0]["name"], "x");
}

#[test]
fn creates_and_lands_lane_from_git_dir() {
    let sandbox = Sandbox::new();
    let _ = sandbox
        .proq_in(
            &sandbox.repo.join(".git"),
            &["spawn", "--wait", "-n", "x", "--", "sh", "-c", "echo 1 > one"],
        )
        .ok();
    assert_eq!(sandbox.row("x")["path"], "[ROOT]/repo/.proq-worktrees/x");
    let _ = sandbox.proq_in(&sandbox.repo.join(".git"), &["merge", "x"]).ok();
    assert_eq!(sandbox.read("one"), "1\n");
}

#[test]
fn honors_git_dir_and_work_tree_variables() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    let away = sandbox.root().join("home");
    let mut command = sandbox.proq_command(&away, &["list", "--json"]);
    command.env("GIT_DIR", sandbox.repo.join(".git"));
    assert_eq!(sandbox.output(command).json()["lanes"][0]["name"], "x");
    let mut command = sandbox.proq_command(&away, &["spawn", "--json", "--empty", "-n", "y"]);
    command.env("GIT_DIR", sandbox.repo.join(".git")).env("GIT_WORK_TREE", &sandbox.repo);
    assert_eq!(sandbox.output(command).json()["path"], "[ROOT]/repo/.proq-worktrees/y");
    let mut command = sandbox.proq_command(&sandbox.repo, &["list"]);
    command.env("GIT_DIR", "nowhere");
    let out = sandbox.output(command);
    assert_eq!(out.code, 1);
    insta::assert_snapshot!(out.to_text(), @r"
    --- stderr
    error: not a git repository: nowhere
    hint: GIT_DIR is not a repository; unset it: unset GIT_DIR
    --- code 1
    ");
}

/// Promise: worktree/git-environment
#[test]
fn ignores_other_git_variables() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo 1 > one");
    let with = |variable: &str, value: &str, args: &[&str]| {
        let mut command = sandbox.proq_command(&sandbox.repo, args);
        command.env(variable, value);
        sandbox.output(command)
    };
    let list_args = ["list", "--json"];
    let nowhere = sandbox.root().join("nowhere").display().to_string();
    for (variable, value) in [
        ("GIT_NAMESPACE", "ns"),
        ("GIT_SHALLOW_FILE", sandbox.repo.join("a.txt").to_str().unwrap()),
        ("GIT_INDEX_FILE", &nowhere),
        ("GIT_OBJECT_DIRECTORY", &nowhere),
        ("GIT_NO_REPLACE_OBJECTS", "1"),
        ("GIT_REPLACE_REF_BASE", "refs/other/"),
    ] {
        if variable == "GIT_NO_REPLACE_OBJECTS" {
            // Replaces the history of the lane's branch, which git follows.
            sandbox.git(&["replace", "--graft", "proq/x"]);
        }
        let lanes = sandbox.proq(&list_args).ok();
        assert_eq!(with(variable, value, &list_args).ok(), lanes, "{variable}");
        let refused = with(variable, value, &["discard", "x"]).fails(1);
        assert!(refused.contains("not on main"), "{variable}: {refused}");
        let _ = with(variable, value, &["cleanup"]).ok();
        assert!(sandbox.lane_path("x").join("one").exists(), "{variable}");
    }
}

/// Promise: worktree/git-environment
#[test]
fn gitoxide_settings_hide_no_branch() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo 1 > one");
    let lanes = sandbox.proq(&["list", "--json"]).ok();
    sandbox.git(&["config", "gitoxide.core.refsNamespace", "ns"]);
    sandbox.git(&["config", "gitoxide.core.shallowFile", "../a.txt"]);
    sandbox.git(&["config", "gitoxide.objects.replaceRefBase", "refs/heads/"]);
    assert_eq!(sandbox.proq(&["list", "--json"]).ok(), lanes);
    let refused = sandbox.proq(&["discard", "x"]).fails(1);
    assert!(refused.contains("not on main"), "{refused}");
    let _ = sandbox.proq(&["cleanup"]).ok();
    assert!(sandbox.lane_path("x").join("one").exists());
}

/// Runs the command at the end of the first hint.
fn follow_hint(sandbox: &Sandbox, text: &str) {
    let command = text.lines().find_map(|line| line.strip_prefix("hint: ")?.split_once(": ")).unwrap().1;
    let _ = sandbox.sh(&command.replace("[ROOT]", "$ROOT").replace('\'', "\""));
}

#[test]
fn setting_of_a_later_repository_format_is_named() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo 1 > one");
    sandbox.git(&["config", "extensions.relativeWorktrees", "true"]);
    let mut rev_parse = sandbox.command("git", &sandbox.repo);
    rev_parse.arg("rev-parse");
    let is_ignored_by_git = sandbox.output(rev_parse).code == 0;
    for dir in [&sandbox.repo, &sandbox.lane_path("x")] {
        let refused = sandbox.proq_in(dir, &["list"]).fails(1);
        assert!(refused.to_lowercase().contains("relativeworktrees"), "{refused}");
        // git since 2.48 refuses it itself.
        if is_ignored_by_git {
            insta::allow_duplicates!(insta::assert_snapshot!(refused, @r"
            error: cannot use the repository [ROOT]/repo/.git: extensions.relativeWorktrees is set, which core.repositoryFormatVersion 0 does not have; nothing was changed
            hint: remove the setting, which git ignores here: git -C / config --file '[ROOT]/repo/.git/config' --unset-all extensions.relativeWorktrees
            "));
        }
    }
    if is_ignored_by_git {
        let found = sandbox.proq(&["doctor"]).stdout;
        let _ = sandbox.follow_hint(&found, "remove the setting, which git ignores here").ok();
        let _ = sandbox.proq(&["merge", "x"]).ok();
        assert_eq!(sandbox.read("one"), "1\n");
    }
}

/// Promise: worktree/hidden-checkout
#[test]
fn refuses_checkout_hidden_by_core_bare() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo 1 > one");
    sandbox.write("a.txt", "mine\n");
    sandbox.git(&["config", "core.bare", "true"]);
    for args in [&["merge", "x"][..], &["merge", "--dry-run", "x"], &["spawn", "--empty"], &["doctor"]] {
        for dir in [&sandbox.repo, &sandbox.repo.join(".git"), &sandbox.lane_path("x")] {
            let out = sandbox.proq_in(dir, args);
            assert!(
                out.to_text().contains("core.bare is true, although files are checked out there"),
                "{args:?}"
            );
            assert_eq!(out.code, 1);
        }
    }
    let out = sandbox.proq(&["merge", "x"]);
    insta::assert_snapshot!(out.to_text(), @r"
    --- stderr
    error: cannot use the repository at [ROOT]/repo: core.bare is true, although files are checked out there; nothing was changed
    hint: restore the checkout: git config --file '[ROOT]/repo/.git/config' --unset-all core.bare
    --- code 1
    ");
    follow_hint(&sandbox, &out.stderr);
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert_eq!(sandbox.git(&["status", "--short"]), " M a.txt");
    assert_eq!(sandbox.read("one"), "1\n");
}

/// Promise: worktree/hidden-checkout
#[test]
fn auto_merge_refuses_checkout_hidden_by_agent() {
    let sandbox = Sandbox::new();
    let script = "git config core.bare true; echo 1 > one; git add one; git commit -qm one";
    let _ = sandbox.proq(&["spawn", "-n", "x", "--auto-merge", "--wait", "--", "sh", "-ec", script]);
    sandbox.git(&["config", "core.bare", "false"]);
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    assert_eq!(sandbox.git(&["log", "--format=%s", "main"]), "first");
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert_eq!(sandbox.read("one"), "1\n");
}

/// Promise: worktree/hidden-checkout
#[test]
fn refuses_core_worktree_without_git_link() {
    let sandbox = Sandbox::new();
    let elsewhere = sandbox.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::rename(sandbox.repo.join("a.txt"), elsewhere.join("a.txt")).unwrap();
    sandbox.git(&["config", "core.worktree", elsewhere.to_str().unwrap()]);
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    let out = sandbox.proq(&["spawn", "-n", "x", "--", "true"]);
    insta::assert_snapshot!(out.to_text(), @r"
    --- stderr
    error: cannot use the repository [ROOT]/repo/.git: core.worktree is [ROOT]/elsewhere, from where git does not find it; nothing was changed
    hint: let git find it: echo gitdir: '[ROOT]/repo/.git' > '[ROOT]/elsewhere/.git'
    --- code 1
    ");
    assert!(!sandbox.repo.join(".git/proq").exists());
    assert_eq!(sandbox.git(&["for-each-ref", "--format=%(refname)"]), "refs/heads/main");
    let mut command = sandbox.proq_command(&sandbox.root(), &["list"]);
    command.env("GIT_DIR", sandbox.repo.join(".git"));
    assert_eq!(sandbox.output(command).fails(1), out.stderr);
    follow_hint(&sandbox, &out.stderr);
    let script = "echo 1 > one; git add one; git commit -qm one";
    let _ = sandbox.proq(&["spawn", "-n", "x", "--wait", "--", "sh", "-ec", script]).ok();
    let _ = sandbox.proq(&["preview", "x"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert_eq!(std::fs::read_to_string(elsewhere.join("one")).unwrap(), "1\n");
}

/// Promise: worktree/hidden-checkout
#[test]
fn refuses_core_worktree_shared_by_worktrees() {
    let sandbox = Sandbox::new();
    // Checkouts of submodules set core.worktree.
    sandbox.sh("git config --global protocol.file.allow always
        git init -q ../super; cd ../super; git submodule --quiet add \"$ROOT/repo\" sub; git commit -qm sub");
    let sub = sandbox.root().join("super/sub");
    let _ = sandbox.proq_in(&sub, &["spawn", "--empty", "-n", "x"]).ok();
    let lane = sub.join(".proq-worktrees/x");
    let _ = sandbox.sh_in(&lane, "echo 1 > one; git add one; git commit -qm one");
    sandbox.write_in(&sub, "a.txt", "mine\n");
    sandbox.write_in(&sub, "untracked.txt", "mine\n");
    let merge = ["merge", "x", "--verify", "test -e one"];
    let refused = |dir: &Path, args: &[&str]| {
        let text = sandbox.proq_in(dir, args).fails(1);
        let reason = "with extensions.worktreeConfig its core.worktree counts for every worktree";
        assert!(text.contains(reason), "{}: {args:?}: {text}", dir.display());
        text
    };
    for repeat_setting in [true, false] {
        sandbox.git_in(&sub, &["config", "extensions.worktreeConfig", "true"]);
        for args in [&merge[..], &["spawn", "--empty"], &["list"], &["doctor"]] {
            let _ = (refused(&sub, args), refused(&lane, args));
        }
        if repeat_setting {
            follow_hint(&sandbox, &refused(&sub, &merge));
            assert_eq!(sandbox.git_in(&sub, &["status", "--short"]), " M a.txt\n?? untracked.txt");
            let _ = sandbox.proq_in(&lane, &["list"]).ok();
            // `git submodule` may write the setting again.
            sandbox.git_in(&sub, &["config", "core.worktree", "../../../sub"]);
        }
    }
    follow_hint(&sandbox, &refused(&lane, &merge));
    let _ = sandbox.proq_in(&sub, &merge).ok();
    for (file, text) in [("a.txt", "mine\n"), ("untracked.txt", "mine\n"), ("one", "1\n")] {
        assert_eq!(std::fs::read_to_string(sub.join(file)).unwrap(), text);
    }
}

#[test]
fn refuses_core_worktree_that_is_no_folder() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "core.worktree", "/nowhere"]);
    let out = sandbox.proq(&["spawn", "-n", "x", "--", "true"]);
    insta::assert_snapshot!(out.to_text(), @r"
    --- stderr
    error: cannot use the repository [ROOT]/repo/.git: core.worktree is /nowhere, from where git does not find it; nothing was changed
    hint: use the checkout beside it again: git -C / config --file '[ROOT]/repo/.git/config' --unset-all core.worktree
    --- code 1
    ");
    follow_hint(&sandbox, &out.stderr);
    let _ = sandbox.proq(&["spawn", "-n", "x", "--wait", "--", "true"]).ok();
}

#[test]
fn hook_that_runs_git_proq_uses_its_repository() {
    let sandbox = Sandbox::new();
    sandbox.program("hook", "git-proq list --json > \"$ROOT/seen\"");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    std::fs::rename(sandbox.root().join("bin/hook"), sandbox.repo.join(".git/hooks/post-commit")).unwrap();
    sandbox.commit_all_in(&sandbox.lane_path("x"), "with GIT_DIR and GIT_INDEX_FILE set");
    let seen = std::fs::read_to_string(sandbox.root().join("seen")).unwrap();
    assert!(seen.contains("\"name\": \"x\""), "{seen}");
}

#[test]
fn bare_repository_supports_all_but_preview() {
    let sandbox = Sandbox::new();
    sandbox.git(&["clone", "-q", "--bare", ".", "../bare.git"]);
    let bare = sandbox.root().join("bare.git");
    let out = sandbox
        .proq_in(&bare, &["spawn", "--wait", "--json", "-n", "x", "--", "sh", "-c", "echo 1 > one"])
        .json();
    assert_eq!((&out["state"], &out["path"]), (&"done".into(), &"[ROOT]/bare.proq-worktrees/x".into()));
    assert_eq!(lanes_seen_from(&sandbox, &bare), ["x"]);
    assert_eq!(lanes_seen_from(&sandbox, &sandbox.root().join("bare.proq-worktrees/x")), ["x"]);
    insta::assert_snapshot!(sandbox.proq_in(&bare, &["preview", "x"]).to_text(), @r"
    --- stderr
    error: cannot use a bare repository here: it has no main checkout
    hint: work in a clone of it, which has a checkout; see: git help clone
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq_in(&bare, &["merge", "x"]).to_text(), @"
    landed x on main (33ca0fc3)
    --- stderr
    hint: undo it: git proq undo
    --- code 0
    ");
    assert_eq!(sandbox.git_in(&bare, &["show", "main:one"]), "1");
    assert!(lanes_seen_from(&sandbox, &bare).is_empty());
}

#[test]
fn shallow_clone_supports_lanes_and_landings() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "second\n");
    sandbox.commit_all("second");
    let url = format!("file://{}", sandbox.repo.display());
    sandbox.git(&["clone", "-q", "--depth", "1", &url, "../shallow"]);
    let shallow = sandbox.root().join("shallow");
    let script = "echo 1 > one; git add one; git commit -qm one";
    let _ = sandbox.proq_in(&shallow, &["spawn", "--wait", "-n", "x", "--", "sh", "-ec", script]).ok();
    let out = sandbox.proq_in(&shallow, &["list", "--json"]).json();
    assert_eq!((&out["lanes"][0]["ahead"], &out["lanes"][0]["behind"]), (&1.into(), &0.into()));
    let _ = sandbox.proq_in(&shallow, &["merge", "x"]).ok();
    assert_eq!(std::fs::read_to_string(shallow.join("one")).unwrap(), "1\n");
}

#[test]
fn submodule_is_a_separate_repository() {
    let sandbox = Sandbox::new();
    sandbox.git(&["clone", "-q", ".", "../lib"]);
    sandbox.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../lib", "lib"]);
    sandbox.commit_all("lib");
    let lib = sandbox.repo.join("lib");
    let script = "echo 1 > one; git add one; git commit -qm one";
    let _ = sandbox.proq_in(&lib, &["spawn", "--wait", "-n", "x", "--", "sh", "-ec", script]).ok();
    assert_eq!(lanes_seen_from(&sandbox, &lib), ["x"]);
    assert!(lanes_seen_from(&sandbox, &sandbox.repo).is_empty());
    assert!(lib.join(".proq-worktrees/x/one").exists());
    let _ = sandbox.proq_in(&lib, &["merge", "x"]).ok();
    assert_eq!(std::fs::read_to_string(lib.join("one")).unwrap(), "1\n");
    // The superproject has its own lanes.
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y"]).ok();
    assert_eq!(lanes_seen_from(&sandbox, &sandbox.repo), ["y"]);
}

#[test]
fn supports_separate_git_dir() {
    let sandbox = Sandbox::new();
    sandbox.git(&["clone", "-q", "--separate-git-dir", "../store.git", ".", "../apart"]);
    let apart = sandbox.root().join("apart");
    let _ = sandbox.proq_in(&apart, &["spawn", "--wait", "-n", "x", "--", "sh", "-c", "echo 1 > one"]).ok();
    assert!(apart.join(".proq-worktrees/x/one").exists());
    let _ = sandbox.proq_in(&apart, &["merge", "x"]).ok();
    assert_eq!(std::fs::read_to_string(apart.join("one")).unwrap(), "1\n");
}

#[test]
fn supports_unusual_repository_paths() {
    for name in
        [&b"with space"[..], b"new\nline", b"quo'te \"s\" $(id)", "ünïcode".as_bytes(), b"bytes-\xff\xfe"]
    {
        let sandbox = Sandbox::new();
        let odd: PathBuf = sandbox.root().join(OsStr::from_bytes(name));
        std::fs::rename(&sandbox.repo, &odd).unwrap();
        let shown = String::from_utf8_lossy(name);
        let out = sandbox.proq_in(&odd, &["spawn", "--wait", "-n", "x", "--", "sh", "-c", "echo 1 > one"]);
        assert_eq!(out.code, 0, "{shown}: {}", out.stderr);
        for args in [
            &["list"][..],
            &["show", "x"],
            &["diff", "--stat", "x"],
            &["logs", "x"],
            &["preview", "x"],
            &["preview", "--back"],
            &["merge", "x"],
        ] {
            let out = sandbox.proq_in(&odd, args);
            assert_eq!(out.code, 0, "{shown}: {args:?}: {}", out.stderr);
        }
        assert_eq!(std::fs::read_to_string(odd.join("one")).unwrap(), "1\n", "{shown}");
        assert_eq!(
            sandbox.git_in(&odd, &["worktree", "list", "--porcelain", "-z"]).matches("worktree ").count(),
            1,
            "{shown}"
        );
    }
}

#[test]
fn symlinked_path_is_the_same_repository() {
    let sandbox = Sandbox::new();
    std::os::unix::fs::symlink(&sandbox.repo, sandbox.root().join("link")).unwrap();
    let link = sandbox.root().join("link");
    let _ = sandbox.proq_in(&link, &["spawn", "--empty", "-n", "x"]).ok();
    assert_eq!(sandbox.row("x")["path"], "[ROOT]/repo/.proq-worktrees/x");
    let _ = sandbox.proq_in(&link.join(".proq-worktrees/x"), &["discard", "x"]).ok();
}
