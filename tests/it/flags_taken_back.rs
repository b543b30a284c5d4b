//! Owns the tests that flags of index entries (assume-unchanged, skip-worktree) belong to the state that they were set in: what is taken
//! back leaves none behind, and what is set in a preview stays with the preview.

use super::preview_identity::same;
use super::recovery::kit::{dies, recovers};
use super::snap::ids;
use super::support::{Image, Sandbox};

const FLAGS: [(&str, &str); 2] = [("--assume-unchanged", "h"), ("--skip-worktree", "S")];

/// Throws away all that differs from HEAD, flags included.
const THROW_AWAY: &str = "git ls-files -z | git update-index -z --no-assume-unchanged --stdin
    git ls-files -z | git update-index -z --no-skip-worktree --stdin
    git reset -q --hard; git clean -qfd";

/// A checkout of the files `f`, `g` and `k`, and a lane `one` that has a file of its own.
fn three_files() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 9 >f; seq 9 >g; seq 9 >k");
    sandbox.commit_all("base");
    sandbox.lane_of("one", "echo one >one");
    sandbox
}

/// The same, where a snapshot holds what `dirty` made, and everything was thrown away since. Returns its id.
fn thrown_away(dirty: &str) -> (Sandbox, String) {
    let sandbox = three_files();
    sandbox.sh(dirty);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh(THROW_AWAY);
    let id = ids(&sandbox).pop().unwrap();
    (sandbox, id)
}

/// Flags on an edited file, on an unchanged one, and on both.
fn dirts(flag: &str) -> [String; 4] {
    let set = format!("git update-index {flag}");
    [
        format!("echo mine >>f; {set} f; echo mine >>g"),
        format!("{set} f; echo mine >>g"),
        format!("{set} f"),
        format!("echo mine >>f; {set} f g"),
    ]
}

fn image(sandbox: &Sandbox) -> Image {
    Image::of(sandbox, &sandbox.repo)
}

#[test]
fn an_undo_of_a_snap_restore_takes_the_flags_of_the_snapshot_off() {
    for (flag, _) in FLAGS {
        for dirty in dirts(flag) {
            let (sandbox, id) = thrown_away(&dirty);
            let clean = image(&sandbox);
            let _ = sandbox.proq(&["snap", "restore", &id]).ok();
            let restored = image(&sandbox);
            assert_ne!(clean.index, restored.index, "{dirty}");
            for _ in 0..2 {
                let _ = sandbox.proq(&["undo"]).ok();
                same(&clean, &image(&sandbox));
                let _ = sandbox.proq(&["op", "redo"]).ok();
                same(&restored, &image(&sandbox));
            }
            let _ = sandbox.proq(&["undo"]).ok();
            sandbox.sh("echo 'new work' >>f");
            assert_eq!(sandbox.git(&["status", "--short"]), " M f", "{dirty}");
            sandbox.assert_healthy();
        }
    }
}

#[test]
fn a_snap_restore_that_is_killed_takes_the_flags_of_the_snapshot_off() {
    for (flag, _) in FLAGS {
        for dirty in dirts(flag) {
            for at in ["snap.copied", "restore.given", "restore.installed"] {
                let (sandbox, id) = thrown_away(&dirty);
                let clean = image(&sandbox);
                dies(&sandbox, at, &["snap", "restore", &id]);
                recovers(&sandbox);
                same(&clean, &image(&sandbox));
            }
        }
    }
}

#[test]
fn a_way_back_that_is_killed_too_leaves_no_snapshot_of_flags_on_their_way() {
    for at in ["aside.cleared", "restore.given", "restore.installed", "step.before:1", "step.before:2"] {
        let sandbox = three_files();
        sandbox.sh("echo mine | tee -a f g k; mkdir -p deep/er; git update-index --assume-unchanged g; git update-index --skip-worktree k");
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        sandbox.sh("git update-index -q --really-refresh || :; git reset -q --hard; seq 9 >k; rm -r deep");
        let id = ids(&sandbox).pop().unwrap();
        let clean = image(&sandbox);
        dies(&sandbox, "restore.installed", &["snap", "restore", &id]);
        dies(&sandbox, at, &["list"]);
        // As where it had come to the upper one of two empty folders.
        sandbox.sh("rmdir deep/er 2>/dev/null || true");
        recovers(&sandbox);
        same(&clean, &image(&sandbox));
        assert_eq!(ids(&sandbox), [&*id], "{at}");
    }
}

