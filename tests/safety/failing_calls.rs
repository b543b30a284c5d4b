//! Tests of single failing calls inside a command. Each was once ignored silently.

use proq_test_kit::faults::with_git_wrapper;
use proq_test_kit::{Output, Sandbox, WorktreeState};

/// Runs a command with `script` in place of git calls whose arguments contain `call_args`. The script finds
/// the real git as `$REAL`.
fn run_with_git_script(sandbox: &Sandbox, call_args: &str, script: &str, args: &[&str]) -> Output {
    sandbox.output(with_git_wrapper(sandbox, call_args, script, args))
}

/// Promise: worktree/silent-git-leftovers
#[test]
fn removes_file_and_folder_that_git_left() {
    let script = "$REAL \"$@\" || exit; mkdir -p deep; ln \"$ROOT/second\" deep/lane.txt; : > \"$ROOT/happened\"; exit 0";
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "mkdir deep; echo lane > deep/lane.txt");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("ln deep/lane.txt \"$ROOT/second\"");
    let _ = run_with_git_script(&sandbox, "read-tree -m -u", script, &["preview", "--back"]).ok();
    assert!(sandbox.root().join("happened").exists());
    assert!(!sandbox.repo.join("deep").exists());
    assert_eq!(before.files, WorktreeState::capture(&sandbox, &sandbox.repo).files);
}

/// Promise: worktree/silent-git-leftovers
#[test]
fn removes_folder_that_git_left() {
    let script = "$REAL \"$@\" || exit; mkdir -p deep/er; : > \"$ROOT/happened\"; exit 0";
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "mkdir -p deep/er; echo lane > deep/er/lane.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = run_with_git_script(&sandbox, "read-tree -m -u", script, &["preview", "--back"]).ok();
    assert!(sandbox.root().join("happened").exists());
    assert!(!sandbox.repo.join("deep").exists());
}

#[test]
fn keeps_new_file_in_place_of_removed_one() {
    let script = "$REAL \"$@\" || exit; mkdir -p deep; echo mine > deep/lane.txt; exit 0";
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "mkdir deep; echo lane > deep/lane.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = run_with_git_script(&sandbox, "read-tree -m -u", script, &["preview", "--back"]).ok();
    assert_eq!(sandbox.read("deep/lane.txt"), "mine\n");
}

#[test]
fn preview_commits_reach_lane_after_failed_try() {
    let script = "case \"$PWD\" in */.proq-worktrees/one) [ -e \"$ROOT/tried\" ] || { : > \"$ROOT/tried\"; \
         echo 'fatal: input/output error' >&2; exit 128; };; esac";
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo lane > lane.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo fix > fix.txt; git add fix.txt; git commit -qm fix");
    let commit = sandbox.git(&["rev-parse", "HEAD"]);
    let _ = run_with_git_script(&sandbox, "read-tree -m -u", script, &["preview", "--back"]).ok();
    assert!(sandbox.root().join("tried").exists());
    assert_eq!(sandbox.git(&["rev-parse", "proq/one"]), commit);
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/saved"]), "");
}

#[test]
fn failed_cleanup_exits_nonzero() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo lane > lane.txt");
    let _ = sandbox.proq(&["merge", "--no-cleanup", "one"]).ok();
    sandbox.write(".git/proq/history", "in the way\n");
    let text = sandbox.proq(&["cleanup"]).fails(1);
    assert!(text.contains("history"), "{text}");
    assert_eq!(sandbox.row("one")["state"], "landed");
    sandbox.sh("rm .git/proq/history");
    let _ = sandbox.proq(&["cleanup"]).ok();
}

/// Promise: operations/stuck-step
#[test]
fn next_command_recovers_a_stuck_step() {
    // The branch moves, but a folder is then in the place of the lane's index.
    let script = "case \"$PWD\" in */.proq-worktrees/one) $REAL \"$@\"; rc=$?; cd \"$($REAL rev-parse --git-dir)\"; \
         mv index ../../was; mkdir -p index/x; exit $rc;; esac";
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo lane > lane.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo fix > fix.txt; git add fix.txt; git commit -qm fix; echo edit > a.txt");
    let before = (WorktreeState::capture(&sandbox, &sandbox.repo), sandbox.git(&["rev-parse", "proq/one"]));
    let text = run_with_git_script(&sandbox, "update-ref --stdin", script, &["preview", "--back"]).fails(1);
    assert!(text.contains("could not be undone; the next command tries again"), "{text}");
    assert!(text.contains("fix.txt") || text.contains("index"), "{text}");
    sandbox.sh("cd .git/worktrees/one; rm -r index; mv ../../was index");
    let list = sandbox.proq(&["list"]);
    assert!(list.stderr.contains("everything is as it was before; run it again"), "{}", list.to_text());
    assert_eq!(
        before,
        (WorktreeState::capture(&sandbox, &sandbox.repo), sandbox.git(&["rev-parse", "proq/one"]))
    );
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "proq/one"]), "fix");
    sandbox.assert_healthy();
}

