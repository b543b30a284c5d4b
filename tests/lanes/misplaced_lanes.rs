//! Tests of lanes whose folder is not at its recorded path: moved with git, moved or copied with the
//! repository, or replaced.

use proq_test_kit::{Output, Sandbox};
use serde_json::json;

/// Creates a sandbox with lane `x`, which has a commit and an uncommitted file.
fn sandbox_with_lane() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo own > own.txt");
    sandbox.write_in(&sandbox.lane_path("x"), "draft", "draft\n");
    sandbox.program("claude", "echo agent >> agent.txt");
    sandbox
}

/// Returns the refs that keep the work of removed lanes.
fn saved_refs(sandbox: &Sandbox) -> String {
    sandbox.git(&["for-each-ref", "--format=%(refname)", "refs/proq/saved"])
}

/// Promise: removal/moved-lane
#[test]
fn finds_lane_moved_with_git_worktree_move() {
    let sandbox = sandbox_with_lane();
    sandbox.git(&["worktree", "move", ".proq-worktrees/x", "../elsewhere"]);
    let moved_folder = sandbox.root().join("elsewhere");
    sandbox.assert_healthy();
    let row = sandbox.row("x");
    assert_eq!((&row["path"], &row["missing"]), (&json!("[ROOT]/elsewhere"), &json!([])), "{row:#}");

    let _ = sandbox.proq(&["discard", "--force", "--dry-run", "x"]).ok();
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    assert!(!moved_folder.exists());
    assert_eq!(saved_refs(&sandbox).lines().count(), 1);
    let _ = sandbox.proq(&["undo", "--dry-run"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(std::fs::read_to_string(moved_folder.join("draft")).unwrap(), "draft\n");
    sandbox.assert_healthy();

    sandbox.commit_all_in(&moved_folder, "draft");
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert!(!moved_folder.exists());
    let _ = sandbox.proq(&["undo"]).ok();
    assert!(moved_folder.join("draft").exists());
    sandbox.git(&["worktree", "move", "../elsewhere", ".proq-worktrees/x"]);
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["merge", "x"]).ok();
    sandbox.assert_healthy();
}

/// Promise: removal/moved-lane
#[test]
fn cleans_up_moved_lane_without_work_by_name() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.git(&["worktree", "move", ".proq-worktrees/x", "../elsewhere"]);
    // It misses no files, so cleanup removes it only by name.
    assert_eq!(sandbox.proq(&["cleanup"]).ok(), "");
    assert_eq!(sandbox.proq(&["cleanup", "x"]).ok(), "cleaned up x\n");
    let _ = sandbox.proq(&["undo"]).ok();
    assert!(sandbox.root().join("elsewhere/a.txt").exists());
    sandbox.assert_healthy();
}

/// Promise: removal/moved-lane
#[test]
fn undo_of_spawn_removes_a_moved_lane() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.git(&["worktree", "move", ".proq-worktrees/x", "../elsewhere"]);
    let _ = sandbox.proq(&["undo", "--dry-run"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert!(!sandbox.root().join("elsewhere").exists());
    assert_eq!(sandbox.git(&["branch", "--list", "proq/*"]), "");
    sandbox.assert_healthy();
}

/// Promise: removal/moved-lane
#[test]
fn unrelated_worktree_of_same_name_is_untouched() {
    let sandbox = sandbox_with_lane();
    sandbox.sh("rm -r .proq-worktrees/x; git worktree prune; git worktree add -q -b mine ../x; echo mine > ../x/mine");
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    assert_eq!(sandbox.sh("cat ../x/mine; git -C ../x status --porcelain"), "mine\n?? mine");
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.sh("cat ../x/mine; git -C ../x status --porcelain"), "mine\n?? mine");
}

