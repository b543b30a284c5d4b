//! Owns the tests of what a snapshot's id stands for: the same commit for good, whatever is killed, damaged, written later or
//! undone.

use std::io::Write;

use super::preview_identity::same;
use super::recovery::kit::{dies, dies_in_git, recovers};
use super::snap::ids;
use super::support::{Image, Sandbox};

const DIRTY: &str =
    "printf 'mine\\r\\nmore\\r\\n' > crlf.txt; echo mine >> a.txt; seq 1 999 > loose; mkdir void";

/// A snapshot whose files are in no worktree any more, and its id.
fn thrown_away() -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    sandbox.sh("echo '*.txt text' > .gitattributes; echo 'crlf.txt eol=crlf' >> .gitattributes
        printf 'c\\r\\n' > crlf.txt; echo k > keep; echo h > hidden");
    sandbox.commit_all("base");
    sandbox.lane_of("one", "echo lane > lane");
    sandbox.sh(DIRTY);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("git reset -q --hard; git clean -qfd");
    let id = ids(&sandbox).pop().unwrap();
    (sandbox, id)
}

fn commit(sandbox: &Sandbox, id: &str) -> String {
    sandbox.git(&["rev-parse", &format!("refs/proq/snap/{id}")])
}

/// The id of the one snapshot beside `id`.
#[track_caller]
fn other(sandbox: &Sandbox, id: &str) -> String {
    let mut all = ids(sandbox);
    all.retain(|other| other != id);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

#[track_caller]
fn is_all_back(sandbox: &Sandbox) {
    assert_eq!(sandbox.read("crlf.txt"), "mine\r\nmore\r\n");
    assert_eq!(sandbox.read("a.txt"), "a\nmine\n");
    assert_eq!(sandbox.read("loose").lines().count(), 999);
    assert!(sandbox.repo.join("void").is_dir());
}

#[test]
fn what_git_had_half_written_when_it_was_killed_is_not_the_users() {
    // As git does it: in the folder that it was given, or in the worktree.
    let half = "p=; for a in \"$@\"; do case \"$a\" in --prefix=*) p=${a#--prefix=};; esac; done
        printf 'mine\\r' > \"${p}crlf.txt\"; : > \"${p}loose\"";
    for all in [true, false] {
        let (sandbox, id) = thrown_away();
        let (before, kept) = (Image::of(&sandbox, &sandbox.repo), commit(&sandbox, &id));
        if all {
            dies_in_git(&sandbox, "checkout-index -z", half, &["snap", "restore", &id]);
        } else {
            let script = format!("{half}; exit 1");
            let command = super::recovery::kit::with_git(
                &sandbox,
                "checkout-index -z",
                &script,
                &["snap", "restore", &id],
            );
            let _ = sandbox.output(command).fails(1);
        }
        let _ = recovers(&sandbox);
        same(&before, &Image::of(&sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["snap", "restore", &id]).ok();
        is_all_back(&sandbox);
        assert_eq!(commit(&sandbox, &id), kept);
    }
}

#[test]
fn a_restore_that_is_killed_anywhere_leaves_nothing_and_is_whole_the_next_time() {
    let points =
        ["step.before", "restore.taken", "restore.built", "restore.built:2", "restore.given", "step.after"];
    for at in points.into_iter().chain(["step.after:2", "step.after:3", "restore.installed"]) {
        let (sandbox, id) = thrown_away();
        sandbox.sh(
            "echo other > keep; git update-index --skip-worktree hidden; echo mine > hidden; mkdir hollow",
        );
        let (before, kept) = (Image::of(&sandbox, &sandbox.repo), commit(&sandbox, &id));
        dies(&sandbox, at, &["snap", "restore", &id]);
        let _ = recovers(&sandbox);
        same(&before, &Image::of(&sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["snap", "restore", &id]).ok();
        is_all_back(&sandbox);
        assert_eq!(commit(&sandbox, &id), kept, "{at}");
    }
}

#[test]
fn a_copy_that_was_cut_short_comes_from_the_objects_and_is_kept() {
    for cut in ["", "a\nm", "a\n"] {
        let sandbox = Sandbox::new();
        sandbox.lane_of("one", "echo lane > lane");
        sandbox.sh("echo mine >> a.txt; echo loose > loose");
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let id = ids(&sandbox).pop().unwrap();
        let kept = commit(&sandbox, &id);
        sandbox.write(&format!(".git/proq/snaps/{id}/files/a.txt"), cut);
        let out = sandbox.proq(&["preview", "--back"]);
        assert_eq!((sandbox.read("a.txt"), sandbox.read("loose")), ("a\nmine\n".into(), "loose\n".into()));
        assert!(out.stderr.contains("cut-short-1/a.txt"), "{}", out.stderr);
        assert_eq!(sandbox.read(&format!(".git/proq/snaps/{id}/cut-short-1/a.txt")), cut);
        assert_eq!((commit(&sandbox, &id), ids(&sandbox).len()), (kept, 1));
    }
}

#[test]
fn what_is_written_into_a_set_aside_file_is_another_snapshot() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo lane > lane");
    let mut open = std::fs::File::options().append(true).open(sandbox.repo.join("a.txt")).unwrap();
    open.write_all(b"before\n").unwrap();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let id = ids(&sandbox).pop().unwrap();
    let kept = commit(&sandbox, &id);
    open.write_all(b"during\n").unwrap();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("a.txt"), "a\nbefore\nduring\n");
    assert_eq!(commit(&sandbox, &id), kept);
    let newer = other(&sandbox, &id);
    assert_eq!(sandbox.git(&["show", &format!("refs/proq/snap/{newer}:a.txt")]), "a\nbefore\nduring");
    // Back in the preview, it is that one that waits; and once more at home, all of it is there.
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.read("a.txt"), "a\n");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("a.txt"), "a\nbefore\nduring\n");
    assert_eq!(commit(&sandbox, &id), kept);
}

