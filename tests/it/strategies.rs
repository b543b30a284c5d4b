//! Owns the tests of how a lane's commits come to its base: merged, rebased, squashed; and of the hooks that have a say.

use std::os::unix::fs::PermissionsExt;

use super::support::{Image, Sandbox};

/// Gives the repository a hook.
fn hook(sandbox: &Sandbox, name: &str, script: &str) {
    let path = format!(".git/hooks/{name}");
    sandbox.write(&path, &format!("#!/bin/sh\n{script}\n"));
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(sandbox.repo.join(path), mode).unwrap();
}

/// A base with a file of ten lines that has moved on, and lane `x` with three commits of two people below it.
fn moved() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 10 > ten; git add .; git commit -qm ten");
    sandbox.lane_of(
        "x",
        "sed -i 's/^10$/ten/' ten; git commit -qam 'last line'; echo one > one; git add .; \
         GIT_AUTHOR_NAME='Bea B' GIT_AUTHOR_EMAIL=bea@example.org GIT_AUTHOR_DATE='@1700000000 +0130' \
         git commit -qm 'one file' -m 'With a body.'; sed -i 's/^9$/nine/' ten",
    );
    sandbox.sh("sed -i 's/^1$/first/' ten; git commit -qam 'first line'");
    sandbox
}

/// The tree that a merge of `x` makes, by git itself.
fn merged(sandbox: &Sandbox) -> String {
    sandbox.git(&["merge-tree", "--write-tree", "main", "proq/x"])
}

#[test]
fn a_rebase_keeps_each_commit_with_its_author_date_and_text() {
    let sandbox = moved();
    let wanted = merged(&sandbox);
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
    assert_eq!(sandbox.git(&["rev-parse", "main^{tree}"]), wanted);
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    assert!(!sandbox.lane("x").exists());
    sandbox.assert_healthy();
}

#[test]
fn a_rebase_is_the_one_that_git_makes() {
    let sandbox = moved();
    sandbox
        .sh("git branch by-git proq/x; git worktree add -q ../other by-git; cd ../other; git rebase -q main");
    let _ = sandbox.proq(&["merge", "x", "--strategy", "rebase"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "main"]), sandbox.git(&["rev-parse", "by-git"]));
}

