//! Owns the doctor's tests of what lies around: lock files, half-made work, permissions, git's settings, other places.

use super::doctor::{NOBODY, finds, finds_and_leaves, finds_and_repairs, follow};
use super::support::Sandbox;

fn with_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox
}

#[test]
fn a_lock_file_that_nobody_holds_is_an_error_and_a_fresh_one_is_none() {
    let sandbox = with_lane();
    for file in ["index.lock", "HEAD.lock", "packed-refs.lock", "config.lock", "refs/heads/proq/x.lock"] {
        sandbox.write(&format!(".git/{file}"), "");
        sandbox.assert_healthy();
        sandbox.sh(&format!("touch -d '1 hour ago' .git/{file}"));
        let found = finds_and_leaves(&sandbox, "git-lock", "error");
        assert!(found["message"].as_str().unwrap().contains("60 minutes old"), "{found:#?}");
        follow(&sandbox, &found);
        sandbox.assert_healthy();
    }
    sandbox.write(".git/worktrees/x/index.lock", &format!("git-proq {NOBODY}\n"));
    let found = finds_and_leaves(&sandbox, "git-lock", "error");
    assert!(found["message"].as_str().unwrap().contains("which is dead"), "{found:#?}");
    sandbox.write(".git/worktrees/x/index.lock", &format!("git-proq {}\n", std::process::id()));
    sandbox.assert_healthy();
}

#[test]
fn half_written_records_are_moved_away_when_they_are_old() {
    let sandbox = with_lane();
    let file = format!(".git/proq/lanes/x/.lane.toml.20260102-030405-{NOBODY}-0");
    sandbox.write(&file, "format = ");
    let _ = finds_and_leaves(&sandbox, "half-written", "warning");
    sandbox.sh(&format!("touch -d '2 days ago' {file}"));
    let _ = finds_and_repairs(&sandbox, "half-written", "warning");
    assert!(!sandbox.repo.join(&file).exists());
    assert_eq!(sandbox.sh("cat .git/proq/trash/.unfinished/*"), "format =");
    sandbox.assert_healthy();
}

#[test]
fn the_folder_is_closed_to_others_and_lanes_are_kept_out_of_git_status() {
    let sandbox = with_lane();
    sandbox.sh("chmod 755 .git/proq");
    let _ = finds_and_repairs(&sandbox, "permissions", "error");
    assert_eq!(sandbox.sh("stat -c %a .git/proq"), "700");
    sandbox.sh("rm .proq-worktrees/.gitignore");
    let _ = finds_and_repairs(&sandbox, "ignored", "error");
    sandbox.write(".git/info/exclude", "# mine\n");
    let _ = finds_and_repairs(&sandbox, "ignored", "error");
    assert_eq!(sandbox.read(".git/info/exclude"), "# mine\n/.proq-worktrees/\n");
    let found = finds(&sandbox, "clean", "info");
    assert!(found["message"].as_str().unwrap().contains("git clean -ffdx"), "{found:#?}");
    sandbox.assert_healthy();
}

#[test]
fn a_place_that_cannot_be_written_to_is_a_warning() {
    let sandbox = Sandbox::new();
    sandbox.write(".git/proq", "a file where the folder belongs");
    sandbox.sh("chmod 600 .git/proq");
    let _ = finds(&sandbox, "writable", "warning");
}

#[test]
fn settings_of_git_that_are_dangerous_are_warnings() {
    let sandbox = with_lane();
    for key in ["gc.pruneExpire", "gc.worktreePruneExpire"] {
        sandbox.git(&["config", key, "now"]);
        let found = finds_and_leaves(&sandbox, "gc", "warning");
        follow(&sandbox, &found);
    }
    sandbox.git(&["remote", "add", "--mirror=push", "copy", "/nowhere"]);
    let found = finds_and_leaves(&sandbox, "mirror", "warning");
    follow(&sandbox, &found);
    sandbox.assert_healthy();
    sandbox.git(&["config", "remote.copy.push", "+refs/*:refs/*"]);
    let _ = finds_and_leaves(&sandbox, "mirror", "warning");
    sandbox.git(&["remote", "remove", "copy"]);
    sandbox.sh("printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit");
    let found = finds(&sandbox, "hooks", "info");
    assert!(found["message"].as_str().unwrap().ends_with("pre-commit"), "{found:#?}");
    sandbox.assert_healthy();
}

