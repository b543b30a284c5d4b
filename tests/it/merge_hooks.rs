//! Owns the tests of the repository's hook that sees each merge before it is one.

use std::os::unix::fs::PermissionsExt;

use super::support::{Image, Sandbox};

/// Gives the repository a `pre-merge-commit`.
fn hook(sandbox: &Sandbox, folder: &str, script: &str) {
    let path = format!("{folder}/pre-merge-commit");
    sandbox.write(&path, &format!("#!/bin/sh\n{script}\n"));
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(sandbox.repo.join(path), mode).unwrap();
}

/// Three lanes with a file each, of which `bad` has one that the hook does not want.
fn lanes() -> Sandbox {
    let sandbox = Sandbox::new();
    for name in ["one", "bad", "two"] {
        sandbox.lane_of(name, &format!("echo {name} > {name}.txt"));
    }
    sandbox.sh("echo base > base.txt; git add .; git commit -qm base");
    sandbox
}

const NO_BAD: &str =
    "if git diff --cached --name-only | grep -q bad; then echo 'nothing bad here'; exit 1; fi";

#[test]
fn the_hook_sees_each_merge_and_refuses_one_lane() {
    let sandbox = lanes();
    let see = "{ echo $#; git diff --cached --name-only; cat \"$(git diff --cached --name-only)\"; git status --short
        git log -1 --format=%s HEAD; ls base.txt; echo $GIT_EDITOR; git symbolic-ref -q HEAD || echo detached
        env | grep -c ^GITHEAD_; echo $GIT_REFLOG_ACTION; test -f \"$GIT_INDEX_FILE\" && dirname \"$GIT_INDEX_FILE\"
        git --git-dir=$ROOT/repo/.git log -1 --format=%s main; test -e $(git rev-parse --git-path MERGE_HEAD) || echo no MERGE_HEAD; } >> $ROOT/seen 2>&1";
    hook(&sandbox, ".git/hooks", &format!("{see}\n{NO_BAD}"));
    let out = sandbox.proq(&["merge", "--all", "--order", "given"]);
    assert_eq!(out.code, 1);
    let said = out.shown();
    assert!(said.contains("refused bad: the repository's pre-merge-commit hook refused it"), "{said}");
    assert!(said.contains("nothing bad here") && said.contains("--no-verify"), "{said}");
    assert!(said.contains("landed one on main") && said.contains("landed two on main"), "{said}");
    let seen = std::fs::read(sandbox.root().join("seen")).unwrap();
    insta::assert_snapshot!(sandbox.plain(&seen).replace('\n', " | ").replace(" | 0 |", "\n0 |"), @r"
    0 | bad.txt | bad | A  bad.txt | base | base.txt | : | detached | 1 | merge proq/bad | [ROOT]/repo/.git/worktrees/hooks | base | no MERGE_HEAD
    0 | one.txt | one | A  one.txt | base | base.txt | : | detached | 1 | merge proq/one | [ROOT]/repo/.git/worktrees/hooks | base | no MERGE_HEAD
    0 | two.txt | two | A  two.txt | Merge lane one | base.txt | : | detached | 1 | merge proq/two | [ROOT]/repo/.git/worktrees/hooks | base | no MERGE_HEAD |
    ");
    assert_eq!(
        sandbox.git(&["log", "--first-parent", "--format=%s", "-3"]),
        "Merge lane two\nMerge lane one\nbase"
    );
    assert!(!sandbox.repo.join("bad.txt").exists() && sandbox.lane("bad").exists());
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    sandbox.assert_healthy();
}

#[test]
fn no_verify_and_a_dry_run_do_not_ask_it() {
    let sandbox = lanes();
    hook(&sandbox, ".git/hooks", "exit 1");
    let plan = sandbox.proq(&["merge", "bad", "--dry-run"]).ok();
    assert!(plan.contains("would land bad"), "{plan}");
    let _ = sandbox.proq(&["merge", "bad", "--no-verify"]).ok();
    for how in ["squash", "rebase"] {
        let _ = sandbox.proq(&["merge", if how == "squash" { "one" } else { "two" }, "--strategy", how]).ok();
    }
    assert!(!sandbox.root().join("home/.cache").exists());
}

