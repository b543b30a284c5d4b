//! Owns the tests of what happens between a command that was cut short and the next one: the repository is moved or copied, with
//! operations that are undone then, a worktree is moved or removed, git throws away what no ref leads to.

use super::kit::{dies, recovers};
use crate::support::Sandbox;

/// A lane and changes of the user's own.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo lane >one; echo lane >a.txt");
    sandbox.sh("echo mine >mine; echo staged >staged; git add staged");
    sandbox
}

/// Moves or copies the repository, with its lanes, and goes on there.
fn go(sandbox: &mut Sandbox, how: &str) {
    sandbox.sh_in(&sandbox.root(), &format!("{how} repo there"));
    sandbox.repo = sandbox.root().join("there");
    if how == "mv" {
        sandbox.sh("git worktree repair .proq-worktrees/*");
    }
}

const OWN: &str = "A  staged\n?? mine";

#[test]
fn a_landing_that_was_cut_short_is_ended_where_the_repository_is() {
    for how in ["mv", "cp -a"] {
        let mut sandbox = sandbox();
        dies(&sandbox, "transition.moved", &["merge", "--no-cleanup", "one"]);
        let first = sandbox.repo.clone();
        let there = |sandbox: &Sandbox| sandbox.sh_in(&first, "git status --short; cat a.txt");
        let before = if how == "mv" { String::new() } else { there(&sandbox) };
        go(&mut sandbox, how);
        let _ = recovers(&sandbox);
        assert_eq!(sandbox.git(&["status", "--short"]), OWN, "{how}");
        assert_eq!(sandbox.read("a.txt"), "lane\n", "{how}");
        if how != "mv" {
            assert_eq!(there(&sandbox), before);
            sandbox.repo = first.clone();
            let _ = recovers(&sandbox);
            assert_eq!(sandbox.git(&["status", "--short"]), OWN, "{how}");
        }
    }
}

#[test]
fn a_preview_that_was_cut_short_is_taken_back_where_the_repository_is() {
    for how in ["mv", "cp -a"] {
        let mut sandbox = sandbox();
        dies(&sandbox, "clear.moved", &["preview", "one"]);
        go(&mut sandbox, how);
        let _ = recovers(&sandbox);
        assert_eq!(sandbox.git(&["status", "--short", "--branch"]), format!("## main\n{OWN}"), "{how}");
        assert_eq!(sandbox.read("mine"), "mine\n");
    }
}

#[test]
fn what_was_done_before_a_repository_was_moved_can_be_undone() {
    let mut sandbox = sandbox();
    let tip = sandbox.git(&["rev-parse", "main"]);
    let _ = sandbox.proq(&["merge", "--no-cleanup", "one"]).ok();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    go(&mut sandbox, "mv");
    let _ = sandbox.proq(&["undo", "--dry-run"]).ok();
    for _ in 0..3 {
        let _ = sandbox.proq(&["undo"]).ok();
    }
    assert_eq!(sandbox.git(&["rev-parse", "main"]), tip);
    assert_eq!(sandbox.git(&["status", "--short", "--branch"]), format!("## main\n{OWN}"));
    assert_eq!(sandbox.read("mine"), "mine\n");
}

/// A base that is checked out in a linked worktree with changes of the user's own, and a lane with work.
fn on_linked_base() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("git switch -q -c other; git worktree add -q ../base main");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "one", "--base", "main"]).ok();
    sandbox.sh_in(&sandbox.lane("one"), "echo lane >one; echo lane >a.txt; git add .; git commit -qm work");
    sandbox.sh("echo mine >../base/mine; echo staged >../base/staged; git -C ../base add staged");
    sandbox
}

const MOMENTS: [(&str, bool); 4] = [
    ("transition.linked", false),
    ("transition.brought", false),
    ("transition.moved", true),
    ("transition.installed", true),
];

#[test]
fn a_landing_that_was_cut_short_is_ended_where_its_worktree_was_moved() {
    let by_git = "git worktree move ../base ../there";
    let by_hand = "mv ../base ../there; git worktree repair ../there";
    let and_replaced = "git worktree move ../base ../there; mkdir ../base; echo other >../base/a.txt";
    for (at, has_landed) in MOMENTS {
        for how in [by_git, by_hand, and_replaced, "mv ../base ../there"] {
            let sandbox = on_linked_base();
            dies(&sandbox, at, &["merge", "--no-cleanup", "one"]);
            sandbox.sh(how);
            let _ = recovers(&sandbox);
            let there = sandbox.root().join("there");
            assert_eq!(sandbox.git_in(&there, &["status", "--short"]), OWN, "{at}, {how}");
            assert_eq!(sandbox.git_in(&there, &["ls-files", "one"]) == "one", has_landed, "{at}, {how}");
            assert_eq!(sandbox.sh_in(&there, "cat mine staged"), "mine\nstaged", "{at}, {how}");
            if how == and_replaced {
                assert_eq!(sandbox.sh("cat ../base/a.txt"), "other");
            }
        }
    }
}

