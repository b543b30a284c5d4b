//! Tests of the order of syncs and renames: after a power cut only synced data is certain, while of other
//! data a rename or an empty file may exist.

use proq_test_kit::faults::kill_at;
use proq_test_kit::{Sandbox, fixtures};

use super::pool::{land_lane, sandbox_with_cache, spawn_and_find_reused_lane};

/// Returns the traced calls of a command that sync, rename, link or unlink, in order.
#[track_caller]
fn traced_calls(sandbox: &Sandbox, args: &[&str]) -> Vec<String> {
    let log = sandbox.root().join("calls");
    let mut command = sandbox.command("strace", &sandbox.repo);
    command
        .args([
            "-f",
            "-y",
            "-e",
            "trace=fsync,fdatasync,syncfs,rename,renameat,renameat2,linkat,unlink,unlinkat",
            "-o",
        ])
        .arg(&log);
    command.arg("git-proq").args(args);
    let traced = command.output().is_ok_and(|out| out.status.success());
    assert!(traced, "this test needs strace, and a system that lets a process be traced");
    let text = String::from_utf8_lossy(&std::fs::read(log).unwrap()).into_owned();
    text.lines().map(|line| line.split_once(' ').unwrap().1.trim().to_owned()).collect()
}

/// Returns the position of the first call from `start` on that contains all of `parts`.
#[track_caller]
fn find_call(calls: &[String], start: usize, parts: &[&str]) -> usize {
    let has_all_parts = |call: &String| parts.iter().all(|part| call.contains(part));
    let offset = calls.iter().skip(start).position(has_all_parts);
    start + offset.unwrap_or_else(|| panic!("{parts:?} is not in {calls:#?}"))
}

/// Asserts that a new HEAD is synced before its rename, and the rename before the journal continues.
#[track_caller]
fn assert_head_synced_before_journal(calls: &[String]) {
    let renamed = find_call(calls, 0, &["rename", "/.git/HEAD.lock\"", "/.git/HEAD\""]);
    // With versions of git that cannot update HEAD in a transaction, git-proq writes the lock file itself,
    // under the name it has in the step's folder.
    let is_lock = |call: &String| ["/HEAD.lock>", "/mark-head>"].iter().any(|name| call.contains(name));
    let written = calls[..renamed].iter().rposition(|call| call.starts_with("fsync") && is_lock(call));
    assert!(written.is_some(), "HEAD was renamed before it was synced: {calls:#?}");
    let folder = find_call(calls, renamed, &["fsync", "/.git>"]);
    let journal = find_call(calls, renamed, &["fdatasync", "/journal>"]);
    assert!(folder < journal, "the journal went on before HEAD's folder was synced: {calls:#?}");
}

/// Promise: operations/sync-before-journal
#[test]
#[ignore = "needs strace"]
fn syncs_head_before_the_journal_continues() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo x > x.txt");
    assert_head_synced_before_journal(&traced_calls(&sandbox, &["preview", "x"]));
    assert_head_synced_before_journal(&traced_calls(&sandbox, &["preview", "--back"]));
}

