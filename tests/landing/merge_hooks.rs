//! Tests of the repository's `pre-merge-commit` hook, which runs before each merge commit of a landing.

use std::os::unix::fs::PermissionsExt;

use proq_test_kit::{Sandbox, WorktreeState};

/// Writes an executable `pre-merge-commit` hook into `folder`.
fn write_hook(sandbox: &Sandbox, folder: &str, script: &str) {
    let path = format!("{folder}/pre-merge-commit");
    sandbox.write(&path, &format!("#!/bin/sh\n{script}\n"));
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(sandbox.repo.join(path), mode).unwrap();
}

/// Creates three lanes with a file each; the file of lane `bad` is refused by [`NO_BAD`].
fn three_lanes() -> Sandbox {
    let sandbox = Sandbox::new();
    for name in ["one", "bad", "two"] {
        sandbox.lane_with_commit(name, &format!("echo {name} > {name}.txt"));
    }
    sandbox.sh("echo base > base.txt; git add .; git commit -qm base");
    sandbox
}

const NO_BAD: &str =
    "if git diff --cached --name-only | grep -q bad; then echo 'nothing bad here'; exit 1; fi";

/// Promise: checks/repository-hook
#[test]
fn hook_checks_each_merge_and_refuses_one_lane() {
    let sandbox = three_lanes();
    let log_merge = "{ echo $#; git diff --cached --name-only; cat \"$(git diff --cached --name-only)\"; git status --short
        git log -1 --format=%s HEAD; ls base.txt; echo $GIT_EDITOR; git symbolic-ref -q HEAD || echo detached
        env | grep -c ^GITHEAD_; echo $GIT_REFLOG_ACTION; test -f \"$GIT_INDEX_FILE\" && dirname \"$GIT_INDEX_FILE\"
        git --git-dir=$ROOT/repo/.git log -1 --format=%s main; test -e $(git rev-parse --git-path MERGE_HEAD) || echo no MERGE_HEAD; } >> $ROOT/seen 2>&1";
    write_hook(&sandbox, ".git/hooks", &format!("{log_merge}\n{NO_BAD}"));
    let out = sandbox.proq(&["merge", "--all", "--order", "given"]);
    assert_eq!(out.code, 1);
    let text = out.to_text();
    assert!(text.contains("refused bad: the repository's pre-merge-commit hook refused it"), "{text}");
    assert!(text.contains("nothing bad here") && text.contains("--no-verify"), "{text}");
    assert!(text.contains("landed one on main") && text.contains("landed two on main"), "{text}");
    let hook_log = std::fs::read(sandbox.root().join("seen")).unwrap();
    insta::assert_snapshot!(sandbox.normalize(&hook_log).replace('\n', " | ").replace(" | 0 |", "\n0 |"), @r"
    0 | bad.txt | bad | A  bad.txt | base | base.txt | : | detached | 1 | merge proq/bad | [ROOT]/repo/.git/worktrees/hooks | base | no MERGE_HEAD
    0 | one.txt | one | A  one.txt | base | base.txt | : | detached | 1 | merge proq/one | [ROOT]/repo/.git/worktrees/hooks | base | no MERGE_HEAD
    0 | two.txt | two | A  two.txt | Merge lane one | base.txt | : | detached | 1 | merge proq/two | [ROOT]/repo/.git/worktrees/hooks | base | no MERGE_HEAD |
    ");
    assert_eq!(
        sandbox.git(&["log", "--first-parent", "--format=%s", "-3"]),
        "Merge lane two\nMerge lane one\nbase"
    );
    assert!(!sandbox.repo.join("bad.txt").exists() && sandbox.lane_path("bad").exists());
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    sandbox.assert_healthy();
}

#[test]
fn no_verify_and_dry_run_skip_the_hook() {
    let sandbox = three_lanes();
    write_hook(&sandbox, ".git/hooks", "exit 1");
    let plan = sandbox.proq(&["merge", "bad", "--dry-run"]).ok();
    assert!(plan.contains("would land bad"), "{plan}");
    let _ = sandbox.proq(&["merge", "bad", "--no-verify"]).ok();
    for strategy in ["squash", "rebase"] {
        let _ = sandbox
            .proq(&["merge", if strategy == "squash" { "one" } else { "two" }, "--strategy", strategy])
            .ok();
    }
    assert!(!sandbox.root().join("home/.cache").exists());
}

