//! Tests of checkouts whose paths are in unusual states: files restored by hand outside a sparse checkout,
//! skip-worktree files, empty folders. A few generated states are the same on each run; `cargo xtask states`
//! runs many.

use proq_test_kit::checkouts::sandbox_with_sparse_checkout;
use proq_test_kit::snapshots::assert_same_image;
use proq_test_kit::{Sandbox, WorktreeState};

use super::histories::states::{Deck, Disk, State};

/// Number of generated states that one test runs.
const STATES_PER_TEST: usize = 5;

/// Creates a sandbox in a generated state, with a lane that changes some of its paths.
fn sandbox_in_state(state: &State) -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.sh(&state.base());
    sandbox.lane_with_commit("one", &state.lane());
    let _ = sandbox.sh(&format!("({}) 2>&1 || true", state.dirty()));
    sandbox
}

/// Asserts for generated states that a preview, if it is not refused, followed by `leave` restores the
/// checkout.
fn check_generated_previews(chunk: usize, leave: impl Fn(&Sandbox)) {
    let deck = Deck::new(1);
    let mut entered_count = 0;
    for number in chunk * STATES_PER_TEST..(chunk + 1) * STATES_PER_TEST {
        let state = deck.state(number);
        if state.paths.iter().any(|spot| spot.state.disk == Disk::Fifo) {
            continue;
        }
        let sandbox = sandbox_in_state(&state);
        let before = WorktreeState::capture(&sandbox, &sandbox.repo);
        let preview = sandbox.proq(&["preview", "one"]);
        if preview.code == 0 {
            entered_count += 1;
            leave(&sandbox);
        } else {
            let _ = preview.fails(1);
        }
        println!("state {number}");
        assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    }
    assert!(entered_count > STATES_PER_TEST / 2, "{entered_count} of {STATES_PER_TEST}");
}

/// Promise: worktree/any-start-state
#[test]
fn back_restores_generated_states() {
    check_generated_previews(4, |sandbox| drop(sandbox.proq(&["preview", "--back"]).ok()));
}

/// Promise: worktree/any-start-state
#[test]
fn manual_switch_and_back_restore_generated_states() {
    check_generated_previews(9, |sandbox| {
        // git may refuse the switch because of files in its way; then the preview is still open.
        sandbox.sh("git switch -q main 2>/dev/null || true");
        let _ = sandbox.proq(&["preview", "--back"]).ok();
    });
}

