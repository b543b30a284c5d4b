//! `git proq spawn --in-place`: a run in the main checkout, what it commits there, and what it leaves alone.

use proq_test_kit::{Output, Sandbox};

/// Returns a repository with three files, in which the user has changed one, created another, and has a
/// secret that git ignores.
pub fn sandbox_with_user_changes() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("echo a > a; echo b > b; echo c > c; echo .env > .gitignore");
    sandbox.commit_all("files");
    sandbox.sh("echo mine >> a; echo loose > loose; echo secret > .env");
    sandbox
}

/// Asserts that the user's files are as they were, and neither staged nor committed.
#[track_caller]
pub fn assert_user_changes_untouched(sandbox: &Sandbox) {
    let had = ["a", "loose", ".env"].map(|file| sandbox.read(file));
    assert_eq!(had, ["a\nmine\n", "loose\n", "secret\n"]);
    let status = status(sandbox);
    assert!(status.contains(" M a") && status.contains("?? loose"), "{status}");
    assert_eq!(sandbox.git(&["show", "HEAD:a"]), "a");
    assert_eq!(sandbox.git(&["ls-files", "loose", ".env"]), "");
}

/// Runs a script in the main checkout as lane `x`, to its end.
pub fn run_in_place(sandbox: &Sandbox, script: &str) -> Output {
    sandbox.proq(&["spawn", "--in-place", "--wait", "-n", "x", "--", "sh", "-ec", script])
}

/// Starts a script in the main checkout as lane `x`.
pub fn start_in_place(sandbox: &Sandbox, script: &str) {
    let _ = sandbox.proq(&["spawn", "--in-place", "-n", "x", "--", "sh", "-ec", script]).ok();
}

/// Returns the uncommitted changes as git prints them.
pub fn status(sandbox: &Sandbox) -> String {
    sandbox.git(&["status", "--porcelain"])
}

/// Returns the subjects of the commits on the branch that is checked out, without the first.
pub fn subjects(sandbox: &Sandbox) -> Vec<String> {
    let all = sandbox.git(&["log", "--format=%s"]);
    all.lines().map(str::to_owned).filter(|line| line != "first").collect()
}

/// Returns the snapshot of what was uncommitted before the last run.
pub fn snapshot_before_run(sandbox: &Sandbox) -> String {
    let args =
        ["for-each-ref", "--sort=-refname", "--count=1", "--format=%(refname:lstrip=3)", "refs/proq/snap"];
    String::from_utf8(sandbox.git_bytes(&sandbox.repo, &args)).unwrap().trim().to_owned()
}

pub fn operation_count(sandbox: &Sandbox) -> usize {
    sandbox.proq(&["op", "log", "--json"]).json()["operations"].as_array().unwrap().len()
}

