//! Kills in a checkout with paths in unusual states: files, links and folders in each other's place, index
//! entries with flags, untracked files that were tracked.

use proq_test_kit::faults::{kill_at, kill_in_git, recover};
use proq_test_kit::snapshots::{assert_same_image, snapshot_ids};
use proq_test_kit::{RepoState, Sandbox, WorktreeState, file_names, fixtures};

/// Returns a checkout with a committed file `chosen.txt`, changed by `script`.
fn sandbox_with_change(script: &str) -> Sandbox {
    let sandbox = fixtures::two_lanes();
    sandbox.sh("echo chosen >chosen.txt");
    sandbox.commit_all("chosen");
    sandbox.sh(&format!("{script}; echo more >>b.txt"));
    sandbox
}

/// Returns a checkout that was changed, and whose changes were discarded by hand after a preview, with the id
/// of the snapshot that holds them.
fn sandbox_with_discarded_changes(script: &str) -> (Sandbox, String) {
    let sandbox = sandbox_with_change(script);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("git update-index -q --really-refresh || :; git reset -q --hard; git clean -qfd");
    let id = snapshot_ids(&sandbox)[0].clone();
    (sandbox, id)
}

#[test]
fn restored_file_is_not_taken_for_populated_file() {
    for script in [
        "git rm -q --cached chosen.txt",
        "git rm -q --cached chosen.txt; echo chosen.txt >>.git/info/exclude",
        ": >chosen.txt",
        "printf cho >chosen.txt",
    ] {
        for at in ["clear.given", "clear.given:2"] {
            let sandbox = sandbox_with_change(script);
            let before = RepoState::capture(&sandbox);
            kill_at(&sandbox, "clear.filled", &["preview", "one"]);
            kill_at(&sandbox, at, &["list"]);
            recover(&sandbox);
            RepoState::capture(&sandbox).assert_same(&before, &format!("{script}, {at}"));
        }
    }
}

#[test]
fn populated_file_yields_to_previous_folder() {
    for script in ["", "echo staged >chosen.txt; git add chosen.txt;"] {
        let sandbox =
            sandbox_with_change(&format!("{script} rm chosen.txt; mkdir chosen.txt; echo x >chosen.txt/x"));
        let before = RepoState::capture(&sandbox);
        kill_at(&sandbox, "clear.filled", &["preview", "one"]);
        recover(&sandbox);
        RepoState::capture(&sandbox).assert_same(&before, script);
    }
}

#[test]
fn restore_undone_beside_flagged_file_can_be_repeated() {
    let (sandbox, id) =
        sandbox_with_discarded_changes("git update-index --skip-worktree chosen.txt; echo mine >chosen.txt");
    assert_eq!(sandbox.read("chosen.txt"), "mine\n");
    let before = RepoState::capture(&sandbox);
    kill_at(&sandbox, "restore.installed", &["snap", "restore", &id]);
    recover(&sandbox);
    RepoState::capture(&sandbox).assert_same(&before, "taken back");
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    assert_eq!((&*sandbox.read("chosen.txt"), &*sandbox.read("b.txt")), ("mine\n", "b\nmore\n"));
    assert!(!sandbox.repo.join(".git/proq/snaps").join(&id).join("files").exists());
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!((&*sandbox.read("chosen.txt"), &*sandbox.read("b.txt")), ("mine\n", "b\n"));
}

#[test]
fn copies_of_interrupted_restore_are_removed() {
    let (sandbox, id) =
        sandbox_with_discarded_changes("git update-index --skip-worktree chosen.txt; echo mine >chosen.txt");
    let before = RepoState::capture(&sandbox);
    kill_at(&sandbox, "snap.copied", &["snap", "restore", &id]);
    recover(&sandbox);
    RepoState::capture(&sandbox).assert_same(&before, "taken back");
    assert_eq!(file_names(&sandbox.repo.join(".git/proq/snaps")), [&*id]);
}