/// Promise: removal/branch-in-other-worktree
#[test]
fn keeps_lane_whose_branch_another_worktree_has() {
    let sandbox = sandbox_with_lane();
    sandbox.git(&["worktree", "add", "-q", "-f", "../other", "proq/x"]);
    for args in [&["discard", "--force", "--dry-run", "x"][..], &["discard", "--force", "x"]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(sandbox.proq(args).to_text(), @r"
            --- stderr
            error: cannot remove lane 'x': [ROOT]/other is on its branch; 1 uncommitted file (draft); 1 commit that is not on main
            hint: leave its branch: git -C '[ROOT]/other' switch --detach
            --- code 1
            ");
        }
    }
    assert_eq!(saved_refs(&sandbox), "");
    let _ = run_pasted(&sandbox, &hint_command(&sandbox.proq(&["discard", "x"]), "leave its branch: "));
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
}

/// Returns the command of the hint that starts with `prefix`.
#[track_caller]
fn hint_command(out: &Output, prefix: &str) -> String {
    let line = out.stderr.lines().find_map(|line| line.strip_prefix("hint: ")?.strip_prefix(prefix));
    line.unwrap_or_else(|| panic!("no '{prefix}' in\n{}", out.to_text())).to_owned()
}

/// Runs a command line in the main checkout as if it were pasted there.
#[track_caller]
fn run_pasted(sandbox: &Sandbox, command: &str) -> String {
    sandbox.sh(&command.replace("[ROOT]", sandbox.root().to_str().unwrap()))
}

/// Returns the commands that `doctor` suggests for its findings about lanes.
#[track_caller]
fn doctor_commands(sandbox: &Sandbox) -> Vec<String> {
    let answer = sandbox.proq(&["doctor", "--json"]).json();
    let findings = answer["findings"].as_array().unwrap().iter();
    let lane_findings = findings.filter(|finding| finding["check"].as_str().unwrap().starts_with("lane-"));
    lane_findings.map(|found| found["help"].as_str().unwrap().to_owned()).collect()
}

/// Runs all commands that `doctor` suggests for lanes, and asserts that no finding about lanes is left.
#[track_caller]
fn run_doctor_commands(sandbox: &Sandbox) {
    let commands = doctor_commands(sandbox);
    assert!(!commands.is_empty());
    for command in commands {
        run_pasted(sandbox, &command);
    }
    assert_eq!(doctor_commands(sandbox), Vec::<String>::new());
}

/// Promise: removal/moved-or-absent
#[test]
fn hints_repair_lanes_of_a_moved_repository() {
    let mut sandbox = sandbox_with_lane();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y"]).ok();
    sandbox.sh_in(&sandbox.root(), "mv repo moved");
    sandbox.repo = sandbox.root().join("moved");
    insta::assert_snapshot!(sandbox.proq(&["list"]).to_text(), @"
    LANE  STATE  LINES  COMMITS  CHANGES      CONFLICTS  AGENT  UPDATED
    x     idle   +1     ↑1       no worktree  -          -      0s ago
    y     idle   -      -        no worktree  -          -      0s ago
    --- stderr
    warning: lane 'x': its folder was moved with the repository to [ROOT]/moved/.proq-worktrees/x: git worktree repair '[ROOT]/moved/.proq-worktrees/x'
    warning: lane 'y': its folder was moved with the repository to [ROOT]/moved/.proq-worktrees/y: git worktree repair '[ROOT]/moved/.proq-worktrees/y'
    --- code 0
    ");
    for args in [&["cleanup", "--dry-run"][..], &["cleanup"]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(sandbox.proq(args).to_text(), @r"
            --- stderr
            cannot remove lane 'x': its folder was moved with the repository to [ROOT]/moved/.proq-worktrees/x; 1 commit that is not on main
            cannot remove lane 'y': its folder was moved with the repository to [ROOT]/moved/.proq-worktrees/y
            --- code 0
            ");
        }
    }
    for args in [&["discard", "--force", "--dry-run", "y"][..], &["discard", "--force", "y"]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(sandbox.proq(args).to_text(), @r"
            --- stderr
            error: cannot remove lane 'y': its folder was moved with the repository to [ROOT]/moved/.proq-worktrees/y
            hint: repair it: git worktree repair '[ROOT]/moved/.proq-worktrees/y'
            --- code 1
            ");
        }
    }
    run_doctor_commands(&sandbox);
    sandbox.assert_healthy();
    assert_eq!(sandbox.git_in(&sandbox.lane_path("x"), &["status", "--porcelain"]), "?? draft");
    assert_eq!(sandbox.row("x")["path"], "[ROOT]/moved/.proq-worktrees/x");
    assert_eq!(sandbox.proq(&["cleanup", "y"]).ok(), "cleaned up y\n");
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.read(".proq-worktrees/x/draft"), "draft\n");
    let _ = sandbox.proq(&["undo"]).ok();
    sandbox.assert_healthy();
}

