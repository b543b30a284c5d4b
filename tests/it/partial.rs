//! Owns the tests of lanes in partial clones, which lack files until they are needed.

use std::path::{Path, PathBuf};

use super::support::{Image, Sandbox};

/// A sandbox with a clone `../part` that has no file of the branch `old`, and notes each call of its remote in `../calls`.
fn scene() -> (Sandbox, PathBuf) {
    let sandbox = Sandbox::new();
    sandbox.sh(
        "git config uploadpack.allowFilter true; git config uploadpack.allowAnySHA1InWant true
        mkdir -p src/pay doc; for n in 1 2 3 4 5 6; do echo old$n > src/pay/$n; echo olddoc$n > doc/$n; done; echo '*.x text' > .gitattributes
        git add -A; git commit -qm old; git branch old
        for n in 1 2 3 4 5 6; do echo new$n > src/pay/$n; echo newdoc$n > doc/$n; done; echo '*.y text' > .gitattributes; git commit -qam new
        git clone -q --filter=blob:none \"file://$PWD\" ../part; cd ../part; git branch -q old origin/old
        printf '#!/bin/sh\\necho call >> \"$ROOT/calls\"\\nexec git-upload-pack \"$@\"\\n' > ../up; chmod +x ../up
        git config remote.origin.uploadpack \"$ROOT/up\"",
    );
    let part = sandbox.root().join("part");
    (sandbox, part)
}

fn calls(sandbox: &Sandbox) -> usize {
    std::fs::read_to_string(sandbox.root().join("calls")).unwrap_or_default().lines().count()
}

/// How many objects the clone lacks.
fn lacking(sandbox: &Sandbox, part: &Path) -> usize {
    let all = sandbox.git_in(part, &["rev-list", "--objects", "--all", "--missing=print"]);
    all.lines().filter(|line| line.starts_with('?')).count()
}

#[test]
fn what_a_lane_needs_is_fetched_at_once_and_nothing_else_is() {
    let (sandbox, part) = scene();
    let _ = sandbox.proq_in(&part, &["spawn", "--empty", "-n", "here"]).ok();
    let _ = sandbox.proq_in(&part, &["list"]).ok();
    assert_eq!(calls(&sandbox), 0);
    let lacked = lacking(&sandbox, &part);
    assert_eq!(lacked, 13);
    let _ = sandbox.proq_in(&part, &["spawn", "--empty", "-n", "old", "--base", "old"]).ok();
    assert_eq!((calls(&sandbox), lacking(&sandbox, &part)), (1, 0));
    let lane = part.join(".proq-worktrees/old");
    assert_eq!(std::fs::read_to_string(lane.join("src/pay/3")).unwrap(), "old3\n");
    sandbox.sh_in(&lane, "find . -name .git -prune -o -type f -exec touch -d 2001-01-01 {} +");
    assert_eq!(sandbox.git_in(&lane, &["status", "--porcelain"]), "");
    sandbox.sh_in(&lane, "echo mine > mine; git add mine; git commit -qm mine");
    let _ = sandbox.proq_in(&part, &["merge", "old"]).ok();
    assert_eq!(sandbox.git_in(&part, &["show", "old:mine"]), "mine");
    assert_eq!(calls(&sandbox), 1);
}

#[test]
fn several_lanes_fetch_once() {
    let (sandbox, part) = scene();
    let _ = sandbox.proq_in(&part, &["spawn", "--empty", "--count", "3", "-n", "x", "--base", "old"]).ok();
    assert_eq!((calls(&sandbox), lacking(&sandbox, &part)), (1, 0));
    assert!(part.join(".proq-worktrees/x-3/doc/6").exists());
}

#[test]
fn a_lane_that_is_cut_fetches_only_its_folders() {
    let (sandbox, part) = scene();
    let scope = ["--sparse", "--scope", "src/pay/"];
    let args = [&["spawn", "--empty", "-n", "x", "--base", "old"][..], &scope].concat();
    let _ = sandbox.proq_in(&part, &args).ok();
    assert_eq!(sandbox.sh_in(&part.join(".proq-worktrees/x"), "cat src/pay/3; ls"), "old3\na.txt\nsrc");
    assert_eq!(lacking(&sandbox, &part), 6);
}

#[test]
fn without_the_remote_it_is_said_what_is_missing_and_nothing_is_made() {
    let (sandbox, part) = scene();
    sandbox.sh("mv ../repo/.git ../away");
    let out = sandbox.proq_in(&part, &["spawn", "--empty", "-n", "x", "--base", "old"]);
    assert_eq!(out.code, 1, "{}", out.shown());
    let told = "13 files of this commit are not in this partial clone, and git could not fetch them from origin; nothing was changed";
    assert!(out.stderr.contains(told), "{}", out.shown());
    assert_eq!(sandbox.git_in(&part, &["branch", "--list", "proq/*"]), "");
    assert_eq!(sandbox.git_in(&part, &["worktree", "list"]).lines().count(), 1);
    let _ = sandbox.proq_in(&part, &["spawn", "--empty", "-n", "here"]).ok();
    sandbox.sh_in(&sandbox.root(), "mv away repo/.git");
    let _ = sandbox.proq_in(&part, &["spawn", "--empty", "-n", "x", "--base", "old"]).ok();
}

#[test]
fn without_the_remote_a_preview_says_what_is_missing_and_all_is_as_it_was() {
    let (sandbox, part) = scene();
    let _ = sandbox.proq_in(&part, &["spawn", "--empty", "-n", "x"]).ok();
    sandbox.sh_in(&part.join(".proq-worktrees/x"), "git reset -q --soft old");
    sandbox.sh_in(&part, "echo mine >>doc/1; echo u >untracked");
    let before = Image::of(&sandbox, &part);
    sandbox.sh("mv ../repo/.git ../away");
    let text = sandbox.proq_in(&part, &["preview", "x"]).fails(1);
    let told = "13 files of this commit are not in this partial clone, and git could not fetch them from origin; nothing was changed";
    assert!(text.contains(told), "{text}");
    assert_eq!(before, Image::of(&sandbox, &part));
    sandbox.sh_in(&sandbox.root(), "mv away repo/.git");
    let _ = sandbox.proq_in(&part, &["preview", "x"]).ok();
    let _ = sandbox.proq_in(&part, &["preview", "--back"]).ok();
    assert_eq!(before, Image::of(&sandbox, &part));
}
