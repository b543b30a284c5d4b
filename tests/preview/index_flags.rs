//! Index entries that record more than a file's content: intent-to-add (`git add -N`), assume-unchanged,
//! skip-worktree.

use proq_test_kit::snapshots::assert_same_image;
use proq_test_kit::{Sandbox, WorktreeState};

/// Promise: worktree/any-start-state
#[test]
fn preview_restores_folder_over_intent_to_add_file() {
    let sandbox = Sandbox::new();
    sandbox.write("x", "x\n");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "echo l >x");
    sandbox.lane_with_commit("two", "echo two >f");
    sandbox.sh("echo n >f; git add -N f; rm f; mkdir f; echo own >f/own");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    let _ = sandbox.proq(&["preview", "two"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
}

/// Promise: worktree/staged-file-over-folder
#[test]
fn missing_intent_to_add_file_blocks_merge_not_preview() {
    for lane in ["echo l >f", "mkdir f; echo l >f/l"] {
        let sandbox = Sandbox::new();
        sandbox.write("x", "x\n");
        sandbox.commit_all("base");
        sandbox.lane_with_commit("one", lane);
        sandbox.lane_with_commit("two", "echo l >x");
        sandbox.sh("echo n >f; git add -N f; rm f");
        assert_eq!(sandbox.git(&["status", "--short"]), " D f");
        let before = WorktreeState::capture(&sandbox, &sandbox.repo);
        let refused = sandbox.proq(&["merge", "one"]).fails(1);
        assert!(refused.contains("in the way: f;") && refused.contains(" stash push"), "{refused}");
        assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["preview", "one"]).ok();
        assert_eq!(sandbox.git(&["status", "--short"]), "");
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let _ = sandbox.proq(&["merge", "two"]).ok();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_eq!((sandbox.read("x"), sandbox.git(&["status", "--short"])), ("l\n".into(), " D f".into()));
        sandbox.git(&["stash", "push", "-q"]);
        let _ = sandbox.proq(&["merge", "one"]).ok();
    }
}

/// Promise: snapshots/undo-landing
#[test]
fn undo_of_merge_restores_flags_of_removed_files() {
    for (flag, letter) in [("--assume-unchanged", "h"), ("--skip-worktree", "S")] {
        for lane in ["rm c", "rm c; mkdir c; echo l >c/in"] {
            let sandbox = Sandbox::new();
            sandbox.sh("echo c >c; echo x >x");
            sandbox.commit_all("base");
            sandbox.lane_with_commit("one", lane);
            sandbox.git(&["update-index", flag, "c"]);
            sandbox
                .sh(&format!("git worktree add -qf ../other main; cd ../other; git update-index {flag} c"));
            let other = sandbox.root().join("other");
            let (before, other_before) =
                (WorktreeState::capture(&sandbox, &sandbox.repo), WorktreeState::capture(&sandbox, &other));
            let assert_flagged = || {
                assert_eq!(sandbox.git(&["ls-files", "-v", "c"]), format!("{letter} c"));
                assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
                assert_same_image(&other_before, &WorktreeState::capture(&sandbox, &other));
            };
            let _ = sandbox.proq(&["merge", "one"]).ok();
            let landed = WorktreeState::capture(&sandbox, &sandbox.repo);
            let _ = sandbox.proq(&["undo"]).ok();
            assert_flagged();
            let _ = sandbox.proq(&["op", "redo"]).ok();
            assert_same_image(&landed, &WorktreeState::capture(&sandbox, &sandbox.repo));
            let _ = sandbox.proq(&["undo"]).ok();
            assert_flagged();
        }
    }
}

/// Promise: worktree/staged-file-over-folder
#[test]
fn deletion_hidden_by_flag_blocks_merge() {
    for flag in ["--skip-worktree", "--assume-unchanged"] {
        for lane in ["echo l >c", "rm c; mkdir c; echo l >c/in"] {
            let sandbox = Sandbox::new();
            sandbox.sh("echo c >c; echo x >x");
            sandbox.commit_all("base");
            sandbox.lane_with_commit("one", lane);
            sandbox.lane_with_commit("two", "echo l >x");
            sandbox.sh(&format!("git update-index {flag} c; rm c"));
            let before = WorktreeState::capture(&sandbox, &sandbox.repo);
            for args in [&["merge", "one", "--dry-run"][..], &["merge", "one"]] {
                let refused = sandbox.proq(args).fails(1);
                assert!(refused.contains(": c"), "{refused}");
                assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
            }
            let _ = sandbox.proq(&["merge", "two"]).ok();
            let _ = sandbox.proq(&["undo"]).ok();
            assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
            let refused = sandbox.proq(&["merge", "one"]).fails(1);
            let hint = refused.lines().find_map(|line| line.split_once(" files again: "));
            sandbox.sh(&hint.unwrap().1.replace("[ROOT]", sandbox.root().to_str().unwrap()));
            assert_eq!(sandbox.git(&["status", "--porcelain"]), " D c");
            sandbox.git(&["checkout", "-q", "c"]);
            let _ = sandbox.proq(&["merge", "one"]).ok();
        }
    }
}