#[test]
fn own_flags_come_back_with_the_undo_of_a_snap_restore_that_has_none() {
    for (flag, letter) in FLAGS {
        let (sandbox, id) = thrown_away("echo mine >>g");
        sandbox.git(&["update-index", flag, "k"]);
        let before = image(&sandbox);
        let _ = sandbox.proq(&["snap", "restore", &id]).ok();
        assert_eq!(sandbox.git(&["ls-files", "-v", "k"]), "H k");
        let _ = sandbox.proq(&["undo"]).ok();
        same(&before, &image(&sandbox));
        assert_eq!(sandbox.git(&["ls-files", "-v", "k"]), format!("{letter} k"));
    }
}

/// What a user marks, and maybe edits, while a preview is open.
fn in_preview(flag: &str) -> [String; 4] {
    let set = format!("git update-index {flag}");
    [
        format!("echo p >>f; {set} f; echo p >>g"),
        format!("{set} f one; echo p >>g"),
        format!("{set} f one"),
        format!("echo p >>f; {set} f k"),
    ]
}

#[test]
fn a_flag_that_is_set_in_a_preview_is_not_on_the_base_afterwards() {
    for (flag, _) in FLAGS {
        let own = ["echo mine >>k", "git update-index --assume-unchanged k", "true"].into_iter().cycle();
        for (own, edit) in own.zip(in_preview(flag)) {
            let sandbox = three_files();
            sandbox.sh(own);
            let home = image(&sandbox);
            let _ = sandbox.proq(&["preview", "one"]).ok();
            sandbox.sh(&edit);
            let shown = image(&sandbox);
            let _ = sandbox.proq(&["preview", "--back"]).ok();
            same(&home, &image(&sandbox));
            let _ = sandbox.proq(&["undo"]).ok();
            same(&shown, &image(&sandbox));
            let _ = sandbox.proq(&["op", "redo"]).ok();
            same(&home, &image(&sandbox));
            if edit.contains("echo") {
                let _ = sandbox.proq(&["preview", "one"]).ok();
                same(&shown, &image(&sandbox));
                let _ = sandbox.proq(&["undo"]).ok();
                same(&home, &image(&sandbox));
            }
            sandbox.assert_healthy();
        }
    }
}

#[test]
fn a_way_back_that_is_killed_leaves_the_flags_of_the_preview_or_those_of_the_base() {
    for at in ["transition.staged", "transition.moved", "transition.installed", "restore.installed"] {
        for edit in in_preview("--assume-unchanged") {
            let sandbox = three_files();
            sandbox.sh("echo mine >>k");
            let home = image(&sandbox);
            let _ = sandbox.proq(&["preview", "one"]).ok();
            sandbox.sh(&edit);
            let shown = image(&sandbox);
            dies(&sandbox, at, &["preview", "--back"]);
            recovers(&sandbox);
            let now = image(&sandbox);
            same(if now.head == home.head { &home } else { &shown }, &now);
        }
    }
}

#[test]
fn a_flag_that_is_set_in_one_preview_is_not_in_the_next() {
    for (flag, _) in FLAGS {
        for edit in in_preview(flag) {
            let sandbox = three_files();
            sandbox.lane_of("two", "true");
            let home = image(&sandbox);
            let _ = sandbox.proq(&["preview", "one"]).ok();
            sandbox.sh(&edit);
            let shown = image(&sandbox);
            let _ = sandbox.proq(&["preview", "two"]).ok();
            assert_eq!(sandbox.git(&["ls-files", "-v"]), "H a.txt\nH f\nH g\nH k", "{edit}");
            let _ = sandbox.proq(&["undo"]).ok();
            same(&shown, &image(&sandbox));
            let _ = sandbox.proq(&["preview", "two"]).ok();
            if edit.contains("echo") {
                let _ = sandbox.proq(&["preview", "one"]).ok();
                same(&shown, &image(&sandbox));
            }
            let _ = sandbox.proq(&["preview", "--back"]).ok();
            same(&home, &image(&sandbox));
        }
    }
}

