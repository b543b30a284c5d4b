//! Snapshot ids: an id always stands for the same commit, whatever is killed, damaged, written later or
//! undone.

use std::io::Write;

use proq_test_kit::faults::{kill_at, kill_in_git, recover};
use proq_test_kit::snapshots::{assert_same_image, snapshot_ids};
use proq_test_kit::{Sandbox, WorktreeState};

const DIRTY: &str =
    "printf 'mine\\r\\nmore\\r\\n' > crlf.txt; echo mine >> a.txt; seq 1 999 > loose; mkdir void";

/// Returns a sandbox with a snapshot whose files are in no worktree any more, and its id.
fn sandbox_with_discarded_changes() -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    sandbox.sh("echo '*.txt text' > .gitattributes; echo 'crlf.txt eol=crlf' >> .gitattributes
        printf 'c\\r\\n' > crlf.txt; echo k > keep; echo h > hidden");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "echo lane > lane");
    sandbox.sh(DIRTY);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("git reset -q --hard; git clean -qfd");
    let id = snapshot_ids(&sandbox).pop().unwrap();
    (sandbox, id)
}

fn snapshot_commit(sandbox: &Sandbox, id: &str) -> String {
    sandbox.git(&["rev-parse", &format!("refs/proq/snap/{id}")])
}

/// Returns the id of the only snapshot besides `id`.
#[track_caller]
fn other_snapshot(sandbox: &Sandbox, id: &str) -> String {
    let mut all = snapshot_ids(sandbox);
    all.retain(|other| other != id);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

#[track_caller]
fn assert_restored(sandbox: &Sandbox) {
    assert_eq!(sandbox.read("crlf.txt"), "mine\r\nmore\r\n");
    assert_eq!(sandbox.read("a.txt"), "a\nmine\n");
    assert_eq!(sandbox.read("loose").lines().count(), 999);
    assert!(sandbox.repo.join("void").is_dir());
}

/// Promise: snapshots/half-written-files
#[test]
fn files_half_written_by_killed_git_are_no_edits() {
    // As git does it: in the folder it was given, or in the worktree.
    let half_written = "p=; for a in \"$@\"; do case \"$a\" in --prefix=*) p=${a#--prefix=};; esac; done
        printf 'mine\\r' > \"${p}crlf.txt\"; : > \"${p}loose\"";
    for all in [true, false] {
        let (sandbox, id) = sandbox_with_discarded_changes();
        let (before, kept) =
            (WorktreeState::capture(&sandbox, &sandbox.repo), snapshot_commit(&sandbox, &id));
        if all {
            kill_in_git(&sandbox, "checkout-index -z", half_written, &["snap", "restore", &id]);
        } else {
            let script = format!("{half_written}; exit 1");
            let command = proq_test_kit::faults::with_git_wrapper(
                &sandbox,
                "checkout-index -z",
                &script,
                &["snap", "restore", &id],
            );
            let _ = sandbox.output(command).fails(1);
        }
        let _ = recover(&sandbox);
        assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["snap", "restore", &id]).ok();
        assert_restored(&sandbox);
        assert_eq!(snapshot_commit(&sandbox, &id), kept);
    }
}

/// Promise: snapshots/half-written-files
#[test]
fn killed_restore_leaves_nothing_and_can_be_repeated() {
    let points =
        ["step.before", "restore.taken", "restore.built", "restore.built:2", "restore.given", "step.after"];
    for at in points.into_iter().chain(["step.after:2", "step.after:3", "restore.installed"]) {
        let (sandbox, id) = sandbox_with_discarded_changes();
        sandbox.sh(
            "echo other > keep; git update-index --skip-worktree hidden; echo mine > hidden; mkdir hollow",
        );
        let (before, kept) =
            (WorktreeState::capture(&sandbox, &sandbox.repo), snapshot_commit(&sandbox, &id));
        kill_at(&sandbox, at, &["snap", "restore", &id]);
        let _ = recover(&sandbox);
        assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["snap", "restore", &id]).ok();
        assert_restored(&sandbox);
        assert_eq!(snapshot_commit(&sandbox, &id), kept, "{at}");
    }
}

/// Promise: snapshots/truncated-copy
#[test]
fn truncated_copy_is_restored_from_objects_and_kept() {
    for cut in ["", "a\nm", "a\n"] {
        let sandbox = Sandbox::new();
        sandbox.lane_with_commit("one", "echo lane > lane");
        sandbox.sh("echo mine >> a.txt; echo loose > loose");
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let id = snapshot_ids(&sandbox).pop().unwrap();
        let kept = snapshot_commit(&sandbox, &id);
        sandbox.write(&format!(".git/proq/snaps/{id}/files/a.txt"), cut);
        let out = sandbox.proq(&["preview", "--back"]);
        assert_eq!((sandbox.read("a.txt"), sandbox.read("loose")), ("a\nmine\n".into(), "loose\n".into()));
        assert!(out.stderr.contains("cut-short-1/a.txt"), "{}", out.stderr);
        assert_eq!(sandbox.read(&format!(".git/proq/snaps/{id}/cut-short-1/a.txt")), cut);
        assert_eq!((snapshot_commit(&sandbox, &id), snapshot_ids(&sandbox).len()), (kept, 1));
    }
}