/// Previews lane `one` with changes of the user's, lands lane `two` during it, goes back, and returns what
/// `git status` shows then.
fn preview_over_moved_base(own: &str, two: &str) -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    sandbox.sh("echo c >c; echo x >x; mkdir in out; echo i >in/i; echo o >out/o");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "echo l >x");
    sandbox.lane_with_commit("two", two);
    sandbox.sh(own);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["merge", "two"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let shown = sandbox.git(&["status", "--short"]);
    (sandbox, shown)
}

/// Promise: preview/flags-on-moved-base
#[test]
fn intent_to_add_yields_to_new_base_files() {
    for (own, two) in [
        ("echo n >f; git add -N f; rm f", "mkdir f; echo l >f/l"),
        ("mkdir d; echo n >d/f; git add -N d/f; rm -r d", "echo l >d"),
        ("echo n >f; git add -N f; rm f", "echo l >f"),
    ] {
        let (sandbox, shown) = preview_over_moved_base(own, two);
        assert_eq!(shown, "", "{own}; {two}");
        sandbox.assert_healthy();
    }
}

/// Promise: preview/flags-on-moved-base
#[test]
fn intent_to_add_keeps_mode_on_moved_base() {
    for (own, mode) in [
        ("echo n >f; chmod +x f; git add -N f; rm f", "100755"),
        ("ln -s x f; git add -N f; rm f", "120000"),
        ("echo n >f; git add -N f", "100644"),
        ("git init -q f; git -C f commit -q --allow-empty -m own; git add -N f; echo more >u", "160000"),
        ("git sparse-checkout set --no-cone '/*' '!/f'; echo n >f; git add --sparse -N f; rm f", "100644"),
        ("git update-index --split-index; echo n >f; git add -N f; rm f", "100644"),
    ] {
        let (sandbox, shown) = preview_over_moved_base(own, "echo two >c");
        assert_eq!(sandbox.read("c"), "two\n", "{own}");
        assert!(sandbox.git(&["ls-files", "--stage", "f"]).starts_with(mode), "{own}: {shown}");
        let shown = sandbox.git(&["diff", "--cached", "--ita-invisible-in-index", "--name-only"]);
        assert_eq!(shown, "", "{own}");
    }
}

#[test]
fn snap_restore_works_over_intent_to_add_file() {
    let sandbox = Sandbox::new();
    sandbox.write("x", "x\n");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "echo l >x");
    sandbox.sh("echo n >f; git add -N f; rm f; mkdir f; echo own >f/own");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("rm -r f");
    let id = proq_test_kit::snapshots::snapshot_ids(&sandbox)[0].clone();
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
}

/// Promise: worktree/any-start-state
#[test]
fn preview_restores_flags_of_removed_files() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        for change in ["true", "git update-index --split-index", "echo u >u"] {
            let sandbox = Sandbox::new();
            sandbox.sh("echo c >c; echo x >x");
            sandbox.commit_all("base");
            sandbox.lane_with_commit("one", "rm c; echo l >f");
            sandbox.lane_with_commit("two", "rm c");
            sandbox.sh(&format!("git update-index {flag} c; {change}"));
            let before = WorktreeState::capture(&sandbox, &sandbox.repo);
            let _ = sandbox.proq(&["preview", "one"]).ok();
            let _ = sandbox.proq(&["preview", "two"]).ok();
            let _ = sandbox.proq(&["preview", "--back"]).ok();
            assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
            for back in [&["undo"][..], &["preview", "--back"]] {
                let _ = sandbox.proq(&["preview", "one"]).ok();
                let _ = sandbox.proq(&["undo"]).ok();
                assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
                let _ = sandbox.proq(&["op", "redo"]).ok();
                assert!(!sandbox.repo.join("c").exists());
                let _ = sandbox.proq(back).ok();
                assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
            }
        }
    }
}

/// Promise: preview/flags-on-moved-base
#[test]
fn flags_of_remaining_files_survive_moved_base() {
    for (flag, letter) in [("--assume-unchanged", "h"), ("--skip-worktree", "S")] {
        let own = format!("git update-index {flag} c in/i; echo u >u");
        let (sandbox, shown) = preview_over_moved_base(&own, "rm c");
        assert_eq!(shown, "?? u");
        assert_eq!(sandbox.git(&["ls-files", "-v"]), format!("H a.txt\n{letter} in/i\nH out/o\nH x"));
    }
}

/// Promise: snapshots/undo-landing
#[test]
fn undo_restores_flag_after_sparse_checkout_disable() {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir in; echo c >c; echo i >in/i");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "rm c");
    sandbox.sh("git sparse-checkout set in; git sparse-checkout disable; git update-index --skip-worktree c");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
}

#[test]
fn undo_after_git_reset_recreates_empty_folders() {
    let sandbox = Sandbox::new();
    sandbox.write("x", "x\n");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "echo l >f");
    sandbox.sh("mkdir f");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    sandbox.git(&["reset", "-q", "--hard", "HEAD^"]);
    let _ = sandbox.proq(&["undo"]).ok();
    assert!(sandbox.repo.join("f").is_dir());
}
