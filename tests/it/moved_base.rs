//! Owns the tests of previews with empty folders in the places of files, and with files that a filter changes: where the base moves
//! meanwhile, and where the way back is undone.

use super::preview_identity::same;
use super::snap::ids;
use super::support::{Image, Sandbox};

/// A sandbox with two lanes; what each of them does.
fn with_lanes(one: &str, two: &str, dirty: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("git config filter.plus.clean 'sed s/^+//'; git config filter.plus.smudge 'sed s/^/+/'");
    sandbox.write(".gitattributes", "*.plus filter=plus\n*.crlf text eol=crlf\n");
    sandbox.sh("mkdir d; echo x >d/x; echo y >d/y; printf '+f\\n' >f.plus");
    sandbox.commit_all("base");
    sandbox.lane_of("one", one);
    sandbox.lane_of("two", two);
    sandbox.sh(dirty);
    sandbox
}

fn image(sandbox: &Sandbox) -> Image {
    Image::of(sandbox, &sandbox.repo)
}

#[test]
fn edits_of_a_preview_come_back_where_an_empty_folder_is_in_their_place() {
    let sandbox = with_lanes("echo 1 >1", "echo 2 >2", "");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo mine >made; git add made; echo loose >loose");
    let edited = image(&sandbox);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("mkdir -p made loose/deep");
    let home = image(&sandbox);
    let shown = sandbox.proq(&["preview", "one"]);
    assert!(shown.stderr.contains("your edits from its last preview are back"), "{}", shown.stderr);
    let _ = shown.ok();
    same(&edited, &image(&sandbox));
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&home, &image(&sandbox));
}

#[test]
fn an_empty_folder_behind_a_link_stays_where_an_edit_of_a_preview_was() {
    let sandbox = with_lanes("echo 1 >1", "echo 2 >2", "");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("mkdir s; echo mine >s/made");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("mkdir -p ../elsewhere/made; ln -s ../elsewhere s");
    let home = image(&sandbox);
    let _ = sandbox.proq(&["preview", "one"]);
    assert!(sandbox.repo.join("../elsewhere/made").is_dir());
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&home, &image(&sandbox));
}

#[test]
fn a_link_that_landed_stays_where_an_empty_folder_was() {
    let replaced = "git rm -rq d; ln -s a.txt d";
    let sandbox = with_lanes("echo 1 >1", replaced, "git rm -q --cached d/x d/y; rm -r d; mkdir d");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let shown = image(&sandbox);
    sandbox.sh("git fetch -q . proq/two:main");
    let out = sandbox.proq(&["preview", "--back"]);
    assert!([0, 3].contains(&out.code), "{}", out.stderr);
    assert_eq!(sandbox.sh("readlink d; git status --short"), "a.txt");
    let _ = sandbox.proq(&["undo"]).ok();
    same(&shown, &image(&sandbox));
}

#[test]
fn a_way_back_done_again_takes_the_empty_folders_of_the_preview_with_it() {
    let sandbox = with_lanes("echo 1 >1", "echo 2 >2", "mkdir own");
    let home = image(&sandbox);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo x >made; git add made; rm made; mkdir made");
    let edited = image(&sandbox);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&home, &image(&sandbox));
    for _ in 0..2 {
        let _ = sandbox.proq(&["undo"]).ok();
        same(&edited, &image(&sandbox));
        let _ = sandbox.proq(&["op", "redo"]).ok();
        same(&home, &image(&sandbox));
    }
}

#[test]
fn empty_folders_are_all_that_was_made_in_a_preview_and_come_and_go_with_it() {
    let sandbox = with_lanes("mkdir d/z; echo 1 >d/z/1", "echo 2 >2", "mkdir own");
    let home = image(&sandbox);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("mkdir -p made/deep d/made own/made d/z/made");
    let edited = image(&sandbox);
    let lock = sandbox.repo.join(".git/index.lock");
    for ways in [&["preview", "--back"][..], &["merge", "one"], &["preview", "two"]] {
        std::fs::write(&lock, "").unwrap();
        assert_ne!(sandbox.proq(ways).code, 0);
        std::fs::remove_file(&lock).unwrap();
        same(&edited, &image(&sandbox));
    }
    for (way, there) in [(["preview", "--back"], Some(&home)), (["preview", "two"], None)] {
        let _ = sandbox.proq(&way).ok();
        let after = image(&sandbox);
        same(there.unwrap_or(&after), &after);
        assert_eq!(sandbox.sh("ls -d made d/made own/made 2>/dev/null || true"), "");
        for _ in 0..2 {
            let _ = sandbox.proq(&["undo"]).ok();
            same(&edited, &image(&sandbox));
            let _ = sandbox.proq(&["op", "redo"]).ok();
            same(&after, &image(&sandbox));
        }
        let _ = sandbox.proq(&["undo"]).ok();
    }
}

