//! Owns the tests of a preview during which somebody uses git by hand in the main checkout.

use super::losses::with_race;
use super::preview_identity::{nothing_is_left, same, waiting_snaps};
use super::support::{Image, Sandbox};

/// A lane, and a checkout with a staged change, another on top of it, and an untracked file.
fn sandbox() -> (Sandbox, Image) {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 1 20 > long.txt; echo k > keep.txt");
    sandbox.commit_all("base");
    sandbox.lane_of("one", "echo lane > lane.txt; echo lane > keep.txt");
    sandbox.sh("echo s > a.txt; git add a.txt; echo u > a.txt; echo mine > mine.txt");
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    (sandbox, before)
}

#[test]
fn edits_stashed_in_a_preview_stay_in_the_stash() {
    let (sandbox, before) = sandbox();
    sandbox.sh("echo idea > lane.txt; git stash -q");
    let stash = sandbox.git(&["rev-parse", "refs/stash"]);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
    assert_eq!(sandbox.git(&["rev-parse", "refs/stash"]), stash);
    assert_eq!(sandbox.git(&["show", "stash:lane.txt"]), "idea");
    nothing_is_left(&sandbox);
}

#[test]
fn the_users_own_changes_are_not_in_reach_of_a_stash_or_reset_in_a_preview() {
    let (sandbox, before) = sandbox();
    sandbox.sh("git reset -q --hard; git clean -fdxq -e .proq-worktrees; git stash -q --include-untracked");
    assert!(!sandbox.repo.join("mine.txt").exists());
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
    nothing_is_left(&sandbox);
}

#[test]
fn a_commit_taken_back_by_hand_in_a_preview_goes_to_nobody() {
    let (sandbox, before) = sandbox();
    let lane = sandbox.git(&["rev-parse", "proq/one"]);
    sandbox.sh("echo x > x.txt; git add x.txt; git commit -qm x; git reset -q --hard HEAD~1");
    let out = sandbox.proq(&["preview", "--back"]);
    assert!(!out.stderr.contains("kept"), "{}", out.stderr);
    let _ = out.ok();
    assert_eq!(sandbox.git(&["rev-parse", "proq/one"]), lane);
    same(&before, &Image::of(&sandbox, &sandbox.repo));
    nothing_is_left(&sandbox);
}

#[test]
fn a_preview_reset_to_its_base_by_hand_has_made_nothing() {
    let (sandbox, before) = sandbox();
    let lane = sandbox.git(&["rev-parse", "proq/one"]);
    sandbox.git(&["reset", "-q", "--hard", "main"]);
    let out = sandbox.proq(&["preview", "--back"]);
    assert!(!out.stderr.contains("could not go to lane"), "{}", out.stderr);
    let _ = out.ok();
    assert_eq!(sandbox.git(&["rev-parse", "proq/one"]), lane);
    same(&before, &Image::of(&sandbox, &sandbox.repo));
    nothing_is_left(&sandbox);
}

#[test]
fn a_preview_branch_made_anew_elsewhere_by_hand_keeps_what_was_made_there() {
    let (sandbox, before) = sandbox();
    sandbox.sh("branch=$(git symbolic-ref --short HEAD); git checkout -qB $branch main
         echo other > other.txt; git add other.txt; git commit -qm other");
    let made = sandbox.git(&["rev-parse", "HEAD"]);
    let out = sandbox.proq(&["preview", "--back"]);
    assert!(
        out.stderr.contains("could not go to lane 'one'; they are kept as refs/proq/saved/"),
        "{}",
        out.stderr
    );
    let _ = out.ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
    assert_eq!(sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]), made);
}

#[test]
fn a_base_moved_onto_the_lane_by_hand_takes_the_changes_on_top() {
    let (sandbox, _) = sandbox();
    let lane = sandbox.git(&["rev-parse", "proq/one"]);
    sandbox.git(&["checkout", "-qB", "main"]);
    assert_eq!(sandbox.git(&["rev-parse", "main"]), lane);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "MM a.txt\n?? mine.txt");
    assert_eq!((sandbox.read("a.txt"), sandbox.read("lane.txt")), ("u\n".into(), "lane\n".into()));
    nothing_is_left(&sandbox);
}

#[test]
fn a_base_moved_against_the_changes_by_hand_keeps_them_and_says_how_to_go_on() {
    let (sandbox, _) = sandbox();
    sandbox.sh("git checkout -qB main; echo theirs > a.txt; git commit -qam theirs");
    let out = sandbox.proq(&["preview", "--back"]);
    let at = out.stderr.find("git stash apply ").unwrap_or_else(|| panic!("{}", out.stderr));
    let id = out.stderr[at + 16..].split_whitespace().next().unwrap().to_owned();
    let _ = out.fails(3);
    assert_eq!(sandbox.read("a.txt"), "theirs\n");
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    assert_eq!(sandbox.git(&["show", &format!("{id}:a.txt")]), "u");
    assert_eq!(waiting_snaps(&sandbox).len(), 1);
}

