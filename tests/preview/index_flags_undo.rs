//! Flags of index entries (assume-unchanged, skip-worktree) belong to the state they were set in: an undo
//! leaves none behind, and a flag set in a preview stays with the preview.

use proq_test_kit::faults::{kill_at, recover};
use proq_test_kit::snapshots::{assert_same_image, snapshot_ids};
use proq_test_kit::{Sandbox, WorktreeState};

const FLAGS: [(&str, &str); 2] = [("--assume-unchanged", "h"), ("--skip-worktree", "S")];

/// Script that discards every difference from HEAD, including flags.
const DISCARD_ALL_CHANGES: &str = "git ls-files -z | git update-index -z --no-assume-unchanged --stdin
    git ls-files -z | git update-index -z --no-skip-worktree --stdin
    git reset -q --hard; git clean -qfd";

/// Returns a checkout of the files `f`, `g` and `k`, and a lane `one` that adds a file.
fn three_files() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 9 >f; seq 9 >g; seq 9 >k");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "echo one >one");
    sandbox
}

/// Returns a sandbox and the id of a snapshot of the changes that `dirty` made; the changes have been
/// discarded since.
fn sandbox_with_snapshot(dirty: &str) -> (Sandbox, String) {
    let sandbox = three_files();
    sandbox.sh(dirty);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh(DISCARD_ALL_CHANGES);
    let id = snapshot_ids(&sandbox).pop().unwrap();
    (sandbox, id)
}

/// Returns scripts that set a flag on an edited file, on an unchanged file, and on both.
fn flag_scripts(flag: &str) -> [String; 4] {
    let set = format!("git update-index {flag}");
    [
        format!("echo mine >>f; {set} f; echo mine >>g"),
        format!("{set} f; echo mine >>g"),
        format!("{set} f"),
        format!("echo mine >>f; {set} f g"),
    ]
}

fn image(sandbox: &Sandbox) -> WorktreeState {
    WorktreeState::capture(sandbox, &sandbox.repo)
}

/// Promise: snapshots/undo-restore
#[test]
fn undo_of_snap_restore_removes_flags() {
    for (flag, _) in FLAGS {
        for dirty in flag_scripts(flag) {
            let (sandbox, id) = sandbox_with_snapshot(&dirty);
            let clean = image(&sandbox);
            let _ = sandbox.proq(&["snap", "restore", &id]).ok();
            let restored = image(&sandbox);
            assert_ne!(clean.index, restored.index, "{dirty}");
            for _ in 0..2 {
                let _ = sandbox.proq(&["undo"]).ok();
                assert_same_image(&clean, &image(&sandbox));
                let _ = sandbox.proq(&["op", "redo"]).ok();
                assert_same_image(&restored, &image(&sandbox));
            }
            let _ = sandbox.proq(&["undo"]).ok();
            sandbox.sh("echo 'new work' >>f");
            assert_eq!(sandbox.git(&["status", "--short"]), " M f", "{dirty}");
            sandbox.assert_healthy();
        }
    }
}

/// Promise: snapshots/undo-restore
#[test]
fn killed_snap_restore_removes_flags() {
    for (flag, _) in FLAGS {
        for dirty in flag_scripts(flag) {
            for at in ["snap.copied", "restore.given", "restore.installed"] {
                let (sandbox, id) = sandbox_with_snapshot(&dirty);
                let clean = image(&sandbox);
                kill_at(&sandbox, at, &["snap", "restore", &id]);
                recover(&sandbox);
                assert_same_image(&clean, &image(&sandbox));
            }
        }
    }
}

#[test]
fn killed_recovery_leaves_no_extra_snapshot() {
    for at in ["aside.cleared", "restore.given", "restore.installed", "step.before:1", "step.before:2"] {
        let sandbox = three_files();
        sandbox.sh("echo mine | tee -a f g k; mkdir -p deep/er; git update-index --assume-unchanged g; git update-index --skip-worktree k");
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        sandbox.sh("git update-index -q --really-refresh || :; git reset -q --hard; seq 9 >k; rm -r deep");
        let id = snapshot_ids(&sandbox).pop().unwrap();
        let clean = image(&sandbox);
        kill_at(&sandbox, "restore.installed", &["snap", "restore", &id]);
        kill_at(&sandbox, at, &["list"]);
        // As if the recovery had reached the upper one of two empty folders.
        sandbox.sh("rmdir deep/er 2>/dev/null || true");
        recover(&sandbox);
        assert_same_image(&clean, &image(&sandbox));
        assert_eq!(snapshot_ids(&sandbox), [&*id], "{at}");
    }
}