/// Promise: operations/sync-before-journal
#[test]
#[ignore = "needs strace"]
fn syncs_new_worktree_before_its_record() {
    for created_by_git in [false, true] {
        let sandbox = Sandbox::new();
        if created_by_git {
            sandbox.git(&["config", "worktree.useRelativePaths", "false"]);
        }
        let calls = traced_calls(&sandbox, &["spawn", "--empty", "-n", "x"]);
        let id_synced = find_call(&calls, 0, &["fsync", "/made>"]);
        let renamed = find_call(&calls, 0, &["rename", "/folder\"", "/.proq-worktrees/x\""]);
        assert!(
            id_synced < renamed,
            "the folder got its name before it was synced which one it is: {calls:#?}"
        );
        for excludes in ["/.git/info/exclude>", "/.proq-worktrees/.gitignore>"] {
            let synced = find_call(&calls, 0, &["fsync", excludes]);
            assert!(synced < renamed, "git could have seen the folder after a power cut: {calls:#?}");
        }
        let record_renamed = find_call(&calls, 0, &["rename", "/lanes/x/lane.toml\""]);
        let index = find_call(&calls, 0, &["fsync", "/.git/worktrees/x/index>"]);
        assert!(index < record_renamed, "the lane was on record before its index was synced: {calls:#?}");
        let planned = calls[..record_renamed].iter().rposition(|call| call.contains("/journal>")).unwrap();
        let admin = "/.git/worktrees/x";
        for file in [
            "/.proq-worktrees/x/.git>",
            &format!("{admin}/gitdir>"),
            &format!("{admin}/commondir>"),
            &format!("{admin}/HEAD>"),
            &format!("{admin}>"),
            "/.proq-worktrees/x>",
            "/.proq-worktrees>",
        ] {
            let synced = find_call(&calls, 0, &["fsync", file]);
            assert!(synced < planned, "{file} was synced too late: {calls:#?}");
        }
    }
}

/// Promise: operations/sync-move-list
#[test]
#[ignore = "needs strace"]
fn syncs_list_of_moves_before_moving_files() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo x > x.txt");
    sandbox.sh("echo mine > mine.txt");
    let _ = sandbox.proq(&["preview", "x"]).ok();
    let calls = traced_calls(&sandbox, &["preview", "--back"]);
    let listed = find_call(&calls, 0, &["fsync", "/given>"]);
    let moved = find_call(&calls, 0, &["rename", "/files/mine.txt\"", "/mine.txt\""]);
    assert!(listed < moved, "a file moved before it was synced which ones do: {calls:#?}");
}

/// Promise: operations/sync-recreated-folder
#[test]
#[ignore = "needs strace"]
fn syncs_recreated_folder_before_renaming_it() {
    let sandbox = sandbox_with_cache();
    land_lane(&sandbox, "a", "mkdir target; echo o > target/o");
    assert_eq!(spawn_and_find_reused_lane(&sandbox, "b").as_deref(), Some("a"));
    let _ = sandbox.proq(&["discard", "b"]).ok();
    let calls = traced_calls(&sandbox, &["op", "restore", "1", "--force"]);
    let synced = find_call(&calls, 0, &["syncfs"]);
    let renamed = find_call(&calls, 0, &["rename", "/folder\"", "/worktree\""]);
    assert!(synced < renamed, "the folder passes for whole before it was synced: {calls:#?}");
}

/// git does not sync the objects of a commit it creates.
/// Promise: operations/sync-before-ref
#[test]
#[ignore = "needs strace"]
fn syncs_new_commits_before_moving_a_branch() {
    for (args, ref_name) in [
        (&["merge", "--no-cleanup", "x"][..], "/refs/heads/main\""),
        (&["preview", "x"], "/.git/HEAD\""),
        (&["merge", "--no-cleanup", "--onto", "other", "x"], "/refs/heads/other\""),
    ] {
        let sandbox = Sandbox::new();
        sandbox.git(&["branch", "other"]);
        sandbox.lane_with_commit("x", "mkdir d; echo x > d/x.txt");
        let calls = traced_calls(&sandbox, args);
        let moved = find_call(&calls, 0, &["rename", ref_name]);
        for object in ["proq/x", "proq/x:", "proq/x:d", "proq/x:d/x.txt"] {
            let id = sandbox.git(&["rev-parse", object]);
            let synced = find_call(&calls, 0, &["fsync", &format!("/objects/{}/{}>", &id[..2], &id[2..])]);
            assert!(synced < moved, "{args:?}: {object} was synced too late: {calls:#?}");
        }
    }
}