#[test]
fn a_lane_rewritten_while_it_is_shown_keeps_the_edits_for_its_next_preview() {
    let (sandbox, before) = sandbox();
    sandbox.sh("echo edit >> long.txt");
    sandbox.sh_in(&sandbox.lane("one"), "echo again > again.txt; git add -A; git commit -q --amend -m again");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
    let _ = sandbox.proq(&["preview", "one"]).ok();
    assert!(sandbox.read("long.txt").ends_with("20\nedit\n"));
    assert_eq!(sandbox.read("again.txt"), "again\n");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
}

#[test]
fn a_preview_that_was_left_by_hand_is_undone_like_any_other() {
    let (sandbox, before) = sandbox();
    sandbox.git(&["switch", "-q", "main"]);
    let _ = sandbox.proq(&["undo"]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
    nothing_is_left(&sandbox);
}

#[test]
#[ignore = "needs git 2.46"]
fn a_head_that_somebody_moved_meanwhile_is_not_taken_for_moved_by_the_command() {
    let (sandbox, _) = sandbox();
    assert!(sandbox.git_version() >= (2, 46), "this test needs git 2.46");
    let preview = sandbox.git(&["rev-parse", "proq/one-preview"]);
    let act = "git symbolic-ref HEAD refs/heads/main";
    let text = with_race(&sandbox, "update-ref --stdin", act, &["preview", "--back"]).fails(1);
    assert!(text.contains("could not be moved"), "{text}");
    assert_eq!(sandbox.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(sandbox.git(&["rev-parse", "proq/one-preview"]), preview);
    assert_eq!(sandbox.read("lane.txt"), "lane\n");
    assert_eq!(waiting_snaps(&sandbox).len(), 1);
}

#[test]
fn an_undo_that_is_refused_takes_no_file_for_one_that_it_has_brought() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "git rm -q a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.git(&["reset", "-q", "--hard", "main"]);
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["undo"]).fails(1);
    same(&before, &Image::of(&sandbox, &sandbox.repo));
}

#[test]
fn a_preview_entered_again_after_leaving_by_hand_shows_what_was_committed_in_it() {
    let (sandbox, before) = sandbox();
    sandbox.sh("echo fix > fix.txt; git add fix.txt; git commit -qm fix; git switch -q main");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    assert_eq!(sandbox.read("fix.txt"), "fix\n");
    let tips = sandbox.git(&["rev-parse", "proq/one", "proq/one-preview"]);
    let (lane, shown) = tips.split_once('\n').unwrap();
    assert_eq!(lane, shown);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
    nothing_is_left(&sandbox);
}

#[test]
fn a_branch_that_is_checked_out_elsewhere_meanwhile_is_not_gone_back_to() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo one >one");
    sandbox.sh("echo mine >>a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("git worktree add -q ../w main");
    for command in
        [&["preview", "--back"][..], &["preview", "--back", "--dry-run"], &["undo"], &["undo", "--dry-run"]]
    {
        let refused = sandbox.proq(command).fails(1);
        assert!(refused.contains("'main' is checked out in") && refused.contains("/w now"), "{refused}");
        assert!(refused.contains("/w' switch --detach"), "{refused}");
    }
    sandbox.sh("git -C ../w switch -q --detach");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.git(&["status", "--short", "--branch"]), "## main\n M a.txt");

    // One that was in two worktrees before is so again.
    sandbox.sh("git worktree add -q -f ../v main");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git(&["status", "--short", "--branch"]), "## main\n M a.txt");
}

#[test]
fn a_preview_from_which_a_branch_without_commits_was_begun_can_be_left() {
    for orphan in ["git checkout -q --orphan o", "git switch -q --orphan o"] {
        left_by_a_branch_without_commits(orphan);
    }
}

fn left_by_a_branch_without_commits(orphan: &str) {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo one >one");
    sandbox.sh("echo mine >>a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh(orphan);
    let _ = sandbox.proq(&["list"]).ok();
    for command in
        [&["preview", "--back"][..], &["preview", "--back", "--dry-run"], &["preview", "--refresh"]]
    {
        let refused = sandbox.proq(command).fails(1);
        assert!(refused.contains("is on 'o', a branch without a commit"), "{refused}");
        assert!(refused.contains("go back first: git switch proq/one-preview"), "{refused}");
    }
    sandbox.sh("git switch -q proq/one-preview");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.git(&["status", "--short", "--branch"]), "## main\n M a.txt");
}

#[test]
fn a_preview_whose_changes_were_edited_since_is_left_instead_of_undone() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo one >one");
    sandbox.sh("echo u >u");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("echo more >>u");
    let _ = sandbox.proq(&["undo"]).ok();
    for command in [&["undo"][..], &["undo", "--dry-run"]] {
        let refused = sandbox.proq(command).fails(1);
        assert!(
            refused.contains("your changes were set aside anew since, and wait in the preview"),
            "{refused}"
        );
        assert!(refused.contains("git proq preview --back"), "{refused}");
    }
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.sh("cat u"), "u\nmore");
    assert_eq!(sandbox.git(&["status", "--short", "--branch"]), "## main\n?? u");
}