/// Promise: agent-git/in-place-commit
#[test]
fn commits_agent_changes_but_not_user_changes() {
    let sandbox = sandbox_with_user_changes();
    let before = status(&sandbox);
    let shown =
        run_in_place(&sandbox, "echo more >> b; echo new > new; mkdir d; echo deep > d/e; rm c").to_text();
    insta::assert_snapshot!(shown, @r"
    x: done
    --- code 0
    ");
    assert_eq!(status(&sandbox), before);
    assert_eq!(sandbox.git(&["show", "--format=", "--name-status", "HEAD"]), "M\tb\nD\tc\nA\td/e\nA\tnew");
    assert_user_changes_untouched(&sandbox);
    assert_eq!(sandbox.row("x")["mode"], "in-place");
    sandbox.assert_healthy();

    let run_ok = |args: &[&str]| sandbox.proq(args).ok();
    assert!(run_ok(&["op", "log"]).contains("run 1 of lane x"));
    let _ = run_ok(&["undo", "1"]);
    assert_eq!((status(&sandbox), subjects(&sandbox).len()), (before.clone(), 1));
    assert_eq!((sandbox.read("c"), sandbox.repo.join("d").exists()), ("c\n".into(), false));
    let _ = run_ok(&["op", "redo"]);
    assert_eq!((status(&sandbox), subjects(&sandbox).len()), (before, 2));
    sandbox.assert_healthy();
}

/// Promise: agent-git/in-place-commit
#[test]
fn file_changed_by_both_stays_uncommitted_and_is_saved() {
    let sandbox = sandbox_with_user_changes();
    let out = run_in_place(&sandbox, "echo more >> a; echo more >> b; echo more >> loose").ok();
    assert!(
        out.contains(
            "files that had changes of yours, or were ignored, changed while it ran and are not committed: a, loose; as they were"
        ),
        "{out}"
    );
    assert_eq!(sandbox.git(&["show", "--format=", "--name-only", "HEAD"]), "b");
    assert_eq!(status(&sandbox), " M a\n?? loose");
    let id = snapshot_before_run(&sandbox);
    let kept =
        |file: &str| sandbox.proq(&["snap", "show", &id, "--json"]).ok().contains(&format!("\"{file}\""));
    assert!(["a", "loose"].iter().all(|file| kept(file)));
    let snap = format!("refs/proq/snap/{id}");
    assert_eq!(sandbox.git(&["show", &format!("{snap}:a")]), "a\nmine");
    assert_eq!(sandbox.git(&["show", &format!("{snap}^3:loose")]), "loose");
    sandbox.assert_healthy();
}

#[test]
fn undo_reverts_agent_commits_but_keeps_edits() {
    let sandbox = sandbox_with_user_changes();
    let script =
        "echo more >> b; git add b; git commit -qm 'by hand' b; echo again >> b; git commit -qm again b";
    assert_eq!(run_in_place(&sandbox, script).ok(), "x: done\n");
    assert_eq!(subjects(&sandbox)[..2], ["again", "by hand"]);
    let _ = sandbox.proq(&["undo", "1"]).ok();
    assert_eq!((sandbox.read("b"), sandbox.read("a")), ("b\n".into(), "a\nmine\n".into()));
    // A later commit on top of it is not undone silently.
    let _ = sandbox.proq(&["op", "redo"]).ok();
    sandbox.sh("git commit -qm mine --allow-empty");
    let refused = sandbox.proq(&["undo", "1"]).fails(1);
    assert!(refused.contains("main"), "{refused}");
}

#[test]
fn commit_hooks_run_and_their_changes_are_committed() {
    let sandbox = sandbox_with_user_changes();
    let hook = "#!/bin/sh\nenv | grep PATHSPECS && exit 1\ngit diff --cached --name-only -- '*.py' | grep -q . && exit 1\n\
        sed -i s/more/MORE/ b; git add b\n";
    sandbox.write(".git/hooks/pre-commit", hook);
    sandbox.sh("chmod +x .git/hooks/pre-commit");
    let before = status(&sandbox);
    assert_eq!(run_in_place(&sandbox, "echo more >> b").ok(), "x: done\n");
    assert_eq!((sandbox.git(&["show", "HEAD:b"]), status(&sandbox)), ("b\nMORE".into(), before));
    let _ = sandbox.proq(&["discard", "x"]).ok();
    let out = run_in_place(&sandbox, "echo x > x.py").ok();
    assert!(out.contains("git refused"), "{out}");
}

#[test]
fn files_and_folders_can_swap_places() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo a > a; mkdir d; echo d > d/d; mkdir mine; echo m > mine/m; git add .; git commit -qm all; echo more >> mine/m");
    let out =
        run_in_place(&sandbox, "rm a; mkdir a; echo i > a/i; rm -r d; echo d > d; rm -r mine; echo m > mine")
            .ok();
    assert!(out.contains("are not committed: mine, mine/m"), "{out}");
    assert_eq!(
        sandbox.git(&["show", "--format=", "--name-status", "--no-renames", "HEAD"]),
        "D\ta\nA\ta/i\nA\td\nD\td/d"
    );
    assert_eq!(status(&sandbox), " D mine/m\n?? mine");
    let _ = sandbox.proq(&["undo", "1"]).ok();
    assert_eq!((sandbox.read("a"), sandbox.read("d/d")), ("a\n".into(), "d\n".into()));
}