#[test]
fn a_landing_that_was_cut_short_is_ended_without_its_worktree() {
    for (at, has_landed) in MOMENTS {
        for how in [
            "git worktree remove --force ../base",
            "rm -r ../base",
            "rm -r ../base; git worktree prune",
            "rm -r ../base; git init -q ../base",
            "rm -r ../base; mkdir ../base; mkfifo ../base/.git",
            "rm -r ../base; mkdir ../base; ln -s .git ../base/.git",
        ] {
            let sandbox = on_linked_base();
            dies(&sandbox, at, &["merge", "--no-cleanup", "one"]);
            sandbox.sh(how);
            let said = recovers(&sandbox);
            assert!(
                said.contains(if has_landed { "done: main " } else { "taken back: " }),
                "{at}, {how}: {said}"
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

#[test]
fn a_worktree_that_has_the_name_of_a_removed_one_is_left_alone() {
    for (at, has_landed) in MOMENTS {
        let sandbox = on_linked_base();
        dies(&sandbox, at, &["merge", "--no-cleanup", "one"]);
        sandbox.sh("git worktree remove --force ../base; git worktree add -q -b dev ../sub/base other");
        sandbox.sh("cd ../sub/base; echo edit >a.txt; echo new >new; git add new");
        let _ = recovers(&sandbox);
        let there = sandbox.root().join("sub/base");
        assert_eq!(sandbox.git_in(&there, &["status", "--short"]), " M a.txt\nA  new", "{at}");
        assert_eq!(sandbox.sh_in(&there, "cat a.txt"), "edit", "{at}");
        let landed = sandbox.git(&["ls-tree", "--name-only", "main", "one"]) == "one";
        assert_eq!(landed, has_landed, "{at}");
    }
}

#[test]
fn a_worktree_in_the_place_of_one_that_was_to_follow_is_left_alone() {
    for at in ["transition.moved:1", "step.after:1", "transition.linked:2", "transition.staged:2"] {
        let sandbox = on_linked_base();
        sandbox.sh("git worktree add -q -f ../base2 main");
        dies(&sandbox, at, &["merge", "--no-cleanup", "one"]);
        sandbox.sh("git worktree remove --force ../base2; git worktree add -q -b dev ../base2 other");
        let _ = recovers(&sandbox);
        let there = sandbox.root().join("base2");
        assert_eq!(sandbox.git_in(&there, &["status", "--short"]), "", "{at}");
        assert_eq!(sandbox.git_in(&there, &["ls-files", "one"]), "", "{at}");
        assert_eq!(sandbox.git_in(&sandbox.root().join("base"), &["status", "--short"]), OWN, "{at}");
    }
}

#[test]
fn a_worktree_that_is_nowhere_to_be_found_follows_by_the_command_that_is_shown() {
    for how in ["true", "git worktree lock ../base2"] {
        let sandbox = on_linked_base();
        sandbox.sh("git worktree add -q -f ../base2 main");
        dies(&sandbox, "transition.moved:1", &["merge", "--no-cleanup", "one"]);
        sandbox.sh(&format!("{how}; mkdir -p ../far/away; mv ../base2 ../far/away"));
        let said = recovers(&sandbox);
        let (_, command) = said.split_once("before you commit there: ").unwrap_or_else(|| panic!("{said}"));
        let there = sandbox.root().join("far/away/base2");
        sandbox.sh_in(&there, command.lines().next().unwrap());
        assert_eq!(sandbox.git_in(&there, &["status", "--short"]), "", "{how}");
        assert_eq!(sandbox.sh_in(&there, "cat one"), "lane", "{how}");
    }
}

#[test]
fn half_written_files_of_a_folder_that_is_no_worktree_any_more_are_said() {
    let sandbox = on_linked_base();
    dies(&sandbox, "transition.brought", &["merge", "--no-cleanup", "one"]);
    sandbox.sh("rm -r .git/worktrees/base");
    let said = recovers(&sandbox);
    assert!(
        said.contains("base is not the worktree any more that it was; its files were left as they are"),
        "{said}"
    );
    assert!(said.contains("the rest is as it was before"), "{said}");
}

#[test]
fn a_landing_goes_on_where_the_name_of_its_worktree_is_no_text() {
    let sandbox = Sandbox::new();
    sandbox.sh("git switch -q -c other; git worktree add -q \"$(printf '../b\\377')\" main");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "one", "--base", "main"]).ok();
    sandbox.commit_in_lane("one", "echo lane >a.txt");
    dies(&sandbox, "transition.brought", &["merge", "--no-cleanup", "one"]);
    let _ = recovers(&sandbox);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(sandbox.sh("cd ../b*; git status --short; cat a.txt"), "lane");
}

#[test]
fn a_landing_that_was_cut_short_is_ended_where_git_has_forgotten_its_worktree() {
    for (at, has_landed) in MOMENTS {
        let sandbox = on_linked_base();
        dies(&sandbox, at, &["merge", "--no-cleanup", "one"]);
        sandbox.sh("rm -r .git/worktrees/base");
        let _ = recovers(&sandbox);
        let landed = sandbox.git(&["ls-tree", "--name-only", "main", "one"]) == "one";
        assert_eq!(landed, has_landed, "{at}");
        assert_eq!(sandbox.sh("cat ../base/mine ../base/staged"), "mine\nstaged", "{at}");
    }
}

#[test]
fn a_landing_that_was_cut_short_waits_for_a_worktree_that_git_keeps_for_an_absent_disk() {
    let sandbox = on_linked_base();
    dies(&sandbox, "transition.brought", &["merge", "--no-cleanup", "one"]);
    sandbox.sh("git worktree lock ../base; mkdir ../disk; mv ../base ../disk");
    let refused = sandbox.proq(&["spawn", "--empty", "-n", "two"]);
    assert!(
        refused.code == 1 && refused.stderr.contains("base is not there any more"),
        "{}",
        refused.shown()
    );
    sandbox.sh("mv ../disk/base ..; git worktree unlock ../base");
    let _ = recovers(&sandbox);
    assert_eq!(sandbox.git_in(&sandbox.root().join("base"), &["status", "--short"]), OWN);
}

#[test]
fn what_snapshots_hold_stays_when_their_worktree_is_removed_before_a_recovery() {
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
            sandbox.lane_of(lane, &format!("echo lane >{lane}"));
            sandbox.sh_in(&sandbox.lane(lane), &format!("echo {work} >{work}"));
        }
        let _ = sandbox.proq(&["discard", "--force", "two"]).ok();
        if args == undo {
            let _ = sandbox.proq(back).ok();
        }
        dies(&sandbox, at, args);
        sandbox.git(&["worktree", "remove", "--force", ".proq-worktrees/one"]);
        let _ = recovers(&sandbox);
        let list = "for s in $(git for-each-ref --format='%(refname)' refs/proq/snap); do git ls-tree -r --name-only $s^3; done";
        let kept = sandbox.sh(list);
        assert!(kept.contains("old"), "{at} of {args:?}: {kept}");
    }
}

