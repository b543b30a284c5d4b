//! Owns the tests of commands that meet a repository in which git has been used in between: worktrees on disks that are not there,
//! branches that are gone, an index with open conflicts, folders that stand for their files.

use super::preview_identity::same;
use super::support::{Image, Sandbox};

#[test]
fn a_folder_that_stands_for_its_files_in_the_index_stays_left_out() {
    for stray in ["true", "mkdir b; git show main:b/f >b/f; echo stray >>b/f"] {
        let sandbox = Sandbox::new();
        sandbox.sh("mkdir a b c; for d in a b c; do seq 9 >$d/f; done");
        sandbox.commit_all("base");
        sandbox.lane_of("one", "echo lane >>b/f; echo new >c/g");
        sandbox.lane_of("two", "echo two >>c/f");
        sandbox.sh(&format!("git sparse-checkout set --cone --sparse-index a; echo own >>a/f; {stray}"));
        let before = Image::of(&sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["preview", "one"]).ok();
        assert!(!sandbox.repo.join("c").exists(), "{stray}");
        assert_eq!(sandbox.git(&["show", ":b/f"]).lines().last(), Some("lane"));
        let _ = sandbox.proq(&["preview", "two"]).ok();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        same(&before, &Image::of(&sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["merge", "two"]).ok();
        assert!(!sandbox.repo.join("c").exists(), "{stray}");
        let _ = sandbox.proq(&["undo"]).ok();
        same(&before, &Image::of(&sandbox, &sandbox.repo));
    }
}

#[test]
fn open_conflicts_refuse_a_landing_and_its_undo_by_name() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("zero", "echo zero >zero");
    sandbox.lane_of("one", "echo l >new");
    let _ = sandbox.proq(&["merge", "zero"]).ok();
    sandbox.sh("echo mine >a.txt; git stash -q; echo theirs >a.txt; git commit -qam theirs");
    let conflict = "git stash pop >/dev/null 2>&1 || true";
    sandbox.sh(conflict);
    let before = Image::of(&sandbox, &sandbox.repo);
    for args in [&["merge", "one", "--dry-run"][..], &["merge", "one"]] {
        let refused = sandbox.proq(args).fails(1);
        assert!(refused.contains("has unmerged paths: a.txt"), "{refused}");
        same(&before, &Image::of(&sandbox, &sandbox.repo));
    }
    sandbox.sh("git checkout -q HEAD a.txt");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    sandbox.sh(conflict);
    let refused = sandbox.proq(&["undo"]).fails(1);
    assert!(refused.contains("has unmerged paths: a.txt"), "{refused}");
}
