//! Tests of commands in repositories that were changed with git in between: worktrees on missing disks,
//! deleted branches, an index with unmerged paths, folders collapsed in a sparse index.

use proq_test_kit::snapshots::{assert_same_image, snapshot_ids};
use proq_test_kit::{Sandbox, WorktreeState};

/// Promise: worktree/sparse-index-folders
#[test]
fn sparse_index_folders_stay_collapsed() {
    let edit = "mkdir b; git show main:b/f >b/f; echo stray >>b/f";
    for (lane, stray) in
        [("echo new >c/g", "true"), ("echo new >c/g", edit), ("true", "true"), ("true", edit)]
    {
        let sandbox = Sandbox::new();
        sandbox.sh("mkdir a b c; for d in a b c; do seq 9 >$d/f; done");
        sandbox.commit_all("base");
        sandbox.lane_with_commit("one", &format!("echo lane >>b/f; {lane}"));
        sandbox.lane_with_commit("two", "echo two >>c/f");
        sandbox.sh(&format!("git sparse-checkout set --cone --sparse-index a; echo own >>a/f; {stray}"));
        let before = WorktreeState::capture(&sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["preview", "one"]).ok();
        assert!(!sandbox.repo.join("c").exists(), "{stray}");
        assert_eq!(sandbox.git(&["show", ":b/f"]).lines().last(), Some("lane"));
        let _ = sandbox.proq(&["preview", "two"]).ok();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["merge", "two"]).ok();
        assert!(!sandbox.repo.join("c").exists(), "{stray}");
        let _ = sandbox.proq(&["undo"]).ok();
        assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    }
}

/// Promise: snapshots/absent-disk
#[test]
fn missing_disk_blocks_only_landings_on_its_base() {
    let sandbox = Sandbox::new();
    sandbox
        .sh("git branch other; git switch -q other; git worktree add -q ../wt main; git worktree lock ../wt");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "one", "--base", "main"]).ok();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "two", "--base", "other"]).ok();
    for lane in ["one", "two"] {
        sandbox.sh_in(
            &sandbox.lane_path(lane),
            &format!("echo {lane} >{lane}; git add .; git commit -qm {lane}"),
        );
    }
    sandbox.sh("mv ../wt ../gone");
    let main = sandbox.git(&["rev-parse", "main"]);
    let refused = sandbox.proq(&["merge", "one"]).fails(1);
    assert!(refused.contains("wt no longer exists"), "{refused}");
    assert!(refused.contains("hint: list worktrees: git worktree list"), "{refused}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
    let _ = sandbox.proq(&["merge", "two"]).ok();
    sandbox.sh("mv ../gone ../wt");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    sandbox.sh("mv ../wt ../gone");
    let refused = sandbox.proq(&["undo"]).fails(1);
    assert!(refused.contains("wt no longer exists; nothing was changed"), "{refused}");
    let _ = sandbox.proq(&["list"]).ok();
    sandbox.sh("mv ../gone ../wt");
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
}

/// Promise: worktree/unmerged-index
#[test]
fn unmerged_paths_refuse_landing_and_undo() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("zero", "echo zero >zero");
    sandbox.lane_with_commit("one", "echo l >new");
    let _ = sandbox.proq(&["merge", "zero"]).ok();
    sandbox.sh("echo mine >a.txt; git stash -q; echo theirs >a.txt; git commit -qam theirs");
    let conflict = "git stash pop >/dev/null 2>&1 || true";
    sandbox.sh(conflict);
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    for args in [&["merge", "one", "--dry-run"][..], &["merge", "one"]] {
        let refused = sandbox.proq(args).fails(1);
        assert!(refused.contains("has unmerged paths: a.txt"), "{refused}");
        assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    }
    sandbox.sh("git checkout -q HEAD a.txt");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    sandbox.sh(conflict);
    let refused = sandbox.proq(&["undo"]).fails(1);
    assert!(refused.contains("has unmerged paths: a.txt"), "{refused}");
}

/// Promise: snapshots/undo-gone-branch
#[test]
fn undo_hint_recreates_a_missing_branch() {
    let sandbox = Sandbox::new();
    let recreate_branch = |refused: &str| {
        let hint = refused.lines().find_map(|line| line.strip_prefix("hint: create it again: "));
        sandbox.sh(hint.unwrap_or_else(|| panic!("{refused}")));
    };
    sandbox.sh("git switch -qc feat");
    sandbox.lane_with_commit("one", "echo l >new");
    let before = sandbox.git(&["rev-parse", "feat"]);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    sandbox.sh("git switch -q main; git branch -qD feat");
    for args in [&["undo", "--dry-run"][..], &["undo"]] {
        let refused = sandbox.output(sandbox.proq_command(&sandbox.repo, args));
        assert!(
            refused.code != 0 && refused.stderr.contains("branch 'feat' no longer exists"),
            "{}",
            refused.to_text()
        );
        if args.len() == 1 {
            recreate_branch(&refused.stderr);
        }
    }
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "feat"]), before);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("git branch -m main trunk");
    for args in [&["undo", "--dry-run"][..], &["undo"]] {
        let refused = sandbox.output(sandbox.proq_command(&sandbox.repo, args));
        assert!(
            refused.code != 0 && refused.stderr.contains("branch 'main' no longer exists"),
            "{}",
            refused.to_text()
        );
        if args.len() == 1 {
            recreate_branch(&refused.stderr);
        }
    }
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git(&["status", "--branch", "--porcelain"]), "## main");
}