#[test]
fn flags_of_the_base_and_of_the_preview_outlast_a_refresh_and_its_undo() {
    for (flag, letter) in FLAGS {
        let sandbox = three_files();
        sandbox.git(&["update-index", flag, "k"]);
        let home = image(&sandbox);
        let _ = sandbox.proq(&["preview", "one"]).ok();
        sandbox.git(&["update-index", flag, "f"]);
        let shown = image(&sandbox);
        sandbox.commit_in_lane("one", "echo more >>one; git rm -q g");
        let _ = sandbox.proq(&["preview", "--refresh"]).ok();
        let flags = format!("H a.txt\n{letter} f\n{letter} k\nH one");
        assert_eq!(sandbox.git(&["ls-files", "-v"]), flags);
        let _ = sandbox.proq(&["undo"]).ok();
        same(&shown, &image(&sandbox));
        let _ = sandbox.proq(&["op", "redo"]).ok();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        same(&home, &image(&sandbox));
    }
}

#[test]
fn a_flag_of_a_preview_is_not_on_a_base_that_has_moved() {
    for (flag, _) in FLAGS {
        let sandbox = three_files();
        sandbox.lane_of("two", "echo two >>g");
        sandbox.sh("echo mine >>k; git update-index --assume-unchanged a.txt");
        let _ = sandbox.proq(&["preview", "one"]).ok();
        sandbox.git(&["update-index", flag, "f"]);
        let _ = sandbox.proq(&["merge", "two"]).ok();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_eq!(sandbox.git(&["ls-files", "-v"]), "h a.txt\nH f\nH g\nH k");
        assert_eq!(sandbox.git(&["status", "--short"]), " M k");
    }
}

#[test]
fn an_undo_of_a_preview_takes_its_flags_off_and_refuses_what_they_hide() {
    for (flag, _) in FLAGS {
        for own in ["true", "git update-index --assume-unchanged k"] {
            let sandbox = three_files();
            sandbox.sh(own);
            let home = image(&sandbox);
            let _ = sandbox.proq(&["preview", "one"]).ok();
            sandbox.git(&["update-index", flag, "f"]);
            let shown = image(&sandbox);
            let _ = sandbox.proq(&["undo"]).ok();
            same(&home, &image(&sandbox));
            let _ = sandbox.proq(&["op", "redo"]).ok();
            same(&shown, &image(&sandbox));
            for hidden in ["echo hidden >>f", "rm f"] {
                sandbox.sh(hidden);
                let shown = image(&sandbox);
                for args in [&["undo", "--dry-run"][..], &["undo"]] {
                    let refused = sandbox.proq(args).fails(1);
                    assert!(refused.contains("repo: f; nothing was changed"), "{refused}");
                    assert!(refused.contains("git proq preview --back"), "{refused}");
                    same(&shown, &image(&sandbox));
                }
            }
            let _ = sandbox.proq(&["preview", "--back"]).ok();
            same(&home, &image(&sandbox));
        }
    }
}

#[test]
fn a_flag_that_is_set_on_the_base_since_refuses_the_undo_of_the_way_back() {
    for (flag, _) in FLAGS {
        let sandbox = three_files();
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        sandbox.git(&["update-index", flag, "f"]);
        let home = image(&sandbox);
        let mut hint = String::new();
        for args in [&["undo", "--dry-run"][..], &["undo"]] {
            let refused = sandbox.proq(args).fails(1);
            assert!(refused.contains("repo: f; nothing was changed"), "{refused}");
            same(&home, &image(&sandbox));
            let line = refused.lines().find_map(|line| line.split_once("have it look again: "));
            line.unwrap().1.clone_into(&mut hint);
        }
        sandbox.sh(&hint.replace("[ROOT]", sandbox.root().to_str().unwrap()));
        let _ = sandbox.proq(&["undo"]).ok();
        assert_eq!(sandbox.git(&["symbolic-ref", "--short", "HEAD"]), "proq/one-preview");
    }
}

#[test]
fn a_flag_that_is_set_on_a_dirty_base_since_comes_back_from_the_preview() {
    for (flag, _) in FLAGS {
        let sandbox = three_files();
        sandbox.sh("echo mine >>k");
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let shown = image(&sandbox);
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        sandbox.git(&["update-index", flag, "f"]);
        let home = image(&sandbox);
        let _ = sandbox.proq(&["undo"]).ok();
        same(&shown, &image(&sandbox));
        let _ = sandbox.proq_at("2026-06-01T00:00:00Z", &["cleanup"]).ok();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        same(&home, &image(&sandbox));
    }
}