#[test]
fn a_branch_that_is_called_like_the_prefix_is_an_error() {
    let sandbox = Sandbox::new();
    sandbox.git(&["branch", "proq"]);
    let found = finds_and_leaves(&sandbox, "prefix", "error");
    follow(&sandbox, &found);
    sandbox.assert_healthy();
}

#[test]
fn settings_that_are_unknown_or_broken_do_not_keep_it_from_looking() {
    let sandbox = with_lane();
    sandbox.write("proq.toml", "[merge]\nnovel = 1\n");
    let _ = finds_and_leaves(&sandbox, "setting", "warning");
    sandbox.write("proq.toml", "[merge\n");
    let found = finds_and_leaves(&sandbox, "setting", "error");
    assert!(found["message"].as_str().unwrap().contains("not valid TOML"), "{found:#?}");
    assert_eq!(sandbox.proq(&["doctor", "--json"]).json()["checked"]["lanes"], 1);
}

#[test]
fn a_git_that_is_too_old_or_missing_is_an_error() {
    let sandbox = with_lane();
    sandbox.program(
        "git",
        "[ \"$1\" = --version ] && { echo git version 2.30.0; exit; }; PATH=${PATH#*:} exec git \"$@\"",
    );
    let found = finds(&sandbox, "git-version", "error");
    assert!(found["message"].as_str().unwrap().contains("2.30"), "{found:#?}");
    let mut command = sandbox.proq_command(&sandbox.repo, &["doctor", "--json"]);
    command.env("PATH", "/nowhere");
    let out = sandbox.output(command);
    assert_eq!((out.code, out.json()["findings"][0]["check"].as_str()), (1, Some("git-version")));
}

#[test]
fn outside_of_a_repository_git_agents_and_settings_are_checked() {
    let sandbox = Sandbox::new();
    let home = sandbox.root().join("home");
    let out = sandbox.proq_in(&home, &["doctor", "--json"]);
    assert_eq!((out.code, &out.json()["checked"]["repository"]), (0, &false.into()));
    let shown = sandbox.proq_in(&home, &["doctor"]);
    assert!(shown.stderr.contains("not in a repository"), "{shown:?}");
    sandbox.program("claude", "true");
    let agents = sandbox.proq_in(&home, &["doctor", "--json"]).json();
    assert!(agents["checked"]["agents"].as_array().unwrap().contains(&"claude".into()), "{agents:#}");
}

#[test]
fn a_repository_that_cannot_be_read_is_not_taken_for_none() {
    let sandbox = Sandbox::new();
    sandbox.sh("git init -q --object-format=sha256 ../other; mkdir ../other/deep");
    let out = sandbox.proq_in(&sandbox.root().join("other/deep"), &["doctor"]);
    // Where the library can read it, it is as good as any.
    assert!(out.code == 0 && out.stdout.contains("0 lanes") || out.stdout.contains("cannot read"), "{out:?}");
}

#[test]
fn a_bare_repository_and_every_place_in_one_are_checked_alike() {
    let sandbox = with_lane();
    for dir in [".git", ".proq-worktrees/x"] {
        let answer = sandbox.proq_in(&sandbox.repo.join(dir), &["doctor", "--json"]).json();
        assert_eq!((&answer["ok"], &answer["checked"]["lanes"]), (&true.into(), &1.into()), "{answer:#}");
    }
    sandbox.sh("git clone -q --bare . ../bare.git");
    let bare = sandbox.root().join("bare.git");
    let _ = sandbox.proq_in(&bare, &["spawn", "--empty", "-n", "y", "--base", "main"]).ok();
    let answer = sandbox.proq_in(&bare, &["doctor", "--json"]).json();
    let bad = |f: &&serde_json::Value| f["severity"] != "info" && f["check"] != "branch-without-lane";
    assert_eq!(answer["findings"].as_array().unwrap().iter().find(bad), None, "{answer:#}");
}