/// Promise: snapshots/undo-restore
#[test]
fn undo_of_snap_restore_restores_own_flags() {
    for (flag, letter) in FLAGS {
        let (sandbox, id) = sandbox_with_snapshot("echo mine >>g");
        sandbox.git(&["update-index", flag, "k"]);
        let before = image(&sandbox);
        let _ = sandbox.proq(&["snap", "restore", &id]).ok();
        assert_eq!(sandbox.git(&["ls-files", "-v", "k"]), "H k");
        let _ = sandbox.proq(&["undo"]).ok();
        assert_same_image(&before, &image(&sandbox));
        assert_eq!(sandbox.git(&["ls-files", "-v", "k"]), format!("{letter} k"));
    }
}

/// Returns scripts that set flags on files, and edit some, while a preview is open.
fn preview_edits(flag: &str) -> [String; 4] {
    let set = format!("git update-index {flag}");
    [
        format!("echo p >>f; {set} f; echo p >>g"),
        format!("{set} f one; echo p >>g"),
        format!("{set} f one"),
        format!("echo p >>f; {set} f k"),
    ]
}

/// Promise: snapshots/preview-flags
#[test]
fn flags_set_in_preview_do_not_reach_base() {
    for (flag, _) in FLAGS {
        let own = ["echo mine >>k", "git update-index --assume-unchanged k", "true"].into_iter().cycle();
        for (own, edit) in own.zip(preview_edits(flag)) {
            let sandbox = three_files();
            sandbox.sh(own);
            let base_image = image(&sandbox);
            let _ = sandbox.proq(&["preview", "one"]).ok();
            sandbox.sh(&edit);
            let shown = image(&sandbox);
            let _ = sandbox.proq(&["preview", "--back"]).ok();
            assert_same_image(&base_image, &image(&sandbox));
            let _ = sandbox.proq(&["undo"]).ok();
            assert_same_image(&shown, &image(&sandbox));
            let _ = sandbox.proq(&["op", "redo"]).ok();
            assert_same_image(&base_image, &image(&sandbox));
            if edit.contains("echo") {
                let _ = sandbox.proq(&["preview", "one"]).ok();
                assert_same_image(&shown, &image(&sandbox));
                let _ = sandbox.proq(&["undo"]).ok();
                assert_same_image(&base_image, &image(&sandbox));
            }
            sandbox.assert_healthy();
        }
    }
}

/// Promise: snapshots/preview-flags
#[test]
fn killed_preview_back_keeps_flags_consistent() {
    for at in ["transition.staged", "transition.moved", "transition.installed", "restore.installed"] {
        for edit in preview_edits("--assume-unchanged") {
            let sandbox = three_files();
            sandbox.sh("echo mine >>k");
            let base_image = image(&sandbox);
            let _ = sandbox.proq(&["preview", "one"]).ok();
            sandbox.sh(&edit);
            let shown = image(&sandbox);
            kill_at(&sandbox, at, &["preview", "--back"]);
            recover(&sandbox);
            let now = image(&sandbox);
            assert_same_image(if now.head == base_image.head { &base_image } else { &shown }, &now);
        }
    }
}

/// Promise: snapshots/preview-flags
#[test]
fn flags_do_not_carry_to_next_preview() {
    for (flag, _) in FLAGS {
        for edit in preview_edits(flag) {
            let sandbox = three_files();
            sandbox.lane_with_commit("two", "true");
            let base_image = image(&sandbox);
            let _ = sandbox.proq(&["preview", "one"]).ok();
            sandbox.sh(&edit);
            let shown = image(&sandbox);
            let _ = sandbox.proq(&["preview", "two"]).ok();
            assert_eq!(sandbox.git(&["ls-files", "-v"]), "H a.txt\nH f\nH g\nH k", "{edit}");
            let _ = sandbox.proq(&["undo"]).ok();
            assert_same_image(&shown, &image(&sandbox));
            let _ = sandbox.proq(&["preview", "two"]).ok();
            if edit.contains("echo") {
                let _ = sandbox.proq(&["preview", "one"]).ok();
                assert_same_image(&shown, &image(&sandbox));
            }
            let _ = sandbox.proq(&["preview", "--back"]).ok();
            assert_same_image(&base_image, &image(&sandbox));
        }
    }
}