#[test]
fn a_refused_undo_changes_no_snapshot() {
    let sandbox = Sandbox::new();
    sandbox.write("second", "second\n");
    sandbox.commit_all("second");
    sandbox.lane_of("one", "echo lane > lane");
    sandbox.sh("echo one >> a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("git checkout -q a.txt; git commit -q --allow-empty -m other; echo two >> second");
    let (refs, before) = (sandbox.git(&["for-each-ref"]), Image::of(&sandbox, &sandbox.repo));
    for args in [&["undo", "--dry-run"][..], &["undo"]] {
        let out = sandbox.proq(args).fails(1);
        assert!(out.contains("cannot be undone: 'main' has moved on to"), "{out}");
        assert!(out.contains("hint: do this instead: git proq preview one"), "{out}");
        assert_eq!(sandbox.git(&["for-each-ref"]), refs);
        same(&before, &Image::of(&sandbox, &sandbox.repo));
    }
    // The hint is true.
    let _ = sandbox.proq(&["preview", "one"]).ok();
    assert_eq!(sandbox.read("lane"), "lane\n");
}

#[test]
fn an_undo_of_a_restore_brings_back_exactly_what_was_there() {
    for script in [
        "true",
        "git update-index --skip-worktree hidden; echo mine > hidden; mkdir hollow",
        "git update-index --assume-unchanged hidden; echo mine > hidden; echo n > new; git add -N new",
        "printf 'a\\r\\nb\\n' > mixed.txt; ln -s nowhere link; : > empty; rm keep",
    ] {
        let (sandbox, id) = thrown_away();
        sandbox.sh(script);
        let (before, kept) = (Image::of(&sandbox, &sandbox.repo), commit(&sandbox, &id));
        let out = sandbox.proq(&["snap", "restore", &id]);
        if script.contains("add -N") {
            let _ = out.fails(1);
            continue;
        }
        let _ = out.ok();
        is_all_back(&sandbox);
        let after = Image::of(&sandbox, &sandbox.repo);
        let told = sandbox.proq(&["undo"]);
        assert_eq!(told.code, 0, "{}", told.shown());
        assert!(!told.stderr.contains("is kept"), "{}", told.stderr);
        same(&before, &Image::of(&sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["op", "redo"]).ok();
        same(&after, &Image::of(&sandbox, &sandbox.repo));
        assert_eq!(commit(&sandbox, &id), kept);
    }
}

#[test]
fn what_was_edited_since_a_restore_is_kept_when_that_is_undone() {
    let (sandbox, id) = thrown_away();
    let kept = commit(&sandbox, &id);
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    sandbox.sh("echo later >> a.txt");
    let told = sandbox.proq(&["undo"]);
    assert_eq!(told.code, 0, "{}", told.shown());
    same(&before, &Image::of(&sandbox, &sandbox.repo));
    let newer = other(&sandbox, &id);
    assert!(told.stderr.contains("what was edited since is kept as snapshot"), "{}", told.stderr);
    assert_eq!(sandbox.git(&["show", &format!("refs/proq/snap/{newer}:a.txt")]), "a\nmine\nlater");
    assert_eq!(commit(&sandbox, &id), kept);
}
