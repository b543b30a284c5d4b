//! Owns the tests of landings in a sparse checkout, and of their undo: what is there or left out against the patterns stays so.

use super::odd_states::sparse;
use super::preview_identity::same;
use super::support::Image;

/// What is against the patterns of a sparse checkout, and how a lane takes the file away.
const AGAINST: [(&str, &str); 6] = [
    ("mkdir out; git show main:out/a >out/a", "git rm -q out/a"),
    ("mkdir out; git show main:out/a >out/a", "git rm -q out/a; mkdir out/a; echo l >out/a/in"),
    ("mkdir out; git show main:out/a >out/a", "git rm -qr out; echo l >out"),
    ("git update-index --skip-worktree in/c; rm in/c", "git rm -q in/c"),
    ("git update-index --skip-worktree in/c; rm in/c", "git rm -q in/c; mkdir -p in/c; echo l >in/c/in"),
    ("git update-index --skip-worktree in/c; rm in/c", "git rm -qr in; echo l >in"),
];

#[test]
fn a_landing_leaves_files_outside_a_sparse_checkout_as_they_are() {
    let sandbox = sparse(
        "echo l >x; echo l >out/new",
        "mkdir out; git show main:out/a >out/a; echo s >out/s; git add --sparse out/s",
    );
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(
        (sandbox.read("out/a"), sandbox.read("out/s"), sandbox.read("x")),
        ("a\n".into(), "s\n".into(), "l\n".into())
    );
    assert!(!sandbox.repo.join("out/new").exists() && !sandbox.repo.join("out/b").exists());
    let _ = sandbox.proq(&["undo"]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
}

#[test]
fn a_file_that_git_was_told_to_skip_is_not_written_by_a_landing() {
    let sandbox = sparse("echo l >x; echo l >in/c", "git update-index --skip-worktree in/c; rm in/c");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert!(!sandbox.repo.join("in/c").exists());
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    assert_eq!(sandbox.git(&["show", ":in/c"]), "l");
}

#[test]
fn what_a_landing_removes_is_against_the_patterns_again_once_that_is_undone() {
    for (own, lane) in AGAINST {
        for folded in [false, true] {
            let sandbox = sparse(lane, own);
            if folded {
                sandbox.sh("git config index.sparse true; git update-index --force-write-index");
            }
            let before = Image::of(&sandbox, &sandbox.repo);
            let _ = sandbox.proq(&["merge", "one"]).ok();
            let landed = Image::of(&sandbox, &sandbox.repo);
            for _ in 0..2 {
                let _ = sandbox.proq(&["undo"]).ok();
                same(&before, &Image::of(&sandbox, &sandbox.repo));
                let _ = sandbox.proq(&["op", "redo"]).ok();
                same(&landed, &Image::of(&sandbox, &sandbox.repo));
            }
        }
    }
}

#[test]
fn an_undo_that_is_cut_short_leaves_nothing_against_the_patterns() {
    for (own, lane) in AGAINST {
        for at in ["transition.linked", "transition.brought", "transition.staged", "transition.moved"] {
            let sandbox = sparse(lane, own);
            let _ = sandbox.proq(&["merge", "one"]).ok();
            let landed = Image::of(&sandbox, &sandbox.repo);
            let mut command = sandbox.proq_command(&sandbox.repo, &["undo"]);
            command.env("PROQ_TEST_DIE_AT", at);
            assert_ne!(sandbox.output(command).code, 0, "{at}");
            let _ = sandbox.proq(&["list"]).ok();
            same(&landed, &Image::of(&sandbox, &sandbox.repo));
        }
    }
}

#[test]
fn what_somebody_put_where_an_undo_shows_a_file_refuses_it_by_name() {
    for (mine, named) in [
        ("mkdir out; echo mine >out/a", "out/a"),
        ("echo mine >out", "out"),
        ("echo mine >out; echo /out >>.git/info/exclude", "out"),
        ("ln -s in out; echo /out >>.git/info/exclude", "out"),
        ("mkdir -p out/a; echo mine >out/a/in; echo /out >>.git/info/exclude", "out/a"),
    ] {
        let (own, lane) = AGAINST[0];
        let sandbox = sparse(lane, own);
        let _ = sandbox.proq(&["merge", "one"]).ok();
        sandbox.sh(mine);
        let landed = Image::of(&sandbox, &sandbox.repo);
        for args in [&["undo", "--dry-run"][..], &["undo"]] {
            let said = sandbox.proq(args).fails(1);
            assert!(said.contains(&format!("stand in the way: {named}")), "{mine}: {said}");
            same(&landed, &Image::of(&sandbox, &sandbox.repo));
        }
    }
}

#[test]
fn what_is_left_out_keeps_both_marks_when_a_landing_changes_it() {
    let sandbox = sparse("echo l >>out/a", "git update-index --assume-unchanged out/a");
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(sandbox.git(&["ls-files", "-v", "out/a"]), "s out/a");
    let _ = sandbox.proq(&["undo"]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
}

#[test]
fn what_a_folder_stands_for_is_left_out_again_and_nothing_in_its_place_goes() {
    for (mine, lane) in [
        ("", "git rm -q out/a"),
        ("", "git rm -qr out"),
        ("echo mine >out; echo /out >>.git/info/exclude", "git rm -q out/a"),
    ] {
        let sandbox = sparse(lane, "git sparse-checkout set --cone --sparse-index in");
        assert_eq!(sandbox.git(&["ls-files", "--sparse", "out"]), "out/");
        sandbox.sh(mine);
        let before = Image::of(&sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["merge", "one"]).ok();
        let _ = sandbox.proq(&["undo"]).ok();
        same(&before, &Image::of(&sandbox, &sandbox.repo));
    }
}

#[test]
fn what_stands_in_place_of_a_folder_that_is_left_out_does_not_stop_an_undo() {
    let own = "git update-index --skip-worktree in/c; rm -r in; echo mine >in; echo /in >>.git/info/exclude";
    let sandbox = sparse("git rm -q in/c", own);
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    let _ = sandbox.proq(&["undo", "--dry-run"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
}