/// Promise: snapshots/undo-gone-branch
#[test]
fn undo_of_abandoned_preview_hints_the_switch_back() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo l >new");
    sandbox.sh("git branch other");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("git switch -q other");
    let out = sandbox.output(sandbox.proq_command(&sandbox.repo, &["undo"]));
    assert!(
        out.code != 0 && out.stderr.contains("is no longer on 'proq/one-preview'; nothing was changed"),
        "{}",
        out.to_text()
    );
    let hint = out.stderr.lines().find_map(|line| line.strip_prefix("hint: switch back to it: "));
    sandbox.sh(&hint.unwrap().replace("[ROOT]/repo", "."));
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git(&["status", "--branch", "--porcelain"]), "## main");
}

/// Promise: snapshots/undo-gone-branch
#[test]
fn undo_on_renamed_branch_hints_recreate_and_switch() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo l >new");
    sandbox.sh("echo mine >>a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("git branch -m main trunk");
    for args in [&["undo", "--dry-run"][..], &["undo"]] {
        let out = sandbox.output(sandbox.proq_command(&sandbox.repo, args));
        assert!(out.code != 0 && out.stderr.contains("is no longer on 'main'"), "{}", out.to_text());
        let hint =
            out.stderr.lines().find_map(|line| line.strip_prefix("hint: create it again and switch to it: "));
        if args.len() == 1 {
            sandbox.sh(&hint.unwrap().replace("[ROOT]/repo", "."));
        }
    }
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.read("new"), "l\n");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.git(&["status", "--branch", "--porcelain"]), "## main\n M a.txt");
}

#[test]
fn undo_of_restore_is_refused_without_its_worktree() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one >one");
    sandbox.sh("echo mine >>a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("git worktree add -q -b other ../w");
    let ids = snapshot_ids(&sandbox);
    let worktree = sandbox.root().join("w");
    let _ = sandbox.proq_in(&worktree, &["snap", "restore", ids.last().unwrap()]).ok();
    sandbox.sh("mv ../w ../gone");
    for command in [&["undo"][..], &["undo", "--dry-run"]] {
        let refused = sandbox.proq(command).fails(1);
        assert!(refused.contains("/w no longer exists; nothing was changed"), "{refused}");
        assert!(refused.contains("hint: show what it did: git proq op show"), "{refused}");
    }
    sandbox.sh("mv ../gone ../w");
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git_in(&worktree, &["status", "--short"]), "");
}

#[test]
fn hints_quote_paths_with_an_apostrophe() {
    let mut sandbox = Sandbox::new();
    let quoted_path = sandbox.root().join("it's (here)");
    std::fs::rename(&sandbox.repo, &quoted_path).unwrap();
    sandbox.repo = quoted_path;
    let run = |command: &str| {
        let command = command.replace("[ROOT]", sandbox.root().to_str().unwrap());
        sandbox.sh(&format!("export GIT_EDITOR='echo by hand >'; {command}"));
    };
    sandbox.lane_with_commit("one", "echo one > one.txt");
    sandbox.sh_in(&sandbox.lane_path("one"), "echo n > new.txt");
    let json = sandbox.proq(&["merge", "one", "--json"]).json();
    run(json["lanes"][0]["hints"][0].as_str().unwrap().split_once(": ").unwrap().1);
    assert_eq!(sandbox.git_in(&sandbox.lane_path("one"), &["status", "--short"]), "");
    // The commands that `list` and `doctor` suggest work too.
    sandbox.sh("rm -r .proq-worktrees/one");
    let listed = sandbox.proq(&["list"]).stderr;
    run(listed.lines().find_map(|line| line.split_once("no longer has a worktree: ")).unwrap().1);
    assert!(sandbox.lane_path("one").join("new.txt").exists());
    sandbox.sh("echo broken > .git/worktrees/one/index");
    let listed = sandbox.proq(&["list"]).stderr;
    run(listed.lines().find_map(|line| line.split_once("no index that git can read: ")).unwrap().1);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(sandbox.read("new.txt"), "n\n");
    let spawned = sandbox.proq(&["spawn", "--empty", "-n", "two"]).stderr;
    run(spawned.lines().find_map(|line| line.strip_prefix("hint: ")?.split_once(": ")).unwrap().1);
}