#[test]
fn flags_survive_preview_refresh_and_undo() {
    for (flag, letter) in FLAGS {
        let sandbox = three_files();
        sandbox.git(&["update-index", flag, "k"]);
        let base_image = image(&sandbox);
        let _ = sandbox.proq(&["preview", "one"]).ok();
        sandbox.git(&["update-index", flag, "f"]);
        let shown = image(&sandbox);
        sandbox.commit_in_lane("one", "echo more >>one; git rm -q g");
        let _ = sandbox.proq(&["preview", "--refresh"]).ok();
        let flags = format!("H a.txt\n{letter} f\n{letter} k\nH one");
        assert_eq!(sandbox.git(&["ls-files", "-v"]), flags);
        let _ = sandbox.proq(&["undo"]).ok();
        assert_same_image(&shown, &image(&sandbox));
        let _ = sandbox.proq(&["op", "redo"]).ok();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_same_image(&base_image, &image(&sandbox));
    }
}

/// Promise: snapshots/preview-flags
#[test]
fn preview_flags_do_not_reach_moved_base() {
    for (flag, _) in FLAGS {
        let sandbox = three_files();
        sandbox.lane_with_commit("two", "echo two >>g");
        sandbox.sh("echo mine >>k; git update-index --assume-unchanged a.txt");
        let _ = sandbox.proq(&["preview", "one"]).ok();
        sandbox.git(&["update-index", flag, "f"]);
        let _ = sandbox.proq(&["merge", "two"]).ok();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_eq!(sandbox.git(&["ls-files", "-v"]), "h a.txt\nH f\nH g\nH k");
        assert_eq!(sandbox.git(&["status", "--short"]), " M k");
    }
}

/// Promise: snapshots/preview-flags
#[test]
fn undo_of_preview_drops_flags_but_not_hidden_edits() {
    for (flag, _) in FLAGS {
        for own in ["true", "git update-index --assume-unchanged k"] {
            let sandbox = three_files();
            sandbox.sh(own);
            let base_image = image(&sandbox);
            let _ = sandbox.proq(&["preview", "one"]).ok();
            sandbox.git(&["update-index", flag, "f"]);
            let shown = image(&sandbox);
            let _ = sandbox.proq(&["undo"]).ok();
            assert_same_image(&base_image, &image(&sandbox));
            let _ = sandbox.proq(&["op", "redo"]).ok();
            assert_same_image(&shown, &image(&sandbox));
            for hidden in ["echo hidden >>f", "rm f"] {
                sandbox.sh(hidden);
                let shown = image(&sandbox);
                for args in [&["undo", "--dry-run"][..], &["undo"]] {
                    let refused = sandbox.proq(args).fails(1);
                    assert!(
                        refused.contains("repo has uncommitted changes: f; nothing was changed"),
                        "{refused}"
                    );
                    assert!(refused.contains("git proq preview --back"), "{refused}");
                    assert_same_image(&shown, &image(&sandbox));
                }
            }
            let _ = sandbox.proq(&["preview", "--back"]).ok();
            assert_same_image(&base_image, &image(&sandbox));
        }
    }
}

#[test]
fn flag_set_on_base_blocks_undo_of_preview_back() {
    for (flag, _) in FLAGS {
        let sandbox = three_files();
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        sandbox.git(&["update-index", flag, "f"]);
        let base_image = image(&sandbox);
        let mut hint = String::new();
        for args in [&["undo", "--dry-run"][..], &["undo"]] {
            let refused = sandbox.proq(args).fails(1);
            assert!(refused.contains("repo has uncommitted changes: f; nothing was changed"), "{refused}");
            assert_same_image(&base_image, &image(&sandbox));
            let line = refused.lines().find_map(|line| line.split_once(" files again: "));
            line.unwrap().1.clone_into(&mut hint);
        }
        sandbox.sh(&hint.replace("[ROOT]", sandbox.root().to_str().unwrap()));
        let _ = sandbox.proq(&["undo"]).ok();
        assert_eq!(sandbox.git(&["symbolic-ref", "--short", "HEAD"]), "proq/one-preview");
    }
}

#[test]
fn flag_set_on_dirty_base_returns_after_preview() {
    for (flag, _) in FLAGS {
        let sandbox = three_files();
        sandbox.sh("echo mine >>k");
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let shown = image(&sandbox);
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        sandbox.git(&["update-index", flag, "f"]);
        let base_image = image(&sandbox);
        let _ = sandbox.proq(&["undo"]).ok();
        assert_same_image(&shown, &image(&sandbox));
        let _ = sandbox.proq_at("2026-06-01T00:00:00Z", &["cleanup"]).ok();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_same_image(&base_image, &image(&sandbox));
    }
}

