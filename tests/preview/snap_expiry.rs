//! Expiry of snapshots.
use proq_test_kit::snapshots::{assert_same_image, snapshot_ids, waiting_snapshots};
use proq_test_kit::{Sandbox, WorktreeState};

/// Returns a sandbox whose user left a preview, with the changed files restored.
fn sandbox_after_preview() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo lane > a.txt");
    sandbox.sh("echo mine > a.txt; echo loose > loose");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox
}

#[test]
fn restored_snapshot_stays_readable() {
    let sandbox = sandbox_after_preview();
    let ids = snapshot_ids(&sandbox);
    assert_eq!(ids.len(), 1);
    assert_eq!(waiting_snapshots(&sandbox), Vec::<String>::new());
    // The user's error that the snapshot is kept for.
    sandbox.sh("git reset -q --hard; rm loose");
    sandbox.git(&["stash", "apply", &format!("refs/proq/snap/{}", ids[0])]);
    assert_eq!((sandbox.read("a.txt"), sandbox.read("loose")), ("mine\n".into(), "loose\n".into()));
    let folder = sandbox.repo.join(".git/proq/snaps").join(&ids[0]);
    assert!(!folder.join("files").exists(), "no file is kept twice");
}

#[test]
fn restored_snapshot_expires_with_cleanup_or_merge() {
    for command in [&["cleanup"][..], &["merge", "one"]] {
        let sandbox = sandbox_after_preview();
        sandbox.git(&["config", "proq.op.keep", "5"]);
        sandbox.sh("git reset -q --hard; rm loose");
        let _ = sandbox.proq_at("2026-01-07T03:04:04Z", &["cleanup"]).ok();
        assert_eq!(snapshot_ids(&sandbox).len(), 1, "a second too early");
        let _ = sandbox.proq_at("2026-01-07T03:04:06Z", command).ok();
        assert_eq!(snapshot_ids(&sandbox), Vec::<String>::new());
        let left = std::fs::read_dir(sandbox.repo.join(".git/proq/snaps")).unwrap().count();
        assert_eq!(left, 0);
    }
}

#[test]
fn expiry_counts_from_the_restore() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo lane > a.txt");
    sandbox.sh("echo mine > a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq_at("2026-03-01T00:00:00Z", &["preview", "--back"]).ok();
    let _ = sandbox.proq_at("2026-03-30T00:00:00Z", &["cleanup"]).ok();
    assert_eq!(snapshot_ids(&sandbox).len(), 1);
    let _ = sandbox.proq_at("2026-03-31T00:00:01Z", &["cleanup"]).ok();
    assert_eq!(snapshot_ids(&sandbox).len(), 0);
}

/// Promise: snapshots/unrestored-kept
#[test]
fn waiting_snapshot_does_not_expire() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo lane > a.txt");
    sandbox.sh("echo mine > a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo edit > a.txt");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "two"]).ok();
    let _ = sandbox.proq(&["preview", "two"]).ok();
    let _ = sandbox.proq_at("2026-09-01T00:00:00Z", &["cleanup"]).ok();
    assert_eq!(waiting_snapshots(&sandbox).len(), 2, "the user's changes, and the edits of a preview");
    let _ = sandbox.proq_at("2026-09-01T00:00:00Z", &["preview", "--back"]).ok();
    assert_eq!(sandbox.read("a.txt"), "mine\n");
}

#[test]
fn repeated_preview_end_does_not_restore_twice() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo lane > a.txt");
    sandbox.sh("echo mine > a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let record = std::fs::read(sandbox.repo.join(".git/proq/preview.toml")).unwrap();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    // Interrupted between marking the snapshot and closing the preview; the user then edits a.txt.
    std::fs::write(sandbox.repo.join(".git/proq/preview.toml"), record).unwrap();
    sandbox.sh("echo later > a.txt");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("a.txt"), "later\n");
}

#[test]
fn unrecorded_preview_end_can_be_repeated() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo k > keep.txt; echo k > gone; ln -s keep.txt link");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "echo lane > a.txt");
    sandbox.sh("echo s > a.txt; git add a.txt; echo u > a.txt; rm gone; git rm -q link; echo l > loose; chmod +x keep.txt");
    sandbox.sh("echo ann > ann; git add -N ann; mkdir void");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let open = sandbox.repo.join(".git/proq/preview.toml");
    let snap = sandbox.repo.join(".git/proq/snaps").join(&snapshot_ids(&sandbox)[0]).join("snap.toml");
    let (open_record, snap_record) = (std::fs::read(&open).unwrap(), std::fs::read(&snap).unwrap());
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    std::fs::write(open, open_record).unwrap();
    std::fs::write(snap, snap_record).unwrap();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
}