/// Promise: removal/moved-or-absent
#[test]
fn hint_repairs_lanes_left_behind_by_a_moved_repository() {
    let mut sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.lane.location", "../lanes/{lane}"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.sh_in(&sandbox.root(), "mv repo moved");
    sandbox.repo = sandbox.root().join("moved");
    assert!(sandbox.proq(&["cleanup"]).ok().is_empty());
    let list = sandbox.proq(&["list"]);
    let reason = "[ROOT]/lanes/x is no longer a worktree: its .git is missing or another";
    let warning = format!("warning: lane 'x': {reason}: git worktree repair\n");
    assert!(list.stderr.contains(&warning), "{}", list.to_text());
    run_doctor_commands(&sandbox);
    sandbox.assert_healthy();
    assert_eq!(sandbox.proq(&["cleanup", "x"]).ok(), "cleaned up x\n");
}

/// Promise: removal/moved-or-absent
#[test]
fn lane_possibly_moved_needs_discard_with_force() {
    let mut sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.lane.location", "../lanes/{lane}"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.sh_in(&sandbox.root(), "echo mine > lanes/x/mine; mv lanes far; mv repo moved");
    sandbox.repo = sandbox.root().join("moved");
    for args in [&["cleanup", "--dry-run", "x"][..], &["cleanup", "x"], &["discard", "x"]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(sandbox.proq(args).to_text(), @r"
            --- stderr
            error: cannot remove lane 'x': its folder is not at [ROOT]/lanes/x; it may have been moved with the repository, or be on a disk that is not mounted
            hint: remove it anyway; everything is saved first: git proq discard --force x
            --- code 1
            ");
        }
    }
    assert!(sandbox.proq(&["cleanup"]).ok().is_empty());
    assert_eq!(sandbox.row("x")["missing"], json!(["worktree"]));
    let out = sandbox.proq(&["discard", "--force", "x"]);
    assert_eq!(out.to_text(), "discarded x\n--- code 0\n");
    let _ = sandbox.proq(&["undo"]).ok();
    sandbox.sh_in(&sandbox.root(), "mv far lanes; git -C moved worktree repair ../lanes/x");
    assert_eq!(std::fs::read_to_string(sandbox.root().join("lanes/x/mine")).unwrap(), "mine\n");
    sandbox.assert_healthy();
}

/// Promise: removal/copied-repository
#[test]
fn copied_repository_keeps_off_the_original_lanes() {
    let mut sandbox = sandbox_with_lane();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y"]).ok();
    sandbox.sh_in(&sandbox.root(), "cp -a repo copy");
    let copy = sandbox.root().join("copy");
    let original = std::mem::replace(&mut sandbox.repo, copy.clone());
    let doctor = sandbox.proq(&["doctor"]);
    let reason = "lane 'x': [ROOT]/repo/.proq-worktrees/x is a worktree of another repository, [ROOT]/repo\n";
    assert!(doctor.stdout.contains(reason), "{}", doctor.to_text());
    let commands = doctor_commands(&sandbox);
    assert!(
        commands.len() == 2 && commands.iter().all(|command| !command.contains("worktree repair")),
        "{commands:?}"
    );
    for args in [&["merge", "x"][..], &["discard", "x"], &["cleanup", "x"], &["run", "x", "claude", "go on"]]
    {
        let text = sandbox.proq(args).fails(1);
        assert!(text.contains("is a worktree of another repository"), "{args:?}: {text}");
    }
    run_doctor_commands(&sandbox);
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    assert!(!copy.join(".proq-worktrees/x").exists());
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.read(".proq-worktrees/x/draft"), "draft\n");
    sandbox.assert_healthy();

    sandbox.repo = original;
    sandbox.assert_healthy();
    assert_eq!(sandbox.git_in(&sandbox.lane_path("x"), &["status", "--porcelain"]), "?? draft");
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
}

