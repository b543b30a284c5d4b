//! Landings in a sparse checkout, and their undo: files present or left out against the patterns stay so.

use proq_test_kit::WorktreeState;
use proq_test_kit::checkouts::sandbox_with_sparse_checkout;
use proq_test_kit::snapshots::assert_same_image;

/// Scripts that create an exception to the patterns of a sparse checkout, and scripts with which a lane
/// removes the file.
const AGAINST: [(&str, &str); 6] = [
    ("mkdir out; git show main:out/a >out/a", "git rm -q out/a"),
    ("mkdir out; git show main:out/a >out/a", "git rm -q out/a; mkdir out/a; echo l >out/a/in"),
    ("mkdir out; git show main:out/a >out/a", "git rm -qr out; echo l >out"),
    ("git update-index --skip-worktree in/c; rm in/c", "git rm -q in/c"),
    ("git update-index --skip-worktree in/c; rm in/c", "git rm -q in/c; mkdir -p in/c; echo l >in/c/in"),
    ("git update-index --skip-worktree in/c; rm in/c", "git rm -qr in; echo l >in"),
];

/// Promise: worktree/sparse-exceptions
#[test]
fn landing_leaves_files_outside_patterns() {
    let sandbox = sandbox_with_sparse_checkout(
        "echo l >x; echo l >out/new",
        "mkdir out; git show main:out/a >out/a; echo s >out/s; git add --sparse out/s",
    );
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(
        (sandbox.read("out/a"), sandbox.read("out/s"), sandbox.read("x")),
        ("a\n".into(), "s\n".into(), "l\n".into())
    );
    assert!(!sandbox.repo.join("out/new").exists() && !sandbox.repo.join("out/b").exists());
    let _ = sandbox.proq(&["undo"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
}

/// Promise: worktree/sparse-exceptions
#[test]
fn landing_does_not_write_skipped_file() {
    let sandbox = sandbox_with_sparse_checkout(
        "echo l >x; echo l >in/c",
        "git update-index --skip-worktree in/c; rm in/c",
    );
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert!(!sandbox.repo.join("in/c").exists());
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    assert_eq!(sandbox.git(&["show", ":in/c"]), "l");
}

/// Promise: snapshots/undo-landing-sparse
#[test]
fn undo_restores_exceptions_to_patterns() {
    for (user_script, lane) in AGAINST {
        for has_sparse_index in [false, true] {
            let sandbox = sandbox_with_sparse_checkout(lane, user_script);
            if has_sparse_index {
                sandbox.sh("git config index.sparse true; git update-index --force-write-index");
            }
            let before = WorktreeState::capture(&sandbox, &sandbox.repo);
            let _ = sandbox.proq(&["merge", "one"]).ok();
            let landed = WorktreeState::capture(&sandbox, &sandbox.repo);
            for _ in 0..2 {
                let _ = sandbox.proq(&["undo"]).ok();
                assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
                let _ = sandbox.proq(&["op", "redo"]).ok();
                assert_same_image(&landed, &WorktreeState::capture(&sandbox, &sandbox.repo));
            }
        }
    }
}

/// Promise: snapshots/undo-landing-sparse
#[test]
fn killed_undo_leaves_the_landing() {
    for (user_script, lane) in AGAINST {
        for at in ["transition.linked", "transition.brought", "transition.staged", "transition.moved"] {
            let sandbox = sandbox_with_sparse_checkout(lane, user_script);
            let _ = sandbox.proq(&["merge", "one"]).ok();
            let landed = WorktreeState::capture(&sandbox, &sandbox.repo);
            let mut command = sandbox.proq_command(&sandbox.repo, &["undo"]);
            command.env("PROQ_TEST_DIE_AT", at);
            assert_ne!(sandbox.output(command).code, 0, "{at}");
            let _ = sandbox.proq(&["list"]).ok();
            assert_same_image(&landed, &WorktreeState::capture(&sandbox, &sandbox.repo));
        }
    }
}

/// Promise: snapshots/undo-landing-sparse
#[test]
fn undo_refuses_file_in_the_way_by_name() {
    for (mine, named) in [
        ("mkdir out; echo mine >out/a", "out/a"),
        ("echo mine >out", "out"),
        ("echo mine >out; echo /out >>.git/info/exclude", "out"),
        ("ln -s in out; echo /out >>.git/info/exclude", "out"),
        ("mkdir -p out/a; echo mine >out/a/in; echo /out >>.git/info/exclude", "out/a"),
    ] {
        let (user_script, lane) = AGAINST[0];
        let sandbox = sandbox_with_sparse_checkout(lane, user_script);
        let _ = sandbox.proq(&["merge", "one"]).ok();
        sandbox.sh(mine);
        let landed = WorktreeState::capture(&sandbox, &sandbox.repo);
        for args in [&["undo", "--dry-run"][..], &["undo"]] {
            let error = sandbox.proq(args).fails(1);
            assert!(error.contains(&format!("are in the way: {named}")), "{mine}: {error}");
            assert_same_image(&landed, &WorktreeState::capture(&sandbox, &sandbox.repo));
        }
    }
}

/// Promise: snapshots/undo-landing-sparse
#[test]
fn landing_keeps_both_flags_of_excluded_file() {
    let sandbox = sandbox_with_sparse_checkout("echo l >>out/a", "git update-index --assume-unchanged out/a");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(sandbox.git(&["ls-files", "-v", "out/a"]), "s out/a");
    let _ = sandbox.proq(&["undo"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
}

/// Promise: snapshots/undo-landing-sparse
#[test]
fn undo_folds_sparse_directory_and_keeps_user_file() {
    for (mine, lane) in [
        ("", "git rm -q out/a"),
        ("", "git rm -qr out"),
        ("echo mine >out; echo /out >>.git/info/exclude", "git rm -q out/a"),
    ] {
        let sandbox = sandbox_with_sparse_checkout(lane, "git sparse-checkout set --cone --sparse-index in");
        assert_eq!(sandbox.git(&["ls-files", "--sparse", "out"]), "out/");
        sandbox.sh(mine);
        let before = WorktreeState::capture(&sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["merge", "one"]).ok();
        let _ = sandbox.proq(&["undo"]).ok();
        assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    }
}

/// Promise: snapshots/undo-landing-sparse
#[test]
fn file_over_excluded_folder_does_not_block_undo() {
    let user_script =
        "git update-index --skip-worktree in/c; rm -r in; echo mine >in; echo /in >>.git/info/exclude";
    let sandbox = sandbox_with_sparse_checkout("git rm -q in/c", user_script);
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    let _ = sandbox.proq(&["undo", "--dry-run"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
}
