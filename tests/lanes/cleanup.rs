//! Tests of `git proq cleanup`: which lanes count as landed, traces of crashes, and emptying the trash.

use proq_test_kit::Sandbox;

/// Promise: removal/only-landed
#[test]
fn removes_only_landed_lanes_by_default() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("landed", "echo 1 > one");
    sandbox.run_lane("done", "echo 2 > two");
    sandbox.run_lane("same", "true");
    let _ = sandbox.proq(&["spawn", "--wait", "-n", "bad", "--", "false"]).fails(4);
    let _ =
        sandbox.proq(&["spawn", "--wait", "-n", "half", "--", "sh", "-c", "echo 3 > half; exit 1"]).fails(4);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "idle"]).ok();
    let _ = sandbox.proq(&["merge", "--no-cleanup", "landed"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["cleanup", "--dry-run"]).to_text(), @r"
    --- stderr
    would clean up landed
    --- code 0
    ");
    assert!(sandbox.lane_path("landed").exists());
    insta::assert_snapshot!(sandbox.proq(&["cleanup"]).to_text(), @r"
    cleaned up landed
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["cleanup"]).to_text(), @r"
    --- stderr
    no lane to clean up
    hint: remove 2 lanes without work to land: git proq cleanup --all
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["cleanup", "--all"]).to_text(), @r"
    cleaned up bad
    cleaned up same
    --- stderr
    cannot remove lane 'half': 1 uncommitted file (half)
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["cleanup"]).to_text(), @r"
    --- stderr
    no lane to clean up
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["cleanup", "done", "idle"]).to_text(), @r"
    cleaned up idle
    --- stderr
    error: cannot remove lane 'done': 1 commit that is not on main
    hint: remove it anyway; everything is saved first: git proq discard --force done
    --- code 1
    ");
    let _ = sandbox.proq(&["cleanup", "--force", "done"]).ok();
    insta::assert_snapshot!(sandbox.proq(&["list"]).to_text(), @r"
    LANE  STATE   COMMITS  CHANGES  AGENT    UPDATED  TITLE
    half  failed  ↓2       1 file   command  0s ago   sh -c 'echo 3 > half; exit 1'
    --- code 0
    ");
}

/// Promise: removal/only-landed
#[test]
fn keeps_landed_lane_with_later_work() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("x", "echo 1 > one");
    let _ = sandbox.proq(&["merge", "--no-cleanup", "x"]).ok();
    sandbox.write_in(&sandbox.lane_path("x"), "two", "2\n");
    insta::assert_snapshot!(sandbox.proq(&["cleanup"]).to_text(), @r"
    --- stderr
    cannot remove lane 'x': 1 uncommitted file (two)
    --- code 0
    ");
    sandbox.commit_all_in(&sandbox.lane_path("x"), "two");
    insta::assert_snapshot!(sandbox.proq(&["cleanup"]).to_text(), @r"
    --- stderr
    cannot remove lane 'x': 1 commit that is not on main
    --- code 0
    ");
    assert!(sandbox.lane_path("x").join("two").exists());
}

#[test]
fn squashed_lane_counts_as_landed() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("x", "for n in 1 2; do echo $n >> one; git add one; git commit -qm $n; done");
    sandbox.git(&["merge", "-q", "--squash", "proq/x"]);
    sandbox.commit_all("squashed");
    sandbox.write("other", "");
    sandbox.commit_all("and more");
    let _ = sandbox.proq(&["cleanup", "x"]).ok();
    assert!(!sandbox.lane_path("x").exists());
}

#[test]
fn rebased_lane_counts_as_landed() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("x", "for n in 1 2; do echo $n >> one; git add one; git commit -qm $n; done");
    sandbox.write("other", "");
    sandbox.commit_all("main moved");
    sandbox.git(&["cherry-pick", "main~1..proq/x"]);
    let _ = sandbox.proq(&["cleanup", "x"]).ok();
}

