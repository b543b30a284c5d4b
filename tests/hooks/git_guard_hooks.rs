//! Tests of the hooks that the git of a lane's agent runs: the repository's hooks still run, and the guard
//! protects refs of others.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use proq_test_kit::Sandbox;

/// Writes hooks into a folder: one that refuses, one that takes an argument, one that reads its input.
fn write_hooks(sandbox: &Sandbox, dir: &Path) {
    let script = r#"mkdir -p "$0"; cd "$0"
        printf '#!/bin/sh\ntest ! -e refuse || exit 7\necho "$0 [$GIT_CONFIG_PARAMETERS]" >> "$ROOT/ran"\n' > pre-commit
        printf '#!/bin/sh\necho trailer >> "$1"\n' > commit-msg
        printf '#!/bin/sh\necho "$1 $(cat)" >> "$ROOT/pushed"\n' > pre-push
        printf '#!/bin/sh\nexit 1\n' > commit-msg.sample; printf 'exit 1\n' > post-checkout
        chmod +x pre-commit commit-msg pre-push commit-msg.sample"#;
    let mut command = sandbox.command("sh", &sandbox.root());
    command.args([OsStr::new("-ec"), script.as_ref(), dir.as_os_str()]);
    let _ = sandbox.output(command).ok();
}

fn run_log(sandbox: &Sandbox, lane: &str) -> String {
    sandbox.proq(&["logs", lane]).ok()
}

/// Installs a hook of the repository in its usual folder.
fn install_repository_hook(sandbox: &Sandbox, name: &str, text: &str) {
    sandbox.program("hook", text);
    sandbox.sh(&format!("mkdir -p .git/hooks; mv \"$ROOT/bin/hook\" .git/hooks/{name}"));
}

/// Agent script that triggers all of these hooks.
const ALL_HOOKS_SCRIPT: &str = r#"
    ls "$(git config core.hooksPath)"; echo 1 > one; git add one; git commit -qm one; git log -1 --format=%B
    touch refuse; if git commit -q --allow-empty -m two; then echo not refused; fi; rm refuse; git init -q --bare "$ROOT/far"
    git push -q "$ROOT/far" HEAD:refs/heads/there; git -C "$ROOT/far" rev-parse there > /dev/null"#;

#[track_caller]
fn assert_all_hooks_ran(sandbox: &Sandbox, first: &str) {
    insta::allow_duplicates! {
        insta::assert_snapshot!(run_log(sandbox, "x"), @r"
        commit-msg
        post-commit
        pre-commit
        pre-push
        reference-transaction
        one
        trailer
        ");
    }
    let plain = |name: &str| sandbox.normalize(&std::fs::read(sandbox.root().join(name)).unwrap());
    assert_eq!(plain("ran"), format!("{first} []\n"));
    assert_eq!(sandbox.git(&["log", "--format=%s", "main..proq/x"]), "one trailer");
    let pushed = plain("pushed");
    assert!(pushed.starts_with("[ROOT]/far HEAD ") && pushed.contains("refs/heads/there"), "{pushed}");
}

/// Promise: agent-git/repository-hooks
#[test]
fn repository_hooks_get_arguments_and_input() {
    let sandbox = Sandbox::new();
    write_hooks(&sandbox, &sandbox.repo.join(".git/hooks"));
    sandbox.run_lane("x", ALL_HOOKS_SCRIPT);
    assert_all_hooks_ran(&sandbox, "[ROOT]/repo/.git/hooks/pre-commit");
}

/// Promise: agent-git/repository-hooks
#[test]
fn repository_ref_hook_runs_after_the_guard() {
    let sandbox = Sandbox::new();
    install_repository_hook(
        &sandbox,
        "reference-transaction",
        "echo \"$1 $(cut -d' ' -f3)\" >> \"$ROOT/refs\"; test \"$1\" != prepared || test ! -e \"$ROOT/refuse\"",
    );
    let script = r#"git commit -q --allow-empty -m mine; rm "$ROOT/refs"; git update-ref refs/heads/feature HEAD; mv "$ROOT/refs" "$ROOT/seen"
        touch "$ROOT/refuse"; if git update-ref refs/heads/refused HEAD; then echo not refused; fi; rm "$ROOT/refuse" "$ROOT/refs"
        if git update-ref refs/heads/main HEAD; then echo not refused; fi; mv "$ROOT/refs" "$ROOT/ours-refused""#;
    sandbox.run_lane("x", script);
    let steps = |name: &str| -> Vec<String> {
        let text = std::fs::read_to_string(sandbox.root().join(name)).unwrap();
        // Later versions of git have a phase before this one.
        text.lines().filter(|line| !line.starts_with("preparing ")).map(ToOwned::to_owned).collect()
    };
    assert_eq!(steps("seen"), ["prepared refs/heads/feature", "committed refs/heads/feature"]);
    // The repository's hook does not see updates that the guard refused.
    assert_eq!(steps("ours-refused"), ["aborted refs/heads/main"]);
    assert!(!run_log(&sandbox, "x").contains("not refused"), "{}", run_log(&sandbox, "x"));
    assert_eq!(sandbox.git(&["for-each-ref", "refs/heads/refused"]), "");
}

/// Promise: agent-git/repository-hooks
#[test]
fn unstartable_repository_hook_refuses() {
    for (name, command) in [
        ("pre-commit", "git commit -q --allow-empty -m never"),
        ("reference-transaction", "git update-ref refs/heads/never HEAD"),
    ] {
        let sandbox = Sandbox::new();
        install_repository_hook(&sandbox, name, "true");
        let script = format!(
            "echo '#!/no/such/program' > \"$ROOT/repo/.git/hooks/{name}\"; if {command}; then echo not refused; fi"
        );
        let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "sh", "-ec", &script]).ok();
        let output = run_log(&sandbox, "x");
        assert!(output.contains("git-proq: the repository's own hook could not be run: "), "{output}");
        assert!(!output.contains("not refused"), "{name}: {output}");
        assert_eq!(sandbox.git(&["log", "--format=%s", "proq/x"]), "first");
        assert_eq!(sandbox.git(&["for-each-ref", "refs/heads/never"]), "");
    }
}