#[test]
fn a_file_that_a_filter_would_change_is_byte_for_byte_there_after_an_undone_way_back() {
    let dirty = "printf 'raw\\n' >new.plus; printf 'lf\\n' >new.crlf; printf '+edited\\n' >f.plus";
    let sandbox = with_lanes("echo 1 >1", "echo 2 >2", dirty);
    let home = image(&sandbox);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let shown = image(&sandbox);
    let _ = sandbox.proq(&["merge", "two"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.sh("cat new.plus new.crlf f.plus 2"), "raw\nlf\n+edited\n2");
    let _ = sandbox.proq(&["undo"]).ok();
    same(&shown, &image(&sandbox));
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&home, &image(&sandbox));
}

/// Has the base get a commit with a file of its own, while its checkout shows a preview.
fn move_base(sandbox: &Sandbox) {
    let _ = sandbox.proq(&["merge", "two"]).ok();
}

/// A filter that keeps lines out of git.
const SECRETIVE: &str = "git config filter.secret.clean 'grep -av ^#SECRET || true'; git config filter.secret.smudge cat; echo '*.s filter=secret' >.git/info/attributes";

#[test]
fn an_edit_that_the_base_has_not_touched_comes_back_byte_for_byte_though_the_base_moved() {
    let sandbox = with_lanes("echo 1 >1", "echo 2 >2", SECRETIVE);
    let edit = "printf '#SECRET mine\nx\n' >a.s; printf 'one\r\n' >b.crlf; git add b.crlf; printf '+f\n+g\nraw\n' >f.plus; chmod 755 f.plus";
    sandbox.sh(edit);
    let all = "cat a.s b.crlf f.plus; stat -c %a f.plus; git status --short";
    let home = sandbox.sh("git add a.s") + &sandbox.sh(all);
    for dies in ["", "restore.as-edited"] {
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let shown = image(&sandbox);
        sandbox.sh("git fetch -q . +proq/two:main");
        let mut back = sandbox.proq_command(&sandbox.repo, &["preview", "--back"]);
        back.env("PROQ_TEST_DIE_AT", dies);
        let killed = sandbox.output(back);
        assert_eq!(killed.code == 0, dies.is_empty(), "{}", killed.stderr);
        let _ = sandbox.proq(&["preview", "--back"]);
        assert_eq!(sandbox.sh(all), home);
        let _ = sandbox.proq(&["undo"]);
        same(&shown, &image(&sandbox));
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_eq!(sandbox.sh(all), home);
        // Where the base goes back, too.
        let _ = sandbox.proq(&["undo"]).ok();
        sandbox.sh("git branch -f main main~");
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_eq!(sandbox.sh(all), home);
    }
    // Edits made in a preview, whose lane goes on.
    sandbox.sh("git stash -qu; git stash clear");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("printf '#SECRET new\nx\n' >a.s; git add a.s");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.commit_in_lane("one", "echo more >more");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    assert_eq!(sandbox.read("a.s"), "#SECRET new\nx\n");
}

#[test]
fn what_git_does_not_see_of_later_edits_is_there_after_an_undone_way_back() {
    let touch = "printf '#SECRET late\n' >>a.s; printf 'one\n' >new.crlf; chmod 600 a.txt new; git update-index --assume-unchanged f.plus";
    let all = "cat a.s new.crlf; stat -c %a a.txt new; git ls-files -v f.plus; git status --short";
    for goes_forward in [false, true] {
        let sandbox = with_lanes("echo 1 >1", "echo 2 >2", SECRETIVE);
        sandbox.sh("echo x >a.s; printf 'one\r\n' >new.crlf; echo new >new; echo mine >>a.txt");
        let _ = sandbox.proq(&["preview", "one"]).ok();
        move_base(&sandbox);
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        if goes_forward {
            let _ = sandbox.proq(&["undo"]).ok();
            let _ = sandbox.proq(&["op", "redo"]).ok();
        }
        sandbox.sh(touch);
        let touched = sandbox.sh(all);
        let _ = sandbox.proq(&["undo"]).ok();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_eq!(sandbox.sh(all), touched, "{goes_forward}");
    }
}

#[test]
fn what_is_copied_before_a_snapshot_comes_back_is_byte_for_byte_there_after_an_undo() {
    let sandbox = with_lanes("echo 1 >1", "echo 2 >2", "echo first >a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let id = ids(&sandbox).remove(0);
    sandbox.sh("git checkout -q a.txt; printf 'raw\\n' >new.plus; printf 'lf\\n' >new.crlf");
    let before = image(&sandbox);
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    same(&before, &image(&sandbox));
}

#[test]
fn empty_folders_outside_a_sparse_checkout_come_back_and_stay_out_of_a_preview() {
    let sandbox = with_lanes("mkdir -p d/out; echo 1 >d/out/p", "echo 2 >2", "mkdir in");
    sandbox.sh("git sparse-checkout set --cone in; mkdir -p d/out/p");
    let home = image(&sandbox);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let shown = image(&sandbox);
    let _ = sandbox.proq(&["preview", "two"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    same(&shown, &image(&sandbox));
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&home, &image(&sandbox));
}
