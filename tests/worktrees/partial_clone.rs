//! Tests of lanes in partial clones, where git fetches missing files on demand.

use std::path::{Path, PathBuf};

use proq_test_kit::{Sandbox, WorktreeState};

/// Creates a sandbox with a partial clone `../part` that lacks the files of branch `old`. The file `../calls`
/// gets a line for each call of its remote.
fn sandbox_with_partial_clone() -> (Sandbox, PathBuf) {
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
    let clone_dir = sandbox.root().join("part");
    (sandbox, clone_dir)
}

fn remote_calls(sandbox: &Sandbox) -> usize {
    std::fs::read_to_string(sandbox.root().join("calls")).unwrap_or_default().lines().count()
}

/// Returns the number of objects that the clone lacks.
fn missing_objects(sandbox: &Sandbox, clone_dir: &Path) -> usize {
    let all = sandbox.git_in(clone_dir, &["rev-list", "--objects", "--all", "--missing=print"]);
    all.lines().filter(|line| line.starts_with('?')).count()
}

/// Promise: new-lane/partial-clone
#[test]
fn fetches_what_a_lane_needs_in_one_call() {
    let (sandbox, clone_dir) = sandbox_with_partial_clone();
    let _ = sandbox.proq_in(&clone_dir, &["spawn", "--empty", "-n", "here"]).ok();
    let _ = sandbox.proq_in(&clone_dir, &["list"]).ok();
    assert_eq!(remote_calls(&sandbox), 0);
    let missing_before = missing_objects(&sandbox, &clone_dir);
    assert_eq!(missing_before, 13);
    let _ = sandbox.proq_in(&clone_dir, &["spawn", "--empty", "-n", "old", "--base", "old"]).ok();
    assert_eq!((remote_calls(&sandbox), missing_objects(&sandbox, &clone_dir)), (1, 0));
    let lane = clone_dir.join(".proq-worktrees/old");
    assert_eq!(std::fs::read_to_string(lane.join("src/pay/3")).unwrap(), "old3\n");
    sandbox.sh_in(&lane, "find . -name .git -prune -o -type f -exec touch -d 2001-01-01 {} +");
    assert_eq!(sandbox.git_in(&lane, &["status", "--porcelain"]), "");
    sandbox.sh_in(&lane, "echo mine > mine; git add mine; git commit -qm mine");
    let _ = sandbox.proq_in(&clone_dir, &["merge", "old"]).ok();
    assert_eq!(sandbox.git_in(&clone_dir, &["show", "old:mine"]), "mine");
    assert_eq!(remote_calls(&sandbox), 1);
}

#[test]
fn spawn_of_three_lanes_fetches_once() {
    let (sandbox, clone_dir) = sandbox_with_partial_clone();
    let _ =
        sandbox.proq_in(&clone_dir, &["spawn", "--empty", "--count", "3", "-n", "x", "--base", "old"]).ok();
    assert_eq!((remote_calls(&sandbox), missing_objects(&sandbox, &clone_dir)), (1, 0));
    assert!(clone_dir.join(".proq-worktrees/x-3/doc/6").exists());
}

#[test]
fn sparse_lane_fetches_only_its_folders() {
    let (sandbox, clone_dir) = sandbox_with_partial_clone();
    let scope = ["--sparse", "--scope", "src/pay/"];
    let args = [&["spawn", "--empty", "-n", "x", "--base", "old"][..], &scope].concat();
    let _ = sandbox.proq_in(&clone_dir, &args).ok();
    assert_eq!(sandbox.sh_in(&clone_dir.join(".proq-worktrees/x"), "cat src/pay/3; ls"), "old3\na.txt\nsrc");
    assert_eq!(missing_objects(&sandbox, &clone_dir), 6);
}

/// Promise: new-lane/partial-clone
#[test]
fn unreachable_remote_refuses_spawn_and_leaves_nothing() {
    let (sandbox, clone_dir) = sandbox_with_partial_clone();
    sandbox.sh("mv ../repo/.git ../away");
    let out = sandbox.proq_in(&clone_dir, &["spawn", "--empty", "-n", "x", "--base", "old"]);
    assert_eq!(out.code, 1, "{}", out.to_text());
    let expected = "cannot read 13 files of this commit: this partial clone lacks them, and git could not fetch them from origin; nothing was changed";
    assert!(out.stderr.contains(expected), "{}", out.to_text());
    assert_eq!(sandbox.git_in(&clone_dir, &["branch", "--list", "proq/*"]), "");
    assert_eq!(sandbox.git_in(&clone_dir, &["worktree", "list"]).lines().count(), 1);
    let _ = sandbox.proq_in(&clone_dir, &["spawn", "--empty", "-n", "here"]).ok();
    sandbox.sh_in(&sandbox.root(), "mv away repo/.git");
    let _ = sandbox.proq_in(&clone_dir, &["spawn", "--empty", "-n", "x", "--base", "old"]).ok();
}

#[test]
fn unreachable_remote_refuses_preview_unchanged() {
    let (sandbox, clone_dir) = sandbox_with_partial_clone();
    let _ = sandbox.proq_in(&clone_dir, &["spawn", "--empty", "-n", "x"]).ok();
    sandbox.sh_in(&clone_dir.join(".proq-worktrees/x"), "git reset -q --soft old");
    sandbox.sh_in(&clone_dir, "echo mine >>doc/1; echo u >untracked");
    let before = WorktreeState::capture(&sandbox, &clone_dir);
    sandbox.sh("mv ../repo/.git ../away");
    let text = sandbox.proq_in(&clone_dir, &["preview", "x"]).fails(1);
    let expected = "cannot read 13 files of this commit: this partial clone lacks them, and git could not fetch them from origin; nothing was changed";
    assert!(text.contains(expected), "{text}");
    assert_eq!(before, WorktreeState::capture(&sandbox, &clone_dir));
    sandbox.sh_in(&sandbox.root(), "mv away repo/.git");
    let _ = sandbox.proq_in(&clone_dir, &["preview", "x"]).ok();
    let _ = sandbox.proq_in(&clone_dir, &["preview", "--back"]).ok();
    assert_eq!(before, WorktreeState::capture(&sandbox, &clone_dir));
}