#[test]
fn commits_index_removals_but_not_nested_repositories() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo s > secret; git add secret; git commit -qm secret");
    let script = "git rm -q --cached secret; echo secret > .gitignore; git init -q nest; git -C nest commit -q --allow-empty -m n";
    let out = run_in_place(&sandbox, script).ok();
    assert!(out.contains("not committed, because they are separate repositories: nest"), "{out}");
    assert_eq!(sandbox.git(&["show", "--format=", "--name-status", "HEAD"]), "A\t.gitignore\nD\tsecret");
    assert_eq!(sandbox.read("secret"), "s\n");
}

#[test]
fn failed_run_leaves_changes_uncommitted() {
    let sandbox = sandbox_with_user_changes();
    let out = run_in_place(&sandbox, "echo more >> b; echo new > new; exit 3").fails(4);
    assert!(out.contains("exit code 3; it left uncommitted: b, new"), "{out}");
    assert_eq!((subjects(&sandbox).len(), status(&sandbox)), (1, " M a\n M b\n?? loose\n?? new".into()));
    let _ = sandbox.proq(&["discard", "x"]).ok();
    assert_eq!(run_in_place(&sandbox, "true").ok(), "x: no-change\n");
    assert_eq!(subjects(&sandbox).len(), 1);
    // With automatic commits off, the run commits nothing.
    let _ = sandbox.proq(&["discard", "x"]).ok();
    sandbox.git(&["config", "proq.agent.autocommit", "never"]);
    let out = run_in_place(&sandbox, "echo more >> c").ok();
    assert!(out.contains("it left uncommitted: c"), "{out}");
    assert_eq!(subjects(&sandbox).len(), 1);
}

#[test]
fn run_that_leaves_branch_is_not_committed() {
    let sandbox = Sandbox::new();
    let out = run_in_place(
        &sandbox,
        "git commit -q --allow-empty -m here; git checkout -q -b elsewhere; echo one > one",
    )
    .fails(4);
    assert!(out.contains("the main checkout is on elsewhere now, and nothing was committed for it"), "{out}");
    assert_eq!(status(&sandbox), "?? one");
    assert!(out.contains("main went from ") && out.contains("which undo does not cover"), "{out}");
    assert_eq!(operation_count(&sandbox), 0);
    let output = sandbox.proq(&["run", "x", "claude", "go on"]).fails(1);
    assert!(output.contains("claude") || output.contains("lane 'x' works on 'main'"), "{output}");
}

/// Promise: agent-git/in-place-commit
#[test]
fn staged_user_changes_prevent_commit() {
    let sandbox = sandbox_with_user_changes();
    let out = run_in_place(&sandbox, "echo more >> b; git add -A").ok();
    let message =
        "files that had changes of yours before are staged now, and nothing is committed for it: a, loose";
    assert!(out.contains(message) && out.contains("git reset"), "{out}");
    assert_eq!((subjects(&sandbox).len(), operation_count(&sandbox)), (1, 0));
    // The hint leaves every file as it is, and the next run can start.
    let _ = sandbox.proq(&["run", "x", "claude", "go on"]).fails(1);
    sandbox.git(&["reset", "-q"]);
    assert_user_changes_untouched(&sandbox);
    assert_eq!(sandbox.read("b"), "b\nmore\n");
    // Also when staging is all that the agent did.
    let _ = sandbox.proq(&["discard", "x"]).ok();
    let out = run_in_place(&sandbox, "git add a").ok();
    assert!(out.starts_with("x: done (files that had changes of yours before are staged now"), "{out}");
}

