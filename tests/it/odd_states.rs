//! Owns the tests of checkouts in which paths are in states that people make: sparse ones with files that were put back by hand,
//! files that git was told to skip, empty folders. The generated states are few and the same each time; `cargo xtask
//! states` plays many.

use super::histories::states::{Deck, Disk, State};
use super::preview_identity::same;
use super::support::{Image, Sandbox};

/// How many generated states one test plays.
const COUNT: usize = 5;

/// A sandbox in a generated state, with a lane that changes some of its paths.
fn sandbox_of(state: &State) -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.sh(&state.base());
    sandbox.lane_of("one", &state.lane());
    let _ = sandbox.sh(&format!("({}) 2>&1 || true", state.dirty()));
    sandbox
}

/// Plays generated states: a preview that is not refused, then `after`, must end where it began.
fn from_preview_and_back(part: usize, after: impl Fn(&Sandbox)) {
    let deck = Deck::new(1);
    let mut shown = 0;
    for number in part * COUNT..(part + 1) * COUNT {
        let state = deck.state(number);
        if state.spots.iter().any(|spot| spot.combo.disk == Disk::Fifo) {
            continue;
        }
        let sandbox = sandbox_of(&state);
        let before = Image::of(&sandbox, &sandbox.repo);
        let entered = sandbox.proq(&["preview", "one"]);
        if entered.code == 0 {
            shown += 1;
            after(&sandbox);
        } else {
            let _ = entered.fails(1);
        }
        println!("state {number}");
        same(&before, &Image::of(&sandbox, &sandbox.repo));
    }
    assert!(shown > COUNT / 2, "{shown} of {COUNT}");
}

#[test]
fn a_preview_of_any_state_ends_where_it_began() {
    from_preview_and_back(4, |sandbox| drop(sandbox.proq(&["preview", "--back"]).ok()));
}

#[test]
fn a_preview_of_any_state_that_is_left_by_hand_ends_where_it_began() {
    from_preview_and_back(9, |sandbox| {
        // Git may find something in its way; then it is the preview that is left.
        sandbox.sh("git switch -q main 2>/dev/null || true");
        let _ = sandbox.proq(&["preview", "--back"]).ok();
    });
}

