//! Tests of previews during which the user runs git by hand in the main checkout.

use proq_test_kit::faults::run_with_race;
use proq_test_kit::snapshots::{assert_no_preview_left, assert_same_image, waiting_snapshots};
use proq_test_kit::{RepoState, Sandbox, WorktreeState};

/// Opens a preview of a lane from a checkout with a staged change, an unstaged one in the same file, and an
/// untracked file. Returns the image of the checkout before the preview.
fn sandbox_in_preview() -> (Sandbox, WorktreeState) {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 1 20 > long.txt; echo k > keep.txt");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "echo lane > lane.txt; echo lane > keep.txt");
    sandbox.sh("echo s > a.txt; git add a.txt; echo u > a.txt; echo mine > mine.txt");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    (sandbox, before)
}

/// Promise: preview/manual-git
#[test]
fn edits_stashed_in_a_preview_stay_in_the_stash() {
    let (sandbox, before) = sandbox_in_preview();
    sandbox.sh("echo idea > lane.txt; git stash -q");
    let stash = sandbox.git(&["rev-parse", "refs/stash"]);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    assert_eq!(sandbox.git(&["rev-parse", "refs/stash"]), stash);
    assert_eq!(sandbox.git(&["show", "stash:lane.txt"]), "idea");
    assert_no_preview_left(&sandbox);
}

/// Promise: preview/manual-git
#[test]
fn parked_changes_survive_stash_and_reset_in_a_preview() {
    let (sandbox, before) = sandbox_in_preview();
    sandbox.sh("git reset -q --hard; git clean -fdxq -e .proq-worktrees; git stash -q --include-untracked");
    assert!(!sandbox.repo.join("mine.txt").exists());
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    assert_no_preview_left(&sandbox);
}

#[test]
fn commit_reset_in_a_preview_reaches_no_lane() {
    let (sandbox, before) = sandbox_in_preview();
    let lane = sandbox.git(&["rev-parse", "proq/one"]);
    sandbox.sh("echo x > x.txt; git add x.txt; git commit -qm x; git reset -q --hard HEAD~1");
    let out = sandbox.proq(&["preview", "--back"]);
    assert!(!out.stderr.contains("kept"), "{}", out.stderr);
    let _ = out.ok();
    assert_eq!(sandbox.git(&["rev-parse", "proq/one"]), lane);
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    assert_no_preview_left(&sandbox);
}

#[test]
fn preview_reset_to_base_leaves_the_lane_unchanged() {
    let (sandbox, before) = sandbox_in_preview();
    let lane = sandbox.git(&["rev-parse", "proq/one"]);
    sandbox.git(&["reset", "-q", "--hard", "main"]);
    let out = sandbox.proq(&["preview", "--back"]);
    assert!(!out.stderr.contains("cannot move the commits made in the preview to lane"), "{}", out.stderr);
    let _ = out.ok();
    assert_eq!(sandbox.git(&["rev-parse", "proq/one"]), lane);
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    assert_no_preview_left(&sandbox);
}

/// Promise: preview/manual-git
#[test]
fn saves_commits_of_a_recreated_preview_branch() {
    let (sandbox, before) = sandbox_in_preview();
    sandbox.sh("branch=$(git symbolic-ref --short HEAD); git checkout -qB $branch main
         echo other > other.txt; git add other.txt; git commit -qm other");
    let commit = sandbox.git(&["rev-parse", "HEAD"]);
    let out = sandbox.proq(&["preview", "--back"]);
    assert!(
        out.stderr.contains(
            "cannot move the commits made in the preview to lane 'one'; they are saved as refs/proq/saved/"
        ),
        "{}",
        out.stderr
    );
    let _ = out.ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    assert_eq!(sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]), commit);
}

/// Promise: preview/manual-git
#[test]
fn base_moved_to_lane_by_hand_gets_the_changes() {
    let (sandbox, _) = sandbox_in_preview();
    let lane = sandbox.git(&["rev-parse", "proq/one"]);
    sandbox.git(&["checkout", "-qB", "main"]);
    assert_eq!(sandbox.git(&["rev-parse", "main"]), lane);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "MM a.txt\n?? mine.txt");
    assert_eq!((sandbox.read("a.txt"), sandbox.read("lane.txt")), ("u\n".into(), "lane\n".into()));
    assert_no_preview_left(&sandbox);
}

