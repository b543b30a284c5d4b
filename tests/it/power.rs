//! Owns the tests of what is on disk before something relies on it: a power cut keeps what was synced, and perhaps a rename or an
//! empty file of what was not.

use super::pool::{landed, spawn, with_cache};
use super::recovery::kit::dies;
use super::support::{Sandbox, scenes};

/// The calls of a command that matter here, in their order.
#[track_caller]
fn calls(sandbox: &Sandbox, args: &[&str]) -> Vec<String> {
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

/// Where the first call stands after `from` that has all of these in it.
#[track_caller]
fn find(calls: &[String], from: usize, parts: &[&str]) -> usize {
    let is_it = |call: &String| parts.iter().all(|part| call.contains(part));
    let at = calls.iter().skip(from).position(is_it);
    from + at.unwrap_or_else(|| panic!("{parts:?} is not in {calls:#?}"))
}

/// A new HEAD is on disk before it gets its name, and its name before the journal goes on.
#[track_caller]
fn head_is_durable(calls: &[String]) {
    let moved = find(calls, 0, &["rename", "/.git/HEAD.lock\"", "/.git/HEAD\""]);
    // Where git has no verbs for it, git-proq writes the lock, by the name that the file has in the step's folder.
    let is_lock = |call: &String| ["/HEAD.lock>", "/mark-head>"].iter().any(|name| call.contains(name));
    let written = calls[..moved].iter().rposition(|call| call.starts_with("fsync") && is_lock(call));
    assert!(written.is_some(), "HEAD was renamed before it was synced: {calls:#?}");
    let folder = find(calls, moved, &["fsync", "/.git>"]);
    let journal = find(calls, moved, &["fdatasync", "/journal>"]);
    assert!(folder < journal, "the journal went on before HEAD's folder was synced: {calls:#?}");
}

#[test]
#[ignore = "needs strace"]
fn head_is_on_disk_before_the_journal_goes_on() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("x", "echo x > x.txt");
    head_is_durable(&calls(&sandbox, &["preview", "x"]));
    head_is_durable(&calls(&sandbox, &["preview", "--back"]));
}

#[test]
#[ignore = "needs strace"]
fn a_new_worktree_is_on_disk_before_its_record_is_planned() {
    for by_git in [false, true] {
        let sandbox = Sandbox::new();
        if by_git {
            sandbox.git(&["config", "worktree.useRelativePaths", "false"]);
        }
        let calls = calls(&sandbox, &["spawn", "--empty", "-n", "x"]);
        let noted = find(&calls, 0, &["fsync", "/made>"]);
        let named = find(&calls, 0, &["rename", "/folder\"", "/.proq-worktrees/x\""]);
        assert!(noted < named, "the folder got its name before it was synced which one it is: {calls:#?}");
        for excludes in ["/.git/info/exclude>", "/.proq-worktrees/.gitignore>"] {
            let at = find(&calls, 0, &["fsync", excludes]);
            assert!(at < named, "git could have seen the folder after a power cut: {calls:#?}");
        }
        let record = find(&calls, 0, &["rename", "/lanes/x/lane.toml\""]);
        let index = find(&calls, 0, &["fsync", "/.git/worktrees/x/index>"]);
        assert!(index < record, "the lane was on record before its index was synced: {calls:#?}");
        let planned = calls[..record].iter().rposition(|call| call.contains("/journal>")).unwrap();
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
            let at = find(&calls, 0, &["fsync", file]);
            assert!(at < planned, "{file} was synced too late: {calls:#?}");
        }
    }
}

#[test]
#[ignore = "needs strace"]
fn what_is_about_to_move_is_listed_on_disk_before_it_moves() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("x", "echo x > x.txt");
    sandbox.sh("echo mine > mine.txt");
    let _ = sandbox.proq(&["preview", "x"]).ok();
    let calls = calls(&sandbox, &["preview", "--back"]);
    let listed = find(&calls, 0, &["fsync", "/given>"]);
    let moved = find(&calls, 0, &["rename", "/files/mine.txt\"", "/mine.txt\""]);
    assert!(listed < moved, "a file moved before it was synced which ones do: {calls:#?}");
}

#[test]
#[ignore = "needs strace"]
fn a_folder_that_is_made_anew_is_on_disk_before_it_has_its_name() {
    let sandbox = with_cache();
    landed(&sandbox, "a", "mkdir target; echo o > target/o");
    assert_eq!(spawn(&sandbox, "b").as_deref(), Some("a"));
    let _ = sandbox.proq(&["discard", "b"]).ok();
    let calls = calls(&sandbox, &["op", "restore", "1", "--force"]);
    let synced = find(&calls, 0, &["syncfs"]);
    let named = find(&calls, 0, &["rename", "/folder\"", "/worktree\""]);
    assert!(synced < named, "the folder passes for whole before it was synced: {calls:#?}");
}