/// Promise: removal/copied-repository
#[test]
fn copy_without_lane_folders_drops_only_records() {
    let mut sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.lane.location", "../lanes/{lane}"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    sandbox.write_in(&sandbox.root(), "lanes/x/draft", "draft\n");
    sandbox.sh_in(&sandbox.root(), "cp -a repo copy");
    let copy = sandbox.root().join("copy");
    let original = std::mem::replace(&mut sandbox.repo, copy);
    assert_eq!(doctor_commands(&sandbox), ["git proq discard --force x"]);
    let _ = sandbox.proq(&["discard", "--force", "--dry-run", "x"]).ok();
    run_doctor_commands(&sandbox);
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(doctor_commands(&sandbox), ["git proq discard --force x"]);
    sandbox.repo = original;
    sandbox.assert_healthy();
    assert_eq!(sandbox.git_in(&sandbox.root().join("lanes/x"), &["status", "--porcelain"]), "?? draft");
}

/// Asserts that lane `x` is refused for `reason`, can be discarded with force and restored by undo, and is
/// repaired by the command of `doctor`.
#[track_caller]
fn assert_removed_restored_and_repaired(sandbox: &Sandbox, reason: &str) {
    let list = sandbox.proq(&["list"]);
    assert!(list.stderr.contains(&format!("warning: lane 'x': {reason}: ")), "{}", list.to_text());
    for args in [&["merge", "x"][..], &["run", "x", "claude", "go on"], &["discard", "x"]] {
        let out = sandbox.proq(args);
        assert!(out.code == 1 && out.to_text().contains(reason), "{args:?}: {}", out.to_text());
        assert!(out.stderr.contains("repair it: "), "{args:?}: {}", out.to_text());
    }
    let _ = sandbox.proq(&["discard", "--force", "--dry-run", "x"]).ok();
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    assert_eq!(sandbox.git(&["branch", "--list", "proq/x"]), "");
    let _ = sandbox.proq(&["undo"]).ok();
    run_doctor_commands(sandbox);
    assert_eq!(sandbox.read(".proq-worktrees/x/own.txt"), "own\n");
    assert_eq!(sandbox.git_in(&sandbox.lane_path("x"), &["branch", "--show-current"]), "proq/x");
}

/// Promise: removal/replaced-folder
#[test]
fn repairs_lane_whose_folder_is_a_link_or_file() {
    let sandbox = sandbox_with_lane();
    sandbox.sh("mv .proq-worktrees/x ../real; ln -s ../../nowhere .proq-worktrees/x");
    let reason = "[ROOT]/repo/.proq-worktrees/x is a symbolic link, not a folder";
    assert_removed_restored_and_repaired(&sandbox, reason);
    assert_eq!(sandbox.sh("readlink .proq-worktrees/x.old"), "../../nowhere");

    let sandbox = sandbox_with_lane();
    sandbox
        .sh("mv .proq-worktrees/x ../real; echo mine > .proq-worktrees/x; echo old > .proq-worktrees/x.old");
    let reason = "[ROOT]/repo/.proq-worktrees/x is a file, not a folder";
    assert_removed_restored_and_repaired(&sandbox, reason);
    assert_eq!(sandbox.sh("cat .proq-worktrees/x.old .proq-worktrees/x.old2"), "old\nmine");
}

/// Promise: removal/replaced-folder
#[test]
fn doctor_repairs_lane_reached_through_a_link() {
    let sandbox = sandbox_with_lane();
    sandbox.sh("mv .proq-worktrees/x ../real; ln -s ../../real .proq-worktrees/x");
    let refused = sandbox.proq(&["discard", "--force", "x"]);
    let _ = sandbox.proq(&["discard", "--force", "--dry-run", "x"]).fails(1);
    assert_eq!(hint_command(&refused, "repair it: "), "git worktree repair '[ROOT]/real'");
    run_doctor_commands(&sandbox);
    let _ = sandbox.proq(&["discard", "--force", "x"]).ok();
    assert!(!sandbox.root().join("real").exists());
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.read(".proq-worktrees/x/draft"), "draft\n");
    assert_eq!(doctor_commands(&sandbox), Vec::<String>::new());
}