/// Promise: operations/git-errors-verified
#[test]
fn completed_ref_update_stands_despite_git_error() {
    let script = "$REAL \"$@\" | while read -r line; do \
         case $line in commit*) echo 'fatal: no room for the log';; *) echo \"$line\";; esac; done; exit 128";
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo lane > lane.txt");
    sandbox.sh("echo mine > a.txt");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let out = run_with_git_script(&sandbox, "update-ref --stdin", script, &["preview", "one"]);
    if sandbox.git_version() >= (2, 46) {
        // Older versions of git do not update HEAD themselves.
        assert!(out.stderr.contains("warning: "), "{}", out.to_text());
    }
    let _ = out.ok();
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    assert_eq!(sandbox.read("lane.txt"), "lane\n");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(before, WorktreeState::capture(&sandbox, &sandbox.repo));
}

#[test]
fn removes_head_lock_of_killed_git() {
    // As its last act git locks the HEAD that names the branch, to write its reflog.
    let script = "n=0; $REAL \"$@\" | while read -r line; do \
         case $line in commit*) n=$((n + 1));; esac; \
         case $n$line in 2commit*) : > .git/HEAD.lock; echo killed;; *) echo \"$line\";; esac; done; exit 137";
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo lane > lane.txt");
    let out = run_with_git_script(&sandbox, "update-ref --stdin", script, &["merge", "one"]);
    assert!(out.stderr.contains("warning: "), "{}", out.to_text());
    let _ = out.ok();
    assert_eq!(sandbox.read("lane.txt"), "lane\n");
    assert!(!sandbox.repo.join(".git/HEAD.lock").exists());
    sandbox.sh("echo more > a.txt; git commit -qam more");
}

/// Promise: operations/landing-commit-kept
#[test]
fn removes_packed_refs_lock_of_killed_git() {
    let script = "n=0; $REAL \"$@\" | while read -r line; do echo \"$line\"; \
         case $line in commit*) n=$((n + 1));; esac; \
         case $n$line in 2commit*) : > .git/packed-refs.lock; break;; esac; done; exit 137";
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo lane > lane.txt");
    let _ =
        run_with_git_script(&sandbox, "update-ref --stdin", script, &["merge", "--no-cleanup", "one"]).ok();
    assert_eq!(sandbox.read("lane.txt"), "lane\n");
    assert!(!sandbox.repo.join(".git/packed-refs.lock").exists());
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/op"]), "");
}

/// Promise: operations/landing-commit-kept
#[test]
fn landing_continues_when_hook_refuses_step_ref() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo lane > lane.txt");
    sandbox.sh("printf '#!/bin/sh\\n! grep -q refs/proq/\\n' >.git/hooks/reference-transaction; chmod +x .git/hooks/reference-transaction");
    let _ = sandbox.proq(&["merge", "--no-cleanup", "one"]).ok();
    assert_eq!(sandbox.read("lane.txt"), "lane\n");
}

/// Promise: operations/git-errors-verified
#[test]
fn reverts_ref_created_before_git_failed() {
    let script = "$REAL \"$@\"; echo 'fatal: input/output error' >&2; exit 128";
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo lane > lane.txt");
    sandbox.sh("echo mine > a.txt");
    let state =
        || (WorktreeState::capture(&sandbox, &sandbox.repo), sandbox.git(&["for-each-ref", "refs/heads"]));
    let before = state();
    let _ = run_with_git_script(&sandbox, "update-ref --no-deref", script, &["preview", "one"]).fails(1);
    assert_eq!(before, state());
    let _ = sandbox.proq(&["preview", "one"]).ok();
}

/// A merge reads attributes from files it writes first. If one cannot be written, the next lane must not be
/// merged with the others.
#[test]
fn lane_is_not_merged_with_partial_attributes() {
    let script =
        "[ -e \"$ROOT/tried\" ] || { : > \"$ROOT/tried\"; echo 'fatal: out of memory' >&2; exit 128; }";
    for (attributes, wanted) in [("f -merge", "conflict"), ("f merge=union", "landed")] {
        let sandbox = Sandbox::new();
        sandbox.sh("git config merge.renormalize true; mkdir d; seq 30 > d/f");
        sandbox.write("d/.gitattributes", &format!("{attributes}\n"));
        sandbox.commit_all("base");
        for n in ["1", "2", "3"] {
            sandbox.lane_with_commit(&format!("l{n}"), &format!("sed -i '25s/.*/lane{n}/' d/f"));
        }
        sandbox.sh("sed -i '25s/.*/ours/' d/f; git commit -qam ours");
        let out = run_with_git_script(
            &sandbox,
            "cat-file blob",
            script,
            &["merge", "--all", "--no-cleanup", "--json"],
        );
        let answer: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
        let lanes = answer["lanes"].as_array().unwrap();
        let lane_result =
            |n: usize| (lanes[n]["lane"].as_str().unwrap(), lanes[n]["result"].as_str().unwrap());
        assert_eq!(lane_result(0), ("l1", "refused"), "{answer:#}");
        assert_eq!(
            (lane_result(1), lane_result(2)),
            (("l2", wanted), ("l3", wanted)),
            "{attributes}: {answer:#}"
        );
        sandbox.sh("rm ../tried");
    }
}