#[test]
fn sparse_checkout_flags_survive_preview() {
    let sandbox = three_files();
    sandbox.sh("mkdir out; echo o >out/o");
    sandbox.commit_all("out");
    sandbox.sh("git sparse-checkout set --no-cone '/*' '!/out/'");
    let base_image = image(&sandbox);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("git update-index --assume-unchanged f; echo p >>g");
    let shown = image(&sandbox);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&base_image, &image(&sandbox));
    let _ = sandbox.proq(&["undo"]).ok();
    assert_same_image(&shown, &image(&sandbox));
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&base_image, &image(&sandbox));
}

#[test]
fn undo_of_discard_restores_lane_flags() {
    for (flag, _) in FLAGS {
        let sandbox = three_files();
        let lane = sandbox.lane_path("one");
        sandbox.sh_in(&lane, &format!("git update-index {flag} f g; echo hidden >>g; echo work >>k"));
        let before = WorktreeState::capture(&sandbox, &lane);
        let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
        let _ = sandbox.proq(&["undo"]).ok();
        assert_same_image(&before, &WorktreeState::capture(&sandbox, &lane));
        let _ = sandbox.proq(&["op", "redo"]).ok();
        let _ = sandbox.proq(&["undo"]).ok();
        assert_same_image(&before, &WorktreeState::capture(&sandbox, &lane));
    }
}

#[test]
fn discard_of_previewed_lane_drops_its_flags_until_undo() {
    for (flag, _) in FLAGS {
        for edit in preview_edits(flag) {
            let sandbox = three_files();
            let base_image = image(&sandbox);
            let _ = sandbox.proq(&["preview", "one"]).ok();
            sandbox.sh(&edit);
            let shown = image(&sandbox);
            let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
            assert_same_image(&base_image, &image(&sandbox));
            let _ = sandbox.proq(&["undo"]).ok();
            assert_same_image(&shown, &image(&sandbox));
        }
    }
}

/// Promise: snapshots/undo-landing-in-preview
#[test]
fn undo_of_merge_restores_flags_and_ignored_files() {
    const SPARSE: &str = "git sparse-checkout set --no-cone '/*' '!in' && git archive HEAD in | tar -x";
    let flagged = |flag: &str| format!("git update-index {flag} in/x in/y; echo in >>.git/info/exclude");
    for (flag, sparse) in [(FLAGS[0].0, ""), (FLAGS[1].0, ""), (FLAGS[0].0, SPARSE)] {
        // By then the base has another folder at that path, unless the sparse checkout excludes it.
        let over = if sparse.is_empty() { &[][..] } else { &["rm -r in; ln -s k in", "rm -r in; : >in"] };
        for script in ["", "rm in/x", "echo own >in/own", "rm -r in"].iter().chain(over) {
            let sandbox = three_files();
            sandbox.sh("mkdir in; echo x >in/x; echo y >in/y");
            sandbox.commit_all("a folder");
            sandbox.lane_with_commit("two", "git rm -qr in; mkdir in; echo lane >in/lane");
            sandbox.sh(&format!("{sparse}\n{}\n{script}", flagged(flag)));
            println!("{flag}, {sparse}: {script}");
            let start = image(&sandbox);
            let _ = sandbox.proq(&["preview", "one"]).ok();
            let edited = image(&sandbox);
            let _ = sandbox.proq(&["merge", "two"]).ok();
            let _ = sandbox.proq(&["preview", "--back"]).ok();
            let _ = sandbox.proq(&["undo"]).ok();
            assert_same_image(&edited, &image(&sandbox));
            let _ = sandbox.proq(&["undo"]).ok();
            assert_same_image(&edited, &image(&sandbox));
            let _ = sandbox.proq(&["preview", "--back"]).ok();
            assert_same_image(&start, &image(&sandbox));
        }
    }
}

#[test]
fn snap_restore_keeps_other_files_but_clears_flags() {
    for (flag, letter) in FLAGS {
        let (sandbox, id) = sandbox_with_snapshot("echo mine >>f");
        sandbox.sh(&format!("echo other >k; git update-index {flag} k"));
        let before = image(&sandbox);
        let _ = sandbox.proq(&["snap", "restore", &id]).ok();
        assert_eq!(sandbox.read("k"), "other\n", "{flag}");
        assert_eq!(sandbox.git(&["ls-files", "-v", "k"]), "H k", "{flag}");
        assert_eq!(sandbox.git(&["status", "--short"]), " M f\n M k", "{flag}");
        let _ = sandbox.proq(&["undo"]).ok();
        assert_same_image(&before, &image(&sandbox));
        assert_eq!(sandbox.git(&["ls-files", "-v", "k"]), format!("{letter} k"));
    }
}
