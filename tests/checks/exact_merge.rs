//! Tests of merges without file-level decisions: made in process, with the same tree that git makes.

use proq_test_kit::Sandbox;
use proq_test_kit::conflict::sandbox_with_conflict;
use proq_test_kit::faults::with_git_wrapper;

/// Runs a command that must succeed and returns whether it started `git merge-tree`.
fn runs_git_merge(sandbox: &Sandbox, args: &[&str]) -> bool {
    let command = with_git_wrapper(sandbox, "merge-tree", ": > \"$ROOT/asked\"; exec $REAL \"$@\"", args);
    let _ = sandbox.output(command).ok();
    sandbox.root().join("asked").exists()
}

/// Lands lane `x` and returns whether git merged. Asserts that the landed tree is the one git makes.
fn landing_runs_git_merge(sandbox: &Sandbox) -> bool {
    let expected_tree = sandbox.git(&["merge-tree", "--write-tree", "main", "proq/x"]);
    let ran_git = runs_git_merge(sandbox, &["merge", "x"]);
    assert_eq!(sandbox.git(&["rev-parse", "main^{tree}"]), expected_tree);
    ran_git
}

fn with_lane_and_moved_base(lane: &str, base: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh(
        "mkdir -p d/e; echo 1 > d/e/one; echo 2 > d/two; echo 3 > three; git add .; git commit -qm files",
    );
    sandbox.lane_with_commit("x", lane);
    sandbox.sh(&format!("{base}; git add -A; git commit -qm base"));
    sandbox
}

#[test]
fn changes_in_different_files_merge_in_process() {
    let sandbox = with_lane_and_moved_base(
        "echo lane > d/e/new; echo lane > d/two",
        "echo base >> d/e/one; chmod +x three",
    );
    assert!(!landing_runs_git_merge(&sandbox));
}

#[test]
fn identical_changes_merge_in_process() {
    let sandbox = with_lane_and_moved_base("echo same > d/e/new; echo lane > three", "echo same > d/e/new");
    assert!(!landing_runs_git_merge(&sandbox));
}

#[test]
fn file_changed_on_both_sides_uses_git() {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 40 > long; git add .; git commit -qm long");
    sandbox.lane_with_commit("x", "sed -i 's/^40$/forty/' long");
    sandbox.sh("sed -i 's/^1$/one/' long; git commit -qam base");
    assert!(landing_runs_git_merge(&sandbox));
}

/// Promise: operations/same-tree-as-git
#[test]
fn file_removed_on_both_sides_uses_git() {
    let sandbox = with_lane_and_moved_base("git rm -q d/two; echo lane > new", "git rm -q d/two");
    assert!(landing_runs_git_merge(&sandbox));
}

#[test]
fn renamed_and_changed_file_uses_git() {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 40 > long; git add .; git commit -qm long");
    sandbox.lane_with_commit("x", "sed -i 's/^40$/forty/' long");
    sandbox.sh("git mv long moved; git commit -qm move");
    assert!(landing_runs_git_merge(&sandbox));
    assert!(sandbox.read("moved").ends_with("forty\n"));
}

#[test]
fn replaced_commit_uses_git() {
    let sandbox = with_lane_and_moved_base("echo lane > new", "echo base > other");
    sandbox.sh("git replace main^ $(git commit-tree -m other main^^{tree})");
    assert!(landing_runs_git_merge(&sandbox));
}

#[test]
fn cleanup_detects_squashed_lane_in_process() {
    let sandbox = with_lane_and_moved_base(
        "echo lane > new; echo lane > d/two",
        "git merge -q --squash proq/x; echo more > more",
    );
    assert!(!runs_git_merge(&sandbox, &["cleanup", "x"]));
    assert!(!sandbox.lane_path("x").exists());
}

#[test]
fn cleanup_uses_git_for_file_changed_since_squash() {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 40 > long; git add .; git commit -qm long");
    sandbox.lane_with_commit("x", "sed -i 's/^40$/forty/' long");
    sandbox.sh("git merge -q --squash proq/x; sed -i 's/^1$/one/' long; git commit -qam squashed");
    assert!(runs_git_merge(&sandbox, &["cleanup", "x"]));
    assert!(!sandbox.lane_path("x").exists());
}

#[test]
fn resolve_detects_vanished_conflict_in_process() {
    let sandbox = sandbox_with_conflict();
    sandbox.sh("git revert --no-edit HEAD > /dev/null");
    assert!(!runs_git_merge(&sandbox, &["resolve", "clash", "--agent", "good"]));
    assert_eq!(sandbox.row("clash")["state"], "done");
}

#[test]
fn dry_run_reads_attributes_it_merged_itself() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "merge.renormalize", "true"]);
    sandbox.sh("for n in 1 2 3 4 5 6 7 8 9; do echo \"*.$n text\"; done > .gitattributes; seq 40 > long; git add .; git commit -qm base");
    sandbox.lane_with_commit("first", "sed -i 's/^.*1 text$/*.a text/' .gitattributes");
    sandbox.lane_with_commit(
        "second",
        "sed -i 's/^.*9 text$/*.z text/' .gitattributes; sed -i 's/^1$/one/' long",
    );
    sandbox.lane_with_commit("third", "sed -i 's/^40$/forty/' long");
    let all = ["merge", "first", "second", "third", "--order", "given"];
    let _ = sandbox.proq(&[&all[..], &["--dry-run"]].concat()).ok();
    let _ = sandbox.proq(&all).ok();
    assert!(sandbox.read(".gitattributes").contains("*.a") && sandbox.read(".gitattributes").contains("*.z"));
}
