//! Rare cases of a run in the main checkout: a missing index, hooks of the repository that hang or stage
//! files, files that come and go, refs that cannot be created.

use proq_test_kit::Sandbox;

use super::in_place::{
    assert_user_changes_untouched, operation_count, run_in_place, sandbox_with_user_changes, start_in_place,
    status, subjects,
};

/// Writes a pre-commit hook of the repository's own.
fn write_pre_commit_hook(sandbox: &Sandbox, script: &str) {
    sandbox.sh(&format!("printf '#!/bin/sh\\n%s\\n' {} > .git/hooks/pre-commit", shell_quoted(script)));
    sandbox.sh("chmod +x .git/hooks/pre-commit");
}

fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Promise: agent-git/in-place-missing-entries
#[test]
fn missing_index_commits_nothing() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo b > b; git add b; git commit -qm b");
    let head = sandbox.git(&["rev-parse", "HEAD"]);
    let output = run_in_place(&sandbox, "rm .git/index; echo new > new").ok();
    assert!(
        output.contains(
            "git's index is missing there, so its changes are not committed; create it again: git reset"
        ),
        "{output}"
    );
    assert_eq!(sandbox.git(&["rev-parse", "HEAD"]), head);
    sandbox.sh("git reset -q");
    assert_eq!(status(&sandbox), "?? new");
}

/// Promise: agent-git/in-place-missing-entries
#[test]
fn existing_files_removed_from_index_stay_in_git() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo b > b; git add b; git commit -qm b");
    assert_eq!(run_in_place(&sandbox, "git rm -r -q --cached .; echo new > new").ok(), "x: done\n");
    assert_eq!(sandbox.git(&["show", "--format=", "--name-status", "HEAD"]), "A\tnew");
    assert_eq!((status(&sandbox), sandbox.read("b")), (String::new(), "b\n".into()));
}

/// Promise: agent-git/in-place-crash
#[test]
fn stopping_run_ends_hanging_hook() {
    let sandbox = sandbox_with_user_changes();
    sandbox.pipe("up");
    write_pre_commit_hook(&sandbox, "echo > \"$ROOT/up\"; exec sleep 600");
    start_in_place(&sandbox, "echo more >> b");
    let _ = sandbox.read_pipe("up");
    let _ = sandbox.proq(&["stop", "x"]);
    let output = sandbox.proq(&["show", "x"]).ok();
    assert!(output.contains("its changes are not committed: b"), "{output}");
    assert!(output.contains("it was stopped: it took too long, or the command was interrupted"), "{output}");
    assert_eq!((sandbox.read("b"), subjects(&sandbox).len()), ("b\nmore\n".into(), 1));
    assert_eq!(sandbox.git(&["diff", "--cached", "--name-only"]), "");
    assert_user_changes_untouched(&sandbox);
    sandbox.sh("rm .git/hooks/pre-commit; git checkout -q -- b");
    assert_eq!(
        sandbox.proq(&["spawn", "--in-place", "--wait", "-n", "y", "--", "sh", "-c", "echo y > y"]).ok(),
        "y: done\n"
    );
}

/// Promise: agent-git/in-place-crash
#[test]
fn files_staged_during_hook_stay_staged() {
    let sandbox = sandbox_with_user_changes();
    let script = "unset GIT_INDEX_FILE; echo theirs > c; git add c; echo later > c; exit 1";
    write_pre_commit_hook(&sandbox, script);
    let output = run_in_place(&sandbox, "echo more >> b; echo more >> c").ok();
    assert!(output.contains("staged by another program meanwhile, and left staged: c"), "{output}");
    assert_eq!(sandbox.git(&["show", ":c"]), "theirs");
    assert_eq!(sandbox.git(&["diff", "--cached", "--name-only"]), "c");
    assert_eq!((sandbox.read("b"), sandbox.read("c")), ("b\nmore\n".into(), "later\n".into()));
}

#[test]
fn commit_message_file_is_kept() {
    let sandbox = sandbox_with_user_changes();
    sandbox.sh("echo 'a long thought' > .git/COMMIT_EDITMSG");
    assert_eq!(run_in_place(&sandbox, "echo more >> b").ok(), "x: done\n");
    assert_eq!(sandbox.read(".git/COMMIT_EDITMSG"), "a long thought\n");
    assert_eq!(subjects(&sandbox).len(), 2);
}

#[test]
fn branch_switch_during_commit_is_reported() {
    let sandbox = sandbox_with_user_changes();
    let main = sandbox.git(&["rev-parse", "main"]);
    write_pre_commit_hook(&sandbox, "git switch -q -c feature");
    let output = run_in_place(&sandbox, "echo more >> b").ok();
    assert!(
        output.contains("another program switched to feature meanwhile, so its changes are committed there"),
        "{output}"
    );
    assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
    assert_eq!(sandbox.git(&["show", "--format=", "--name-only", "feature"]), "b");
    assert_eq!(operation_count(&sandbox), 0);
    assert_user_changes_untouched(&sandbox);
}