#[test]
fn half_removed_copy_is_removed_by_next_recovery() {
    let (sandbox, id) = sandbox_with_discarded_changes("echo 'chosen.txt text' >.git/info/attributes");
    sandbox.sh("printf 'as edited\\r\\n' >chosen.txt");
    let before = RepoState::capture(&sandbox);
    kill_at(&sandbox, "step.before:3", &["snap", "restore", &id]);
    kill_at(&sandbox, "snap.emptied", &["list"]);
    recover(&sandbox);
    RepoState::capture(&sandbox).assert_same(&before, "taken back");
    assert_eq!(file_names(&sandbox.repo.join(".git/proq/snaps")), [&*id]);
}

#[test]
fn empty_folders_of_undone_restore_are_removed() {
    let (sandbox, id) = sandbox_with_discarded_changes("mkdir -p hollow/er");
    assert!(!sandbox.repo.join("hollow").exists());
    let before = RepoState::capture(&sandbox);
    kill_at(&sandbox, "restore.installed", &["snap", "restore", &id]);
    assert!(sandbox.repo.join("hollow/er").is_dir());
    kill_at(&sandbox, "aside.cleared", &["list"]);
    recover(&sandbox);
    assert!(!sandbox.repo.join("hollow").exists());
    RepoState::capture(&sandbox).assert_same(&before, "taken back");
}

#[test]
fn killed_git_leaves_no_lock_beside_snapshot() {
    let sandbox =
        sandbox_with_change("echo '*.txt text eol=crlf' >.git/info/attributes; printf 'x\\r\\n' >chosen.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    let before = RepoState::capture(&sandbox);
    let snap = sandbox.repo.join(".git/proq/snaps").join(&snapshot_ids(&sandbox)[0]);
    let act = ": > \"$GIT_INDEX_FILE.lock\"";
    kill_in_git(&sandbox, "update-index -z --index-info", act, &["op", "redo"]);
    recover(&sandbox);
    RepoState::capture(&sandbox).assert_same(&before, "taken back");
    assert!(!snap.join("check.lock").exists());
}

/// In each checkout, a killed undo of a landing restores all uncommitted state or none of it.
/// Promise: snapshots/undo-landing
#[test]
fn killed_undo_is_all_or_nothing_for_flags_and_folders() {
    let transition_points = ["transition.staged", "transition.moved", "transition.installed"];
    let checkout_points =
        transition_points.iter().flat_map(|at| ["", ":2"].map(|time| format!("{at}{time}")));
    let step_points = ["", ":2", ":3", ":4"].map(|time| format!("step.after{time}"));
    let mut undone_count = 0;
    for at in checkout_points.chain(step_points).chain(["journal.ended".to_owned()]) {
        let sandbox = Sandbox::new();
        sandbox.sh("echo c >c; echo x >x");
        sandbox.commit_all("base");
        sandbox.lane_with_commit("one", "rm c; echo l >f");
        let flag_script = "git update-index --assume-unchanged c; mkdir f";
        sandbox.sh(&format!("{flag_script}; git worktree add -qf ../other main; cd ../other; {flag_script}"));
        let other = sandbox.root().join("other");
        let images =
            || [WorktreeState::capture(&sandbox, &sandbox.repo), WorktreeState::capture(&sandbox, &other)];
        let before = images();
        let _ = sandbox.proq(&["merge", "one"]).ok();
        let landed = images();
        kill_at(&sandbox, &at, &["undo"]);
        recover(&sandbox);
        println!("killed at {at}");
        if images() == before {
            undone_count += 1;
        } else {
            landed.iter().zip(&images()).for_each(|(landed, now)| assert_same_image(landed, now));
            let _ = sandbox.proq(&["undo"]).ok();
            before.iter().zip(&images()).for_each(|(before, now)| assert_same_image(before, now));
        }
    }
    assert!(undone_count > 0);
}