#[test]
fn changes_that_conflict_with_moved_base_stay_saved() {
    let (sandbox, _) = sandbox_in_preview();
    sandbox.sh("git checkout -qB main; echo theirs > a.txt; git commit -qam theirs");
    let out = sandbox.proq(&["preview", "--back"]);
    let offset = out.stderr.find("git stash apply ").unwrap_or_else(|| panic!("{}", out.stderr));
    let id = out.stderr[offset + 16..].split_whitespace().next().unwrap().to_owned();
    let _ = out.fails(3);
    assert_eq!(sandbox.read("a.txt"), "theirs\n");
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    assert_eq!(sandbox.git(&["show", &format!("{id}:a.txt")]), "u");
    assert_eq!(waiting_snapshots(&sandbox).len(), 1);
}

#[test]
fn keeps_preview_edits_when_the_lane_is_amended() {
    let (sandbox, before) = sandbox_in_preview();
    sandbox.sh("echo edit >> long.txt");
    sandbox.sh_in(
        &sandbox.lane_path("one"),
        "echo again > again.txt; git add -A; git commit -q --amend -m again",
    );
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    let _ = sandbox.proq(&["preview", "one"]).ok();
    assert!(sandbox.read("long.txt").ends_with("20\nedit\n"));
    assert_eq!(sandbox.read("again.txt"), "again\n");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
}

/// Promise: operations/moved-by-others
#[test]
fn undoes_a_preview_left_by_hand() {
    let (sandbox, before) = sandbox_in_preview();
    sandbox.git(&["switch", "-q", "main"]);
    let _ = sandbox.proq(&["undo"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    assert_no_preview_left(&sandbox);
}

/// Promise: operations/moved-by-others
#[test]
#[ignore = "needs git 2.46"]
fn back_refuses_a_head_moved_at_the_same_time() {
    let (sandbox, _) = sandbox_in_preview();
    assert!(sandbox.git_version() >= (2, 46), "this test needs git 2.46");
    let preview = sandbox.git(&["rev-parse", "proq/one-preview"]);
    let race_command = "git symbolic-ref HEAD refs/heads/main";
    let text = run_with_race(&sandbox, "update-ref --stdin", race_command, &["preview", "--back"]).fails(1);
    assert!(text.contains("cannot move '"), "{text}");
    assert_eq!(sandbox.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(sandbox.git(&["rev-parse", "proq/one-preview"]), preview);
    assert_eq!(sandbox.read("lane.txt"), "lane\n");
    assert_eq!(waiting_snapshots(&sandbox).len(), 1);
}

/// Promise: operations/moved-by-others
#[test]
fn refused_undo_after_a_reset_changes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "git rm -q a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.git(&["reset", "-q", "--hard", "main"]);
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["undo"]).fails(1);
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
}

#[test]
fn reentered_preview_shows_commits_made_in_it() {
    let (sandbox, before) = sandbox_in_preview();
    sandbox.sh("echo fix > fix.txt; git add fix.txt; git commit -qm fix; git switch -q main");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    assert_eq!(sandbox.read("fix.txt"), "fix\n");
    let tips = sandbox.git(&["rev-parse", "proq/one", "proq/one-preview"]);
    let (lane, shown) = tips.split_once('\n').unwrap();
    assert_eq!(lane, shown);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    assert_no_preview_left(&sandbox);
}

/// Promise: worktree/branch-elsewhere
#[test]
fn back_refuses_a_branch_checked_out_elsewhere() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one >one");
    sandbox.sh("echo mine >>a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("git worktree add -q ../w main");
    for command in
        [&["preview", "--back"][..], &["preview", "--back", "--dry-run"], &["undo"], &["undo", "--dry-run"]]
    {
        let refused = sandbox.proq(command).fails(1);
        assert!(refused.contains("'main'") && refused.contains("is checked out in [ROOT]/w"), "{refused}");
        assert!(refused.contains("/w' switch --detach"), "{refused}");
    }
    sandbox.sh("git -C ../w switch -q --detach");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.git(&["status", "--short", "--branch"]), "## main\n M a.txt");

    // A branch that was checked out in two worktrees before may be so again.
    sandbox.sh("git worktree add -q -f ../v main");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git(&["status", "--short", "--branch"]), "## main\n M a.txt");
}