#[test]
fn files_that_git_writes_once_more_before_a_recovery_are_nobodys() {
    for at in ["transition.linked", "transition.brought", "transition.staged"] {
        let sandbox = sandbox();
        sandbox.sh("seq 200 >b.txt; git add b.txt; git commit -qm base -- b.txt; git -C .proq-worktrees/one merge -q main");
        sandbox.commit_in_lane("one", "echo lane >>b.txt");
        dies(&sandbox, at, &["merge", "--no-cleanup", "one"]);
        sandbox.sh("find .git -name '*.lock' -not -path '*/proq/*' -delete; git checkout -q -- a.txt b.txt");
        let said = recovers(&sandbox);
        assert!(!said.contains("are kept"), "{at}: {said}");
        assert_eq!(sandbox.git(&["status", "--short"]), OWN, "{at}");
    }
}

#[test]
fn a_landing_that_was_cut_short_is_taken_back_after_a_prune() {
    for how in ["merge", "squash"] {
        for at in ["transition.locked", "transition.linked", "transition.brought", "transition.staged"] {
            let sandbox = sandbox();
            sandbox.sh("echo b >b.txt; git add b.txt; git commit -qm meanwhile -- b.txt");
            dies(&sandbox, at, &["merge", "--no-cleanup", "--strategy", how, "one"]);
            sandbox.sh("git gc -q --prune=now");
            let _ = recovers(&sandbox);
            assert_eq!(sandbox.git(&["status", "--short"]), OWN, "{how}, {at}");
            let _ = sandbox.proq(&["merge", "--strategy", how, "one"]).ok();
            assert_eq!(sandbox.read("a.txt"), "lane\n", "{how}, {at}");
            assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/op"]), "", "{how}, {at}");
        }
    }
}
