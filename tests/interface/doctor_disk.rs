//! Tests of the doctor's checks on disk: lock files, partial records, permissions, git settings, and unusual
//! locations.

use proq_test_kit::Sandbox;

use super::doctor::{
    UNUSED_PID, assert_finding, assert_fixable_finding, assert_unfixable_finding, run_suggested_command,
};

fn with_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox
}

#[test]
fn stale_git_lock_is_an_error_fresh_one_is_not() {
    let sandbox = with_lane();
    for file in ["index.lock", "HEAD.lock", "packed-refs.lock", "config.lock", "refs/heads/proq/x.lock"] {
        sandbox.write(&format!(".git/{file}"), "");
        sandbox.assert_healthy();
        sandbox.sh(&format!("touch -d '1 hour ago' .git/{file}"));
        let found = assert_unfixable_finding(&sandbox, "git-lock", "error");
        assert!(found["message"].as_str().unwrap().contains("60 minutes old"), "{found:#?}");
        run_suggested_command(&sandbox, &found);
        sandbox.assert_healthy();
    }
    sandbox.write(".git/worktrees/x/index.lock", &format!("git-proq {UNUSED_PID}\n"));
    let found = assert_unfixable_finding(&sandbox, "git-lock", "error");
    assert!(found["message"].as_str().unwrap().contains("which has ended"), "{found:#?}");
    sandbox.write(".git/worktrees/x/index.lock", &format!("git-proq {}\n", std::process::id()));
    sandbox.assert_healthy();
}

#[test]
fn moves_old_partial_records_to_the_trash() {
    let sandbox = with_lane();
    let file = format!(".git/proq/lanes/x/.lane.toml.20260102-030405-{UNUSED_PID}-0");
    sandbox.write(&file, "format = ");
    let _ = assert_unfixable_finding(&sandbox, "half-written", "warning");
    sandbox.sh(&format!("touch -d '2 days ago' {file}"));
    let _ = assert_fixable_finding(&sandbox, "half-written", "warning");
    assert!(!sandbox.repo.join(&file).exists());
    assert_eq!(sandbox.sh("cat .git/proq/trash/.unfinished/*"), "format =");
    sandbox.assert_healthy();
}

/// Promise: removal/private-trash
#[test]
fn repairs_permissions_and_ignore_rules() {
    let sandbox = with_lane();
    sandbox.sh("chmod 755 .git/proq");
    let _ = assert_fixable_finding(&sandbox, "permissions", "error");
    assert_eq!(sandbox.sh("stat -c %a .git/proq"), "700");
    sandbox.sh("rm .proq-worktrees/.gitignore");
    let _ = assert_fixable_finding(&sandbox, "ignored", "error");
    sandbox.write(".git/info/exclude", "# mine\n");
    let _ = assert_fixable_finding(&sandbox, "ignored", "error");
    assert_eq!(sandbox.read(".git/info/exclude"), "# mine\n/.proq-worktrees/\n");
    let found = assert_finding(&sandbox, "clean", "info");
    assert!(found["message"].as_str().unwrap().contains("git clean -ffdx"), "{found:#?}");
    sandbox.assert_healthy();
}

#[test]
fn unwritable_folder_is_a_warning() {
    let sandbox = Sandbox::new();
    sandbox.write(".git/proq", "a file where the folder belongs");
    sandbox.sh("chmod 600 .git/proq");
    let _ = assert_finding(&sandbox, "writable", "warning");
}

#[test]
fn dangerous_git_settings_are_warnings() {
    let sandbox = with_lane();
    for key in ["gc.pruneExpire", "gc.worktreePruneExpire"] {
        sandbox.git(&["config", key, "now"]);
        let found = assert_unfixable_finding(&sandbox, "gc", "warning");
        run_suggested_command(&sandbox, &found);
    }
    sandbox.git(&["remote", "add", "--mirror=push", "copy", "/nowhere"]);
    let found = assert_unfixable_finding(&sandbox, "mirror", "warning");
    run_suggested_command(&sandbox, &found);
    sandbox.assert_healthy();
    sandbox.git(&["config", "remote.copy.push", "+refs/*:refs/*"]);
    let _ = assert_unfixable_finding(&sandbox, "mirror", "warning");
    sandbox.git(&["remote", "remove", "copy"]);
    sandbox.sh("printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit");
    let found = assert_finding(&sandbox, "hooks", "info");
    assert!(found["message"].as_str().unwrap().ends_with("pre-commit"), "{found:#?}");
    sandbox.assert_healthy();
}

#[test]
fn branch_named_like_the_prefix_is_an_error() {
    let sandbox = Sandbox::new();
    sandbox.git(&["branch", "proq"]);
    let found = assert_unfixable_finding(&sandbox, "prefix", "error");
    run_suggested_command(&sandbox, &found);
    sandbox.assert_healthy();
}

#[test]
fn checks_lanes_despite_broken_settings() {
    let sandbox = with_lane();
    sandbox.write("proq.toml", "[merge]\nnovel = 1\n");
    let _ = assert_unfixable_finding(&sandbox, "setting", "warning");
    sandbox.write("proq.toml", "[merge\n");
    let found = assert_unfixable_finding(&sandbox, "setting", "error");
    assert!(found["message"].as_str().unwrap().contains("not valid TOML"), "{found:#?}");
    assert_eq!(sandbox.proq(&["doctor", "--json"]).json()["checked"]["lanes"], 1);
}

#[test]
fn outdated_or_missing_git_is_an_error() {
    let sandbox = with_lane();
    sandbox.program(
        "git",
        "[ \"$1\" = --version ] && { echo git version 2.30.0; exit; }; PATH=${PATH#*:} exec git \"$@\"",
    );
    let found = assert_finding(&sandbox, "git-version", "error");
    assert!(found["message"].as_str().unwrap().contains("2.30"), "{found:#?}");
    let mut command = sandbox.proq_command(&sandbox.repo, &["doctor", "--json"]);
    command.env("PATH", "/nowhere");
    let out = sandbox.output(command);
    assert_eq!((out.code, out.json()["findings"][0]["check"].as_str()), (1, Some("git-version")));
}

#[test]
fn checks_git_and_agents_outside_a_repository() {
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
fn unreadable_repository_is_not_ignored() {
    let sandbox = Sandbox::new();
    sandbox.sh("git init -q --object-format=sha256 ../other; mkdir ../other/deep");
    let out = sandbox.proq_in(&sandbox.root().join("other/deep"), &["doctor"]);
    // If gitoxide can read SHA-256 repositories, there is nothing to report.
    assert!(out.code == 0 && out.stdout.contains("0 lanes") || out.stdout.contains("cannot read"), "{out:?}");
}

#[test]
fn checks_bare_repository_and_inner_folders() {
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