/// Promise: snapshots/immutable
#[test]
fn write_to_parked_file_creates_another_snapshot() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo lane > lane");
    let mut open = std::fs::File::options().append(true).open(sandbox.repo.join("a.txt")).unwrap();
    open.write_all(b"before\n").unwrap();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let id = snapshot_ids(&sandbox).pop().unwrap();
    let kept = snapshot_commit(&sandbox, &id);
    open.write_all(b"during\n").unwrap();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("a.txt"), "a\nbefore\nduring\n");
    assert_eq!(snapshot_commit(&sandbox, &id), kept);
    let newer = other_snapshot(&sandbox, &id);
    assert_eq!(sandbox.git(&["show", &format!("refs/proq/snap/{newer}:a.txt")]), "a\nbefore\nduring");
    // In the preview, the newer snapshot waits; after the next end of the preview, everything is restored.
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.read("a.txt"), "a\n");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("a.txt"), "a\nbefore\nduring\n");
    assert_eq!(snapshot_commit(&sandbox, &id), kept);
}

/// Promise: snapshots/immutable
#[test]
fn refused_undo_changes_no_snapshot() {
    let sandbox = Sandbox::new();
    sandbox.write("second", "second\n");
    sandbox.commit_all("second");
    sandbox.lane_with_commit("one", "echo lane > lane");
    sandbox.sh("echo one >> a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("git checkout -q a.txt; git commit -q --allow-empty -m other; echo two >> second");
    let (refs, before) = (sandbox.git(&["for-each-ref"]), WorktreeState::capture(&sandbox, &sandbox.repo));
    for args in [&["undo", "--dry-run"][..], &["undo"]] {
        let out = sandbox.proq(args).fails(1);
        assert!(out.contains(": 'main' has moved to"), "{out}");
        assert!(out.contains("hint: instead: git proq preview one"), "{out}");
        assert_eq!(sandbox.git(&["for-each-ref"]), refs);
        assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    }
    // The hint works.
    let _ = sandbox.proq(&["preview", "one"]).ok();
    assert_eq!(sandbox.read("lane"), "lane\n");
}

/// Promise: snapshots/undo-restore
#[test]
fn undo_of_restore_is_exact() {
    for script in [
        "true",
        "git update-index --skip-worktree hidden; echo mine > hidden; mkdir hollow",
        "git update-index --assume-unchanged hidden; echo mine > hidden; echo n > new; git add -N new",
        "printf 'a\\r\\nb\\n' > mixed.txt; ln -s nowhere link; : > empty; rm keep",
    ] {
        let (sandbox, id) = sandbox_with_discarded_changes();
        sandbox.sh(script);
        let (before, kept) =
            (WorktreeState::capture(&sandbox, &sandbox.repo), snapshot_commit(&sandbox, &id));
        let out = sandbox.proq(&["snap", "restore", &id]);
        if script.contains("add -N") {
            let _ = out.fails(1);
            continue;
        }
        let _ = out.ok();
        assert_restored(&sandbox);
        let after = WorktreeState::capture(&sandbox, &sandbox.repo);
        let undone = sandbox.proq(&["undo"]);
        assert_eq!(undone.code, 0, "{}", undone.to_text());
        assert!(!undone.stderr.contains("is kept"), "{}", undone.stderr);
        assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["op", "redo"]).ok();
        assert_same_image(&after, &WorktreeState::capture(&sandbox, &sandbox.repo));
        assert_eq!(snapshot_commit(&sandbox, &id), kept);
    }
}

/// Promise: snapshots/immutable
#[test]
fn undo_of_restore_keeps_later_edits() {
    let (sandbox, id) = sandbox_with_discarded_changes();
    let kept = snapshot_commit(&sandbox, &id);
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    sandbox.sh("echo later >> a.txt");
    let undone = sandbox.proq(&["undo"]);
    assert_eq!(undone.code, 0, "{}", undone.to_text());
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    let newer = other_snapshot(&sandbox, &id);
    assert!(undone.stderr.contains("saved later edits as snapshot"), "{}", undone.stderr);
    assert_eq!(sandbox.git(&["show", &format!("refs/proq/snap/{newer}:a.txt")]), "a\nmine\nlater");
    assert_eq!(snapshot_commit(&sandbox, &id), kept);
}