/// Promise: removal/replaced-folder
#[test]
fn repairs_lane_that_git_has_no_record_of() {
    let sandbox = sandbox_with_lane();
    sandbox.sh("rm -r .git/worktrees/x");
    let reason = "git no longer has a record of [ROOT]/repo/.proq-worktrees/x as a worktree";
    assert_removed_restored_and_repaired(&sandbox, reason);
    assert_eq!(sandbox.read(".proq-worktrees/x.old/draft"), "draft\n");
}

/// Promise: removal/replaced-folder
#[test]
fn repairs_lane_whose_git_file_is_missing_or_replaced() {
    for damage in ["rm .git", "rm .git; git init -q; echo mine > .git/mine"] {
        let sandbox = sandbox_with_lane();
        sandbox.sh_in(&sandbox.lane_path("x"), damage);
        let reason = "[ROOT]/repo/.proq-worktrees/x is no longer a worktree: its .git is missing or another";
        assert_removed_restored_and_repaired(&sandbox, reason);
        assert_eq!(sandbox.read(".proq-worktrees/x/draft"), "draft\n");
        if damage.contains("mine") {
            assert_eq!(sandbox.read(".proq-worktrees/x/.git.old/mine"), "mine\n");
        }
    }
}

/// Promise: removal/gone-branch
#[test]
fn names_and_keeps_last_commit_of_deleted_branch() {
    let sandbox = sandbox_with_lane();
    let lane = sandbox.lane_path("x");
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    sandbox.sh_in(&lane, "rm draft; git switch -q --detach main; git branch -q -D proq/x");
    let short = &tip[..8];
    let doctor = sandbox.proq(&["doctor"]);
    let line = format!(" {short} still exists\nhint: restore the branch: git branch proq/x {short}");
    assert!(doctor.stdout.contains(&line), "{}", doctor.to_text());
    assert_eq!(
        sandbox.proq(&["cleanup"]).to_text(),
        format!(
            "cleaned up x\n--- stderr\nits commits are kept: git branch restored-{short} {short}\n--- code 0\n"
        )
    );
    sandbox.sh("git reflog expire --expire=now --all; git gc -q --prune=now");
    sandbox.git(&["cat-file", "-e", &tip]);
    let _ = sandbox.proq(&["undo"]).ok();
    run_doctor_commands(&sandbox);
    assert_eq!(sandbox.git(&["rev-parse", "proq/x"]), tip);
}

/// Promise: removal/gone-branch
#[test]
fn lists_detached_commits_apart_from_branch_commits() {
    let sandbox = sandbox_with_lane();
    let lane = sandbox.lane_path("x");
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    sandbox.sh_in(
        &lane,
        "git switch -q --detach; git add draft; git commit -q -m detached; git branch -q -D proq/x",
    );
    let head = sandbox.git_in(&lane, &["rev-parse", "HEAD"]);
    let (tip, head) = (&tip[..8], &head[..8]);
    // The command in the warning of `list` works when pasted.
    let list = sandbox.proq(&["list"]);
    let warning = format!("warning: lane 'x' no longer has a branch: git branch proq/x {tip}\n");
    assert!(list.stderr.contains(&warning), "{}", list.to_text());
    let doctor = sandbox.proq(&["doctor"]);
    assert!(doctor.stdout.contains(&format!("its last commit {tip} still exists")), "{}", doctor.to_text());
    let out = sandbox.proq(&["cleanup", "--force", "x"]).to_text();
    assert!(out.contains(&format!("its commits are kept: git branch restored-{tip} {tip}\n")), "{out}");
    let detached_line =
        format!("its commits on a detached HEAD ({head}) are kept: git branch restored-{head} {head}\n");
    assert!(out.contains(&detached_line), "{out}");
}

