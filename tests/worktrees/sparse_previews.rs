//! Previews in a sparse checkout with files outside of its patterns: on a moved base, with a sparse index,
//! and when the end of a preview is interrupted.

use std::io::Write;

use proq_test_kit::checkouts::sandbox_with_sparse_checkout;
use proq_test_kit::snapshots::assert_same_image;
use proq_test_kit::{Sandbox, WorktreeState};

/// Scripts that create files outside of the patterns, edited or not.
const OUTSIDE_FILE_SCRIPTS: &[&str] = &[
    "mkdir out; git show HEAD:out/a >out/a",
    "git update-index --no-skip-worktree out/a; git checkout -q out/a",
    "mkdir out; echo edited >out/a",
    "mkdir out; echo edited >out/a; git add --sparse out/a",
    "mkdir out; echo new >out/new; git add --sparse out/new",
    "mkdir out; echo new >out/new; git add -N --sparse out/new",
    "mkdir out; echo new >out/new",
];

/// Returns the files outside of the patterns, and the status of the checkout.
fn outside_files(sandbox: &Sandbox) -> String {
    sandbox.sh("for f in out/*; do echo $f; cat $f; done; git status --short")
}

/// Lands a second lane on the base, which is not checked out.
fn move_base(sandbox: &Sandbox) {
    sandbox.lane_with_commit("two", "echo two >in/two");
    let _ = sandbox.proq(&["merge", "two"]).ok();
}

/// Promise: worktree/sparse-exceptions
#[test]
fn outside_files_are_restored_on_moved_base() {
    for script in OUTSIDE_FILE_SCRIPTS {
        let sandbox = sandbox_with_sparse_checkout("echo l >x", script);
        let before = outside_files(&sandbox);
        let _ = sandbox.proq(&["preview", "one"]).ok();
        assert!(!sandbox.repo.join("out").exists());
        move_base(&sandbox);
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_eq!(outside_files(&sandbox), before, "{script}");
        assert_eq!(std::fs::read_to_string(sandbox.repo.join("in/two")).unwrap(), "two\n");
    }
}

/// Promise: worktree/sparse-exceptions
#[test]
fn edit_follows_file_that_base_moved_across_patterns() {
    for (edit, moves, expected) in [
        ("echo edited >>in/c", "git mv in/c out/c", Ok("out/c")),
        ("mkdir out; echo edited >out/a", "echo more >>out/a; git mv out/a in/a", Err(3)),
        ("mkdir out; echo q >out/q; git add --sparse out/q", "echo q >out/q", Err(0)),
        ("mkdir out; echo mine >out/mine", "git rm -qr out; echo file >out", Err(3)),
    ] {
        let sandbox = Sandbox::new();
        sandbox.sh("mkdir in out; seq 30 >in/c; seq 30 >out/a; echo x >x");
        sandbox.commit_all("files");
        sandbox.lane_with_commit("one", "echo l >x");
        sandbox.lane_with_commit("two", moves);
        sandbox.sh("git sparse-checkout set --cone in");
        sandbox.sh(edit);
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let _ = sandbox.proq(&["merge", "two"]).ok();
        let back = sandbox.proq(&["preview", "--back"]);
        // No file is missing that was not deleted.
        assert_eq!(sandbox.sh("git status --short | grep '^.D' || :"), "", "{edit}");
        match expected {
            Ok(path) => assert_eq!(sandbox.sh(&format!("tail -1 {path}")), "edited"),
            Err(code) => assert_eq!(back.code, code, "{edit}"),
        }
    }
}

/// Promise: worktree/sparse-exceptions
#[test]
fn late_write_to_outside_file_is_restored() {
    for moves in [None, Some("echo two >in/two"), Some("echo two >out/a")] {
        let sandbox = sandbox_with_sparse_checkout("echo l >x", "git sparse-checkout disable");
        let other = moves.map(|moves| sandbox.lane_with_commit("two", moves));
        sandbox.sh(&format!("git sparse-checkout set --no-cone '/*' '!/out/'; {}", OUTSIDE_FILE_SCRIPTS[0]));
        let mut open = std::fs::File::options().append(true).open(sandbox.repo.join("out/a")).unwrap();
        let _ = sandbox.proq(&["preview", "one"]).ok();
        open.write_all(b"late\n").unwrap();
        if other.is_some() {
            let _ = sandbox.proq(&["merge", "two"]).ok();
        }
        let back = sandbox.proq(&["preview", "--back"]);
        if moves.is_some_and(|moves| moves.contains("out/a")) {
            assert!(back.fails(3).contains("your changes are kept"));
        } else {
            let _ = back.ok();
            assert_eq!(std::fs::read_to_string(sandbox.repo.join("out/a")).unwrap(), "a\nlate\n");
        }
    }
}