/// Promise: agent-git/in-place-missing-entries
#[test]
fn landing_is_refused_while_run_is_detached() {
    let sandbox = sandbox_with_user_changes();
    sandbox.lane_with_commit("y", "echo y > y");
    sandbox.pipe("up");
    sandbox.pipe("go");
    start_in_place(
        &sandbox,
        "git checkout -q --detach; echo > \"$ROOT/up\"; read line < \"$ROOT/go\"; git checkout -q main; echo more >> b",
    );
    let _ = sandbox.read_pipe("up");
    let refused = sandbox.proq(&["merge", "y"]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.to_text().contains("the agent of lane 'x' works in the main checkout"),
        "{}",
        refused.to_text()
    );
    sandbox.write_pipe("go");
    assert_eq!(sandbox.proq(&["wait", "x"]).ok(), "x: done\n");
    let _ = sandbox.proq(&["merge", "y"]).ok();
    assert_eq!((sandbox.read("y"), sandbox.read("b")), ("y\n".into(), "b\nmore\n".into()));
}

#[test]
fn detects_folder_replaced_by_link_and_ignored_files() {
    let sandbox = sandbox_with_user_changes();
    sandbox.sh("mkdir d e; echo d > d/d; echo e > e/e; git add d e; git commit -qm folders; mkdir -p cache/x; echo /cache >> .git/info/exclude; echo 1 > cache/x/1");
    let output = run_in_place(&sandbox, "rm -r d; ln -s e d; git clean -qfdX").ok();
    assert!(output.contains("changed while it ran and are not committed: .env, cache"), "{output}");
    assert_eq!(sandbox.git(&["show", "--format=", "--name-status", "--no-renames", "HEAD"]), "A\td\nD\td/d");
}

#[test]
fn vanishing_files_do_not_prevent_commit() {
    let sandbox = sandbox_with_user_changes();
    let mut command = sandbox.proq_command(
        &sandbox.repo,
        &["spawn", "--in-place", "-n", "x", "--", "sh", "-ec", "echo more >> b; echo swap > .b.swp"],
    );
    command.env("PROQ_TEST_STAND_AT", "in-place.looked");
    let _ = sandbox.output(command).ok();
    let paused = sandbox.wait_until_stopped(sandbox.lock_holder("x", "run"));
    sandbox.sh("rm .b.swp");
    drop(paused);
    assert_eq!(sandbox.proq(&["wait", "x"]).ok(), "x: done\n");
    assert_eq!(sandbox.git(&["show", "--format=", "--name-status", "HEAD"]), "M\tb");
}

/// Promise: agent-git/in-place-missing-entries
#[test]
fn amended_commit_is_saved_though_hook_cannot_create_ref() {
    let sandbox = sandbox_with_user_changes();
    let script = "echo more >> b; git commit -qm one b; git rev-parse HEAD > \"$ROOT/left\"; \
                  mv .git/refs/proq/saved .git/aside; echo > .git/refs/proq/saved; \
                  git commit -q --amend -m two; rm .git/refs/proq/saved; mv .git/aside .git/refs/proq/saved";
    assert_eq!(run_in_place(&sandbox, script).ok(), "x: done\n");
    let left = std::fs::read_to_string(sandbox.root().join("left")).unwrap();
    let kept = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/saved"]);
    assert!(kept.lines().any(|id| id == left.trim()), "{left} is not in {kept}");
    assert_eq!(subjects(&sandbox), ["two", "files"]);
    assert!(!sandbox.repo.join(".git/proq/lanes/x/left-behind").exists());
}

#[test]
fn op_restore_undoes_two_operations_of_one_lane() {
    let sandbox = Sandbox::new();
    for file in ["one", "two"] {
        assert_eq!(run_in_place(&sandbox, &format!("echo {file} > {file}")).ok(), "x: done\n");
        let _ = sandbox.proq(&["discard", "x"]).ok();
    }
    let out = sandbox.proq(&["op", "restore", "0"]);
    assert_ne!(out.code, 5, "{}", out.to_text());
}

/// Promise: agent-git/symbolic-lane-branch
#[test]
fn commits_nothing_through_symbolic_branch() {
    let sandbox = Sandbox::new();
    sandbox.git(&["branch", "other"]);
    let other = sandbox.git(&["rev-parse", "other"]);
    let run = run_in_place(&sandbox, "echo 'ref: refs/heads/other' > .git/refs/heads/main; echo new > new");
    assert!(run.fails(4).contains("the main checkout is on other now, and nothing was committed for it"));
    assert_eq!(sandbox.git(&["rev-parse", "other"]), other);
    assert_eq!(status(&sandbox), "?? new");
}