#[test]
fn leaves_preview_after_an_orphan_branch_was_created() {
    for orphan in ["git checkout -q --orphan o", "git switch -q --orphan o"] {
        check_leaving_orphan_branch(orphan);
    }
}

fn check_leaving_orphan_branch(script: &str) {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one >one");
    sandbox.sh("echo mine >>a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh(script);
    let _ = sandbox.proq(&["list"]).ok();
    for command in
        [&["preview", "--back"][..], &["preview", "--back", "--dry-run"], &["preview", "--refresh"]]
    {
        let refused = sandbox.proq(command).fails(1);
        assert!(refused.contains("is on 'o' now, a branch without commits"), "{refused}");
        assert!(refused.contains("switch back and leave it: git switch proq/one-preview"), "{refused}");
    }
    sandbox.sh("git switch -q proq/one-preview");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.git(&["status", "--short", "--branch"]), "## main\n M a.txt");
}

#[test]
fn undo_refuses_preview_whose_parked_changes_changed() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one >one");
    sandbox.sh("echo u >u");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("echo more >>u");
    let _ = sandbox.proq(&["undo"]).ok();
    for command in [&["undo"][..], &["undo", "--dry-run"]] {
        let refused = sandbox.proq(command).fails(1);
        assert!(refused.contains("the preview has saved your changes again since then"), "{refused}");
        assert!(refused.contains("git proq preview --back"), "{refused}");
    }
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.sh("cat u"), "u\nmore");
    assert_eq!(sandbox.git(&["status", "--short", "--branch"]), "## main\n?? u");
}

#[test]
fn reports_commits_moved_to_lane_only_once_they_are() {
    let (sandbox, _) = sandbox_in_preview();
    sandbox.sh(
        "git branch side main; git switch -q side; echo side > lane.txt; git add .; git commit -qm side; git switch -q -
        echo own > own.txt; git add own.txt; git commit -qm own; git merge -q side >/dev/null 2>&1 || true",
    );
    let tip = sandbox.git(&["rev-parse", "proq/one"]);
    let text = sandbox.proq(&["preview", "--back"]).fails(1);
    assert!(!text.contains("moved the commits made in the preview to lane"), "{text}");
    assert_eq!(sandbox.git(&["rev-parse", "proq/one"]), tip);
    sandbox.git(&["merge", "--abort"]);
    let out = sandbox.proq(&["preview", "--back"]);
    assert!(out.stderr.contains("moved the commits made in the preview to lane 'one'"), "{}", out.stderr);
    let _ = out.ok();
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "proq/one"]), "own");
}

/// Returns the `git stash apply` command that a warning or finding names.
fn stash_apply_command(text: &str) -> String {
    let offset = text.find("git stash apply ").unwrap_or_else(|| panic!("{text}"));
    text[offset..].chars().take("git stash apply ".len() + 8).collect()
}

