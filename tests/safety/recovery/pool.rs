//! Kills while a pooled worktree is transferred from one lane to another.

use std::path::PathBuf;

use proq_test_kit::faults::{kill_at, recover};
use proq_test_kit::{Sandbox, file_names};

/// Returns a sandbox with a landed lane that has a cache and ignored files of its own.
fn sandbox_with_landed_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", "target/\n*.log\n");
    sandbox.write("src/one", "one\n");
    sandbox.commit_all("files");
    sandbox.git(&["config", "proq.pool.keep", "target/"]);
    sandbox.lane_with_commit(
        "a",
        "echo a >> src/one; mkdir target src/in; echo o > target/o; echo l > src/in/x.log; echo l > y.log",
    );
    let _ = sandbox.proq(&["merge", "a"]).ok();
    sandbox.write("src/two", "two\n");
    sandbox.sh("rm a.txt");
    sandbox.commit_all("the base goes on");
    sandbox
}

fn trash_entry(sandbox: &Sandbox) -> PathBuf {
    let trash = sandbox.repo.join(".git/proq/trash");
    let name = file_names(&trash).into_iter().find(|name| name.starts_with("a-2")).unwrap();
    trash.join(name)
}

/// Asserts that the landed lane can be restored with all its files.
#[track_caller]
fn assert_lane_can_be_restored(sandbox: &Sandbox, with_cache: bool) {
    sandbox.assert_healthy();
    sandbox.sh("git reset -q --hard HEAD^");
    let out = sandbox.proq(&["undo", "--force"]);
    assert_eq!(out.code, 0, "{}", out.to_text());
    let lane = sandbox.lane_path("a");
    assert_eq!(sandbox.git_in(&lane, &["status", "--porcelain"]), "");
    let others = sandbox.git_in(&lane, &["ls-files", "--others"]);
    let expected = if with_cache { "src/in/x.log\ntarget/o\ny.log" } else { "src/in/x.log\ny.log" };
    assert_eq!(others, expected);
    assert_eq!(std::fs::read_to_string(lane.join("src/one")).unwrap(), "one\na\n");
    assert_eq!(std::fs::read_to_string(lane.join("a.txt")).unwrap(), "a\n");
}

/// Promise: pool/kill
#[test]
fn kill_before_worktree_transfer_undoes_spawn() {
    for at in ["pool.claimed", "pool.aside", "pool.aside:2", "pool.unlinked", "pool.linked", "pool.emptied"] {
        let sandbox = sandbox_with_landed_lane();
        kill_at(&sandbox, at, &["spawn", "--empty", "-n", "b"]);
        let stderr = recover(&sandbox);
        assert!(stderr.contains("everything is as it was before"), "{at}: {stderr}");
        assert!(!sandbox.lane_path("b").exists(), "{at}");
        assert_eq!(file_names(&trash_entry(&sandbox)), ["admin", "trash.toml", "worktree"], "{at}");
        // The pooled worktree is as usable as before.
        let out = sandbox.proq(&["-v", "spawn", "--empty", "-n", "b"]);
        assert!(out.stderr.contains("files kept from the folder of lane 'a'"), "{at}: {}", out.to_text());
        let _ = sandbox.proq(&["undo"]).ok();
        assert_lane_can_be_restored(&sandbox, false);
    }
    let sandbox = sandbox_with_landed_lane();
    kill_at(&sandbox, "pool.emptied", &["spawn", "--empty", "-n", "b"]);
    let _ = recover(&sandbox);
    assert_lane_can_be_restored(&sandbox, true);
}

/// Promise: pool/kill
#[test]
fn kill_after_worktree_transfer_loses_nothing() {
    for at in ["pool.moved", "pool.cleared", "pool.filled", "set-up.copied", "record.written"] {
        let sandbox = sandbox_with_landed_lane();
        kill_at(&sandbox, at, &["spawn", "--empty", "-n", "b"]);
        let stderr = recover(&sandbox);
        assert!(stderr.contains("everything is as it was before"), "{at}: {stderr}");
        assert!(!sandbox.lane_path("b").exists(), "{at}");
        assert_lane_can_be_restored(&sandbox, false);
    }
}

/// Promise: pool/kill
#[test]
fn killed_restore_of_landed_lane_is_recovered() {
    for at in ["regrow.built", "regrow.moved", "regrow.merged"] {
        let sandbox = sandbox_with_landed_lane();
        let _ = sandbox.proq(&["spawn", "--empty", "-n", "b"]).ok();
        let _ = sandbox.proq(&["undo"]).ok();
        sandbox.sh("git reset -q --hard HEAD^");
        kill_at(&sandbox, at, &["undo"]);
        let _ = recover(&sandbox);
        assert!(!sandbox.lane_path("a").exists(), "{at}");
        sandbox.assert_healthy();
        let out = sandbox.proq(&["undo"]);
        assert_eq!(out.code, 0, "{at}: {}", out.to_text());
        let lane = sandbox.lane_path("a");
        assert_eq!(sandbox.git_in(&lane, &["ls-files", "--others"]), "src/in/x.log\ny.log", "{at}");
        assert_eq!(sandbox.git_in(&lane, &["status", "--porcelain"]), "", "{at}");
    }
}