#[test]
fn without_the_hook_no_git_is_started_for_it() {
    let calls = |args: &[&str], prepare: &dyn Fn(&Sandbox)| {
        let sandbox = lanes();
        prepare(&sandbox);
        let git = sandbox.sh("command -v git");
        sandbox.program("git", &format!("echo \"$@\" >> \"$ROOT/calls\"; exec '{git}' \"$@\""));
        let _ = sandbox.proq(args).ok();
        assert!(!sandbox.root().join("home/.cache").exists());
        std::fs::read_to_string(sandbox.root().join("calls")).unwrap().lines().count()
    };
    let without = calls(&["merge", "one", "--no-verify"], &|_| ());
    assert_eq!(calls(&["merge", "one"], &|_| ()), without);
    let not_executable = |sandbox: &Sandbox| sandbox.write(".git/hooks/pre-merge-commit.sample", "exit 1\n");
    assert_eq!(calls(&["merge", "one"], &not_executable), without);
}

#[test]
fn what_the_hook_stages_lands_and_what_it_leaves_lying_about_does_not() {
    let sandbox = lanes();
    hook(
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

#[test]
fn a_hook_whose_git_file_names_another_worktree_moves_no_head_there_and_lands_nothing_of_it() {
    let sandbox = lanes();
    sandbox.sh("echo mine > mine.txt; git add mine.txt");
    let before = (Image::of(&sandbox, &sandbox.repo), sandbox.git(&["for-each-ref", "refs/heads"]));
    hook(&sandbox, ".git/hooks", "echo \"gitdir: $ROOT/repo/.git\" > .git");
    let said = sandbox.proq(&["merge", "one"]).fails(1);
    assert!(said.contains("pre-merge-commit hook left no worktree where it ran"), "{said}");
    assert_eq!(sandbox.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(before, (Image::of(&sandbox, &sandbox.repo), sandbox.git(&["for-each-ref", "refs/heads"])));
    hook(&sandbox, ".git/hooks", "exit 0");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(sandbox.git(&["status", "--short"]), "A  mine.txt");
}

#[test]
fn a_lane_cannot_bring_a_hook_of_its_own() {
    let sandbox = Sandbox::new();
    hook(&sandbox, "scripts", "echo of main >> $ROOT/asked");
    sandbox.sh("git add .; git commit -qm hook; git config core.hooksPath scripts");
    sandbox.lane_of(
        "x",
        "echo x > x.txt; printf '#!/bin/sh\\necho of x >> $ROOT/asked; exit 1\\n' > scripts/pre-merge-commit",
    );
    sandbox.sh("echo y > y.txt; git add .; git commit -qm y");
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert_eq!(std::fs::read_to_string(sandbox.root().join("asked")).unwrap(), "of main\n");
}

#[test]
fn each_merge_is_asked_about_once_and_none_when_all_or_none_land() {
    let sandbox = lanes();
    hook(&sandbox, ".git/hooks", &format!("echo asked >> $ROOT/asked\n{NO_BAD}"));
    let before = (Image::of(&sandbox, &sandbox.repo), sandbox.git(&["for-each-ref", "refs/heads"]));
    let text = sandbox.proq(&["merge", "--all", "--atomic"]).fails(1);
    assert!(text.contains("pre-merge-commit hook refused it"), "{text}");
    assert_eq!(before, (Image::of(&sandbox, &sandbox.repo), sandbox.git(&["for-each-ref", "refs/heads"])));
    std::fs::remove_file(sandbox.root().join("asked")).unwrap();
    // A red check makes the stack anew, without the lane at fault.
    let verify = "test ! -f two.txt";
    let _ = sandbox.proq(&["merge", "one", "two", "--order", "given", "--verify", verify]).fails(4);
    let asked = std::fs::read_to_string(sandbox.root().join("asked")).unwrap();
    assert_eq!(asked.lines().count(), 2, "one on main, two on one; then one on main again");
}

#[test]
fn a_hook_that_leaves_its_worktree_in_disorder_harms_nobody() {
    let sandbox = lanes();
    hook(
        &sandbox,
        ".git/hooks",
        "git switch -q -c own; rm -rf *; echo spoiled > base.txt; touch .git.lock; exit 1",
    );
    let base = sandbox.git(&["rev-parse", "main"]);
    let _ = sandbox.proq(&["merge", "one"]).fails(1);
    assert_eq!(sandbox.git(&["rev-parse", "main"]), base);
    assert_eq!(sandbox.git(&["worktree", "list", "--porcelain"]).matches("refs/heads/own").count(), 0);
    hook(&sandbox, ".git/hooks", "ls | tr '\\n' ' ' > $ROOT/files");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(std::fs::read_to_string(sandbox.root().join("files")).unwrap(), "a.txt base.txt one.txt ");
}

#[test]
fn a_hook_that_wants_to_land_does_not_wait_for_its_own_landing() {
    for (name, place) in [
        ("post-merge", "the post-merge hook"),
        ("prepare-commit-msg", "the prepare-commit-msg hook"),
        ("pre-merge-commit", "the pre-merge-commit hook"),
    ] {
        let sandbox = lanes();
        hook(&sandbox, ".git/hooks", "git proq merge two > $ROOT/said 2>&1; echo $? >> $ROOT/said");
        std::fs::rename(
            sandbox.repo.join(".git/hooks/pre-merge-commit"),
            sandbox.repo.join(format!(".git/hooks/{name}")),
        )
        .unwrap();
        let mut command = sandbox.command("timeout", &sandbox.repo);
        command.args(["120", "git", "proq", "merge", "one"]);
        assert_eq!(sandbox.output(command).code, 0, "{name}");
        let said = sandbox.plain(&std::fs::read(sandbox.root().join("said")).unwrap());
        let refusal = format!("error: cannot queue up from {place}: the landing of one (process ");
        assert!(said.starts_with(&refusal), "{said}");
        assert!(
            said.ends_with(
                "waits for this command; nothing was changed\nhint: see what lands now: git proq queue\n1\n"
            ),
            "{said}"
        );
        assert!(sandbox.lane("two").exists(), "{name}");
        std::fs::remove_file(sandbox.repo.join(format!(".git/hooks/{name}"))).unwrap();
        let _ = sandbox.proq(&["merge", "two"]).ok();
    }
}

#[test]
fn a_check_that_wants_to_land_does_not_wait_for_its_own_landing() {
    let sandbox = lanes();
    let mut command = sandbox.command("timeout", &sandbox.repo);
    let check = "cd $ROOT/repo && git proq merge two > $ROOT/said 2>&1";
    command.args(["120", "git", "proq", "merge", "one", "--verify", check]);
    // A check that fails on the base as well says nothing about the lane.
    let _ = sandbox.output(command).ok();
    let said = std::fs::read_to_string(sandbox.root().join("said")).unwrap();
    assert!(said.contains("cannot queue up from a hook or a check: the landing of one"), "{said}");
}

#[test]
fn a_landing_that_a_hook_leaves_behind_waits_for_its_turn() {
    let sandbox = lanes();
    sandbox.pipe("landed");
    // Only once: that landing runs the same hook.
    let script = "mkdir $ROOT/once 2>/dev/null || exit 0\n\
        (git proq merge two > /dev/null 2>&1; echo $? > $ROOT/landed) < /dev/null > /dev/null 2>&1 &";
    hook(&sandbox, ".git/hooks", script);
    let hooks = sandbox.repo.join(".git/hooks");
    std::fs::rename(hooks.join("pre-merge-commit"), hooks.join("post-merge")).unwrap();
    let mut command = sandbox.command("timeout", &sandbox.repo);
    command.args(["120", "git", "proq", "merge", "one"]);
    let _ = sandbox.output(command).ok();
    assert_eq!(sandbox.hear("landed"), "0\n");
    assert!(sandbox.repo.join("two.txt").exists());
}