#[test]
fn starts_no_extra_git_without_the_hook() {
    let count_git_calls = |args: &[&str], prepare: &dyn Fn(&Sandbox)| {
        let sandbox = three_lanes();
        prepare(&sandbox);
        let git = sandbox.sh("command -v git");
        sandbox.program("git", &format!("echo \"$@\" >> \"$ROOT/calls\"; exec '{git}' \"$@\""));
        let _ = sandbox.proq(args).ok();
        assert!(!sandbox.root().join("home/.cache").exists());
        std::fs::read_to_string(sandbox.root().join("calls")).unwrap().lines().count()
    };
    let call_count = count_git_calls(&["merge", "one", "--no-verify"], &|_| ());
    assert_eq!(count_git_calls(&["merge", "one"], &|_| ()), call_count);
    let not_executable = |sandbox: &Sandbox| sandbox.write(".git/hooks/pre-merge-commit.sample", "exit 1\n");
    assert_eq!(count_git_calls(&["merge", "one"], &not_executable), call_count);
}

#[test]
fn lands_what_the_hook_stages_only() {
    let sandbox = three_lanes();
    write_hook(
        &sandbox,
        ".git/hooks",
        "echo more > more.txt; git add more.txt; echo junk > junk.txt; echo x > base.txt",
    );
    let _ = sandbox.proq(&["merge", "one", "two"]).ok();
    assert_eq!(
        sandbox.git(&["log", "--first-parent", "--format=%s", "-2"]),
        "Merge lane two\nMerge lane one"
    );
    assert_eq!(
        sandbox.git(&["show", "--first-parent", "--name-only", "--format=", "main~1"]),
        "more.txt\none.txt"
    );
    assert_eq!(
        sandbox.git(&["ls-tree", "--name-only", "main"]),
        "a.txt\nbase.txt\nmore.txt\none.txt\ntwo.txt"
    );
    assert_eq!(sandbox.read("base.txt"), "base\n");
    assert_eq!(sandbox.git(&["status", "--short"]), "");
}