/// git syncs a table of refs before it writes its last bytes.
/// Promise: operations/sync-ref-tables
#[test]
#[ignore = "needs strace and git 2.46"]
fn syncs_ref_tables_before_the_journal_continues() {
    let sandbox = Sandbox::new();
    assert!(sandbox.git_version() >= (2, 46), "this test needs git 2.46");
    sandbox.sh("rm -rf .git; git init -q -b main --ref-format=reftable");
    sandbox.commit_all("first");
    sandbox.lane_with_commit("x", "echo x > x.txt");
    for args in [&["preview", "x"][..], &["preview", "--back"], &["merge", "--no-cleanup", "x"]] {
        let calls = traced_calls(&sandbox, args);
        let renamed = calls
            .iter()
            .rposition(|call| call.contains("rename") && call.contains("/reftable/tables.list\""));
        let renamed_at = renamed.unwrap_or_else(|| panic!("no table is new: {calls:#?}"));
        let journal = find_call(&calls, renamed_at, &["fdatasync", "/journal>"]);
        find_call(&calls[..journal], renamed_at, &["fsync", "/reftable/", ".ref>"]);
    }
}

/// A copy on another disk must have its name on disk before the source is removed.
/// Promise: operations/sync-other-disk
#[test]
#[ignore = "needs strace and a second file system"]
fn syncs_files_from_another_disk_before_removing_them() {
    let sandbox = Sandbox::new();
    let disk = sandbox.dir_on_other_filesystem();
    let git = disk.path().join("git");
    sandbox.sh(&format!("mv .git '{0}'; echo 'gitdir: {0}' > .git; git worktree repair", git.display()));
    sandbox.lane_with_commit("x", "echo x > x.txt");
    sandbox.write("x.txt", "mine\n");
    let _ = sandbox.proq(&["preview", "x"]).ok();
    let calls = traced_calls(&sandbox, &["preview", "--back"]);
    let removed = find_call(&calls, 0, &["unlink", "/files/x.txt\""]);
    let renamed = calls[..removed].iter().rposition(|call| {
        (call.starts_with("linkat") || call.starts_with("rename")) && call.contains("/repo/x.txt\"")
    });
    let renamed_at = renamed.unwrap_or_else(|| panic!("x.txt has no name: {calls:#?}"));
    let synced = find_call(&calls, renamed_at, &["fsync", "/repo>"]);
    assert!(synced < removed, "the copy went before the file had its name on the disk: {calls:#?}");
}

/// Kills a command at a fault point while it writes files, and asserts that the next command syncs these
/// files before it removes a snapshot.
#[track_caller]
fn assert_synced_before_snapshot_removal(sandbox: &Sandbox, point: &str, args: &[&str], files: [&str; 2]) {
    kill_at(sandbox, point, args);
    let calls = traced_calls(sandbox, &["list"]);
    let removed = find_call(&calls, 0, &["unlink", "/refs/proq/snap/"]);
    for file in files {
        let synced = find_call(&calls, 0, &["fsync", file]);
        assert!(synced < removed, "{file} was synced too late: {calls:#?}");
    }
}

/// Promise: operations/sync-recovered
#[test]
#[ignore = "needs strace"]
fn syncs_recovered_files_before_removing_snapshot() {
    let files = ["/repo/shared.txt>", "/repo/dir/c.txt>"];
    assert_synced_before_snapshot_removal(
        &fixtures::dirty_with_lanes(),
        "transition.installed",
        &["preview", "one"],
        files,
    );
}

/// A preview with a new commit is restored in other steps, and its snapshot is not removed first.
/// Promise: operations/sync-recovered
#[test]
#[ignore = "needs strace"]
fn syncs_files_recovered_by_back_before_snapshot_removal() {
    let sandbox = fixtures::dirty_with_lanes();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh(
        "echo fix >fix.txt; git add fix.txt; git commit -qm fix; echo edited >>a.txt; echo idea >idea.txt",
    );
    let files = ["/repo/a.txt>", "/repo/idea.txt>"];
    assert_synced_before_snapshot_removal(&sandbox, "restore.installed", &["preview", "--back"], files);
}