#[test]
fn a_preview_of_any_state_is_undone_and_done_again() {
    from_preview_and_back(11, |sandbox| {
        let shown = Image::of(sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["undo"]).ok();
        let _ = sandbox.proq(&["op", "redo"]).ok();
        same(&shown, &Image::of(sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["undo"]).ok();
    });
}

/// A sparse checkout without `out`, but for what `dirty` puts back, and a lane.
pub(super) fn sparse(lane: &str, dirty: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir out in; echo a >out/a; echo b >out/b; echo c >in/c; ln -s in link; echo x >x");
    sandbox.commit_all("base");
    sandbox.lane_of("one", lane);
    sandbox.sh("git sparse-checkout set --no-cone '/*' '!/out/'");
    assert!(!sandbox.repo.join("out").exists());
    sandbox.sh(dirty);
    sandbox
}

#[test]
fn files_outside_a_sparse_checkout_that_were_put_back_stay_there() {
    let put_back = "mkdir out; git show main:out/a >out/a; git show main:out/b >out/b";
    for lane in ["echo l >x", "echo l >out/a", "git rm -q out/a", "git rm -qr out; echo l >out"] {
        for ways in [
            &[&["preview", "one"][..], &["preview", "--back"]][..],
            &[&["preview", "one"], &["undo"], &["op", "redo"], &["undo"]],
            &[&["preview", "one"], &["switch"], &["preview", "--back"]],
        ] {
            let sandbox = sparse(lane, put_back);
            let before = Image::of(&sandbox, &sandbox.repo);
            for args in ways {
                match args {
                    ["switch"] => drop(sandbox.git(&["switch", "-q", "main"])),
                    args => drop(sandbox.proq(args).ok()),
                }
            }
            same(&before, &Image::of(&sandbox, &sandbox.repo));
        }
    }
}

#[test]
fn an_ignored_file_in_place_of_a_folder_outside_a_sparse_checkout_stays_there() {
    for script in ["ln -s in out", ": >out", "echo mine >out"] {
        for lane in ["git rm -qr out", "echo l >x", "echo l >out/new"] {
            for ways in [
                &[&["preview", "one"][..], &["preview", "--back"]][..],
                &[&["preview", "one"], &["undo"], &["op", "redo"], &["undo"]],
                &[&["merge", "one"], &["undo"]],
            ] {
                let sandbox = sparse(lane, &format!("echo out >>.git/info/exclude; {script}"));
                let before = Image::of(&sandbox, &sandbox.repo);
                for args in ways {
                    let _ = sandbox.proq(args).ok();
                }
                same(&before, &Image::of(&sandbox, &sandbox.repo));
            }
        }
    }
}

#[test]
fn an_ignored_file_in_place_of_a_new_folder_outside_a_sparse_checkout_stays_there() {
    // What ignores it is not there in a preview.
    for script in ["ln -s in out/n", "echo mine >out/n"] {
        for ways in [
            &[&["preview", "one"][..], &["preview", "--back"]][..],
            &[&["preview", "one"], &["undo"], &["op", "redo"], &["undo"]],
            &[&["preview", "one"], &["preview", "two"], &["preview", "one"], &["preview", "--back"]],
            &[&["merge", "one"], &["undo"]],
        ] {
            let ignored = "mkdir -p out; echo out/n >.gitignore";
            let sandbox = sparse("mkdir -p out/n; echo l >out/n/new", &format!("{ignored}; {script}"));
            sandbox.proq(&["spawn", "-n", "two", "--wait", "--", "sh", "-c", "echo two >t"]).ok();
            let before = Image::of(&sandbox, &sandbox.repo);
            for args in ways {
                let _ = sandbox.proq(args).ok();
            }
            same(&before, &Image::of(&sandbox, &sandbox.repo));
        }
    }
}

#[test]
fn what_is_ignored_in_place_of_a_new_file_outside_a_sparse_checkout_refuses_it_by_name() {
    for (script, named) in [
        ("mkdir -p out/n; echo mine >out/n/own", "out/n/own"),
        ("mkdir -p out; echo mine >out/n", "out/n"),
        ("mkdir -p out; ln -s nowhere out/n", "out/n"),
    ] {
        for lane in ["echo l >out/n", "ln -s x out/n"] {
            let sandbox = sparse(lane, &format!("echo out/n >>.git/info/exclude; {script}"));
            let before = Image::of(&sandbox, &sandbox.repo);
            for args in [&["preview", "one"][..], &["merge", "one"]] {
                let refused = sandbox.proq(args).fails(1);
                assert!(refused.contains(named), "{refused}");
                same(&before, &Image::of(&sandbox, &sandbox.repo));
            }
        }
    }
}

#[test]
fn a_link_in_place_of_a_skipped_folder_comes_back_after_a_switch_by_hand() {
    let sandbox = sparse("echo l >x", "git update-index --skip-worktree in/c; rm -r in; ln -s nowhere in");
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.git(&["switch", "-q", "main"]);
    assert_eq!(sandbox.read("in/c"), "c\n");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
}

#[test]
fn what_is_ignored_in_place_of_a_skipped_folder_moves_aside_and_comes_back() {
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
    for (script, lane, ways) in cases {
        let skip = "git update-index --skip-worktree in/c; rm -r in; echo in >>.git/info/exclude";
        let sandbox = sparse(lane, &format!("{skip}; {script}"));
        sandbox.lane_of("two", "echo two >t");
        let before = Image::of(&sandbox, &sandbox.repo);
        for args in ways {
            match args {
                ["switch"] => drop(sandbox.git(&["switch", "-q", "main"])),
                args => drop(sandbox.proq(args).ok()),
            }
        }
        println!("{script}; lane: {lane}; {ways:?}");
        same(&before, &Image::of(&sandbox, &sandbox.repo));
    }
}

#[test]
fn a_named_pipe_in_place_of_a_skipped_folder_refuses_a_preview_by_name() {
    let skip = "git update-index --skip-worktree in/c; rm -r in; mkfifo in";
    let sandbox = sparse("git rm -qr in", skip);
    let looks = || (sandbox.git(&["status", "--branch", "--short"]), sandbox.git(&["ls-files", "-t"]));
    let before = looks();
    let refused = sandbox.proq(&["preview", "one"]).fails(1);
    assert!(refused.contains("in is a named pipe"), "{refused}");
    assert_eq!(looks(), before);
}

#[test]
fn empty_folders_that_a_landing_takes_the_place_of_come_back_with_its_undo() {
    for lane in ["echo l >f", "ln -s x f", "mkdir f; echo l >f/l", "mkdir -p f/in; ln -s x f/in/l"] {
        let sandbox = Sandbox::new();
        sandbox.sh("echo x >x; mkdir in; echo in >in/x");
        sandbox.commit_all("base");
        sandbox.lane_of("one", &format!("{lane}; echo new >in/new"));
        let empty = "mkdir -p f/in/deep f/other in/empty";
        sandbox.sh(&format!("echo f >>.git/info/exclude; {empty}"));
        sandbox.sh(&format!("git worktree add -qf ../other main; cd ../other; {empty}"));
        let other = sandbox.root().join("other");
        let (before, beside) = (Image::of(&sandbox, &sandbox.repo), Image::of(&sandbox, &other));
        let _ = sandbox.proq(&["merge", "one"]).ok();
        let landed = Image::of(&sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["undo"]).ok();
        same(&before, &Image::of(&sandbox, &sandbox.repo));
        same(&beside, &Image::of(&sandbox, &other));
        let _ = sandbox.proq(&["op", "redo"]).ok();
        same(&landed, &Image::of(&sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["undo"]).ok();
        same(&before, &Image::of(&sandbox, &sandbox.repo));
    }
}

#[test]
fn a_staged_file_where_a_landing_needs_a_folder_refuses_it_by_name() {
    for script in ["rm f", "rm f; mkdir -p f/in", "rm f; mkdir f; echo own >f/own"] {
        for flag in ["", "git update-index --assume-unchanged f"] {
            let sandbox = Sandbox::new();
            sandbox.write("x", "x\n");
            sandbox.commit_all("base");
            sandbox.lane_of("one", "mkdir f; echo l >f/l");
            sandbox.sh(&format!("echo staged >f; git add f; {script}"));
            sandbox.sh(flag);
            let before = Image::of(&sandbox, &sandbox.repo);
            for args in [&["merge", "one", "--dry-run"][..], &["merge", "one"]] {
                let refused = sandbox.proq(args).fails(1);
                assert!(refused.contains(": f"), "{refused}");
                same(&before, &Image::of(&sandbox, &sandbox.repo));
            }
        }
    }
}

#[test]
fn a_staged_file_that_is_skipped_and_not_there_keeps_no_preview_from_being_left() {
    let sandbox =
        sparse("echo l >x", "echo n >n; git add n; git update-index --skip-worktree n; rm n; echo more >>x");
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
}

#[test]
fn what_a_preview_shows_against_the_patterns_goes_with_it_and_comes_back() {
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
        let sandbox = sparse("echo l >x; echo l >in/c; echo l >out/a", "true");
        let clean = Image::of(&sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["preview", "one"]).ok();
        sandbox.sh(edit);
        let edited = Image::of(&sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        same(&clean, &Image::of(&sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["preview", "one"]).ok();
        same(&edited, &Image::of(&sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["undo"]).ok();
        same(&clean, &Image::of(&sandbox, &sandbox.repo));
    }
}

#[test]
fn a_folder_outside_a_sparse_checkout_that_a_lane_replaces_is_left_out_again() {
    let sandbox = sparse("git rm -qr out; echo l >out", "true");
    let before = Image::of(&sandbox, &sandbox.repo);
    for (go, back) in [("preview", &["preview", "--back"][..]), ("preview", &["undo"]), ("merge", &["undo"])]
    {
        let _ = sandbox.proq(&[go, "one"]).ok();
        assert_eq!(std::fs::read_to_string(sandbox.repo.join("out")).unwrap(), "l\n");
        let _ = sandbox.proq(back).ok();
        same(&before, &Image::of(&sandbox, &sandbox.repo));
    }
}

#[test]
fn an_empty_folder_where_a_file_is_left_out_is_no_edit_of_a_preview() {
    let sandbox = sparse("ln -s x out/n", "mkdir -p out/n/deep");
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
}

#[test]
fn an_empty_folder_whose_files_are_left_out_stays_through_a_restore_and_its_undo() {
    let sandbox = sparse("echo l >x", "mkdir -p out; echo kept >out/a; echo more >>x");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let id = super::snap::ids(&sandbox).remove(0);
    sandbox.sh("git reset -q --hard; git clean -qfd; mkdir -p out");
    let clean = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    same(&clean, &Image::of(&sandbox, &sandbox.repo));
}

#[test]
fn an_empty_ignored_folder_that_a_lane_has_files_in_comes_back() {
    for dirty in ["true", "echo more >>x"] {
        let sandbox = Sandbox::new();
        sandbox.write("x", "x\n");
        sandbox.write(".gitignore", "out\n");
        sandbox.commit_all("base");
        sandbox.lane_of("one", "mkdir -p out/in; echo l >out/in/f; git add -f out");
        sandbox.sh(&format!("mkdir -p out/in out/other; {dirty}"));
        let before = Image::of(&sandbox, &sandbox.repo);
        for back in [&["preview", "--back"][..], &["undo"]] {
            let _ = sandbox.proq(&["preview", "one"]).ok();
            let _ = sandbox.proq(back).ok();
            same(&before, &Image::of(&sandbox, &sandbox.repo));
        }
    }
}

#[test]
fn ignored_files_in_a_folder_in_place_of_a_staged_file_stay_through_a_landing() {
    let sandbox = Sandbox::new();
    sandbox.write("x", "x\n");
    sandbox.write(".gitignore", "*.log\n");
    sandbox.commit_all("base");
    sandbox.lane_of("one", "echo l >x");
    sandbox.sh(
        "echo staged >f; git add f; echo f >>.gitignore; rm f; mkdir -p f/sub; echo 1 >f/a; echo 2 >f/sub/b",
    );
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
    let _ = sandbox.proq(&["preview", "one"]).ok();
    // The lane's rules do not ignore them, and they are no edits made in the preview all the same.
    let landed = sandbox.proq(&["merge", "one"]).ok();
    assert!(!landed.contains("kept"), "{landed}");
    assert_eq!(sandbox.read("f/a") + &sandbox.read("f/sub/b"), "1\n2\n");
}

#[test]
fn an_empty_folder_made_in_a_preview_goes_with_it() {
    let sandbox = Sandbox::new();
    sandbox.write("x", "x\n");
    sandbox.commit_all("base");
    sandbox.lane_of("one", "echo l >x");
    sandbox.sh("mkdir -p own/empty");
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("mkdir -p made/deep own/made");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
    // Git knows no empty folders, so they are no edits for which the lane would be kept.
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert!(!sandbox.lane("one").exists());
}

#[test]
fn a_snapshot_that_came_back_to_a_sparse_checkout_goes_again() {
    let sandbox = sparse(
        "echo l >x",
        "mkdir out; echo other >out/a; git show main:out/b >out/b; git add --sparse out/a; printf 'e\\n' >>.git/info/exclude; mkdir e",
    );
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let id = super::snap::ids(&sandbox).remove(0);
    sandbox.sh("git reset -q --hard; git clean -qfd");
    let clean = Image::of(&sandbox, &sandbox.repo);
    assert!(!sandbox.repo.join("out").exists());
    for _ in 0..2 {
        let _ = sandbox.proq(&["snap", "restore", &id]).ok();
        same(&before, &Image::of(&sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["undo"]).ok();
        same(&clean, &Image::of(&sandbox, &sandbox.repo));
    }
}
