//! Recovery after the repository was moved or copied, a worktree was moved or removed, or git pruned
//! unreferenced objects between the killed command and the next one.

use proq_test_kit::Sandbox;
use proq_test_kit::faults::{kill_at, recover};

/// Returns a sandbox with a lane and uncommitted changes of the user.
fn sandbox_with_lane_and_changes() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo lane >one; echo lane >a.txt");
    sandbox.sh("echo mine >mine; echo staged >staged; git add staged");
    sandbox
}

/// Moves or copies the repository with its lanes and continues in the new place.
fn relocate(sandbox: &mut Sandbox, command: &str) {
    sandbox.sh_in(&sandbox.root(), &format!("{command} repo there"));
    sandbox.repo = sandbox.root().join("there");
    if command == "mv" {
        sandbox.sh("git worktree repair .proq-worktrees/*");
    }
}

const USER_STATUS: &str = "A  staged\n?? mine";

/// Promise: worktree/moved-repository
#[test]
fn landing_completes_in_moved_or_copied_repository() {
    for how in ["mv", "cp -a"] {
        let mut sandbox = sandbox_with_lane_and_changes();
        kill_at(&sandbox, "transition.moved", &["merge", "--no-cleanup", "one"]);
        let first = sandbox.repo.clone();
        let status_at_first = |sandbox: &Sandbox| sandbox.sh_in(&first, "git status --short; cat a.txt");
        let before = if how == "mv" { String::new() } else { status_at_first(&sandbox) };
        relocate(&mut sandbox, how);
        let _ = recover(&sandbox);
        assert_eq!(sandbox.git(&["status", "--short"]), USER_STATUS, "{how}");
        assert_eq!(sandbox.read("a.txt"), "lane\n", "{how}");
        if how != "mv" {
            assert_eq!(status_at_first(&sandbox), before);
            sandbox.repo = first.clone();
            let _ = recover(&sandbox);
            assert_eq!(sandbox.git(&["status", "--short"]), USER_STATUS, "{how}");
        }
    }
}

/// Promise: worktree/moved-repository
#[test]
fn preview_is_undone_in_moved_or_copied_repository() {
    for how in ["mv", "cp -a"] {
        let mut sandbox = sandbox_with_lane_and_changes();
        kill_at(&sandbox, "clear.moved", &["preview", "one"]);
        relocate(&mut sandbox, how);
        let _ = recover(&sandbox);
        assert_eq!(
            sandbox.git(&["status", "--short", "--branch"]),
            format!("## main\n{USER_STATUS}"),
            "{how}"
        );
        assert_eq!(sandbox.read("mine"), "mine\n");
    }
}

/// Promise: worktree/moved-repository
#[test]
fn operations_can_be_undone_after_repository_moves() {
    let mut sandbox = sandbox_with_lane_and_changes();
    let tip = sandbox.git(&["rev-parse", "main"]);
    let _ = sandbox.proq(&["merge", "--no-cleanup", "one"]).ok();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    relocate(&mut sandbox, "mv");
    let _ = sandbox.proq(&["undo", "--dry-run"]).ok();
    for _ in 0..3 {
        let _ = sandbox.proq(&["undo"]).ok();
    }
    assert_eq!(sandbox.git(&["rev-parse", "main"]), tip);
    assert_eq!(sandbox.git(&["status", "--short", "--branch"]), format!("## main\n{USER_STATUS}"));
    assert_eq!(sandbox.read("mine"), "mine\n");
}

/// Returns a sandbox whose base is checked out in a linked worktree with changes of the user, and a lane with
/// work.
fn sandbox_with_linked_base() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("git switch -q -c other; git worktree add -q ../base main");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "one", "--base", "main"]).ok();
    sandbox
        .sh_in(&sandbox.lane_path("one"), "echo lane >one; echo lane >a.txt; git add .; git commit -qm work");
    sandbox.sh("echo mine >../base/mine; echo staged >../base/staged; git -C ../base add staged");
    sandbox
}