#[test]
fn flags_of_a_sparse_checkout_are_those_of_its_patterns_after_a_preview() {
    let sandbox = three_files();
    sandbox.sh("mkdir out; echo o >out/o");
    sandbox.commit_all("out");
    sandbox.sh("git sparse-checkout set --no-cone '/*' '!/out/'");
    let home = image(&sandbox);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("git update-index --assume-unchanged f; echo p >>g");
    let shown = image(&sandbox);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&home, &image(&sandbox));
    let _ = sandbox.proq(&["undo"]).ok();
    same(&shown, &image(&sandbox));
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&home, &image(&sandbox));
}

#[test]
fn flags_of_a_lane_come_back_with_the_undo_of_its_discard() {
    for (flag, _) in FLAGS {
        let sandbox = three_files();
        let lane = sandbox.lane("one");
        sandbox.sh_in(&lane, &format!("git update-index {flag} f g; echo hidden >>g; echo work >>k"));
        let before = Image::of(&sandbox, &lane);
        let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
        let _ = sandbox.proq(&["undo"]).ok();
        same(&before, &Image::of(&sandbox, &lane));
        let _ = sandbox.proq(&["op", "redo"]).ok();
        let _ = sandbox.proq(&["undo"]).ok();
        same(&before, &Image::of(&sandbox, &lane));
    }
}

#[test]
fn a_flag_of_a_preview_goes_with_the_discard_of_its_lane_and_comes_back_with_the_undo() {
    for (flag, _) in FLAGS {
        for edit in in_preview(flag) {
            let sandbox = three_files();
            let home = image(&sandbox);
            let _ = sandbox.proq(&["preview", "one"]).ok();
            sandbox.sh(&edit);
            let shown = image(&sandbox);
            let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
            same(&home, &image(&sandbox));
            let _ = sandbox.proq(&["undo"]).ok();
            same(&shown, &image(&sandbox));
        }
    }
}

#[test]
fn flags_and_ignored_files_come_back_with_an_undone_landing() {
    const SPARSE: &str = "git sparse-checkout set --no-cone '/*' '!in' && git archive HEAD in | tar -x";
    let flagged = |flag: &str| format!("git update-index {flag} in/x in/y; echo in >>.git/info/exclude");
    for (flag, sparse) in [(FLAGS[0].0, ""), (FLAGS[1].0, ""), (FLAGS[0].0, SPARSE)] {
        // In their place the base has a folder of its own by then, unless that is left out.
        let over = if sparse.is_empty() { &[][..] } else { &["rm -r in; ln -s k in", "rm -r in; : >in"] };
        for script in ["", "rm in/x", "echo own >in/own", "rm -r in"].iter().chain(over) {
            let sandbox = three_files();
            sandbox.sh("mkdir in; echo x >in/x; echo y >in/y");
            sandbox.commit_all("a folder");
            sandbox.lane_of("two", "git rm -qr in; mkdir in; echo lane >in/lane");
            sandbox.sh(&format!("{sparse}\n{}\n{script}", flagged(flag)));
            println!("{flag}, {sparse}: {script}");
            let start = image(&sandbox);
            let _ = sandbox.proq(&["preview", "one"]).ok();
            let edited = image(&sandbox);
            let _ = sandbox.proq(&["merge", "two"]).ok();
            let _ = sandbox.proq(&["preview", "--back"]).ok();
            let _ = sandbox.proq(&["undo"]).ok();
            same(&edited, &image(&sandbox));
            let _ = sandbox.proq(&["undo"]).ok();
            same(&edited, &image(&sandbox));
            let _ = sandbox.proq(&["preview", "--back"]).ok();
            same(&start, &image(&sandbox));
        }
    }
}

#[test]
fn a_restored_snapshot_leaves_other_files_and_takes_their_flags() {
    for (flag, shown) in FLAGS {
        let (sandbox, id) = thrown_away("echo mine >>f");
        sandbox.sh(&format!("echo other >k; git update-index {flag} k"));
        let before = image(&sandbox);
        let _ = sandbox.proq(&["snap", "restore", &id]).ok();
        assert_eq!(sandbox.read("k"), "other\n", "{flag}");
        assert_eq!(sandbox.git(&["ls-files", "-v", "k"]), "H k", "{flag}");
        assert_eq!(sandbox.git(&["status", "--short"]), " M f\n M k", "{flag}");
        let _ = sandbox.proq(&["undo"]).ok();
        same(&before, &image(&sandbox));
        assert_eq!(sandbox.git(&["ls-files", "-v", "k"]), format!("{shown} k"));
    }
}