/// Promise: preview/deleted-record
#[test]
fn leaves_preview_without_record_of_parked_changes() {
    for command in
        [&["preview", "--back"][..], &["preview", "two"], &["merge", "one"], &["discard", "--force", "one"]]
    {
        let (sandbox, before) = sandbox_in_preview();
        sandbox.sh("rm -r .git/proq/snaps/*");
        for undo in [&["undo", "--dry-run"][..], &["undo"]] {
            let refused = sandbox.proq(undo).fails(1);
            assert!(refused.contains("leave the preview instead: git proq preview --back"), "{refused}");
        }
        let _ = sandbox.proq(&["spawn", "--empty", "-n", "two"]).ok();
        let report = sandbox.proq(&["doctor", "--fix"]).stdout;
        assert!(report.contains("git proq preview --back && git stash apply "), "{report}");
        let mut out = sandbox.proq(command);
        if command[1] == "two" {
            // The changes stay parked, and `--back` names them again.
            let _ = out.ok();
            out = sandbox.proq(&["preview", "--back"]);
        }
        let apply_command = stash_apply_command(&out.stderr);
        let _ = out.ok();
        assert_eq!(sandbox.git(&["status", "--short", "--branch"]), "## main");
        assert_eq!(stash_apply_command(&sandbox.proq(&["doctor"]).stdout), apply_command);
        sandbox.sh(&apply_command);
        if command[0] != "merge" {
            let after = WorktreeState::capture(&sandbox, &sandbox.repo);
            assert_eq!((&after.files, after.head), (&before.files, before.head));
        }
        assert_eq!((sandbox.read("a.txt"), sandbox.read("mine.txt")), ("u\n".into(), "mine\n".into()));
        sandbox.sh("git update-ref -d $(git for-each-ref --format='%(refname)' refs/proq/snap)");
        sandbox.assert_healthy();
    }
}

/// Promise: preview/deleted-record
#[test]
fn closes_left_preview_without_record_of_the_changes() {
    let (sandbox, _) = sandbox_in_preview();
    sandbox.sh("rm -r .git/proq/snaps/*; git switch -q main");
    let out = sandbox.proq(&["preview", "--back"]);
    sandbox.sh(&stash_apply_command(&out.stderr));
    let _ = out.ok();
    assert_eq!(sandbox.read("mine.txt"), "mine\n");
    let _ = sandbox.proq(&["preview", "one"]).ok();
}

/// Promise: preview/deleted-record
#[test]
fn shows_lane_without_record_of_preview_edits() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo lane > lane.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.write("idea", "idea\n");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("rm -r .git/proq/snaps/*");
    let out = sandbox.proq(&["preview", "one"]);
    sandbox.sh(&stash_apply_command(&out.stderr));
    let _ = out.ok();
    assert_eq!(sandbox.read("idea"), "idea\n");
}

#[test]
fn hints_lead_back_when_the_base_branch_was_renamed() {
    let (sandbox, before) = sandbox_in_preview();
    sandbox.sh("git branch -m main trunk; git switch -qc other");
    for prefix in ["create it again: ", "switch back and leave it: "] {
        let refused = sandbox.proq(&["preview", "--back"]).fails(1);
        let hint = refused.lines().find_map(|line| line.strip_prefix("hint: ")?.strip_prefix(prefix));
        sandbox
            .sh(hint.unwrap_or_else(|| panic!("{refused}")).trim_end_matches(" && git proq preview --back"));
    }
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
}

#[test]
fn undo_keeps_edits_made_after_manual_return() {
    for edit in ["rm d", "echo edited > d", "echo new > d-new", "chmod +x d"] {
        for finish in [&["preview", "--back"][..], &["preview", "x"]] {
            let sandbox = Sandbox::new();
            sandbox.sh("for f in a d; do echo $f > $f; done; git add .; git commit -qm files");
            sandbox.lane_with_commit("x", "echo 1 > one");
            sandbox.sh("rm a; echo untracked > u; echo staged > s; git add s");
            let _ = sandbox.proq(&["preview", "x"]).ok();
            sandbox.sh("git switch -q main");
            sandbox.sh(edit);
            let before = RepoState::capture(&sandbox);
            let _ = sandbox.proq(finish).ok();
            let undone = sandbox.proq(&["undo"]).to_text();
            assert!(undone.contains("undid") && !undone.contains("set aside"), "{edit}: {undone}");
            RepoState::capture(&sandbox).assert_same(&before, edit);
            // The edit does not wait with the parked changes, so it may go on.
            sandbox.sh("echo later > d; echo later > d-new");
            let _ = sandbox.proq(&["preview", "--back"]).ok();
            let status = sandbox.git(&["status", "--short"]);
            assert!(
                status.contains(" D a\n") && status.contains("?? u") && status.contains("A  s"),
                "{status}"
            );
            sandbox.assert_healthy();
        }
    }
}