/// Promise: worktree/sparse-exceptions
#[cfg(debug_assertions)]
#[test]
fn killed_preview_end_leaves_no_outside_files() {
    for (script, moves) in OUTSIDE_FILE_SCRIPTS.iter().flat_map(|shown| [(shown, false), (shown, true)]) {
        for at in ["restore.given", if moves { "transition.brought" } else { "restore.taken" }] {
            let sandbox = sandbox_with_sparse_checkout("echo l >x", script);
            let before = WorktreeState::capture(&sandbox, &sandbox.repo);
            let _ = sandbox.proq(&["preview", "one"]).ok();
            if moves {
                move_base(&sandbox);
            }
            let preview = WorktreeState::capture(&sandbox, &sandbox.repo);
            let mut command = sandbox.proq_command(&sandbox.repo, &["preview", "--back"]);
            command.env("PROQ_TEST_DIE_AT", at);
            assert_eq!(sandbox.output(command).code, 137, "{script} {at}");
            let _ = sandbox.proq(&["list"]).ok();
            assert_same_image(&preview, &WorktreeState::capture(&sandbox, &sandbox.repo));
            let _ = sandbox.proq(&["preview", "--back"]).ok();
            if !moves {
                assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
            }
        }
    }
}

/// Promise: worktree/sparse-exceptions
#[test]
fn sparse_index_restores_outside_files() {
    // Today's git crashes on an intent-to-add entry outside of the cone.
    for script in OUTSIDE_FILE_SCRIPTS.iter().filter(|shown| !shown.contains("add -N")) {
        for sequences in [
            &[&["preview", "one"][..], &["preview", "--back"]][..],
            &[&["preview", "one"], &["switch"], &["preview", "--back"]],
            &[&["preview", "one"], &["preview", "--back"], &["undo"], &["op", "redo"]],
        ] {
            let sandbox = sandbox_with_sparse_checkout(
                "echo l >x; echo l >out/b",
                "git sparse-checkout set --cone --sparse-index in",
            );
            sandbox.sh(script);
            let before = outside_files(&sandbox);
            for args in sequences {
                match args {
                    ["switch"] => drop(sandbox.git(&["switch", "-q", "main"])),
                    args => drop(sandbox.proq(args).ok()),
                }
            }
            assert_eq!(outside_files(&sandbox), before, "{script}: {sequences:?}");
        }
    }
}

/// Promise: snapshots/undo-landing-over-file
#[test]
fn undo_restores_untracked_file_over_landed_one() {
    for (mine, lane) in [
        ("echo mine >out/n", "echo lane >out/n"),
        ("echo lane >out/n", "echo lane >out/n"),
        (": >out/n; echo mine >out/m", "ln -s ../x out/n"),
        ("ln -s ../x out/n", "echo lane >out/n; echo lane >out/m"),
        ("echo mine >out/n; echo edited >out/a", "echo lane >out/n"),
    ] {
        println!("{mine}; lane: {lane}");
        let sandbox = Sandbox::new();
        sandbox.sh("mkdir in out; seq 30 >in/c; seq 30 >out/a; echo x >x");
        sandbox.commit_all("files");
        sandbox.lane_with_commit("one", "echo l >x");
        sandbox.lane_with_commit("two", lane);
        sandbox.sh(&format!("git sparse-checkout set --cone in; mkdir out; {mine}"));
        let start = WorktreeState::capture(&sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let shown = WorktreeState::capture(&sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["merge", "two"]).ok();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        for _ in ["the way back", "the landing"] {
            let _ = sandbox.proq(&["undo"]).ok();
            assert_same_image(&shown, &WorktreeState::capture(&sandbox, &sandbox.repo));
        }
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_same_image(&start, &WorktreeState::capture(&sandbox, &sandbox.repo));
    }
}

/// Promise: snapshots/landing-over-untracked-folder
#[test]
fn unseen_landed_file_over_user_folder_conflicts() {
    let untracked_script =
        "git show HEAD:out/d/a >out/d/a; git rm -q --cached --sparse out/d/a; echo new >out/d/new";
    for (mine, lane) in [
        (untracked_script, "rm -r out/d; ln -s ../in out/d"),
        ("echo new >out/d/new", "git rm -qr out/d; mkdir -p out; echo theirs >out/d"),
        ("mkdir out/new; echo new >out/new/in; echo new >out/new/too", "echo theirs >out/new"),
        ("echo new >out/d/new; echo new >out/d/too", "git rm -qr out; echo theirs >out"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.sh("mkdir -p in out/d; seq 30 >in/c; seq 30 >out/d/a; echo x >x");
        sandbox.commit_all("files");
        sandbox.lane_with_commit("one", "echo l >x");
        sandbox.lane_with_commit("two", lane);
        sandbox.sh(&format!("git sparse-checkout set --cone in; mkdir -p out/d; {mine}"));
        let start = WorktreeState::capture(&sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let _ = sandbox.proq(&["merge", "two"]).ok();
        let plan = sandbox.proq(&["preview", "--back", "--dry-run"]).ok();
        assert!(plan.contains("be restored, or stay kept if they conflict with main\n"), "{plan}");
        let output = sandbox.proq(&["preview", "--back"]);
        assert_eq!(output.code, 3, "{lane}: {}", output.to_text());
        assert!(output.stderr.contains("conflict with it in 1 file;"), "{lane}: {}", output.to_text());
        assert_eq!(sandbox.git(&["status", "--short"]), "", "{lane}");
        for args in [&["undo"][..], &["undo"], &["preview", "--back"]] {
            let _ = sandbox.proq(args).ok();
        }
        assert_same_image(&start, &WorktreeState::capture(&sandbox, &sandbox.repo));
    }
}
