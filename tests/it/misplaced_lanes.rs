//! Owns the tests of lanes whose folder is not where it was made: moved with git, moved or copied with its repository, or replaced.

use serde_json::json;

use super::support::{Output, Sandbox};

/// A sandbox with a lane `x` that has a commit and an uncommitted file of its own.
fn with_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_of("x", "echo own > own.txt");
    sandbox.write_in(&sandbox.lane("x"), "draft", "draft\n");
    sandbox.program("claude", "echo agent >> agent.txt");
    sandbox
}

/// The refs that keep what removed lanes had.
fn saved(sandbox: &Sandbox) -> String {
    sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/proq/saved"])
}

#[test]
fn a_lane_that_git_moved_is_found_in_its_new_folder() {
    let sandbox = with_lane();
    sandbox.git(&["worktree", "move", ".proq-worktrees/x", "../elsewhere"]);
    let away = sandbox.root().join("elsewhere");
    sandbox.assert_healthy();
    let row = sandbox.row("x");
    assert_eq!((&row["path"], &row["missing"]), (&json!("[ROOT]/elsewhere"), &json!([])), "{row:#}");

    let _ = sandbox.proq(&["discard", "--force", "--dry-run", "x"]).ok();
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    assert!(!away.exists());
    assert_eq!(saved(&sandbox).lines().count(), 1);
    let _ = sandbox.proq(&["undo", "--dry-run"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(std::fs::read_to_string(away.join("draft")).unwrap(), "draft\n");
    sandbox.assert_healthy();

    sandbox.commit_all_in(&away, "draft");
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert!(!away.exists());
    let _ = sandbox.proq(&["undo"]).ok();
    assert!(away.join("draft").exists());
    sandbox.git(&["worktree", "move", "../elsewhere", ".proq-worktrees/x"]);
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["merge", "x"]).ok();
    sandbox.assert_healthy();
}

#[test]
fn a_lane_without_work_that_git_moved_is_cleaned_up() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.git(&["worktree", "move", ".proq-worktrees/x", "../elsewhere"]);
    // It has lost nothing, so it goes only when it is named.
    assert_eq!(sandbox.proq(&["cleanup"]).ok(), "");
    assert_eq!(sandbox.proq(&["cleanup", "x"]).ok(), "cleaned up x\n");
    let _ = sandbox.proq(&["undo"]).ok();
    assert!(sandbox.root().join("elsewhere/a.txt").exists());
    sandbox.assert_healthy();
}

#[test]
fn a_lane_that_git_moved_goes_with_an_undo_of_its_making() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.git(&["worktree", "move", ".proq-worktrees/x", "../elsewhere"]);
    let _ = sandbox.proq(&["undo", "--dry-run"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert!(!sandbox.root().join("elsewhere").exists());
    assert_eq!(sandbox.git(&["branch", "--list", "proq/*"]), "");
    sandbox.assert_healthy();
}

#[test]
fn a_worktree_of_the_users_own_is_not_taken_for_a_lane_of_its_name() {
    let sandbox = with_lane();
    sandbox.sh("rm -r .proq-worktrees/x; git worktree prune; git worktree add -q -b mine ../x; echo mine > ../x/mine");
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    assert_eq!(sandbox.sh("cat ../x/mine; git -C ../x status --porcelain"), "mine\n?? mine");
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.sh("cat ../x/mine; git -C ../x status --porcelain"), "mine\n?? mine");
}

#[test]
fn a_branch_that_another_worktree_is_on_keeps_its_lane_and_nothing_is_saved() {
    let sandbox = with_lane();
    sandbox.git(&["worktree", "add", "-q", "-f", "../other", "proq/x"]);
    for args in [&["discard", "--force", "--dry-run", "x"][..], &["discard", "--force", "x"]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(sandbox.proq(args).shown(), @r"
            --- stderr
            error: lane 'x' was kept: [ROOT]/other is on its branch; 1 uncommitted file (draft); 1 commit that is not on main
            hint: leave its branch: git -C '[ROOT]/other' switch --detach
            --- code 1
            ");
        }
    }
    assert_eq!(saved(&sandbox), "");
    let _ = typed(&sandbox, &hint(&sandbox.proq(&["discard", "x"]), "leave its branch: "));
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
}

/// The command of a hint that begins so.
#[track_caller]
fn hint(out: &Output, head: &str) -> String {
    let line = out.stderr.lines().find_map(|line| line.strip_prefix("hint: ")?.strip_prefix(head));
    line.unwrap_or_else(|| panic!("no '{head}' in\n{}", out.shown())).to_owned()
}

/// Runs a command line in the main checkout as a person would copy it.
#[track_caller]
fn typed(sandbox: &Sandbox, line: &str) -> String {
    sandbox.sh(&line.replace("[ROOT]", sandbox.root().to_str().unwrap()))
}