/// Promise: agent-git/in-place-commit
#[test]
fn committed_user_changes_are_reported_without_undo() {
    let sandbox = sandbox_with_user_changes();
    let out = run_in_place(&sandbox, "echo more >> b; git add -A; git commit -qm everything").ok();
    let message = "changes of yours were committed: a, loose; as they were: git proq snap show ";
    assert!(out.contains(message), "{out}");
    assert_eq!((sandbox.git(&["show", "HEAD:a"]), operation_count(&sandbox)), ("a\nmine".into(), 0));
    assert_eq!((sandbox.read("loose"), sandbox.read(".env")), ("loose\n".into(), "secret\n".into()));
    let range = out.split("git log --stat ").nth(1).unwrap().trim_end().trim_end_matches(')').to_owned();
    assert_eq!(sandbox.git(&["log", "--format=%s", &range]), "everything");
    sandbox.git(&["reset", "-q", "HEAD~1"]);
    assert_user_changes_untouched(&sandbox);

    let _ = sandbox.proq(&["discard", "x"]).ok();
    let out = run_in_place(&sandbox, "git checkout -q a; rm loose").ok();
    assert!(out.contains("are not committed: a, loose; as they were"), "{out}");
    assert_eq!(sandbox.read("a"), "a\n");
    let id = snapshot_before_run(&sandbox);
    sandbox.git(&["checkout", "-q", "b"]);
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    assert_user_changes_untouched(&sandbox);
    let _ = sandbox.proq(&["discard", "x"]).ok();
    let out = run_in_place(&sandbox, "git add -f .env; git commit -qm secret").ok();
    assert!(out.contains("changes of yours were committed: .env; undo cannot separate them"), "{out}");
}

/// Promise: agent-git/in-place-commit
#[test]
fn renamed_user_files_are_not_committed() {
    let sandbox = sandbox_with_user_changes();
    sandbox.sh("echo modules/ >> .gitignore; git commit -qm more .gitignore; mkdir modules; echo m > modules/m; mkdir dir; echo d > dir/d");
    // One file is rewritten under the name of the old one, with the inode of another.
    let script = "echo '*.log' > .gitignore; mv .env env; mv modules vendor; mv loose found; mv a a2; mv dir rid; \
        mv vendor/m moved; echo one > one; cp b b.new; echo more >> b.new; mv b.new b";
    let out = run_in_place(&sandbox, script).ok();
    for path in [".env", "a", "a2", "dir/d and 6 more"] {
        let list = out.split("are not committed: ").nth(1).unwrap().split(';').next().unwrap();
        assert!(list.split(", ").any(|name| name == path), "{path}: {out}");
    }
    assert_eq!(sandbox.git(&["show", "--format=", "--name-status", "HEAD"]), "M\t.gitignore\nM\tb\nA\tone");
    let kept = ["env", "found", "a2", "moved", "rid/d"].map(|file| sandbox.read(file));
    assert_eq!(kept, ["secret\n", "loose\n", "a\nmine\n", "m\n", "d\n"]);
    // An undo leaves them alone as well.
    let _ = sandbox.proq(&["undo", "1"]).ok();
    assert_eq!((sandbox.read("env"), sandbox.read("b")), ("secret\n".into(), "b\n".into()));
    sandbox.assert_healthy();
}

#[test]
fn files_with_index_flags_belong_to_user() {
    let sandbox = sandbox_with_user_changes();
    sandbox.sh("git update-index --assume-unchanged c; echo mine >> c; git update-index --skip-worktree b; echo mine >> b");
    let script =
        "git update-index --no-assume-unchanged c; git update-index --no-skip-worktree b; echo one > one";
    assert_eq!(run_in_place(&sandbox, script).ok(), "x: done\n");
    assert_eq!(sandbox.git(&["show", "--format=", "--name-status", "HEAD"]), "A\tone");
    assert_eq!((sandbox.read("b"), sandbox.read("c")), ("b\nmine\n".into(), "c\nmine\n".into()));
    assert_user_changes_untouched(&sandbox);
}

#[test]
fn undo_refuses_to_overwrite_user_edits() {
    let sandbox = sandbox_with_user_changes();
    let _ = run_in_place(&sandbox, "echo more >> b; echo more >> c").ok();
    sandbox.sh("echo later >> c");
    let refused = sandbox.proq(&["undo", "1"]).fails(1);
    assert!(refused.contains(": c") && !refused.contains("loose"), "{refused}");
    assert_eq!((sandbox.read("b"), sandbox.read("c")), ("b\nmore\n".into(), "c\nmore\nlater\n".into()));
    assert_user_changes_untouched(&sandbox);
}