/// Promise: removal/gone-branch
#[test]
fn removes_lane_without_folder_and_names_its_commits() {
    let sandbox = sandbox_with_lane();
    let tip = sandbox.git(&["rev-parse", "--short=8", "proq/x"]);
    sandbox.sh("rm -r .proq-worktrees/x; git update-ref -d refs/heads/proq/x");
    let doctor = sandbox.proq(&["doctor"]);
    assert!(doctor.stdout.contains("git proq cleanup x"), "{}", doctor.to_text());
    let note = format!("its commits are kept: git branch restored-{tip} {tip}\n");
    let out = sandbox.proq(&["discard", "x"]).to_text();
    assert_eq!(out, format!("discarded x\n--- stderr\n{note}--- code 0\n"));
    let _ = sandbox.proq(&["undo"]).ok();
    let out = sandbox.proq(&["cleanup", "x"]).to_text();
    assert_eq!(out, format!("cleaned up x\n--- stderr\n{note}--- code 0\n"));
}

#[test]
fn hint_renames_a_renamed_branch_back() {
    for new_name in ["renamed", "proq/x/deeper", "a;touch${IFS}pwned"] {
        let sandbox = sandbox_with_lane();
        let tip = sandbox.git(&["rev-parse", "proq/x"]);
        sandbox.sh_in(&sandbox.lane_path("x"), &format!("rm draft; git branch -m '{new_name}'"));
        let doctor = sandbox.proq(&["doctor"]).stdout;
        let line = format!(
            "lane 'x' no longer has a branch; it was renamed to '{new_name}'\n\
             hint: rename it: git branch -m '{new_name}' proq/x"
        );
        assert!(doctor.contains(&line) && !doctor.contains("switch proq/x"), "{doctor}");
        run_doctor_commands(&sandbox);
        assert_eq!(sandbox.git(&["rev-parse", "proq/x"]), tip);
        assert!(sandbox.proq(&["doctor"]).ok().contains("all well"));
        assert!(!sandbox.repo.join("pwned").exists());
    }
}

#[test]
fn hint_renames_back_in_reftable_repository() {
    let sandbox = Sandbox::empty();
    if sandbox.git_version() < (2, 46) {
        return;
    }
    sandbox.sh("rm -rf .git; git init -q -b main --ref-format=reftable");
    sandbox.write("a.txt", "a\n");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("x", "echo own > own.txt");
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    sandbox.git(&["branch", "-m", "proq/x", "proq/x/deeper"]);
    for command in ["list", "doctor"] {
        let out = sandbox.proq(&[command]).to_text();
        assert!(out.contains("git branch -m 'proq/x/deeper' proq/x"), "{out}");
    }
    run_doctor_commands(&sandbox);
    assert_eq!(sandbox.git(&["rev-parse", "proq/x"]), tip);
    sandbox.assert_healthy();
}

#[test]
fn hint_moves_branches_that_occupy_the_lane_name() {
    let sandbox = sandbox_with_lane();
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    sandbox.sh_in(&sandbox.lane_path("x"), "rm draft");
    sandbox.sh("git update-ref -d refs/heads/proq/x; git branch 'proq/x/a;b'; git branch proq/x/deep/c");
    run_doctor_commands(&sandbox);
    assert_eq!(sandbox.git(&["rev-parse", "proq/x"]), tip);
    sandbox.sh("git rev-parse -q --verify 'x/a;b' x/deep/c >/dev/null || git rev-parse x/deep/c");
    sandbox.assert_healthy();
}

#[test]
fn hint_recreates_branch_without_a_reflog() {
    let sandbox = sandbox_with_lane();
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    sandbox.sh_in(
        &sandbox.lane_path("x"),
        "rm draft; git switch -q --detach; git branch -q -D proq/x; git reflog expire --expire=now --all; git gc -q --prune=now",
    );
    let doctor = sandbox.proq(&["doctor"]).stdout;
    assert!(doctor.contains(&format!("git branch proq/x {}", &tip[..8])), "{doctor}");
    run_doctor_commands(&sandbox);
    assert_eq!(sandbox.git(&["rev-parse", "proq/x"]), tip);
}