/// Git syncs nothing of a commit that it makes.
#[test]
#[ignore = "needs strace"]
fn what_a_branch_moves_to_is_on_disk_before_it_moves() {
    for (args, moved) in [
        (&["merge", "--no-cleanup", "x"][..], "/refs/heads/main\""),
        (&["preview", "x"], "/.git/HEAD\""),
        (&["merge", "--no-cleanup", "--onto", "other", "x"], "/refs/heads/other\""),
    ] {
        let sandbox = Sandbox::new();
        sandbox.git(&["branch", "other"]);
        sandbox.lane_of("x", "mkdir d; echo x > d/x.txt");
        let calls = calls(&sandbox, args);
        let moved = find(&calls, 0, &["rename", moved]);
        for object in ["proq/x", "proq/x:", "proq/x:d", "proq/x:d/x.txt"] {
            let id = sandbox.git(&["rev-parse", object]);
            let at = find(&calls, 0, &["fsync", &format!("/objects/{}/{}>", &id[..2], &id[2..])]);
            assert!(at < moved, "{args:?}: {object} was synced too late: {calls:#?}");
        }
    }
}

/// Git syncs a table of refs before it writes the last bytes of it.
#[test]
#[ignore = "needs strace and git 2.46"]
fn tables_of_refs_are_on_disk_before_the_journal_goes_on() {
    let sandbox = Sandbox::new();
    assert!(sandbox.git_version() >= (2, 46), "this test needs git 2.46");
    sandbox.sh("rm -rf .git; git init -q -b main --ref-format=reftable");
    sandbox.commit_all("first");
    sandbox.lane_of("x", "echo x > x.txt");
    for args in [&["preview", "x"][..], &["preview", "--back"], &["merge", "--no-cleanup", "x"]] {
        let calls = calls(&sandbox, args);
        let named = calls
            .iter()
            .rposition(|call| call.contains("rename") && call.contains("/reftable/tables.list\""));
        let named = named.unwrap_or_else(|| panic!("no table is new: {calls:#?}"));
        let journal = find(&calls, named, &["fdatasync", "/journal>"]);
        find(&calls[..journal], named, &["fsync", "/reftable/", ".ref>"]);
    }
}

/// A copy on another disk has its name there before what was copied goes.
#[test]
#[ignore = "needs strace and a second file system"]
fn what_comes_back_from_another_disk_is_there_before_it_goes_here() {
    let sandbox = Sandbox::new();
    let disk = sandbox.other_disk();
    let git = disk.path().join("git");
    sandbox.sh(&format!("mv .git '{0}'; echo 'gitdir: {0}' > .git; git worktree repair", git.display()));
    sandbox.lane_of("x", "echo x > x.txt");
    sandbox.write("x.txt", "mine\n");
    let _ = sandbox.proq(&["preview", "x"]).ok();
    let calls = calls(&sandbox, &["preview", "--back"]);
    let gone = find(&calls, 0, &["unlink", "/files/x.txt\""]);
    let named = calls[..gone].iter().rposition(|call| {
        (call.starts_with("linkat") || call.starts_with("rename")) && call.contains("/repo/x.txt\"")
    });
    let named = named.unwrap_or_else(|| panic!("x.txt has no name: {calls:#?}"));
    let synced = find(&calls, named, &["fsync", "/repo>"]);
    assert!(synced < gone, "the copy went before the file had its name on the disk: {calls:#?}");
}

/// Has a command die while it gives files their content, and insists that these files are on disk before the next command removes a
/// snapshot.
#[track_caller]
fn synced_before_a_snapshot_goes(sandbox: &Sandbox, at: &str, args: &[&str], files: [&str; 2]) {
    dies(sandbox, at, args);
    let calls = calls(sandbox, &["list"]);
    let freed = find(&calls, 0, &["unlink", "/refs/proq/snap/"]);
    for file in files {
        let at = find(&calls, 0, &["fsync", file]);
        assert!(at < freed, "{file} was synced too late: {calls:#?}");
    }
}

#[test]
#[ignore = "needs strace"]
fn what_a_recovery_wrote_is_on_disk_before_its_snapshot_goes() {
    let files = ["/repo/shared.txt>", "/repo/dir/c.txt>"];
    synced_before_a_snapshot_goes(&scenes::dirty(), "transition.installed", &["preview", "one"], files);
}

/// A preview in which something was committed comes back in other steps: its snapshot is not the first of them.
#[test]
#[ignore = "needs strace"]
fn what_a_recovery_of_a_way_back_wrote_is_on_disk_before_its_snapshot_goes() {
    let sandbox = scenes::dirty();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh(
        "echo fix >fix.txt; git add fix.txt; git commit -qm fix; echo edited >>a.txt; echo idea >idea.txt",
    );
    let files = ["/repo/a.txt>", "/repo/idea.txt>"];
    synced_before_a_snapshot_goes(&sandbox, "restore.installed", &["preview", "--back"], files);
}