const KILL_POINTS: [(&str, bool); 4] = [
    ("transition.linked", false),
    ("transition.brought", false),
    ("transition.moved", true),
    ("transition.installed", true),
];

/// Promise: operations/worktree-moved
#[test]
fn landing_recovers_in_moved_worktree() {
    let by_git = "git worktree move ../base ../there";
    let by_hand = "mv ../base ../there; git worktree repair ../there";
    let and_replaced = "git worktree move ../base ../there; mkdir ../base; echo other >../base/a.txt";
    for (at, has_landed) in KILL_POINTS {
        for how in [by_git, by_hand, and_replaced, "mv ../base ../there"] {
            let sandbox = sandbox_with_linked_base();
            kill_at(&sandbox, at, &["merge", "--no-cleanup", "one"]);
            sandbox.sh(how);
            let _ = recover(&sandbox);
            let moved_worktree = sandbox.root().join("there");
            assert_eq!(sandbox.git_in(&moved_worktree, &["status", "--short"]), USER_STATUS, "{at}, {how}");
            assert_eq!(
                sandbox.git_in(&moved_worktree, &["ls-files", "one"]) == "one",
                has_landed,
                "{at}, {how}"
            );
            assert_eq!(sandbox.sh_in(&moved_worktree, "cat mine staged"), "mine\nstaged", "{at}, {how}");
            if how == and_replaced {
                assert_eq!(sandbox.sh("cat ../base/a.txt"), "other");
            }
        }
    }
}

/// Promise: operations/worktree-moved
#[test]
fn landing_recovers_without_removed_worktree() {
    for (at, has_landed) in KILL_POINTS {
        for how in [
            "git worktree remove --force ../base",
            "rm -r ../base",
            "rm -r ../base; git worktree prune",
            "rm -r ../base; git init -q ../base",
            "rm -r ../base; mkdir ../base; mkfifo ../base/.git",
            "rm -r ../base; mkdir ../base; ln -s .git ../base/.git",
        ] {
            let sandbox = sandbox_with_linked_base();
            kill_at(&sandbox, at, &["merge", "--no-cleanup", "one"]);
            sandbox.sh(how);
            let stderr = recover(&sandbox);
            assert!(
                stderr.contains(if has_landed { "done: main " } else { "undone: " }),
                "{at}, {how}: {stderr}"
            );
            let landed = sandbox.git(&["ls-tree", "--name-only", "main", "one"]) == "one";
            assert_eq!(landed, has_landed, "{at}, {how}");
            // Git has another folder of that name on record.
            if !sandbox.root().join("base").exists() {
                let _ = sandbox.proq(&["merge", "one"]).ok();
                assert_eq!(sandbox.git(&["show", "main:a.txt"]), "lane", "{at}, {how}");
            }
        }
    }
}

/// Promise: operations/worktree-moved
#[test]
fn worktree_with_reused_name_is_left_alone() {
    for (at, has_landed) in KILL_POINTS {
        let sandbox = sandbox_with_linked_base();
        kill_at(&sandbox, at, &["merge", "--no-cleanup", "one"]);
        sandbox.sh("git worktree remove --force ../base; git worktree add -q -b dev ../sub/base other");
        sandbox.sh("cd ../sub/base; echo edit >a.txt; echo new >new; git add new");
        let _ = recover(&sandbox);
        let new_worktree = sandbox.root().join("sub/base");
        assert_eq!(sandbox.git_in(&new_worktree, &["status", "--short"]), " M a.txt\nA  new", "{at}");
        assert_eq!(sandbox.sh_in(&new_worktree, "cat a.txt"), "edit", "{at}");
        let landed = sandbox.git(&["ls-tree", "--name-only", "main", "one"]) == "one";
        assert_eq!(landed, has_landed, "{at}");
    }
}