/// Promise: agent-git/in-place-commit
#[test]
fn commits_dropped_from_branch_are_saved() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo two > two; git add two; git commit -qm two");
    let tip = sandbox.git(&["rev-parse", "HEAD"]);
    let script = "git update-ref -d refs/heads/main && exit 9; git reset -q --hard HEAD~1; \
        git commit -q --allow-empty -m dropped; git commit -q --amend --allow-empty -m amended; \
        git reflog expire --expire=now --all; rm -f .git/ORIG_HEAD; git gc -q --prune=now";
    let out = run_in_place(&sandbox, script).ok();
    assert!(out.contains("the earlier main is saved: git log refs/proq/saved/x-"), "{out}");
    assert_eq!(sandbox.git(&["cat-file", "-t", &tip]), "commit");
    let saved = sandbox.git(&["log", "--no-walk", "--format=%s", "--glob=refs/proq/saved"]);
    let mut saved: Vec<&str> = saved.lines().collect();
    saved.sort_unstable();
    saved.dedup();
    assert_eq!(saved, ["dropped", "two"]);
    let _ = sandbox.proq(&["undo", "1"]).ok();
    assert_eq!((sandbox.git(&["rev-parse", "HEAD"]), sandbox.read("two")), (tip, "two\n".into()));
}

#[test]
fn agent_may_write_only_its_own_branch() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("y", "echo y > y");
    let tip = sandbox.git(&["rev-parse", "proq/y"]);
    let script = "git commit -q --allow-empty -m own; git proq task read | grep 'main, in the main checkout'; \
        git branch -f proq/y HEAD && exit 9; git checkout -q --detach; git branch -D main && exit 9; git checkout -q main; \
        echo one > one; git stash -u && exit 9; git pack-refs --all; git commit -q --allow-empty -m more";
    assert_eq!(run_in_place(&sandbox, script).ok(), "x: done\n");
    assert_eq!(sandbox.git(&["rev-parse", "proq/y"]), tip);
    assert_eq!(subjects(&sandbox).len(), 3);
    assert_eq!(sandbox.events("lane.escape").len(), 0);
}

/// Promise: agent-git/in-place-crash
#[test]
fn refused_commit_changes_nothing() {
    // The hook refuses; it is killed; git is killed with it.
    for hook in ["echo no such style >&2; exit 1", "kill -9 $$", "kill -9 $PPID; sleep 600 <&- >&- 2>&- &"] {
        let sandbox = sandbox_with_user_changes();
        sandbox.write(".git/hooks/pre-commit", &format!("#!/bin/sh\n{hook}\n"));
        sandbox.sh("chmod +x .git/hooks/pre-commit");
        let out = run_in_place(&sandbox, "echo more >> b; echo new > new; rm c; git add -N new").ok();
        assert!(out.contains("its changes are not committed: b, c, new; git refused: "), "{out}");
        assert_eq!(out.contains("no such style"), hook.starts_with("echo"), "{out}");
        // A file that was only marked as intent-to-add is untracked again.
        assert_eq!(status(&sandbox), " M a\n M b\n D c\n?? loose\n?? new", "{hook}");
        assert_user_changes_untouched(&sandbox);
        assert_eq!((subjects(&sandbox).len(), sandbox.read("new")), (1, "new\n".into()));
        sandbox.assert_healthy();
        std::fs::remove_file(sandbox.repo.join(".git/hooks/pre-commit")).unwrap();
        sandbox.git(&["commit", "-qm", "by hand", "b"]);
    }
}

#[test]
fn large_files_and_conflict_markers_are_not_committed() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.agent.autocommitLimit", "1"]);
    let out = run_in_place(&sandbox, "echo one > one; head -c 2000000 /dev/zero > big").ok();
    assert!(out.contains("its changes are not committed: big has 1 MiB"), "{out}");
    assert_eq!(status(&sandbox), "?? big\n?? one");
    sandbox.sh("rm big one");
    let _ = sandbox.proq(&["discard", "x"]).ok();
    let out = run_in_place(&sandbox, "printf '<<<<<<< a\n=======\n>>>>>>> b\n' > one").ok();
    assert!(out.contains("one has conflict markers"), "{out}");
    assert_eq!(status(&sandbox), "?? one");
}

