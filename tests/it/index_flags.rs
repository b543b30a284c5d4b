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
        assert!(refused.contains("in the way: f;") && refused.contains("git stash push"), "{refused}");
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
