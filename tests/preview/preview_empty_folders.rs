//! Tests of previews with empty folders in place of files and with filtered files, when the base moves during
//! the preview or `preview --back` is undone.

use proq_test_kit::snapshots::{assert_same_image, snapshot_ids};
use proq_test_kit::{Sandbox, WorktreeState};

/// Creates a sandbox with two lanes made by the scripts `one` and `two`, then runs the script `dirty` in the
/// main checkout.
fn sandbox_with_lanes(one: &str, two: &str, dirty: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("git config filter.plus.clean 'sed s/^+//'; git config filter.plus.smudge 'sed s/^/+/'");
    sandbox.write(".gitattributes", "*.plus filter=plus\n*.crlf text eol=crlf\n");
    sandbox.sh("mkdir d; echo x >d/x; echo y >d/y; printf '+f\\n' >f.plus");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", one);
    sandbox.lane_with_commit("two", two);
    sandbox.sh(dirty);
    sandbox
}

fn image(sandbox: &Sandbox) -> WorktreeState {
    WorktreeState::capture(sandbox, &sandbox.repo)
}

/// Promise: worktree/empty-folders
#[test]
fn restores_preview_edits_over_empty_folders() {
    let sandbox = sandbox_with_lanes("echo 1 >1", "echo 2 >2", "");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo mine >made; git add made; echo loose >loose");
    let edited = image(&sandbox);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("mkdir -p made loose/deep");
    let original = image(&sandbox);
    let shown = sandbox.proq(&["preview", "one"]);
    assert!(shown.stderr.contains("restored your edits from its last preview"), "{}", shown.stderr);
    let _ = shown.ok();
    assert_same_image(&edited, &image(&sandbox));
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&original, &image(&sandbox));
}

#[test]
fn keeps_empty_folder_behind_a_symlink() {
    let sandbox = sandbox_with_lanes("echo 1 >1", "echo 2 >2", "");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("mkdir s; echo mine >s/made");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("mkdir -p ../elsewhere/made; ln -s ../elsewhere s");
    let original = image(&sandbox);
    let _ = sandbox.proq(&["preview", "one"]);
    assert!(sandbox.repo.join("../elsewhere/made").is_dir());
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&original, &image(&sandbox));
}

/// Promise: worktree/empty-folders
#[test]
fn landed_symlink_replaces_an_empty_folder() {
    let replaced = "git rm -rq d; ln -s a.txt d";
    let sandbox = sandbox_with_lanes("echo 1 >1", replaced, "git rm -q --cached d/x d/y; rm -r d; mkdir d");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let shown = image(&sandbox);
    sandbox.sh("git fetch -q . proq/two:main");
    let out = sandbox.proq(&["preview", "--back"]);
    assert!([0, 3].contains(&out.code), "{}", out.stderr);
    assert_eq!(sandbox.sh("readlink d; git status --short"), "a.txt");
    let _ = sandbox.proq(&["undo"]).ok();
    assert_same_image(&shown, &image(&sandbox));
}

/// Promise: worktree/empty-folders
#[test]
fn redo_of_back_removes_empty_folders_of_the_preview() {
    let sandbox = sandbox_with_lanes("echo 1 >1", "echo 2 >2", "mkdir own");
    let original = image(&sandbox);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo x >made; git add made; rm made; mkdir made");
    let edited = image(&sandbox);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&original, &image(&sandbox));
    for _ in 0..2 {
        let _ = sandbox.proq(&["undo"]).ok();
        assert_same_image(&edited, &image(&sandbox));
        let _ = sandbox.proq(&["op", "redo"]).ok();
        assert_same_image(&original, &image(&sandbox));
    }
}

/// Promise: worktree/empty-folders
#[test]
fn empty_folders_alone_are_saved_with_a_preview() {
    let sandbox = sandbox_with_lanes("mkdir d/z; echo 1 >d/z/1", "echo 2 >2", "mkdir own");
    let original = image(&sandbox);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("mkdir -p made/deep d/made own/made d/z/made");
    let edited = image(&sandbox);
    let lock = sandbox.repo.join(".git/index.lock");
    for args in [&["preview", "--back"][..], &["merge", "one"], &["preview", "two"]] {
        std::fs::write(&lock, "").unwrap();
        assert_ne!(sandbox.proq(args).code, 0);
        std::fs::remove_file(&lock).unwrap();
        assert_same_image(&edited, &image(&sandbox));
    }
    for (args, expected) in [(["preview", "--back"], Some(&original)), (["preview", "two"], None)] {
        let _ = sandbox.proq(&args).ok();
        let after = image(&sandbox);
        assert_same_image(expected.unwrap_or(&after), &after);
        assert_eq!(sandbox.sh("ls -d made d/made own/made 2>/dev/null || true"), "");
        for _ in 0..2 {
            let _ = sandbox.proq(&["undo"]).ok();
            assert_same_image(&edited, &image(&sandbox));
            let _ = sandbox.proq(&["op", "redo"]).ok();
            assert_same_image(&after, &image(&sandbox));
        }
        let _ = sandbox.proq(&["undo"]).ok();
    }
}