/// Promise: removal/exact-content
#[test]
fn whitespace_difference_is_not_landed() {
    let sandbox = Sandbox::new();
    sandbox.write("a.py", "if a:\n    b()\nc()\n");
    sandbox.commit_all("python");
    sandbox.run_lane("x", "printf 'if a:\\n    b()\\n    c()\\n' > a.py; git commit -qam indent");
    sandbox.write("a.py", "if a:\n    b()\n  c()\n");
    sandbox.commit_all("indent");
    insta::assert_snapshot!(sandbox.proq(&["cleanup", "x"]).to_text(), @r"
    --- stderr
    error: cannot remove lane 'x': 1 commit that is not on main
    hint: remove it anyway; everything is saved first: git proq discard --force x
    --- code 1
    ");
    assert!(sandbox.lane_path("x").exists());
}

/// Promise: removal/exact-content
#[test]
fn reverted_change_is_not_landed() {
    let sandbox = Sandbox::new();
    sandbox.run_lane("x", "echo 1 > one; git add one; git commit -qm one");
    sandbox.git(&["cherry-pick", "-x", "proq/x"]);
    sandbox.git(&["revert", "--no-edit", "HEAD"]);
    let _ = sandbox.proq(&["cleanup", "x"]).fails(1);
}

#[test]
fn removes_lanes_missing_folder_or_branch() {
    let sandbox = Sandbox::new();
    for name in ["folder", "branch", "both", "work"] {
        let _ = sandbox.proq(&["spawn", "--empty", "-n", name]).ok();
    }
    sandbox.write_in(&sandbox.lane_path("work"), "work", "");
    sandbox.commit_all_in(&sandbox.lane_path("work"), "work");
    for name in ["folder", "both", "work"] {
        std::fs::remove_dir_all(sandbox.lane_path(name)).unwrap();
    }
    sandbox.git_in(&sandbox.lane_path("branch"), &["switch", "-q", "--detach"]);
    sandbox.git(&["worktree", "prune"]);
    for name in ["branch", "both"] {
        sandbox.git(&["branch", "-q", "-D", &format!("proq/{name}")]);
    }
    insta::assert_snapshot!(sandbox.proq(&["cleanup"]).to_text(), @r"
    cleaned up both
    cleaned up branch
    cleaned up folder
    --- stderr
    cannot remove lane 'work': 1 commit that is not on main
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["list"]).to_text(), @r"
    LANE  STATE  LINES  COMMITS  CHANGES      CONFLICTS  AGENT  UPDATED
    work  idle   0      ↑1       no worktree  -          -      0s ago
    --- stderr
    warning: lane 'work' no longer has a worktree: git worktree add -f '[ROOT]/repo/.proq-worktrees/work' proq/work
    --- code 0
    ");
}

#[test]
fn removes_clean_worktree_of_killed_spawn() {
    let sandbox = Sandbox::new();
    for name in ["x", "y"] {
        let _ = sandbox.proq(&["spawn", "--empty", "-n", name]).ok();
        std::fs::remove_dir_all(sandbox.repo.join(".git/proq/lanes").join(name)).unwrap();
    }
    sandbox.write_in(&sandbox.lane_path("y"), "work", "work\n");
    insta::assert_snapshot!(sandbox.proq(&["cleanup", "--dry-run"]).to_text(), @r"
    --- stderr
    would clean up [ROOT]/repo/.proq-worktrees/x, which no lane record names
    cannot remove lane 'y': 1 uncommitted file (work)
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.proq(&["cleanup"]).to_text(), @r"
    --- stderr
    cleaned up [ROOT]/repo/.proq-worktrees/x, which no lane record names
    cannot remove lane 'y': 1 uncommitted file (work)
    --- code 0
    ");
    assert!(!sandbox.lane_path("x").exists() && sandbox.lane_path("y").join("work").exists());
    assert_eq!(sandbox.row("y")["state"], "failed");
    assert_eq!(sandbox.git(&["branch", "--list", "proq/*", "--format=%(refname:short)"]), "proq/y");
}

#[test]
fn keeps_lane_with_unreadable_record() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    let record = sandbox.repo.join(".git/proq/lanes/x/lane.toml");
    std::fs::write(&record, "format = 99\n").unwrap();
    let _ = sandbox.proq(&["cleanup", "--all"]).ok();
    assert_eq!(std::fs::read_to_string(record).unwrap(), "format = 99\n");
    assert!(sandbox.lane_path("x").exists());
}

/// Promise: removal/user-worktrees
#[test]
fn never_touches_user_worktrees() {
    let sandbox = Sandbox::new();
    sandbox.git(&["worktree", "add", "-q", "../mine", "-b", "mine"]);
    sandbox.git(&["worktree", "add", "-q", ".proq-worktrees/deeper/mine", "-b", "deeper"]);
    let before = sandbox.git(&["worktree", "list"]);
    let _ = sandbox.proq(&["cleanup", "--all"]).ok();
    assert_eq!(sandbox.git(&["worktree", "list"]), before);
}

#[test]
fn empties_trash_after_retention_period() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    let _ = sandbox.proq(&["discard", "x"]).ok();
    let entries = || std::fs::read_dir(sandbox.repo.join(".git/proq/trash")).unwrap().count();
    let at = |day: &str| {
        let _ = sandbox.proq_at(&format!("2026-01-{day}T03:04:05Z"), &["cleanup"]).ok();
    };
    at("08");
    assert_eq!(entries(), 1);
    at("09");
    assert_eq!(entries(), 0);
}
