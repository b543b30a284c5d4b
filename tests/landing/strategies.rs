//! Tests of the merge strategies merge, rebase and squash, and of the commit hooks that can refuse a landing.

use std::os::unix::fs::PermissionsExt;

use proq_test_kit::conflict::hint_commands;
use proq_test_kit::{Sandbox, WorktreeState};

/// Installs a hook in the repository.
fn install_hook(sandbox: &Sandbox, name: &str, script: &str) {
    let path = format!(".git/hooks/{name}");
    sandbox.write(&path, &format!("#!/bin/sh\n{script}\n"));
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(sandbox.repo.join(path), mode).unwrap();
}

/// Creates lane `x` with three commits of two authors, below a base with a file of ten lines that has moved
/// since.
fn lane_behind_moved_base() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 10 > ten; git add .; git commit -qm ten");
    sandbox.lane_with_commit(
        "x",
        "sed -i 's/^10$/ten/' ten; git commit -qam 'last line'; echo one > one; git add .; \
         GIT_AUTHOR_NAME='Bea B' GIT_AUTHOR_EMAIL=bea@example.org GIT_AUTHOR_DATE='@1700000000 +0130' \
         git commit -qm 'one file' -m 'With a body.'; sed -i 's/^9$/nine/' ten",
    );
    sandbox.sh("sed -i 's/^1$/first/' ten; git commit -qam 'first line'");
    sandbox
}

/// Returns the tree that git itself makes of a merge of `x`.
fn git_merge_tree(sandbox: &Sandbox) -> String {
    sandbox.git(&["merge-tree", "--write-tree", "main", "proq/x"])
}

#[test]
fn rebase_keeps_author_date_and_message() {
    let sandbox = lane_behind_moved_base();
    let expected = git_merge_tree(&sandbox);
    let _ = sandbox.proq(&["merge", "x", "--strategy", "rebase"]).ok();
    let log = sandbox.git(&["log", "--format=%s|%b|%an|%ae|%ad|%cn", "--date=raw", "-4"]);
    insta::assert_snapshot!(log, @r"
    work of x||Ann Author|ann@example.org|1767225600 +0000|Cal Committer
    one file|With a body.
    |Bea B|bea@example.org|1700000000 +0130|Cal Committer
    last line||Ann Author|ann@example.org|1767225600 +0000|Cal Committer
    first line||Ann Author|ann@example.org|1767225600 +0000|Cal Committer
    ");
    assert_eq!(sandbox.git(&["rev-list", "--merges", "main"]), "");
    assert_eq!(sandbox.git(&["rev-parse", "main^{tree}"]), expected);
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    assert!(!sandbox.lane_path("x").exists());
    sandbox.assert_healthy();
}

#[test]
fn rebase_equals_git_rebase() {
    let sandbox = lane_behind_moved_base();
    sandbox
        .sh("git branch by-git proq/x; git worktree add -q ../other by-git; cd ../other; git rebase -q main");
    let _ = sandbox.proq(&["merge", "x", "--strategy", "rebase"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "main"]), sandbox.git(&["rev-parse", "by-git"]));
}

#[test]
fn rebase_fast_forwards_onto_unmoved_base() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo x > x");
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    let _ = sandbox.proq(&["merge", "x", "--strategy", "rebase"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "main"]), tip);
}

#[test]
fn rebase_drops_commit_already_on_base() {
    let sandbox = lane_behind_moved_base();
    sandbox.sh("echo one > one; git add .; git commit -qm 'the same file'");
    let _ = sandbox.proq(&["merge", "x", "--strategy", "rebase"]).ok();
    let log = sandbox.git(&["log", "--format=%s", "-4"]);
    assert_eq!(log, "work of x\nlast line\nthe same file\nfirst line");
}

#[test]
fn rebase_refuses_merges_and_names_conflicting_commit() {
    let sandbox = lane_behind_moved_base();
    sandbox.sh("cd .proq-worktrees/x; git merge -q --no-edit main");
    sandbox.sh("echo more > more; git add .; git commit -qm more");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let text = sandbox.proq(&["merge", "x", "--strategy", "rebase"]).fails(1);
    assert!(text.contains("which a rebase would lose"), "{text}");
    assert!(text.contains("git proq merge --strategy merge x"), "{text}");
    assert_eq!(before, WorktreeState::capture(&sandbox, &sandbox.repo));
    // The same where the base has not moved since: its first-parent line would be replaced by the lane's.
    sandbox.sh_in(&sandbox.lane_path("x"), "git merge -q --no-edit main");
    let line = sandbox.git(&["log", "--first-parent", "--format=%H", "main"]);
    let text = sandbox.proq(&["merge", "x", "--strategy", "rebase"]).fails(1);
    assert!(text.contains("git proq merge --strategy squash x"), "{text}");
    let _ = sandbox.proq(&["merge", "x", "--strategy", "squash"]).ok();
    assert!(sandbox.git(&["log", "--first-parent", "--format=%H", "main"]).ends_with(&line));

    let sandbox = Sandbox::new();
    sandbox.lane_with_commit(
        "x",
        "echo lane > a.txt; git commit -qam away; git checkout -q HEAD^ -- a.txt; echo x > x",
    );
    sandbox.sh("echo base > a.txt; git commit -qam base");
    let text = sandbox.proq(&["merge", "x", "--strategy", "rebase"]).fails(1);
    assert!(text.contains("(away) conflicts in a.txt when it is rebased onto main"), "{text}");
    assert_eq!(sandbox.row("x")["state"], "idle");
    let _ = sandbox.proq(&["merge", "x", "--strategy", "squash"]).ok();
}