/// Promise: checks/redirected-worktree
#[test]
fn hook_that_redirects_its_git_file_is_refused() {
    let sandbox = three_lanes();
    sandbox.sh("echo mine > mine.txt; git add mine.txt");
    let before =
        (WorktreeState::capture(&sandbox, &sandbox.repo), sandbox.git(&["for-each-ref", "refs/heads"]));
    write_hook(&sandbox, ".git/hooks", "echo \"gitdir: $ROOT/repo/.git\" > .git");
    let text = sandbox.proq(&["merge", "one"]).fails(1);
    assert!(text.contains("pre-merge-commit hook removed the worktree that it ran in"), "{text}");
    assert_eq!(sandbox.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(
        before,
        (WorktreeState::capture(&sandbox, &sandbox.repo), sandbox.git(&["for-each-ref", "refs/heads"]))
    );
    write_hook(&sandbox, ".git/hooks", "exit 0");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(sandbox.git(&["status", "--short"]), "A  mine.txt");
}

/// Promise: checks/repository-hook
#[test]
fn lane_cannot_supply_its_own_hook() {
    let sandbox = Sandbox::new();
    write_hook(&sandbox, "scripts", "echo of main >> $ROOT/asked");
    sandbox.sh("git add .; git commit -qm hook; git config core.hooksPath scripts");
    sandbox.lane_with_commit(
        "x",
        "echo x > x.txt; printf '#!/bin/sh\\necho of x >> $ROOT/asked; exit 1\\n' > scripts/pre-merge-commit",
    );
    sandbox.sh("echo y > y.txt; git add .; git commit -qm y");
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert_eq!(std::fs::read_to_string(sandbox.root().join("asked")).unwrap(), "of main\n");
}

#[test]
fn hook_runs_once_per_merge_and_atomic_lands_none() {
    let sandbox = three_lanes();
    write_hook(&sandbox, ".git/hooks", &format!("echo asked >> $ROOT/asked\n{NO_BAD}"));
    let before =
        (WorktreeState::capture(&sandbox, &sandbox.repo), sandbox.git(&["for-each-ref", "refs/heads"]));
    let text = sandbox.proq(&["merge", "--all", "--atomic"]).fails(1);
    assert!(text.contains("pre-merge-commit hook refused it"), "{text}");
    assert_eq!(
        before,
        (WorktreeState::capture(&sandbox, &sandbox.repo), sandbox.git(&["for-each-ref", "refs/heads"]))
    );
    std::fs::remove_file(sandbox.root().join("asked")).unwrap();
    // A failed check makes git-proq build the stack again without the failing lane.
    let verify = "test ! -f two.txt";
    let _ = sandbox.proq(&["merge", "one", "two", "--order", "given", "--verify", verify]).fails(4);
    let hook_log = std::fs::read_to_string(sandbox.root().join("asked")).unwrap();
    assert_eq!(hook_log.lines().count(), 2, "one on main, two on one; then one on main again");
}

#[test]
fn hook_that_wrecks_its_worktree_harms_nothing() {
    let sandbox = three_lanes();
    write_hook(
        &sandbox,
        ".git/hooks",
        "git switch -q -c own; rm -rf *; echo spoiled > base.txt; touch .git.lock; exit 1",
    );
    let base = sandbox.git(&["rev-parse", "main"]);
    let _ = sandbox.proq(&["merge", "one"]).fails(1);
    assert_eq!(sandbox.git(&["rev-parse", "main"]), base);
    assert_eq!(sandbox.git(&["worktree", "list", "--porcelain"]).matches("refs/heads/own").count(), 0);
    write_hook(&sandbox, ".git/hooks", "ls | tr '\\n' ' ' > $ROOT/files");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(std::fs::read_to_string(sandbox.root().join("files")).unwrap(), "a.txt base.txt one.txt ");
}

/// Promise: worktree/no-self-deadlock
#[test]
fn landing_from_a_hook_is_refused_not_deadlocked() {
    for (name, description) in [
        ("post-merge", "the post-merge hook"),
        ("prepare-commit-msg", "the prepare-commit-msg hook"),
        ("pre-merge-commit", "the pre-merge-commit hook"),
    ] {
        let sandbox = three_lanes();
        write_hook(&sandbox, ".git/hooks", "git proq merge two > $ROOT/said 2>&1; echo $? >> $ROOT/said");
        std::fs::rename(
            sandbox.repo.join(".git/hooks/pre-merge-commit"),
            sandbox.repo.join(format!(".git/hooks/{name}")),
        )
        .unwrap();
        let mut command = sandbox.command("timeout", &sandbox.repo);
        command.args(["120", "git", "proq", "merge", "one"]);
        assert_eq!(sandbox.output(command).code, 0, "{name}");
        let text = sandbox.normalize(&std::fs::read(sandbox.root().join("said")).unwrap());
        let refusal = format!("error: cannot merge from {description}: the merge of one (process ");
        assert!(text.starts_with(&refusal), "{text}");
        assert!(
            text.ends_with(
                "waits for this command; nothing was changed\nhint: show the merge queue: git proq queue\n1\n"
            ),
            "{text}"
        );
        assert!(sandbox.lane_path("two").exists(), "{name}");
        std::fs::remove_file(sandbox.repo.join(format!(".git/hooks/{name}"))).unwrap();
        let _ = sandbox.proq(&["merge", "two"]).ok();
    }
}

/// Promise: worktree/no-self-deadlock
#[test]
fn landing_from_a_check_is_refused_not_deadlocked() {
    let sandbox = three_lanes();
    let mut command = sandbox.command("timeout", &sandbox.repo);
    let check = "cd $ROOT/repo && git proq merge two > $ROOT/said 2>&1";
    command.args(["120", "git", "proq", "merge", "one", "--verify", check, "--ignore-base-failures"]);
    // A check that also fails on the base proves nothing about the lane.
    let _ = sandbox.output(command).ok();
    let text = std::fs::read_to_string(sandbox.root().join("said")).unwrap();
    assert!(text.contains("cannot merge from a hook or a check: the merge of one"), "{text}");
}

#[test]
fn background_landing_of_a_hook_waits_its_turn() {
    let sandbox = three_lanes();
    sandbox.pipe("landed");
    // Runs only once, because the landing of lane `two` runs the same hook.
    let script = "mkdir $ROOT/once 2>/dev/null || exit 0\n\
        (git proq merge two > /dev/null 2>&1; echo $? > $ROOT/landed) < /dev/null > /dev/null 2>&1 &";
    write_hook(&sandbox, ".git/hooks", script);
    let hooks = sandbox.repo.join(".git/hooks");
    std::fs::rename(hooks.join("pre-merge-commit"), hooks.join("post-merge")).unwrap();
    let mut command = sandbox.command("timeout", &sandbox.repo);
    command.args(["120", "git", "proq", "merge", "one"]);
    let _ = sandbox.output(command).ok();
    assert_eq!(sandbox.read_pipe("landed"), "0\n");
    assert!(sandbox.repo.join("two.txt").exists());
}
