//! Owns the tests of how long snapshots are kept.

use super::preview_identity::{same, waiting_snaps};
use super::snap::ids;
use super::support::{Image, Sandbox};

/// A sandbox whose user was in a preview with a changed file, and is back.
fn back() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo lane > a.txt");
    sandbox.sh("echo mine > a.txt; echo loose > loose");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox
}

#[test]
fn what_came_back_can_still_be_read_from_its_snapshot() {
    let sandbox = back();
    let ids = ids(&sandbox);
    assert_eq!(ids.len(), 1);
    assert_eq!(waiting_snaps(&sandbox), Vec::<String>::new());
    // The mistake that it is kept for.
    sandbox.sh("git reset -q --hard; rm loose");
    sandbox.git(&["stash", "apply", &format!("refs/proq/snap/{}", ids[0])]);
    assert_eq!((sandbox.read("a.txt"), sandbox.read("loose")), ("mine\n".into(), "loose\n".into()));
    let folder = sandbox.repo.join(".git/proq/snaps").join(&ids[0]);
    assert!(!folder.join("files").exists(), "no file is kept twice");
}

#[test]
fn a_restored_snapshot_goes_after_the_set_time_with_cleanup_or_a_landing() {
    for command in [&["cleanup"][..], &["merge", "one"]] {
        let sandbox = back();
        sandbox.git(&["config", "proq.op.keep", "5"]);
        sandbox.sh("git reset -q --hard; rm loose");
        let _ = sandbox.proq_at("2026-01-07T03:04:04Z", &["cleanup"]).ok();
        assert_eq!(ids(&sandbox).len(), 1, "a second too early");
        let _ = sandbox.proq_at("2026-01-07T03:04:06Z", command).ok();
        assert_eq!(ids(&sandbox), Vec::<String>::new());
        let left = std::fs::read_dir(sandbox.repo.join(".git/proq/snaps")).unwrap().count();
        assert_eq!(left, 0);
    }
}

#[test]
fn the_time_counts_from_when_it_came_back() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo lane > a.txt");
    sandbox.sh("echo mine > a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq_at("2026-03-01T00:00:00Z", &["preview", "--back"]).ok();
    let _ = sandbox.proq_at("2026-03-30T00:00:00Z", &["cleanup"]).ok();
    assert_eq!(ids(&sandbox).len(), 1);
    let _ = sandbox.proq_at("2026-03-31T00:00:01Z", &["cleanup"]).ok();
    assert_eq!(ids(&sandbox).len(), 0);
}

#[test]
fn a_snapshot_that_never_came_back_does_not_go_by_itself() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo lane > a.txt");
    sandbox.sh("echo mine > a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo edit > a.txt");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "two"]).ok();
    let _ = sandbox.proq(&["preview", "two"]).ok();
    let _ = sandbox.proq_at("2026-09-01T00:00:00Z", &["cleanup"]).ok();
    assert_eq!(waiting_snaps(&sandbox).len(), 2, "the user's changes, and the edits of a preview");
    let _ = sandbox.proq_at("2026-09-01T00:00:00Z", &["preview", "--back"]).ok();
    assert_eq!(sandbox.read("a.txt"), "mine\n");
}

#[test]
fn a_way_back_that_was_cut_off_before_the_end_does_not_restore_twice() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo lane > a.txt");
    sandbox.sh("echo mine > a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let record = std::fs::read(sandbox.repo.join(".git/proq/preview.toml")).unwrap();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    // Cut off between marking the snapshot and closing the preview; the user goes on with a.txt.
    std::fs::write(sandbox.repo.join(".git/proq/preview.toml"), record).unwrap();
    sandbox.sh("echo later > a.txt");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("a.txt"), "later\n");
}

#[test]
fn a_way_back_that_was_cut_off_before_it_was_noted_can_be_repeated() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo k > keep.txt; echo k > gone; ln -s keep.txt link");
    sandbox.commit_all("base");
    sandbox.lane_of("one", "echo lane > a.txt");
    sandbox.sh("echo s > a.txt; git add a.txt; echo u > a.txt; rm gone; git rm -q link; echo l > loose; chmod +x keep.txt");
    sandbox.sh("echo ann > ann; git add -N ann; mkdir void");
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let open = sandbox.repo.join(".git/proq/preview.toml");
    let snap = sandbox.repo.join(".git/proq/snaps").join(&ids(&sandbox)[0]).join("snap.toml");
    let (open_record, snap_record) = (std::fs::read(&open).unwrap(), std::fs::read(&snap).unwrap());
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    std::fs::write(open, open_record).unwrap();
    std::fs::write(snap, snap_record).unwrap();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
}