#[test]
fn rebase_refuses_unrelated_history() {
    let sandbox = lane_behind_moved_base();
    let root = sandbox.git(&["commit-tree", "-m", "another root", "main^{tree}"]);
    sandbox
        .sh(&format!("cd .proq-worktrees/x; git merge -q --allow-unrelated-histories -s ours -m in {root}"));
    let text = sandbox.proq(&["merge", "x", "--strategy", "rebase"]).fails(1);
    let expected = format!("its commit {} starts a separate history, which a rebase would lose", &root[..8]);
    assert!(text.contains(&expected), "{text}");
    assert!(text.contains("git proq merge --strategy merge x"), "{text}");
    let _ = sandbox.proq(&["merge", "x", "--strategy", "merge"]).ok();
}

#[test]
fn squash_message_lists_task_commits_and_authors() {
    let sandbox = lane_behind_moved_base();
    let expected = git_merge_tree(&sandbox);
    sandbox.git(&["config", "proq.merge.strategy", "squash"]);
    let _ = sandbox.proq(&["merge", "x"]).ok();
    insta::assert_snapshot!(sandbox.git(&["log", "-1", "--format=%an <%ae>|%cn|%p%n%B"]).replace(&sandbox.git(&["rev-parse", "--short", "main^"]), "[BASE]"), @r"
    Ann Author <ann@example.org>|Cal Committer|[BASE]
    last line

    * last line
    * one file
    * work of x

    Proq-Lane: x
    Co-authored-by: Bea B <bea@example.org>
    ");
    assert_eq!(sandbox.git(&["rev-parse", "main^{tree}"]), expected);
    assert!(!sandbox.lane_path("x").exists());
}

#[test]
fn squash_of_one_commit_keeps_its_message() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo x > x");
    sandbox.sh_in(
        &sandbox.lane_path("x"),
        "git commit -q --amend -m subject -m 'Body.' -m 'Co-Authored-By: Bot <bot@example.org>'",
    );
    sandbox.sh("echo y > y; git add .; git commit -qm y");
    let _ = sandbox.proq(&["merge", "x", "--strategy", "squash"]).ok();
    insta::assert_snapshot!(sandbox.git(&["log", "-1", "--format=%B"]), @r"
    subject

    Body.

    Proq-Lane: x
    Co-authored-by: Bot <bot@example.org>
    ");
}

#[test]
fn squashed_lane_stays_landed_after_base_changes() {
    let sandbox = lane_behind_moved_base();
    let out = sandbox.proq(&["merge", "x", "--strategy", "squash", "--no-cleanup", "--json"]).json();
    assert_eq!(
        (&out["lanes"][0]["result"], &out["lanes"][0]["method"]),
        (&"landed".into(), &"squash".into())
    );
    sandbox.sh("sed -i 's/^ten$/TEN/' ten; git commit -qam later");
    sandbox.assert_healthy();
    let text = sandbox.proq(&["merge", "x"]).to_text();
    assert!(text.contains("everything in it is on main already"), "{text}");
    assert!(!sandbox.lane_path("x").exists());
}

#[test]
fn undo_restores_base_and_lane_after_rebase() {
    let sandbox = lane_behind_moved_base();
    let before =
        (WorktreeState::capture(&sandbox, &sandbox.repo), sandbox.git(&["for-each-ref", "refs/heads"]));
    let _ = sandbox.proq(&["merge", "x", "--strategy", "rebase"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(
        before,
        (WorktreeState::capture(&sandbox, &sandbox.repo), sandbox.git(&["for-each-ref", "refs/heads"]))
    );
}

#[test]
fn no_verify_hint_is_not_given_for_prepare_commit_msg() {
    let sandbox = lane_behind_moved_base();
    for (script, reason) in
        [("echo no >&2; exit 1", "refused it: "), (": > \"$1\"", "left its message empty")]
    {
        install_hook(&sandbox, "prepare-commit-msg", script);
        let text = sandbox.proq(&["merge", "x", "--no-verify"]).fails(1);
        assert!(text.contains(&format!("the repository's prepare-commit-msg hook {reason}")), "{text}");
        assert!(!text.contains("--no-verify"), "{text}");
        assert!(text.contains("git -c core.hooksPath=/dev/null proq merge"), "{text}");
    }
    let text = sandbox.proq(&["merge", "x"]).fails(1);
    install_hook(&sandbox, "commit-msg", "exit 1");
    sandbox.sh(&hint_commands(&sandbox, &text)[0]);
    assert!(!sandbox.lane_path("x").exists());
}

#[test]
fn commit_hooks_edit_and_refuse_landing_message() {
    let sandbox = lane_behind_moved_base();
    install_hook(&sandbox, "prepare-commit-msg", "echo \"Prepared: $2\" >> \"$1\"");
    install_hook(&sandbox, "commit-msg", "grep -q TICKET \"$1\" || { echo 'no ticket' >&2; exit 1; }");
    let base = sandbox.git(&["rev-parse", "main"]);
    let text = sandbox.proq(&["merge", "x"]).fails(1);
    assert!(text.contains("commit-msg hook") && text.contains("no ticket"), "{text}");
    assert!(text.contains("--no-verify"), "{text}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), base);
    install_hook(&sandbox, "prepare-commit-msg", "echo \"Prepared: $2 TICKET\" >> \"$1\"");
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert!(sandbox.git(&["log", "-1", "--format=%B"]).ends_with("Prepared: merge TICKET"));
}

#[test]
fn no_verify_skips_commit_msg_hook() {
    let sandbox = lane_behind_moved_base();
    install_hook(&sandbox, "commit-msg", "exit 1");
    let _ = sandbox.proq(&["merge", "x", "--no-verify"]).ok();
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s"]), "Merge lane x");
}

#[test]
fn dry_run_reports_each_strategy_and_writes_nothing() {
    for strategy in ["merge", "rebase", "squash"] {
        let sandbox = lane_behind_moved_base();
        install_hook(&sandbox, "commit-msg", "echo no >&2; exit 1");
        let objects = || sandbox.git(&["count-objects", "-v"]);
        let before = objects();
        let out = sandbox.proq(&["merge", "x", "--strategy", strategy, "--dry-run", "--json"]).json();
        assert_eq!(
            (&out["lanes"][0]["result"], &out["lanes"][0]["method"]),
            (&"landed".into(), &strategy.into())
        );
        assert_eq!(before, objects(), "{strategy}");
    }
}

/// Promise: snapshots/no-writes
#[test]
fn dry_run_of_many_lanes_matches_their_landing() {
    for strategy in ["merge", "rebase", "squash"] {
        let sandbox = lane_behind_moved_base();
        sandbox.lane_with_commit("y", "echo y > y.txt");
        sandbox.lane_with_commit("z", "echo z > z.txt");
        sandbox.commit_in_lane("z", "echo more > z.txt");
        let results = |extra: &[&str]| -> Vec<String> {
            let args = [&["merge", "x", "y", "z", "--json", "--strategy", strategy][..], extra].concat();
            let rows = sandbox.proq(&args).json()["lanes"].as_array().unwrap().clone();
            rows.iter().map(|row| format!("{} {} {}", row["lane"], row["result"], row["method"])).collect()
        };
        let objects = || sandbox.git(&["count-objects", "-v"]);
        let before = objects();
        let planned = results(&["--dry-run"]);
        let lands = |line: &&String| line.ends_with(&format!(" \"landed\" \"{strategy}\""));
        assert_eq!(planned.iter().filter(lands).count(), 3, "{planned:?}");
        assert_eq!(before, objects(), "{strategy}");
        assert_eq!(results(&[]), planned);
    }
}

#[test]
fn resolution_lands_as_one_commit_with_rebase() {
    let sandbox = proq_test_kit::conflict::sandbox_with_conflict();
    let line = sandbox.git(&["log", "--first-parent", "--format=%H", "main"]);
    let args = ["merge", "clash", "--strategy", "rebase", "--conflict-agent", "good"];
    let _ = sandbox.proq(&args).ok();
    assert_eq!(sandbox.read("long.txt"), proq_test_kit::conflict::RESOLVED);
    let now = sandbox.git(&["log", "--first-parent", "--format=%H", "main"]);
    assert!(now.ends_with(&line) && now.lines().count() == line.lines().count() + 1, "{now}");
    assert_eq!(sandbox.git(&["rev-list", "--merges", "main"]), "");
}