/// Promise: operations/worktree-moved
#[test]
fn replaced_follower_worktree_is_left_alone() {
    for at in ["transition.moved:1", "step.after:1", "transition.linked:2", "transition.staged:2"] {
        let sandbox = sandbox_with_linked_base();
        sandbox.sh("git worktree add -q -f ../base2 main");
        kill_at(&sandbox, at, &["merge", "--no-cleanup", "one"]);
        sandbox.sh("git worktree remove --force ../base2; git worktree add -q -b dev ../base2 other");
        let _ = recover(&sandbox);
        let new_worktree = sandbox.root().join("base2");
        assert_eq!(sandbox.git_in(&new_worktree, &["status", "--short"]), "", "{at}");
        assert_eq!(sandbox.git_in(&new_worktree, &["ls-files", "one"]), "", "{at}");
        assert_eq!(sandbox.git_in(&sandbox.root().join("base"), &["status", "--short"]), USER_STATUS, "{at}");
    }
}

/// Promise: operations/worktree-moved
#[test]
fn missing_worktree_follows_by_shown_command() {
    for how in ["true", "git worktree lock ../base2"] {
        let sandbox = sandbox_with_linked_base();
        sandbox.sh("git worktree add -q -f ../base2 main");
        kill_at(&sandbox, "transition.moved:1", &["merge", "--no-cleanup", "one"]);
        sandbox.sh(&format!("{how}; mkdir -p ../far/away; mv ../base2 ../far/away"));
        let stderr = recover(&sandbox);
        let (_, command) =
            stderr.split_once("before you commit there: ").unwrap_or_else(|| panic!("{stderr}"));
        let moved_worktree = sandbox.root().join("far/away/base2");
        sandbox.sh_in(&moved_worktree, command.lines().next().unwrap());
        assert_eq!(sandbox.git_in(&moved_worktree, &["status", "--short"]), "", "{how}");
        assert_eq!(sandbox.sh_in(&moved_worktree, "cat one"), "lane", "{how}");
    }
}

/// Promise: operations/worktree-moved
#[test]
fn reports_files_left_in_former_worktree() {
    let sandbox = sandbox_with_linked_base();
    kill_at(&sandbox, "transition.brought", &["merge", "--no-cleanup", "one"]);
    sandbox.sh("rm -r .git/worktrees/base");
    let stderr = recover(&sandbox);
    assert!(stderr.contains("base is no longer the same worktree; its files were not changed"), "{stderr}");
    assert!(stderr.contains("the rest is as it was before"), "{stderr}");
}

/// Promise: operations/worktree-moved
#[test]
fn landing_recovers_in_worktree_with_non_utf8_name() {
    let sandbox = Sandbox::new();
    sandbox.sh("git switch -q -c other; git worktree add -q \"$(printf '../b\\377')\" main");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "one", "--base", "main"]).ok();
    sandbox.commit_in_lane("one", "echo lane >a.txt");
    kill_at(&sandbox, "transition.brought", &["merge", "--no-cleanup", "one"]);
    let _ = recover(&sandbox);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(sandbox.sh("cd ../b*; git status --short; cat a.txt"), "lane");
}

/// Promise: operations/worktree-moved
#[test]
fn landing_recovers_when_git_forgot_its_worktree() {
    for (at, has_landed) in KILL_POINTS {
        let sandbox = sandbox_with_linked_base();
        kill_at(&sandbox, at, &["merge", "--no-cleanup", "one"]);
        sandbox.sh("rm -r .git/worktrees/base");
        let _ = recover(&sandbox);
        let landed = sandbox.git(&["ls-tree", "--name-only", "main", "one"]) == "one";
        assert_eq!(landed, has_landed, "{at}");
        assert_eq!(sandbox.sh("cat ../base/mine ../base/staged"), "mine\nstaged", "{at}");
    }
}

