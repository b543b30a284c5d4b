//! Owns the tests of previews in a sparse checkout that shows files outside of its patterns: where the base moves meanwhile, with a
//! sparse index, and where a way back is cut short.

use std::io::Write;

use super::odd_states::sparse;
use super::preview_identity::same;
use super::support::{Image, Sandbox};

/// Ways to have files outside of the patterns, edited or not.
const SHOWN: &[&str] = &[
    "mkdir out; git show HEAD:out/a >out/a",
    "git update-index --no-skip-worktree out/a; git checkout -q out/a",
    "mkdir out; echo edited >out/a",
    "mkdir out; echo edited >out/a; git add --sparse out/a",
    "mkdir out; echo new >out/new; git add --sparse out/new",
    "mkdir out; echo new >out/new; git add -N --sparse out/new",
    "mkdir out; echo new >out/new",
];

/// The files outside of the patterns, and what git says of the checkout.
fn outside(sandbox: &Sandbox) -> String {
    sandbox.sh("for f in out/*; do echo $f; cat $f; done; git status --short")
}

/// Lands a second lane on the base, which the checkout does not show.
fn move_base(sandbox: &Sandbox) {
    sandbox.lane_of("two", "echo two >in/two");
    let _ = sandbox.proq(&["merge", "two"]).ok();
}

#[test]
fn what_is_outside_the_patterns_comes_back_onto_a_base_that_has_moved() {
    for shown in SHOWN {
        let sandbox = sparse("echo l >x", shown);
        let before = outside(&sandbox);
        let _ = sandbox.proq(&["preview", "one"]).ok();
        assert!(!sandbox.repo.join("out").exists());
        move_base(&sandbox);
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_eq!(outside(&sandbox), before, "{shown}");
        assert_eq!(std::fs::read_to_string(sandbox.repo.join("in/two")).unwrap(), "two\n");
    }
}

#[test]
fn an_edit_comes_back_where_the_base_has_moved_its_file_across_the_patterns() {
    for (edit, moves, there) in [
        ("echo edited >>in/c", "git mv in/c out/c", Ok("out/c")),
        ("mkdir out; echo edited >out/a", "echo more >>out/a; git mv out/a in/a", Err(3)),
        ("mkdir out; echo q >out/q; git add --sparse out/q", "echo q >out/q", Err(0)),
        ("mkdir out; echo mine >out/mine", "git rm -qr out; echo file >out", Err(3)),
    ] {
        let sandbox = Sandbox::new();
        sandbox.sh("mkdir in out; seq 30 >in/c; seq 30 >out/a; echo x >x");
        sandbox.commit_all("files");
        sandbox.lane_of("one", "echo l >x");
        sandbox.lane_of("two", moves);
        sandbox.sh("git sparse-checkout set --cone in");
        sandbox.sh(edit);
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let _ = sandbox.proq(&["merge", "two"]).ok();
        let back = sandbox.proq(&["preview", "--back"]);
        // Nothing is missing that nobody has deleted.
        assert_eq!(sandbox.sh("git status --short | grep '^.D' || :"), "", "{edit}");
        match there {
            Ok(path) => assert_eq!(sandbox.sh(&format!("tail -1 {path}")), "edited"),
            Err(code) => assert_eq!(back.code, code, "{edit}"),
        }
    }
}