/// Promise: worktree/line-endings
#[test]
fn undo_of_back_keeps_filtered_files_byte_for_byte() {
    let dirty = "printf 'raw\\n' >new.plus; printf 'lf\\n' >new.crlf; printf '+edited\\n' >f.plus";
    let sandbox = sandbox_with_lanes("echo 1 >1", "echo 2 >2", dirty);
    let original = image(&sandbox);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let shown = image(&sandbox);
    let _ = sandbox.proq(&["merge", "two"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.sh("cat new.plus new.crlf f.plus 2"), "raw\nlf\n+edited\n2");
    let _ = sandbox.proq(&["undo"]).ok();
    assert_same_image(&shown, &image(&sandbox));
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&original, &image(&sandbox));
}

/// Lands lane `two`, so that the base moves while its checkout shows a preview.
fn land_second_lane(sandbox: &Sandbox) {
    let _ = sandbox.proq(&["merge", "two"]).ok();
}

/// Filter that keeps some lines of a file out of git.
const SECRET_FILTER: &str = "git config filter.secret.clean 'grep -av ^#SECRET || true'; git config filter.secret.smudge cat; echo '*.s filter=secret' >.git/info/attributes";

/// Promise: worktree/line-endings
#[test]
fn restores_untouched_edits_byte_for_byte_on_new_base() {
    let sandbox = sandbox_with_lanes("echo 1 >1", "echo 2 >2", SECRET_FILTER);
    let edit = "printf '#SECRET mine\nx\n' >a.s; printf 'one\r\n' >b.crlf; git add b.crlf; printf '+f\n+g\nraw\n' >f.plus; chmod 755 f.plus";
    sandbox.sh(edit);
    let show_state = "cat a.s b.crlf f.plus; stat -c %a f.plus; git status --short";
    let original = sandbox.sh("git add a.s") + &sandbox.sh(show_state);
    for fault_point in ["", "restore.displaced", "restore.replaced", "restore.as-edited"] {
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let shown = image(&sandbox);
        sandbox.sh("git fetch -q . +proq/two:main");
        let mut back = sandbox.proq_command(&sandbox.repo, &["preview", "--back"]);
        back.env("PROQ_TEST_DIE_AT", fault_point);
        let killed = sandbox.output(back);
        assert_eq!(killed.code == 0, fault_point.is_empty(), "{}", killed.stderr);
        let _ = sandbox.proq(&["preview", "--back"]);
        assert_eq!(sandbox.sh(show_state), original);
        let _ = sandbox.proq(&["undo"]);
        assert_same_image(&shown, &image(&sandbox));
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_eq!(sandbox.sh(show_state), original);
        // The files also come back when the base moves backwards.
        let _ = sandbox.proq(&["undo"]).ok();
        sandbox.sh("git branch -f main main~");
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_eq!(sandbox.sh(show_state), original);
    }
    // Edits made in a preview come back when its lane has moved.
    sandbox.sh("git stash -qu; git stash clear");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("printf '#SECRET new\nx\n' >a.s; git add a.s");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.commit_in_lane("one", "echo more >more");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    assert_eq!(sandbox.read("a.s"), "#SECRET new\nx\n");
}

/// Promise: worktree/line-endings
#[test]
fn undo_of_back_keeps_changes_git_does_not_detect() {
    let touch = "printf '#SECRET late\n' >>a.s; printf 'one\n' >new.crlf; chmod 600 a.txt new; git update-index --assume-unchanged f.plus";
    let show_state = "cat a.s new.crlf; stat -c %a a.txt new; git ls-files -v f.plus; git status --short";
    for with_redo in [false, true] {
        let sandbox = sandbox_with_lanes("echo 1 >1", "echo 2 >2", SECRET_FILTER);
        sandbox.sh("echo x >a.s; printf 'one\r\n' >new.crlf; echo new >new; echo mine >>a.txt");
        let _ = sandbox.proq(&["preview", "one"]).ok();
        land_second_lane(&sandbox);
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        if with_redo {
            let _ = sandbox.proq(&["undo"]).ok();
            let _ = sandbox.proq(&["op", "redo"]).ok();
        }
        sandbox.sh(touch);
        let touched = sandbox.sh(show_state);
        let _ = sandbox.proq(&["undo"]).ok();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_eq!(sandbox.sh(show_state), touched, "{with_redo}");
    }
}

/// Promise: worktree/line-endings
#[test]
fn undo_of_snap_restore_keeps_files_byte_for_byte() {
    let sandbox = sandbox_with_lanes("echo 1 >1", "echo 2 >2", "echo first >a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let id = snapshot_ids(&sandbox).remove(0);
    sandbox.sh("git checkout -q a.txt; printf 'raw\\n' >new.plus; printf 'lf\\n' >new.crlf");
    let before = image(&sandbox);
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_same_image(&before, &image(&sandbox));
}

/// Promise: worktree/empty-folders
#[test]
fn keeps_empty_folders_outside_a_sparse_checkout() {
    let sandbox = sandbox_with_lanes("mkdir -p d/out; echo 1 >d/out/p", "echo 2 >2", "mkdir in");
    sandbox.sh("git sparse-checkout set --cone in; mkdir -p d/out/p");
    let original = image(&sandbox);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let shown = image(&sandbox);
    let _ = sandbox.proq(&["preview", "two"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_same_image(&shown, &image(&sandbox));
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&original, &image(&sandbox));
}