/// Promise: agent-git/repository-hooks
#[test]
fn hooks_in_worktree_folder_created_later_run() {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", ".husky/_\n");
    sandbox.commit_all("ignore");
    sandbox.git(&["config", "core.hooksPath", ".husky/_"]);
    write_hooks(&sandbox, &sandbox.repo.join(".husky/_"));
    let later = "cp -r ../../.husky/_ ./later; mkdir .husky; mv later .husky/_";
    sandbox.run_lane("x", &format!("{later}{ALL_HOOKS_SCRIPT}"));
    assert_all_hooks_ran(&sandbox, ".husky/_/pre-commit");
    // In a lane without the folder git alone would run no hook either.
    sandbox.run_lane("y", "git commit -q --allow-empty -m none");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%B", "proq/y"]), "none");
}

/// Promise: agent-git/repository-hooks
#[test]
fn hooks_outside_the_repository_run() {
    let sandbox = Sandbox::new();
    let elsewhere = sandbox.root().join("it's a folder");
    write_hooks(&sandbox, &elsewhere);
    sandbox.git(&["config", "core.hooksPath", elsewhere.to_str().unwrap()]);
    sandbox.run_lane("x", ALL_HOOKS_SCRIPT);
    assert_all_hooks_ran(&sandbox, "[ROOT]/it's a folder/pre-commit");
}

/// Promise: agent-git/guard-temporary
#[test]
fn guard_hooks_are_read_only_and_temporary() {
    let sandbox = Sandbox::new();
    sandbox.sh("rm -rf .git/hooks");
    sandbox.run_lane("x", r#"ls "$(git config core.hooksPath)"; stat -c %a "$(git config core.hooksPath)""#);
    insta::assert_snapshot!(run_log(&sandbox, "x"), @r"
    post-commit
    pre-push
    reference-transaction
    555
    ");
    // The guard's folder is removed after the run.
    assert_eq!(std::fs::read_dir(sandbox.repo.join(".git/proq/fences")).unwrap().count(), 0);
    assert!(!sandbox.repo.join(".git/hooks").exists());
    assert_eq!(sandbox.git(&["config", "--list", "--local"]).matches("hookspath").count(), 0);
}

/// Promise: agent-git/guard-temporary
#[test]
fn next_run_removes_guard_of_killed_supervisor() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y"]).ok();
    let old = sandbox.repo.join(".git/proq/fences/x-7/hooks");
    std::fs::create_dir_all(&old).unwrap();
    std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o555)).unwrap();
    let other = sandbox.repo.join(".git/proq/fences/y-1");
    std::fs::create_dir_all(&other).unwrap();
    sandbox.run_lane("x", "true");
    assert!(!old.exists());
    // The folder of another lane may be in use.
    assert!(other.exists());
}