#[test]
fn what_is_written_late_into_a_file_outside_the_patterns_comes_back() {
    for moves in [None, Some("echo two >in/two"), Some("echo two >out/a")] {
        let sandbox = sparse("echo l >x", "git sparse-checkout disable");
        let other = moves.map(|moves| sandbox.lane_of("two", moves));
        sandbox.sh(&format!("git sparse-checkout set --no-cone '/*' '!/out/'; {}", SHOWN[0]));
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

#[cfg(debug_assertions)]
#[test]
fn a_way_back_that_is_cut_short_leaves_nothing_from_outside_the_patterns() {
    for (shown, moves) in SHOWN.iter().flat_map(|shown| [(shown, false), (shown, true)]) {
        for at in ["restore.given", if moves { "transition.brought" } else { "restore.taken" }] {
            let sandbox = sparse("echo l >x", shown);
            let home = Image::of(&sandbox, &sandbox.repo);
            let _ = sandbox.proq(&["preview", "one"]).ok();
            if moves {
                move_base(&sandbox);
            }
            let preview = Image::of(&sandbox, &sandbox.repo);
            let mut command = sandbox.proq_command(&sandbox.repo, &["preview", "--back"]);
            command.env("PROQ_TEST_DIE_AT", at);
            assert_eq!(sandbox.output(command).code, 137, "{shown} {at}");
            let _ = sandbox.proq(&["list"]).ok();
            same(&preview, &Image::of(&sandbox, &sandbox.repo));
            let _ = sandbox.proq(&["preview", "--back"]).ok();
            if !moves {
                same(&home, &Image::of(&sandbox, &sandbox.repo));
            }
        }
    }
}

#[test]
fn with_a_sparse_index_it_is_the_same() {
    // The git of today is ended by a fault of its own where it announces a file outside.
    for shown in SHOWN.iter().filter(|shown| !shown.contains("add -N")) {
        for ways in [
            &[&["preview", "one"][..], &["preview", "--back"]][..],
            &[&["preview", "one"], &["switch"], &["preview", "--back"]],
            &[&["preview", "one"], &["preview", "--back"], &["undo"], &["op", "redo"]],
        ] {
            let sandbox =
                sparse("echo l >x; echo l >out/b", "git sparse-checkout set --cone --sparse-index in");
            sandbox.sh(shown);
            let before = outside(&sandbox);
            for args in ways {
                match args {
                    ["switch"] => drop(sandbox.git(&["switch", "-q", "main"])),
                    args => drop(sandbox.proq(args).ok()),
                }
            }
            assert_eq!(outside(&sandbox), before, "{shown}: {ways:?}");
        }
    }
}

#[test]
fn an_untracked_file_over_one_that_landed_comes_back_with_the_undo() {
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
        sandbox.lane_of("one", "echo l >x");
        sandbox.lane_of("two", lane);
        sandbox.sh(&format!("git sparse-checkout set --cone in; mkdir out; {mine}"));
        let start = Image::of(&sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let shown = Image::of(&sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["merge", "two"]).ok();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        for _ in ["the way back", "the landing"] {
            let _ = sandbox.proq(&["undo"]).ok();
            same(&shown, &Image::of(&sandbox, &sandbox.repo));
        }
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        same(&start, &Image::of(&sandbox, &sandbox.repo));
    }
}

#[test]
fn what_lands_unseen_where_a_folder_of_the_users_was_is_a_conflict() {
    let kept = "git show HEAD:out/d/a >out/d/a; git rm -q --cached --sparse out/d/a; echo new >out/d/new";
    for (mine, lane) in [
        (kept, "rm -r out/d; ln -s ../in out/d"),
        ("echo new >out/d/new", "git rm -qr out/d; mkdir -p out; echo theirs >out/d"),
        ("mkdir out/new; echo new >out/new/in; echo new >out/new/too", "echo theirs >out/new"),
        ("echo new >out/d/new; echo new >out/d/too", "git rm -qr out; echo theirs >out"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.sh("mkdir -p in out/d; seq 30 >in/c; seq 30 >out/d/a; echo x >x");
        sandbox.commit_all("files");
        sandbox.lane_of("one", "echo l >x");
        sandbox.lane_of("two", lane);
        sandbox.sh(&format!("git sparse-checkout set --cone in; mkdir -p out/d; {mine}"));
        let start = Image::of(&sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let _ = sandbox.proq(&["merge", "two"]).ok();
        let foreseen = sandbox.proq(&["preview", "--back", "--dry-run"]).ok();
        assert!(foreseen.contains("come back, or stay kept if they conflict with main\n"), "{foreseen}");
        let said = sandbox.proq(&["preview", "--back"]);
        assert_eq!(said.code, 3, "{lane}: {}", said.shown());
        assert!(said.stderr.contains("conflict with it in 1 file;"), "{lane}: {}", said.shown());
        assert_eq!(sandbox.git(&["status", "--short"]), "", "{lane}");
        for args in [&["undo"][..], &["undo"], &["preview", "--back"]] {
            let _ = sandbox.proq(args).ok();
        }
        same(&start, &Image::of(&sandbox, &sandbox.repo));
    }
}
