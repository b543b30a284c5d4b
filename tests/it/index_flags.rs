//! Owns the tests of index entries that say more than what a file holds: announced with `git add -N`, assume-unchanged,
//! skip-worktree.

use super::preview_identity::same;
use super::support::{Image, Sandbox};

#[test]
fn a_folder_in_place_of_a_file_that_is_only_announced_comes_back() {
    let sandbox = Sandbox::new();
    sandbox.write("x", "x\n");
    sandbox.commit_all("base");
    sandbox.lane_of("one", "echo l >x");
    sandbox.lane_of("two", "echo two >f");
    sandbox.sh("echo n >f; git add -N f; rm f; mkdir f; echo own >f/own");
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
    let _ = sandbox.proq(&["preview", "two"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
}

#[test]
fn what_is_announced_and_gone_comes_back_from_a_preview_and_refuses_a_landing_by_name() {
    for lane in ["echo l >f", "mkdir f; echo l >f/l"] {
        let sandbox = Sandbox::new();
        sandbox.write("x", "x\n");
        sandbox.commit_all("base");
        sandbox.lane_of("one", lane);
        sandbox.lane_of("two", "echo l >x");
        sandbox.sh("echo n >f; git add -N f; rm f");
        assert_eq!(sandbox.git(&["status", "--short"]), " D f");
        let before = Image::of(&sandbox, &sandbox.repo);
        let refused = sandbox.proq(&["merge", "one"]).fails(1);
        assert!(refused.contains("in the way: f;") && refused.contains(" stash push"), "{refused}");
        same(&before, &Image::of(&sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["preview", "one"]).ok();
        assert_eq!(sandbox.git(&["status", "--short"]), "");
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        same(&before, &Image::of(&sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let _ = sandbox.proq(&["merge", "two"]).ok();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_eq!((sandbox.read("x"), sandbox.git(&["status", "--short"])), ("l\n".into(), " D f".into()));
        sandbox.git(&["stash", "push", "-q"]);
        let _ = sandbox.proq(&["merge", "one"]).ok();
    }
}

#[test]
fn a_flag_of_a_file_that_a_landing_removes_comes_back_with_its_undo() {
    for (flag, letter) in [("--assume-unchanged", "h"), ("--skip-worktree", "S")] {
        for lane in ["rm c", "rm c; mkdir c; echo l >c/in"] {
            let sandbox = Sandbox::new();
            sandbox.sh("echo c >c; echo x >x");
            sandbox.commit_all("base");
            sandbox.lane_of("one", lane);
            sandbox.git(&["update-index", flag, "c"]);
            sandbox
                .sh(&format!("git worktree add -qf ../other main; cd ../other; git update-index {flag} c"));
            let other = sandbox.root().join("other");
            let (before, beside) = (Image::of(&sandbox, &sandbox.repo), Image::of(&sandbox, &other));
            let flagged = || {
                assert_eq!(sandbox.git(&["ls-files", "-v", "c"]), format!("{letter} c"));
                same(&before, &Image::of(&sandbox, &sandbox.repo));
                same(&beside, &Image::of(&sandbox, &other));
            };
            let _ = sandbox.proq(&["merge", "one"]).ok();
            let landed = Image::of(&sandbox, &sandbox.repo);
            let _ = sandbox.proq(&["undo"]).ok();
            flagged();
            let _ = sandbox.proq(&["op", "redo"]).ok();
            same(&landed, &Image::of(&sandbox, &sandbox.repo));
            let _ = sandbox.proq(&["undo"]).ok();
            flagged();
        }
    }
}

#[test]
fn a_file_that_was_removed_behind_a_flag_refuses_a_landing_that_touches_it() {
    for flag in ["--skip-worktree", "--assume-unchanged"] {
        for lane in ["echo l >c", "rm c; mkdir c; echo l >c/in"] {
            let sandbox = Sandbox::new();
            sandbox.sh("echo c >c; echo x >x");
            sandbox.commit_all("base");
            sandbox.lane_of("one", lane);
            sandbox.lane_of("two", "echo l >x");
            sandbox.sh(&format!("git update-index {flag} c; rm c"));
            let before = Image::of(&sandbox, &sandbox.repo);
            for args in [&["merge", "one", "--dry-run"][..], &["merge", "one"]] {
                let refused = sandbox.proq(args).fails(1);
                assert!(refused.contains(": c"), "{refused}");
                same(&before, &Image::of(&sandbox, &sandbox.repo));
            }
            let _ = sandbox.proq(&["merge", "two"]).ok();
            let _ = sandbox.proq(&["undo"]).ok();
            same(&before, &Image::of(&sandbox, &sandbox.repo));
            let refused = sandbox.proq(&["merge", "one"]).fails(1);
            let hint = refused.lines().find_map(|line| line.split_once("have it look again: "));
            sandbox.sh(&hint.unwrap().1.replace("[ROOT]", sandbox.root().to_str().unwrap()));
            assert_eq!(sandbox.git(&["status", "--porcelain"]), " D c");
            sandbox.git(&["checkout", "-q", "c"]);
            let _ = sandbox.proq(&["merge", "one"]).ok();
        }
    }
}

/// Previews lane `one` with these changes of one's own, lands lane `two` meanwhile, and goes back: what git shows then.
fn back_onto_a_moved_base(own: &str, two: &str) -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    sandbox.sh("echo c >c; echo x >x; mkdir in out; echo i >in/i; echo o >out/o");
    sandbox.commit_all("base");
    sandbox.lane_of("one", "echo l >x");
    sandbox.lane_of("two", two);
    sandbox.sh(own);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["merge", "two"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let shown = sandbox.git(&["status", "--short"]);
    (sandbox, shown)
}

#[test]
fn what_is_announced_makes_way_for_what_the_base_has_there_by_now() {
    for (own, two) in [
        ("echo n >f; git add -N f; rm f", "mkdir f; echo l >f/l"),
        ("mkdir d; echo n >d/f; git add -N d/f; rm -r d", "echo l >d"),
        ("echo n >f; git add -N f; rm f", "echo l >f"),
    ] {
        let (sandbox, shown) = back_onto_a_moved_base(own, two);
        assert_eq!(shown, "", "{own}; {two}");
        sandbox.assert_healthy();
    }
}

#[test]
fn what_is_announced_keeps_its_kind_on_a_moved_base() {
    for (own, mode) in [
        ("echo n >f; chmod +x f; git add -N f; rm f", "100755"),
        ("ln -s x f; git add -N f; rm f", "120000"),
        ("echo n >f; git add -N f", "100644"),
        ("git init -q f; git -C f commit -q --allow-empty -m own; git add -N f; echo more >u", "160000"),
        ("git sparse-checkout set --no-cone '/*' '!/f'; echo n >f; git add --sparse -N f; rm f", "100644"),
        ("git update-index --split-index; echo n >f; git add -N f; rm f", "100644"),
    ] {
        let (sandbox, shown) = back_onto_a_moved_base(own, "echo two >c");
        assert_eq!(sandbox.read("c"), "two\n", "{own}");
        assert!(sandbox.git(&["ls-files", "--stage", "f"]).starts_with(mode), "{own}: {shown}");
        let shown = sandbox.git(&["diff", "--cached", "--ita-invisible-in-index", "--name-only"]);
        assert_eq!(shown, "", "{own}");
    }
}

#[test]
fn a_snapshot_comes_back_to_where_its_own_file_is_announced() {
    let sandbox = Sandbox::new();
    sandbox.write("x", "x\n");
    sandbox.commit_all("base");
    sandbox.lane_of("one", "echo l >x");
    sandbox.sh("echo n >f; git add -N f; rm f; mkdir f; echo own >f/own");
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("rm -r f");
    let id = super::snap::ids(&sandbox)[0].clone();
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
}

#[test]
fn flags_come_back_from_a_preview_of_a_lane_that_removes_their_files() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        for dirt in ["true", "git update-index --split-index", "echo u >u"] {
            let sandbox = Sandbox::new();
            sandbox.sh("echo c >c; echo x >x");
            sandbox.commit_all("base");
            sandbox.lane_of("one", "rm c; echo l >f");
            sandbox.lane_of("two", "rm c");
            sandbox.sh(&format!("git update-index {flag} c; {dirt}"));
            let before = Image::of(&sandbox, &sandbox.repo);
            let _ = sandbox.proq(&["preview", "one"]).ok();
            let _ = sandbox.proq(&["preview", "two"]).ok();
            let _ = sandbox.proq(&["preview", "--back"]).ok();
            same(&before, &Image::of(&sandbox, &sandbox.repo));
            for back in [&["undo"][..], &["preview", "--back"]] {
                let _ = sandbox.proq(&["preview", "one"]).ok();
                let _ = sandbox.proq(&["undo"]).ok();
                same(&before, &Image::of(&sandbox, &sandbox.repo));
                let _ = sandbox.proq(&["op", "redo"]).ok();
                assert!(!sandbox.repo.join("c").exists());
                let _ = sandbox.proq(back).ok();
                same(&before, &Image::of(&sandbox, &sandbox.repo));
            }
        }
    }
}

#[test]
fn flags_of_files_that_are_still_there_come_back_onto_a_moved_base() {
    for (flag, letter) in [("--assume-unchanged", "h"), ("--skip-worktree", "S")] {
        let own = format!("git update-index {flag} c in/i; echo u >u");
        let (sandbox, shown) = back_onto_a_moved_base(&own, "rm c");
        assert_eq!(shown, "?? u");
        assert_eq!(sandbox.git(&["ls-files", "-v"]), format!("H a.txt\n{letter} in/i\nH out/o\nH x"));
    }
}

#[test]
fn a_flag_comes_back_with_an_undo_where_a_sparse_checkout_was_given_up() {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir in; echo c >c; echo i >in/i");
    sandbox.commit_all("base");
    sandbox.lane_of("one", "rm c");
    sandbox.sh("git sparse-checkout set in; git sparse-checkout disable; git update-index --skip-worktree c");
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
}

#[test]
fn an_undo_of_a_landing_that_git_has_taken_back_makes_its_empty_folders() {
    let sandbox = Sandbox::new();
    sandbox.write("x", "x\n");
    sandbox.commit_all("base");
    sandbox.lane_of("one", "echo l >f");
    sandbox.sh("mkdir f");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    sandbox.git(&["reset", "-q", "--hard", "HEAD^"]);
    let _ = sandbox.proq(&["undo"]).ok();
    assert!(sandbox.repo.join("f").is_dir());
}
