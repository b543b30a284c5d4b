//! Owns the tests of the hooks that the git of a lane's agent uses: the repository's own still run, and what is not the lane's
//! stays as it is.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::support::Sandbox;

/// Writes hooks into a folder: one that refuses, one that gets an argument, one that reads its input.
fn hooks_in(sandbox: &Sandbox, dir: &Path) {
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

fn log(sandbox: &Sandbox, lane: &str) -> String {
    sandbox.proq(&["logs", lane]).ok()
}

/// Puts a hook of the repository's own into its usual place.
fn own_hook(sandbox: &Sandbox, name: &str, text: &str) {
    sandbox.program("hook", text);
    sandbox.sh(&format!("mkdir -p .git/hooks; mv \"$ROOT/bin/hook\" .git/hooks/{name}"));
}

/// What an agent does to see all of these hooks.
const ALL_HOOKS: &str = r#"
    ls "$(git config core.hooksPath)"; echo 1 > one; git add one; git commit -qm one; git log -1 --format=%B
    touch refuse; if git commit -q --allow-empty -m two; then echo not refused; fi; rm refuse; git init -q --bare "$ROOT/far"
    git push -q "$ROOT/far" HEAD:refs/heads/there; git -C "$ROOT/far" rev-parse there > /dev/null"#;

#[track_caller]
fn all_hooks_ran(sandbox: &Sandbox, first: &str) {
    insta::allow_duplicates! {
        insta::assert_snapshot!(log(sandbox, "x"), @r"
        commit-msg
        post-commit
        pre-commit
        pre-push
        reference-transaction
        one
        trailer
        ");
    }
    let plain = |name: &str| sandbox.plain(&std::fs::read(sandbox.root().join(name)).unwrap());
    assert_eq!(plain("ran"), format!("{first} []\n"));
    assert_eq!(sandbox.git(&["log", "--format=%s", "main..proq/x"]), "one trailer");
    let pushed = plain("pushed");
    assert!(pushed.starts_with("[ROOT]/far HEAD ") && pushed.contains("refs/heads/there"), "{pushed}");
}

#[test]
fn the_repositorys_hooks_run_with_their_arguments_and_input() {
    let sandbox = Sandbox::new();
    hooks_in(&sandbox, &sandbox.repo.join(".git/hooks"));
    sandbox.lane_with("x", ALL_HOOKS);
    all_hooks_ran(&sandbox, "[ROOT]/repo/.git/hooks/pre-commit");
}

#[test]
fn a_hook_of_its_own_on_refs_runs_behind_ours_with_each_step_and_can_refuse() {
    let sandbox = Sandbox::new();
    own_hook(
        &sandbox,
        "reference-transaction",
        "echo \"$1 $(cut -d' ' -f3)\" >> \"$ROOT/refs\"; test \"$1\" != prepared || test ! -e \"$ROOT/refuse\"",
    );
    let script = r#"git commit -q --allow-empty -m mine; rm "$ROOT/refs"; git update-ref refs/heads/feature HEAD; mv "$ROOT/refs" "$ROOT/seen"
        touch "$ROOT/refuse"; if git update-ref refs/heads/refused HEAD; then echo not refused; fi; rm "$ROOT/refuse" "$ROOT/refs"
        if git update-ref refs/heads/main HEAD; then echo not refused; fi; mv "$ROOT/refs" "$ROOT/ours-refused""#;
    sandbox.lane_with("x", script);
    let steps = |name: &str| -> Vec<String> {
        let text = std::fs::read_to_string(sandbox.root().join(name)).unwrap();
        // A later git has a step before this one.
        text.lines().filter(|line| !line.starts_with("preparing ")).map(ToOwned::to_owned).collect()
    };
    assert_eq!(steps("seen"), ["prepared refs/heads/feature", "committed refs/heads/feature"]);
    // What is ours to refuse is nobody's to judge after us.
    assert_eq!(steps("ours-refused"), ["aborted refs/heads/main"]);
    assert!(!log(&sandbox, "x").contains("not refused"), "{}", log(&sandbox, "x"));
    assert_eq!(sandbox.git(&["for-each-ref", "refs/heads/refused"]), "");
}

#[test]
fn a_hook_of_its_own_that_cannot_be_started_refuses_as_it_would_without_us() {
    for (name, command) in [
        ("pre-commit", "git commit -q --allow-empty -m never"),
        ("reference-transaction", "git update-ref refs/heads/never HEAD"),
    ] {
        let sandbox = Sandbox::new();
        own_hook(&sandbox, name, "true");
        let script = format!(
            "echo '#!/no/such/program' > \"$ROOT/repo/.git/hooks/{name}\"; if {command}; then echo not refused; fi"
        );
        let _ = sandbox.proq(&["spawn", "--wait", "-n", "x", "--", "sh", "-ec", &script]).ok();
        let said = log(&sandbox, "x");
        assert!(said.contains("git-proq: the repository's own hook could not be run: "), "{said}");
        assert!(!said.contains("not refused"), "{name}: {said}");
        assert_eq!(sandbox.git(&["log", "--format=%s", "proq/x"]), "first");
        assert_eq!(sandbox.git(&["for-each-ref", "refs/heads/never"]), "");
    }
}

#[test]
fn hooks_in_a_folder_of_each_worktree_run_also_when_it_comes_later() {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", ".husky/_\n");
    sandbox.commit_all("ignore");
    sandbox.git(&["config", "core.hooksPath", ".husky/_"]);
    hooks_in(&sandbox, &sandbox.repo.join(".husky/_"));
    let later = "cp -r ../../.husky/_ ./later; mkdir .husky; mv later .husky/_";
    sandbox.lane_with("x", &format!("{later}{ALL_HOOKS}"));
    all_hooks_ran(&sandbox, ".husky/_/pre-commit");
    // In a lane without the folder git would run none either.
    sandbox.lane_with("y", "git commit -q --allow-empty -m none");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%B", "proq/y"]), "none");
}

#[test]
fn hooks_in_a_folder_elsewhere_run() {
    let sandbox = Sandbox::new();
    let elsewhere = sandbox.root().join("it's a folder");
    hooks_in(&sandbox, &elsewhere);
    sandbox.git(&["config", "core.hooksPath", elsewhere.to_str().unwrap()]);
    sandbox.lane_with("x", ALL_HOOKS);
    all_hooks_ran(&sandbox, "[ROOT]/it's a folder/pre-commit");
}

#[test]
fn a_repository_without_hooks_gets_none_but_ours_and_its_folder_is_closed() {
    let sandbox = Sandbox::new();
    sandbox.sh("rm -rf .git/hooks");
    sandbox.lane_with("x", r#"ls "$(git config core.hooksPath)"; stat -c %a "$(git config core.hooksPath)""#);
    insta::assert_snapshot!(log(&sandbox, "x"), @r"
    post-commit
    pre-push
    reference-transaction
    555
    ");
    // Nothing of it is left.
    assert_eq!(std::fs::read_dir(sandbox.repo.join(".git/proq/fences")).unwrap().count(), 0);
    assert!(!sandbox.repo.join(".git/hooks").exists());
    assert_eq!(sandbox.git(&["config", "--list", "--local"]).matches("hookspath").count(), 0);
}

#[test]
fn what_a_killed_supervisor_left_goes_with_the_next_run() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y"]).ok();
    let old = sandbox.repo.join(".git/proq/fences/x-7/hooks");
    std::fs::create_dir_all(&old).unwrap();
    std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o555)).unwrap();
    let other = sandbox.repo.join(".git/proq/fences/y-1");
    std::fs::create_dir_all(&other).unwrap();
    sandbox.lane_with("x", "true");
    assert!(!old.exists());
    // That of another lane may be in use.
    assert!(other.exists());
}

#[test]
fn a_shell_that_drops_variables_with_key_in_their_names_breaks_nothing() {
    let sandbox = Sandbox::new();
    hooks_in(&sandbox, &sandbox.repo.join(".git/hooks"));
    let script = r#"
        for name in $(env | sed -n 's/^\([A-Z0-9_]*\(KEY\|SECRET\|TOKEN\)[A-Z0-9_]*\)=.*/\1/p'); do unset "$name"; done
        git -c a.b=c commit -q --allow-empty -m one; ! git update-ref refs/heads/main HEAD 2>/dev/null"#;
    sandbox.lane_with("x", script);
    assert_eq!(sandbox.git(&["log", "-1", "--format=%B", "proq/x"]), "one\ntrailer");
}

#[test]
fn settings_that_the_user_gives_by_environment_are_kept() {
    let sandbox = Sandbox::new();
    let script =
        "git commit -q --allow-empty -m one; git config user.nick; ! git update-ref refs/heads/main HEAD";
    let mut command =
        sandbox.proq_command(&sandbox.repo, &["spawn", "--wait", "-n", "x", "--", "sh", "-ec", script]);
    command.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", "user.nick").env("GIT_CONFIG_VALUE_0", "Z");
    let _ = sandbox.output(command).ok();
    assert!(log(&sandbox, "x").starts_with("Z\n"));
}

#[test]
fn repositories_at_any_path_have_their_hooks() {
    let sandbox = Sandbox::new();
    for name in [&b"a b"[..], b"it's \"so\"", b"new\nline", b"bytes-\xff", &[b'x'; 150]] {
        let top = sandbox.root().join(OsStr::from_bytes(name));
        sandbox.git(&["clone", "-q", ".", "../fresh"]);
        std::fs::rename(sandbox.root().join("fresh"), &top).unwrap();
        hooks_in(&sandbox, &top.join(".git/hooks"));
        let script = "git commit -q --allow-empty -m one; git update-ref refs/heads/main HEAD || exit 3";
        let _ = sandbox.proq_in(&top, &["spawn", "--wait", "-n", "x", "--", "sh", "-ec", script]).fails(4);
        assert_eq!(sandbox.git_in(&top, &["log", "-1", "--format=%B", "proq/x"]), "one\ntrailer", "{top:?}");
        let said = sandbox.proq_in(&top, &["logs", "x"]).ok();
        assert!(said.contains("branch main is what lanes land on"), "{top:?}: {said}");
    }
}

#[test]
fn in_another_repository_only_its_own_hooks_count() {
    let sandbox = Sandbox::new();
    hooks_in(&sandbox, &sandbox.repo.join(".git/hooks"));
    let script = r#"
        git clone -q "$ROOT/repo" "$ROOT/other"; cd "$ROOT/other"; echo x > f; git add f
        printf '#!/bin/sh\necho other >> "$ROOT/other-ran"\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit
        git commit -qm there; git stash -q --include-untracked || true; echo y > f; git stash -q; git update-ref refs/heads/proq/y HEAD"#;
    sandbox.lane_with("x", script);
    assert_eq!(std::fs::read_to_string(sandbox.root().join("other-ran")).unwrap(), "other\n");
    assert!(!sandbox.root().join("ran").exists());
    assert_eq!(sandbox.git_in(&sandbox.root().join("other"), &["log", "-1", "--format=%B"]), "there");
    assert_eq!(sandbox.events("lane.committed").len(), 0);
}

#[test]
fn a_fence_outlives_the_program_that_put_it_up() {
    let sandbox = Sandbox::new();
    sandbox.sh(&format!(
        "mkdir -p \"$ROOT/bin\"; cp '{}' \"$ROOT/bin/git-proq\"",
        env!("CARGO_BIN_EXE_git-proq")
    ));
    let script = "rm \"$ROOT/bin/git-proq\"; git commit -q --allow-empty -m mine; git update-ref refs/heads/main HEAD; exit 0";
    let mut command = sandbox.command(sandbox.root().join("bin/git-proq"), &sandbox.repo);
    command.args(["spawn", "--wait", "-n", "x", "--", "sh", "-c", script]);
    let _ = sandbox.output(command).ok();
    assert!(log(&sandbox, "x").contains("branch main is what lanes land on"), "{}", log(&sandbox, "x"));
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "proq/x"]), "mine");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "main"]), "first");
}