/// Promise: agent-git/shell-variables
#[test]
fn works_when_shell_unsets_key_variables() {
    let sandbox = Sandbox::new();
    write_hooks(&sandbox, &sandbox.repo.join(".git/hooks"));
    let script = r#"
        for name in $(env | sed -n 's/^\([A-Z0-9_]*\(KEY\|SECRET\|TOKEN\)[A-Z0-9_]*\)=.*/\1/p'); do unset "$name"; done
        git -c a.b=c commit -q --allow-empty -m one; ! git update-ref refs/heads/main HEAD 2>/dev/null"#;
    sandbox.run_lane("x", script);
    assert_eq!(sandbox.git(&["log", "-1", "--format=%B", "proq/x"]), "one\ntrailer");
}

/// Promise: agent-git/shell-variables
#[test]
fn keeps_git_settings_from_user_environment() {
    let sandbox = Sandbox::new();
    let script =
        "git commit -q --allow-empty -m one; git config user.nick; ! git update-ref refs/heads/main HEAD";
    let mut command =
        sandbox.proq_command(&sandbox.repo, &["spawn", "--wait", "-n", "x", "--", "sh", "-ec", script]);
    command.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", "user.nick").env("GIT_CONFIG_VALUE_0", "Z");
    let _ = sandbox.output(command).ok();
    assert!(run_log(&sandbox, "x").starts_with("Z\n"));
}

/// Promise: agent-git/repository-hooks
#[test]
fn hooks_run_in_unusual_repository_paths() {
    let sandbox = Sandbox::new();
    for name in [&b"a b"[..], b"it's \"so\"", b"new\nline", b"bytes-\xff", &[b'x'; 150]] {
        let top = sandbox.root().join(OsStr::from_bytes(name));
        sandbox.git(&["clone", "-q", ".", "../fresh"]);
        std::fs::rename(sandbox.root().join("fresh"), &top).unwrap();
        write_hooks(&sandbox, &top.join(".git/hooks"));
        let script = "git commit -q --allow-empty -m one; git update-ref refs/heads/main HEAD || exit 3";
        let _ = sandbox.proq_in(&top, &["spawn", "--wait", "-n", "x", "--", "sh", "-ec", script]).fails(4);
        assert_eq!(sandbox.git_in(&top, &["log", "-1", "--format=%B", "proq/x"]), "one\ntrailer", "{top:?}");
        let output = sandbox.proq_in(&top, &["logs", "x"]).ok();
        assert!(output.contains("branch main is what lanes land on"), "{top:?}: {output}");
    }
}

/// Promise: agent-git/other-repositories
#[test]
fn other_repository_runs_only_its_own_hooks() {
    let sandbox = Sandbox::new();
    write_hooks(&sandbox, &sandbox.repo.join(".git/hooks"));
    let script = r#"
        git clone -q "$ROOT/repo" "$ROOT/other"; cd "$ROOT/other"; echo x > f; git add f
        printf '#!/bin/sh\necho other >> "$ROOT/other-ran"\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit
        git commit -qm there; git stash -q --include-untracked || true; echo y > f; git stash -q; git update-ref refs/heads/proq/y HEAD"#;
    sandbox.run_lane("x", script);
    assert_eq!(std::fs::read_to_string(sandbox.root().join("other-ran")).unwrap(), "other\n");
    assert!(!sandbox.root().join("ran").exists());
    assert_eq!(sandbox.git_in(&sandbox.root().join("other"), &["log", "-1", "--format=%B"]), "there");
    assert_eq!(sandbox.events("lane.committed").len(), 0);
}

/// Promise: agent-git/guard-outlives-program
#[test]
fn guard_works_after_program_was_deleted() {
    let sandbox = Sandbox::new();
    sandbox.sh(&format!(
        "mkdir -p \"$ROOT/bin\"; cp '{}' \"$ROOT/bin/git-proq\"",
        env!("CARGO_BIN_EXE_git-proq")
    ));
    let script = "rm \"$ROOT/bin/git-proq\"; git commit -q --allow-empty -m mine; git update-ref refs/heads/main HEAD; exit 0";
    let mut command = sandbox.command(sandbox.root().join("bin/git-proq"), &sandbox.repo);
    command.args(["spawn", "--wait", "-n", "x", "--", "sh", "-c", script]);
    let _ = sandbox.output(command).ok();
    assert!(
        run_log(&sandbox, "x").contains("branch main is what lanes land on"),
        "{}",
        run_log(&sandbox, "x")
    );
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "proq/x"]), "mine");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "main"]), "first");
}