#[test]
fn excluded_files_of_sparse_checkout_are_not_deleted() {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir in out; echo i > in/i; echo o > out/o; git add .; git commit -qm d; git sparse-checkout set in");
    assert_eq!(run_in_place(&sandbox, "echo y > in/y").ok(), "x: done\n");
    assert_eq!(sandbox.git(&["show", "--format=", "--name-status", "HEAD"]), "A\tin/y");
    assert_eq!(sandbox.git(&["show", "HEAD:out/o"]), "o");
    // What git adds only when it is forced is not added.
    let _ = sandbox.proq(&["discard", "x"]).ok();
    let out = run_in_place(&sandbox, "mkdir -p out; echo n > out/n; echo z > in/z").ok();
    assert!(out.contains("git refused") && out.contains("out/n"), "{out}");
    assert_eq!(status(&sandbox), "?? in/z\n?? out/n");
}

#[test]
fn commits_submodule_commit_but_not_its_files() {
    let sandbox = Sandbox::new();
    sandbox.sh("git init -q ../sub; git -C ../sub commit -q --allow-empty -m s");
    sandbox.sh("git -c protocol.file.allow=always submodule --quiet add ../sub sub; git commit -qm sub");
    let out = run_in_place(&sandbox, "git -C sub commit -q --allow-empty -m t; echo one > one").ok();
    assert_eq!(out, "x: done\n");
    assert_eq!(sandbox.git(&["show", "--format=", "--name-status", "HEAD"]), "A\tone\nM\tsub");
    let _ = sandbox.proq(&["discard", "x"]).ok();
    let out = run_in_place(&sandbox, "echo in > sub/in; echo two > two").ok();
    assert!(out.contains("its changes inside submodules are not committed: sub"), "{out}");
    assert_eq!(sandbox.git(&["show", "--format=", "--name-status", "HEAD"]), "A\ttwo");
    assert!(sandbox.repo.join("sub/in").exists());
}

/// Promise: agent-git/in-place-commit
#[test]
fn special_file_names_are_plain_names() {
    let sandbox = sandbox_with_user_changes();
    sandbox.sh("printf mine > ':(glob)*'; printf mine > '*'");
    let script = r#"printf 1 > "$(printf 'new\nline')"; printf 1 > ./-f; printf 1 > '"quoted"'; printf 1 > 'b*'; printf 1 > ':!c'"#;
    let out = run_in_place(&sandbox, script).ok();
    assert_eq!(out, "x: done\n");
    let all = sandbox.git_bytes(&sandbox.repo, &["show", "--format=", "--name-only", "-z", "HEAD"]);
    assert_eq!(String::from_utf8(all).unwrap(), "\"quoted\"\0-f\0:!c\0b*\0new\nline\0");
    assert_user_changes_untouched(&sandbox);
    assert_eq!(sandbox.git(&["ls-files", "--", ":(literal)*"]), "");
}

#[cfg(target_os = "linux")]
#[test]
fn non_utf8_file_names_are_supported() {
    let sandbox = sandbox_with_user_changes();
    sandbox.sh(r#"printf mine > "$(printf 'my\377')"; printf 1 > "$(printf 'was\376')"; git add was*; git commit -qm was"#);
    let script = r#"printf 2 > "$(printf 'new\375')"; rm was*; printf 3 >> "$(printf 'my\377')""#;
    let out = run_in_place(&sandbox, script).ok();
    assert!(out.contains("are not committed: "), "{out}");
    let all =
        sandbox.git_bytes(&sandbox.repo, &["show", "--format=", "--name-only", "--no-renames", "-z", "HEAD"]);
    assert_eq!(all, b"new\xfd\0was\xfe\0");
}