/// Promise: worktree/any-start-state
#[test]
fn undo_and_redo_preview_of_generated_states() {
    check_generated_previews(12, |sandbox| {
        let shown = WorktreeState::capture(sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["undo"]).ok();
        let _ = sandbox.proq(&["op", "redo"]).ok();
        assert_same_image(&shown, &WorktreeState::capture(sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["undo"]).ok();
    });
}

/// Promise: worktree/sparse-exceptions
#[test]
fn keeps_restored_files_outside_sparse_checkout() {
    let restore_files = "mkdir out; git show main:out/a >out/a; git show main:out/b >out/b";
    for lane in ["echo l >x", "echo l >out/a", "git rm -q out/a", "git rm -qr out; echo l >out"] {
        for commands in [
            &[&["preview", "one"][..], &["preview", "--back"]][..],
            &[&["preview", "one"], &["undo"], &["op", "redo"], &["undo"]],
            &[&["preview", "one"], &["switch"], &["preview", "--back"]],
        ] {
            let sandbox = sandbox_with_sparse_checkout(lane, restore_files);
            let before = WorktreeState::capture(&sandbox, &sandbox.repo);
            for args in commands {
                match args {
                    ["switch"] => drop(sandbox.git(&["switch", "-q", "main"])),
                    args => drop(sandbox.proq(args).ok()),
                }
            }
            assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
        }
    }
}

/// Promise: worktree/sparse-exceptions
#[test]
fn keeps_ignored_entry_over_sparse_folder() {
    for script in ["ln -s in out", ": >out", "echo mine >out"] {
        for lane in ["git rm -qr out", "echo l >x", "echo l >out/new"] {
            for commands in [
                &[&["preview", "one"][..], &["preview", "--back"]][..],
                &[&["preview", "one"], &["undo"], &["op", "redo"], &["undo"]],
                &[&["merge", "one"], &["undo"]],
            ] {
                let sandbox =
                    sandbox_with_sparse_checkout(lane, &format!("echo out >>.git/info/exclude; {script}"));
                let before = WorktreeState::capture(&sandbox, &sandbox.repo);
                for args in commands {
                    let _ = sandbox.proq(args).ok();
                }
                assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
            }
        }
    }
}

#[test]
fn keeps_ignored_entry_over_new_sparse_folder() {
    // The rule that ignores the file is not present in a preview.
    for script in ["ln -s in out/n", "echo mine >out/n"] {
        for commands in [
            &[&["preview", "one"][..], &["preview", "--back"]][..],
            &[&["preview", "one"], &["undo"], &["op", "redo"], &["undo"]],
            &[&["preview", "one"], &["preview", "two"], &["preview", "one"], &["preview", "--back"]],
            &[&["merge", "one"], &["undo"]],
        ] {
            let ignored = "mkdir -p out; echo out/n >.gitignore";
            let sandbox = sandbox_with_sparse_checkout(
                "mkdir -p out/n; echo l >out/n/new",
                &format!("{ignored}; {script}"),
            );
            sandbox.proq(&["spawn", "-n", "two", "--wait", "--", "sh", "-c", "echo two >t"]).ok();
            let before = WorktreeState::capture(&sandbox, &sandbox.repo);
            for args in commands {
                let _ = sandbox.proq(args).ok();
            }
            assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
        }
    }
}

/// Promise: worktree/sparse-exceptions
#[test]
fn refuses_ignored_entry_over_new_sparse_file() {
    for (script, expected) in [
        ("mkdir -p out/n; echo mine >out/n/own", "out/n/own"),
        ("mkdir -p out; echo mine >out/n", "out/n"),
        ("mkdir -p out; ln -s nowhere out/n", "out/n"),
    ] {
        for lane in ["echo l >out/n", "ln -s x out/n"] {
            let sandbox =
                sandbox_with_sparse_checkout(lane, &format!("echo out/n >>.git/info/exclude; {script}"));
            let before = WorktreeState::capture(&sandbox, &sandbox.repo);
            for args in [&["preview", "one"][..], &["merge", "one"]] {
                let refused = sandbox.proq(args).fails(1);
                assert!(refused.contains(expected), "{refused}");
                assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
            }
        }
    }
}

/// Promise: worktree/sparse-exceptions
#[test]
fn restores_symlink_over_skipped_folder_after_switch() {
    let sandbox = sandbox_with_sparse_checkout(
        "echo l >x",
        "git update-index --skip-worktree in/c; rm -r in; ln -s nowhere in",
    );
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.git(&["switch", "-q", "main"]);
    assert_eq!(sandbox.read("in/c"), "c\n");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
}

/// Promise: worktree/sparse-exceptions
#[test]
fn parks_and_restores_ignored_entry_over_skipped_folder() {
    let cases: [(&str, &str, &[&[&str]]); 6] = [
        ("ln -s x in", "echo l >x", &[&["preview", "one"], &["switch"], &["preview", "--back"]]),
        ("echo mine >in", "git rm -q in/c", &[&["preview", "one"], &["preview", "--back"]]),
        (
            "echo mine >in",
            "git rm -qr in; echo l >in",
            &[&["preview", "one"], &["switch"], &["preview", "--back"]],
        ),
        (
            "ln -s ../repo in",
            "git rm -q in/c; mkdir in; echo n >in/n",
            &[&["preview", "one"], &["undo"], &["op", "redo"], &["undo"]],
        ),
        (
            "echo mine >in",
            "git rm -qr in",
            &[&["preview", "one"], &["preview", "two"], &["preview", "--back"]],
        ),
        ("ln -s ../repo in", "git rm -qr in", &[&["preview", "one"], &["discard", "--force", "one"]]),
    ];
    for (script, lane, commands) in cases {
        let skip = "git update-index --skip-worktree in/c; rm -r in; echo in >>.git/info/exclude";
        let sandbox = sandbox_with_sparse_checkout(lane, &format!("{skip}; {script}"));
        sandbox.lane_with_commit("two", "echo two >t");
        let before = WorktreeState::capture(&sandbox, &sandbox.repo);
        for args in commands {
            match args {
                ["switch"] => drop(sandbox.git(&["switch", "-q", "main"])),
                args => drop(sandbox.proq(args).ok()),
            }
        }
        println!("{script}; lane: {lane}; {commands:?}");
        assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    }
}

/// Promise: worktree/sparse-exceptions
#[test]
fn refuses_named_pipe_over_skipped_folder() {
    let skip = "git update-index --skip-worktree in/c; rm -r in; mkfifo in";
    let sandbox = sandbox_with_sparse_checkout("git rm -qr in", skip);
    let status_and_index =
        || (sandbox.git(&["status", "--branch", "--short"]), sandbox.git(&["ls-files", "-t"]));
    let before = status_and_index();
    let refused = sandbox.proq(&["preview", "one"]).fails(1);
    assert!(refused.contains("in is a named pipe"), "{refused}");
    assert_eq!(status_and_index(), before);
}

/// Promise: snapshots/undo-landing
#[test]
fn undo_of_landing_restores_empty_folders() {
    for lane in ["echo l >f", "ln -s x f", "mkdir f; echo l >f/l", "mkdir -p f/in; ln -s x f/in/l"] {
        let sandbox = Sandbox::new();
        sandbox.sh("echo x >x; mkdir in; echo in >in/x");
        sandbox.commit_all("base");
        sandbox.lane_with_commit("one", &format!("{lane}; echo new >in/new"));
        let empty = "mkdir -p f/in/deep f/other in/empty";
        sandbox.sh(&format!("echo f >>.git/info/exclude; {empty}"));
        sandbox.sh(&format!("git worktree add -qf ../other main; cd ../other; {empty}"));
        let other = sandbox.root().join("other");
        let (before, other_before) =
            (WorktreeState::capture(&sandbox, &sandbox.repo), WorktreeState::capture(&sandbox, &other));
        let _ = sandbox.proq(&["merge", "one"]).ok();
        let landed = WorktreeState::capture(&sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["undo"]).ok();
        assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
        assert_same_image(&other_before, &WorktreeState::capture(&sandbox, &other));
        let _ = sandbox.proq(&["op", "redo"]).ok();
        assert_same_image(&landed, &WorktreeState::capture(&sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["undo"]).ok();
        assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    }
}

/// Promise: worktree/staged-file-over-folder
#[test]
fn refuses_staged_file_where_landing_needs_a_folder() {
    for script in ["rm f", "rm f; mkdir -p f/in", "rm f; mkdir f; echo own >f/own"] {
        for flag in ["", "git update-index --assume-unchanged f"] {
            let sandbox = Sandbox::new();
            sandbox.write("x", "x\n");
            sandbox.commit_all("base");
            sandbox.lane_with_commit("one", "mkdir f; echo l >f/l");
            sandbox.sh(&format!("echo staged >f; git add f; {script}"));
            sandbox.sh(flag);
            let before = WorktreeState::capture(&sandbox, &sandbox.repo);
            for args in [&["merge", "one", "--dry-run"][..], &["merge", "one"]] {
                let refused = sandbox.proq(args).fails(1);
                assert!(refused.contains(": f"), "{refused}");
                assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
            }
        }
    }
}

#[test]
fn leaves_preview_with_staged_skipped_missing_file() {
    let sandbox = sandbox_with_sparse_checkout(
        "echo l >x",
        "echo n >n; git add n; git update-index --skip-worktree n; rm n; echo more >>x",
    );
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
}

/// Promise: worktree/sparse-exceptions
#[test]
fn restores_preview_edits_against_sparse_patterns() {
    for edit in [
        "git update-index --skip-worktree in/c; echo edited >in/c",
        "git update-index --skip-worktree in/c; rm in/c",
        "git update-index --skip-worktree in/c; rm in/c; mkdir -p in/c/empty",
        "git update-index --skip-worktree in/c; rm in/c; mkdir in/c; echo i >in/c/i; echo i >>.git/info/exclude",
        "git update-index --skip-worktree in/c; rm -r in; echo file >in",
        "echo d >in/d; git add in/d; git update-index --skip-worktree in/d in/c; rm in/d in/c",
        "git update-index --no-skip-worktree out/a; git checkout -q out/a",
        "mkdir out; git show HEAD:out/a >out/a; echo edited >out/b",
    ] {
        let sandbox = sandbox_with_sparse_checkout("echo l >x; echo l >in/c; echo l >out/a", "true");
        let clean = WorktreeState::capture(&sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["preview", "one"]).ok();
        sandbox.sh(edit);
        let edited = WorktreeState::capture(&sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_same_image(&clean, &WorktreeState::capture(&sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["preview", "one"]).ok();
        assert_same_image(&edited, &WorktreeState::capture(&sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["undo"]).ok();
        assert_same_image(&clean, &WorktreeState::capture(&sandbox, &sandbox.repo));
    }
}

/// Promise: worktree/sparse-exceptions
#[test]
fn removes_lane_file_over_sparse_folder_on_return() {
    let sandbox = sandbox_with_sparse_checkout("git rm -qr out; echo l >out", "true");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    for (command, back) in
        [("preview", &["preview", "--back"][..]), ("preview", &["undo"]), ("merge", &["undo"])]
    {
        let _ = sandbox.proq(&[command, "one"]).ok();
        assert_eq!(std::fs::read_to_string(sandbox.repo.join("out")).unwrap(), "l\n");
        let _ = sandbox.proq(back).ok();
        assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    }
}

#[test]
fn empty_folder_over_sparse_file_is_no_preview_edit() {
    let sandbox = sandbox_with_sparse_checkout("ln -s x out/n", "mkdir -p out/n/deep");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
}

#[test]
fn keeps_empty_sparse_folder_through_restore_and_undo() {
    let sandbox = sandbox_with_sparse_checkout("echo l >x", "mkdir -p out; echo kept >out/a; echo more >>x");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let id = proq_test_kit::snapshots::snapshot_ids(&sandbox).remove(0);
    sandbox.sh("git reset -q --hard; git clean -qfd; mkdir -p out");
    let clean = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_same_image(&clean, &WorktreeState::capture(&sandbox, &sandbox.repo));
}

#[test]
fn restores_empty_ignored_folder_with_lane_files() {
    for dirty in ["true", "echo more >>x"] {
        let sandbox = Sandbox::new();
        sandbox.write("x", "x\n");
        sandbox.write(".gitignore", "out\n");
        sandbox.commit_all("base");
        sandbox.lane_with_commit("one", "mkdir -p out/in; echo l >out/in/f; git add -f out");
        sandbox.sh(&format!("mkdir -p out/in out/other; {dirty}"));
        let before = WorktreeState::capture(&sandbox, &sandbox.repo);
        for back in [&["preview", "--back"][..], &["undo"]] {
            let _ = sandbox.proq(&["preview", "one"]).ok();
            let _ = sandbox.proq(back).ok();
            assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
        }
    }
}

#[test]
fn landing_keeps_ignored_files_over_a_staged_file() {
    let sandbox = Sandbox::new();
    sandbox.write("x", "x\n");
    sandbox.write(".gitignore", "*.log\n");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "echo l >x");
    sandbox.sh(
        "echo staged >f; git add f; echo f >>.gitignore; rm f; mkdir -p f/sub; echo 1 >f/a; echo 2 >f/sub/b",
    );
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    let _ = sandbox.proq(&["preview", "one"]).ok();
    // The lane's rules do not ignore these files, but they do not count as edits made in the preview.
    let landed = sandbox.proq(&["merge", "one"]).ok();
    assert!(!landed.contains("kept"), "{landed}");
    assert_eq!(sandbox.read("f/a") + &sandbox.read("f/sub/b"), "1\n2\n");
}

#[test]
fn removes_empty_folders_made_in_a_preview() {
    let sandbox = Sandbox::new();
    sandbox.write("x", "x\n");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "echo l >x");
    sandbox.sh("mkdir -p own/empty");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("mkdir -p made/deep own/made");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    // git does not track empty folders, so they are no edits that would keep the lane.
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert!(!sandbox.lane_path("one").exists());
}

/// Promise: worktree/sparse-exceptions
#[test]
fn undo_of_snapshot_restore_in_sparse_checkout() {
    let sandbox = sandbox_with_sparse_checkout(
        "echo l >x",
        "mkdir out; echo other >out/a; git show main:out/b >out/b; git add --sparse out/a; printf 'e\\n' >>.git/info/exclude; mkdir e",
    );
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let id = proq_test_kit::snapshots::snapshot_ids(&sandbox).remove(0);
    sandbox.sh("git reset -q --hard; git clean -qfd");
    let clean = WorktreeState::capture(&sandbox, &sandbox.repo);
    assert!(!sandbox.repo.join("out").exists());
    for _ in 0..2 {
        let _ = sandbox.proq(&["snap", "restore", &id]).ok();
        assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["undo"]).ok();
        assert_same_image(&clean, &WorktreeState::capture(&sandbox, &sandbox.repo));
    }
}