#[test]
fn a_rebase_onto_a_base_that_has_not_moved_lands_the_commits_as_they_are() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("x", "echo x > x");
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    let _ = sandbox.proq(&["merge", "x", "--strategy", "rebase"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", "main"]), tip);
}

#[test]
fn a_commit_of_which_nothing_is_left_is_dropped() {
    let sandbox = moved();
    sandbox.sh("echo one > one; git add .; git commit -qm 'the same file'");
    let _ = sandbox.proq(&["merge", "x", "--strategy", "rebase"]).ok();
    let log = sandbox.git(&["log", "--format=%s", "-4"]);
    assert_eq!(log, "work of x\nlast line\nthe same file\nfirst line");
}

#[test]
fn a_lane_with_merges_is_not_rebased_and_one_that_conflicts_on_the_way_says_where() {
    let sandbox = moved();
    sandbox.sh("cd .proq-worktrees/x; git merge -q --no-edit main");
    sandbox.sh("echo more > more; git add .; git commit -qm more");
    let before = Image::of(&sandbox, &sandbox.repo);
    let text = sandbox.proq(&["merge", "x", "--strategy", "rebase"]).fails(1);
    assert!(text.contains("which a rebase would lose"), "{text}");
    assert!(text.contains("git proq merge --strategy merge x"), "{text}");
    assert_eq!(before, Image::of(&sandbox, &sandbox.repo));
    // Nor where the base has not moved since: the lane's line is not the base's.
    sandbox.sh_in(&sandbox.lane("x"), "git merge -q --no-edit main");
    let line = sandbox.git(&["log", "--first-parent", "--format=%H", "main"]);
    let text = sandbox.proq(&["merge", "x", "--strategy", "rebase"]).fails(1);
    assert!(text.contains("git proq merge --strategy squash x"), "{text}");
    let _ = sandbox.proq(&["merge", "x", "--strategy", "squash"]).ok();
    assert!(sandbox.git(&["log", "--first-parent", "--format=%H", "main"]).ends_with(&line));

    let sandbox = Sandbox::new();
    sandbox
        .lane_of("x", "echo lane > a.txt; git commit -qam away; git checkout -q HEAD^ -- a.txt; echo x > x");
    sandbox.sh("echo base > a.txt; git commit -qam base");
    let text = sandbox.proq(&["merge", "x", "--strategy", "rebase"]).fails(1);
    assert!(text.contains("(away) conflicts in a.txt when it is put on top of main"), "{text}");
    assert_eq!(sandbox.row("x")["state"], "idle");
    let _ = sandbox.proq(&["merge", "x", "--strategy", "squash"]).ok();
}

#[test]
fn a_lane_that_brings_another_history_in_is_not_rebased() {
    let sandbox = moved();
    let root = sandbox.git(&["commit-tree", "-m", "another root", "main^{tree}"]);
    sandbox
        .sh(&format!("cd .proq-worktrees/x; git merge -q --allow-unrelated-histories -s ours -m in {root}"));
    let text = sandbox.proq(&["merge", "x", "--strategy", "rebase"]).fails(1);
    let wanted = format!("its commit {} begins a history of its own, which a rebase would lose", &root[..9]);
    assert!(text.contains(&wanted), "{text}");
    assert!(text.contains("git proq merge --strategy merge x"), "{text}");
    let _ = sandbox.proq(&["merge", "x", "--strategy", "merge"]).ok();
}

#[test]
fn a_squash_is_one_commit_that_names_the_task_the_commits_and_who_made_them() {
    let sandbox = moved();
    let wanted = merged(&sandbox);
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
    assert_eq!(sandbox.git(&["rev-parse", "main^{tree}"]), wanted);
    assert!(!sandbox.lane("x").exists());
}

#[test]
fn a_squash_of_one_commit_keeps_its_text() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("x", "echo x > x");
    sandbox.sh_in(
        &sandbox.lane("x"),
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
fn what_landed_squashed_stays_landed_when_the_base_goes_on_in_the_same_lines() {
    let sandbox = moved();
    let out = sandbox.proq(&["merge", "x", "--strategy", "squash", "--no-cleanup", "--json"]).json();
    assert_eq!(
        (&out["lanes"][0]["result"], &out["lanes"][0]["method"]),
        (&"landed".into(), &"squash".into())
    );
    sandbox.sh("sed -i 's/^ten$/TEN/' ten; git commit -qam later");
    sandbox.assert_healthy();
    let text = sandbox.proq(&["merge", "x"]).shown();
    assert!(text.contains("everything in it is on main already"), "{text}");
    assert!(!sandbox.lane("x").exists());
}

#[test]
fn an_undo_of_a_rebased_landing_brings_base_and_lane_back() {
    let sandbox = moved();
    let before = (Image::of(&sandbox, &sandbox.repo), sandbox.git(&["for-each-ref", "refs/heads"]));
    let _ = sandbox.proq(&["merge", "x", "--strategy", "rebase"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(before, (Image::of(&sandbox, &sandbox.repo), sandbox.git(&["for-each-ref", "refs/heads"])));
}

#[test]
fn a_hook_that_nothing_skips_is_not_said_to_be_skipped() {
    let sandbox = moved();
    for (script, why) in [("echo no >&2; exit 1", "refused it: "), (": > \"$1\"", "left its message empty")] {
        hook(&sandbox, "prepare-commit-msg", script);
        let text = sandbox.proq(&["merge", "x", "--no-verify"]).fails(1);
        assert!(text.contains(&format!("the repository's prepare-commit-msg hook {why}")), "{text}");
        assert!(!text.contains("--no-verify"), "{text}");
        assert!(text.contains("git -c core.hooksPath=/dev/null proq merge"), "{text}");
    }
    hook(&sandbox, "commit-msg", "exit 1");
    sandbox.git(&["-c", "core.hooksPath=/dev/null", "proq", "merge", "x"]);
    assert!(!sandbox.lane("x").exists());
}

#[test]
fn the_repositorys_hooks_see_and_refuse_a_landings_message() {
    let sandbox = moved();
    hook(&sandbox, "prepare-commit-msg", "echo \"Prepared: $2\" >> \"$1\"");
    hook(&sandbox, "commit-msg", "grep -q TICKET \"$1\" || { echo 'no ticket' >&2; exit 1; }");
    let base = sandbox.git(&["rev-parse", "main"]);
    let text = sandbox.proq(&["merge", "x"]).fails(1);
    assert!(text.contains("commit-msg hook") && text.contains("no ticket"), "{text}");
    assert!(text.contains("--no-verify"), "{text}");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), base);
    hook(&sandbox, "prepare-commit-msg", "echo \"Prepared: $2 TICKET\" >> \"$1\"");
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert!(sandbox.git(&["log", "-1", "--format=%B"]).ends_with("Prepared: merge TICKET"));
}

#[test]
fn no_verify_goes_past_the_hook_that_could_refuse() {
    let sandbox = moved();
    hook(&sandbox, "commit-msg", "exit 1");
    let _ = sandbox.proq(&["merge", "x", "--no-verify"]).ok();
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s"]), "Merge lane x");
}

#[test]
fn a_dry_run_says_the_same_for_each_strategy_and_writes_nothing() {
    for how in ["merge", "rebase", "squash"] {
        let sandbox = moved();
        hook(&sandbox, "commit-msg", "echo no >&2; exit 1");
        let objects = || sandbox.git(&["count-objects", "-v"]);
        let before = objects();
        let out = sandbox.proq(&["merge", "x", "--strategy", how, "--dry-run", "--json"]).json();
        assert_eq!((&out["lanes"][0]["result"], &out["lanes"][0]["method"]), (&"landed".into(), &how.into()));
        assert_eq!(before, objects(), "{how}");
    }
}

#[test]
fn a_dry_run_of_several_lanes_says_what_their_landing_does() {
    for how in ["merge", "rebase", "squash"] {
        let sandbox = moved();
        sandbox.lane_of("y", "echo y > y.txt");
        sandbox.lane_of("z", "echo z > z.txt");
        sandbox.commit_in_lane("z", "echo more > z.txt");
        let said = |more: &[&str]| -> Vec<String> {
            let args = [&["merge", "x", "y", "z", "--json", "--strategy", how][..], more].concat();
            let rows = sandbox.proq(&args).json()["lanes"].as_array().unwrap().clone();
            rows.iter().map(|row| format!("{} {} {}", row["lane"], row["result"], row["method"])).collect()
        };
        let objects = || sandbox.git(&["count-objects", "-v"]);
        let before = objects();
        let planned = said(&["--dry-run"]);
        let lands = |line: &&String| line.ends_with(&format!(" \"landed\" \"{how}\""));
        assert_eq!(planned.iter().filter(lands).count(), 3, "{planned:?}");
        assert_eq!(before, objects(), "{how}");
        assert_eq!(said(&[]), planned);
    }
}

#[test]
fn what_an_agent_resolved_is_landed_in_one_commit_where_lanes_are_rebased() {
    let sandbox = super::resolve::conflicting();
    let line = sandbox.git(&["log", "--first-parent", "--format=%H", "main"]);
    let args = ["merge", "clash", "--strategy", "rebase", "--conflict-agent", "good"];
    let _ = sandbox.proq(&args).ok();
    assert_eq!(sandbox.read("long.txt"), super::resolve::RESOLVED);
    let now = sandbox.git(&["log", "--first-parent", "--format=%H", "main"]);
    assert!(now.ends_with(&line) && now.lines().count() == line.lines().count() + 1, "{now}");
    assert_eq!(sandbox.git(&["rev-list", "--merges", "main"]), "");
}