#[test]
fn commits_are_said_to_be_in_the_lane_only_once_they_are() {
    let (sandbox, _) = sandbox();
    sandbox.sh(
        "git branch side main; git switch -q side; echo side > lane.txt; git add .; git commit -qm side; git switch -q -
        echo own > own.txt; git add own.txt; git commit -qm own; git merge -q side >/dev/null 2>&1 || true",
    );
    let tip = sandbox.git(&["rev-parse", "proq/one"]);
    let text = sandbox.proq(&["preview", "--back"]).fails(1);
    assert!(!text.contains("are in lane"), "{text}");
    assert_eq!(sandbox.git(&["rev-parse", "proq/one"]), tip);
    sandbox.git(&["merge", "--abort"]);
    let out = sandbox.proq(&["preview", "--back"]);
    assert!(out.stderr.contains("the commits made in the preview are in lane 'one' now"), "{}", out.stderr);
    let _ = out.ok();
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "proq/one"]), "own");
}

/// The command that a warning or a finding names.
fn stash_apply(text: &str) -> String {
    let at = text.find("git stash apply ").unwrap_or_else(|| panic!("{text}"));
    text[at..].chars().take("git stash apply ".len() + 8).collect()
}

#[test]
fn a_preview_is_left_though_the_record_of_the_users_changes_is_gone() {
    for way in
        [&["preview", "--back"][..], &["preview", "two"], &["merge", "one"], &["discard", "--force", "one"]]
    {
        let (sandbox, before) = sandbox();
        sandbox.sh("rm -r .git/proq/snaps/*");
        for undo in [&["undo", "--dry-run"][..], &["undo"]] {
            let refused = sandbox.proq(undo).fails(1);
            assert!(refused.contains("leave the preview instead: git proq preview --back"), "{refused}");
        }
        let _ = sandbox.proq(&["spawn", "--empty", "-n", "two"]).ok();
        let help = sandbox.proq(&["doctor", "--fix"]).stdout;
        assert!(help.contains("git proq preview --back && git stash apply "), "{help}");
        let mut out = sandbox.proq(way);
        if way[1] == "two" {
            // The changes wait on, and so does the word about them.
            let _ = out.ok();
            out = sandbox.proq(&["preview", "--back"]);
        }
        let apply = stash_apply(&out.stderr);
        let _ = out.ok();
        assert_eq!(sandbox.git(&["status", "--short", "--branch"]), "## main");
        assert_eq!(stash_apply(&sandbox.proq(&["doctor"]).stdout), apply);
        sandbox.sh(&apply);
        if way[0] != "merge" {
            let now = Image::of(&sandbox, &sandbox.repo);
            assert_eq!((&now.files, now.head), (&before.files, before.head));
        }
        assert_eq!((sandbox.read("a.txt"), sandbox.read("mine.txt")), ("u\n".into(), "mine\n".into()));
        sandbox.sh("git update-ref -d $(git for-each-ref --format='%(refname)' refs/proq/snap)");
        sandbox.assert_healthy();
    }
}

#[test]
fn a_preview_that_was_left_by_hand_is_closed_though_the_record_of_the_changes_is_gone() {
    let (sandbox, _) = sandbox();
    sandbox.sh("rm -r .git/proq/snaps/*; git switch -q main");
    let out = sandbox.proq(&["preview", "--back"]);
    sandbox.sh(&stash_apply(&out.stderr));
    let _ = out.ok();
    assert_eq!(sandbox.read("mine.txt"), "mine\n");
    let _ = sandbox.proq(&["preview", "one"]).ok();
}

#[test]
fn edits_of_a_preview_whose_record_is_gone_do_not_keep_the_lane_from_being_shown() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo lane > lane.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.write("idea", "idea\n");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("rm -r .git/proq/snaps/*");
    let out = sandbox.proq(&["preview", "one"]);
    sandbox.sh(&stash_apply(&out.stderr));
    let _ = out.ok();
    assert_eq!(sandbox.read("idea"), "idea\n");
}

#[test]
fn a_preview_that_was_left_by_hand_and_whose_branch_was_renamed_goes_back_by_the_hints() {
    let (sandbox, before) = sandbox();
    sandbox.sh("git branch -m main trunk; git switch -qc other");
    for head in ["make it again: ", "go back first: "] {
        let refused = sandbox.proq(&["preview", "--back"]).fails(1);
        let hint = refused.lines().find_map(|line| line.strip_prefix("hint: ")?.strip_prefix(head));
        sandbox
            .sh(hint.unwrap_or_else(|| panic!("{refused}")).trim_end_matches(" && git proq preview --back"));
    }
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&before, &Image::of(&sandbox, &sandbox.repo));
}