/// Promise: operations/worktree-moved
#[test]
fn landing_waits_for_locked_absent_worktree() {
    let sandbox = sandbox_with_linked_base();
    kill_at(&sandbox, "transition.brought", &["merge", "--no-cleanup", "one"]);
    sandbox.sh("git worktree lock ../base; mkdir ../disk; mv ../base ../disk");
    let refused = sandbox.proq(&["spawn", "--empty", "-n", "two"]);
    assert!(refused.code == 1 && refused.stderr.contains("base no longer exists"), "{}", refused.to_text());
    sandbox.sh("mv ../disk/base ..; git worktree unlock ../base");
    let _ = recover(&sandbox);
    assert_eq!(sandbox.git_in(&sandbox.root().join("base"), &["status", "--short"]), USER_STATUS);
}

/// Promise: operations/worktree-moved
#[test]
fn snapshots_survive_worktree_removal_before_recovery() {
    let back: &[&str] = &["-C", ".proq-worktrees/one", "snap", "restore", "2026"];
    let undo: &[&str] = &["undo"];
    for (at, args) in [
        ("restore.given", back),
        ("restore.installed", back),
        ("clear.moved", undo),
        ("clear.filled", undo),
        ("clear.installed", undo),
        ("restore.given", undo),
    ] {
        let sandbox = Sandbox::new();
        for (lane, work) in [("one", "newer"), ("two", "old")] {
            sandbox.lane_with_commit(lane, &format!("echo lane >{lane}"));
            sandbox.sh_in(&sandbox.lane_path(lane), &format!("echo {work} >{work}"));
        }
        let _ = sandbox.proq(&["discard", "--force", "two"]).ok();
        if args == undo {
            let _ = sandbox.proq(back).ok();
        }
        kill_at(&sandbox, at, args);
        sandbox.git(&["worktree", "remove", "--force", ".proq-worktrees/one"]);
        let _ = recover(&sandbox);
        let list = "for s in $(git for-each-ref --format='%(refname)' refs/proq/snap); do git ls-tree -r --name-only $s^3; done";
        let snapshot_files = sandbox.sh(list);
        assert!(snapshot_files.contains("old"), "{at} of {args:?}: {snapshot_files}");
    }
}

/// Promise: operations/rewritten-by-git
#[test]
fn files_rewritten_by_git_are_not_saved_as_edits() {
    for at in ["transition.linked", "transition.brought", "transition.staged"] {
        let sandbox = sandbox_with_lane_and_changes();
        sandbox.sh("seq 200 >b.txt; git add b.txt; git commit -qm base -- b.txt; git -C .proq-worktrees/one merge -q main");
        sandbox.commit_in_lane("one", "echo lane >>b.txt");
        kill_at(&sandbox, at, &["merge", "--no-cleanup", "one"]);
        sandbox.sh("find .git -name '*.lock' -not -path '*/proq/*' -delete; git checkout -q -- a.txt b.txt");
        let stderr = recover(&sandbox);
        assert!(!stderr.contains("are kept"), "{at}: {stderr}");
        assert_eq!(sandbox.git(&["status", "--short"]), USER_STATUS, "{at}");
    }
}

/// Promise: operations/landing-commit-kept
#[test]
fn landing_is_undone_after_git_prune() {
    for how in ["merge", "squash"] {
        for at in ["transition.locked", "transition.linked", "transition.brought", "transition.staged"] {
            let sandbox = sandbox_with_lane_and_changes();
            sandbox.sh("echo b >b.txt; git add b.txt; git commit -qm meanwhile -- b.txt");
            kill_at(&sandbox, at, &["merge", "--no-cleanup", "--strategy", how, "one"]);
            // git packs no refs while the killed landing's locks are there; the user may remove them by hand.
            sandbox.sh("rm -f .git/HEAD.lock .git/refs/heads/main.lock; git gc -q --prune=now");
            let _ = recover(&sandbox);
            assert_eq!(sandbox.git(&["status", "--short"]), USER_STATUS, "{how}, {at}");
            let _ = sandbox.proq(&["merge", "--strategy", how, "one"]).ok();
            assert_eq!(sandbox.read("a.txt"), "lane\n", "{how}, {at}");
            assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/op"]), "", "{how}, {at}");
        }
    }
}
