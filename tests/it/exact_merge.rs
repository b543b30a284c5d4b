//! Owns the tests of merges that need no decision: made in process, and the tree that git would make.

use super::recovery::kit::with_git;
use super::resolve::conflicting;
use super::support::Sandbox;

/// Runs a command that succeeds, and says whether git was asked to merge.
fn asks_git(sandbox: &Sandbox, args: &[&str]) -> bool {
    let command = with_git(sandbox, "merge-tree", ": > \"$ROOT/asked\"; exec $REAL \"$@\"", args);
    let _ = sandbox.output(command).ok();
    sandbox.root().join("asked").exists()
}

/// Lands lane `x` and says whether git was asked to merge. The tree that landed is git's, whoever made it.
fn lands_with_git(sandbox: &Sandbox) -> bool {
    let wanted = sandbox.git(&["merge-tree", "--write-tree", "main", "proq/x"]);
    let asked = asks_git(sandbox, &["merge", "x"]);
    assert_eq!(sandbox.git(&["rev-parse", "main^{tree}"]), wanted);
    asked
}

fn moved_base(lane: &str, base: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh(
        "mkdir -p d/e; echo 1 > d/e/one; echo 2 > d/two; echo 3 > three; git add .; git commit -qm files",
    );
    sandbox.lane_of("x", lane);
    sandbox.sh(&format!("{base}; git add -A; git commit -qm base"));
    sandbox
}

#[test]
fn changes_in_other_files_need_no_git() {
    let sandbox =
        moved_base("echo lane > d/e/new; echo lane > d/two", "echo base >> d/e/one; chmod +x three");
    assert!(!lands_with_git(&sandbox));
}

#[test]
fn the_same_change_on_both_sides_needs_no_git() {
    let sandbox = moved_base("echo same > d/e/new; echo lane > three", "echo same > d/e/new");
    assert!(!lands_with_git(&sandbox));
}

#[test]
fn a_file_that_both_changed_is_gits() {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 40 > long; git add .; git commit -qm long");
    sandbox.lane_of("x", "sed -i 's/^40$/forty/' long");
    sandbox.sh("sed -i 's/^1$/one/' long; git commit -qam base");
    assert!(lands_with_git(&sandbox));
}

#[test]
fn what_both_removed_is_gits() {
    let sandbox = moved_base("git rm -q d/two; echo lane > new", "git rm -q d/two");
    assert!(lands_with_git(&sandbox));
}

#[test]
fn a_renamed_file_that_the_other_side_changed_is_gits() {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 40 > long; git add .; git commit -qm long");
    sandbox.lane_of("x", "sed -i 's/^40$/forty/' long");
    sandbox.sh("git mv long moved; git commit -qm move");
    assert!(lands_with_git(&sandbox));
    assert!(sandbox.read("moved").ends_with("forty\n"));
}

#[test]
fn a_replaced_commit_is_gits() {
    let sandbox = moved_base("echo lane > new", "echo base > other");
    sandbox.sh("git replace main^ $(git commit-tree -m other main^^{tree})");
    assert!(lands_with_git(&sandbox));
}

#[test]
fn a_lane_that_landed_by_content_is_known_without_git() {
    let sandbox =
        moved_base("echo lane > new; echo lane > d/two", "git merge -q --squash proq/x; echo more > more");
    assert!(!asks_git(&sandbox, &["cleanup", "x"]));
    assert!(!sandbox.lane("x").exists());
}

#[test]
fn a_lane_of_which_a_decision_is_left_is_asked_of_git() {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 40 > long; git add .; git commit -qm long");
    sandbox.lane_of("x", "sed -i 's/^40$/forty/' long");
    sandbox.sh("git merge -q --squash proq/x; sed -i 's/^1$/one/' long; git commit -qam squashed");
    assert!(asks_git(&sandbox, &["cleanup", "x"]));
    assert!(!sandbox.lane("x").exists());
}

#[test]
fn a_conflict_that_is_over_is_known_without_git() {
    let sandbox = conflicting();
    sandbox.sh("git revert --no-edit HEAD > /dev/null");
    assert!(!asks_git(&sandbox, &["resolve", "clash", "--agent", "good"]));
    assert_eq!(sandbox.row("clash")["state"], "done");
}

#[test]
fn attributes_that_only_a_dry_run_has_merged_are_found_there() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "merge.renormalize", "true"]);
    sandbox.sh("for n in 1 2 3 4 5 6 7 8 9; do echo \"*.$n text\"; done > .gitattributes; seq 40 > long; git add .; git commit -qm base");
    sandbox.lane_of("first", "sed -i 's/^.*1 text$/*.a text/' .gitattributes");
    sandbox.lane_of("second", "sed -i 's/^.*9 text$/*.z text/' .gitattributes; sed -i 's/^1$/one/' long");
    sandbox.lane_of("third", "sed -i 's/^40$/forty/' long");
    let all = ["merge", "first", "second", "third", "--order", "given"];
    let _ = sandbox.proq(&[&all[..], &["--dry-run"]].concat()).ok();
    let _ = sandbox.proq(&all).ok();
    assert!(sandbox.read(".gitattributes").contains("*.a") && sandbox.read(".gitattributes").contains("*.z"));
}
