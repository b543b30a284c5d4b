//! Tests of permissions that keep git from writing: the path is named and nothing is changed.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use proq_test_kit::Sandbox;

/// Creates a repository with a lane, of a user whom permissions bind.
fn repo_of_ordinary_user() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo 1 > one");
    sandbox.give_to_ordinary_user();
    sandbox
}

fn set_mode(dir: &Path, mode: u32) {
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Promise: worktree/read-only-git-dir
#[test]
fn refuses_read_only_git_directory() {
    let sandbox = repo_of_ordinary_user();
    for folder in ["", "/objects", "/refs", "/refs/heads"] {
        let dir = sandbox.repo.join(format!(".git{folder}"));
        set_mode(&dir, 0o555);
        for args in [
            &["merge", "x"][..],
            &["merge", "--dry-run", "x"],
            &["preview", "x"],
            &["spawn", "--empty", "-n", "y"],
            &["discard", "--force", "x"],
        ] {
            let out = sandbox.proq(args);
            let refusal = format!(
                "error: cannot change the repository: you may not write to [ROOT]/repo/.git{folder}; nothing was changed\n\
                 hint: make it writable: chmod u+rwx '[ROOT]/repo/.git{folder}'\n"
            );
            assert!(out.code == 1 && out.stderr.ends_with(&refusal), "{args:?}: {}", out.to_text());
        }
        let out = sandbox.proq(&["doctor"]);
        let finding = format!("you may not write to [ROOT]/repo/.git{folder}");
        assert!(out.code == 1 && out.stdout.contains(&finding), "{}", out.to_text());
        set_mode(&dir, 0o755);
        let out = sandbox.proq(&["doctor", "--json"]);
        assert!(!out.stdout.contains("left with git"), "{}", out.stdout);
    }
    let _ = sandbox.proq(&["preview", "x"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert_eq!(sandbox.read("one"), "1\n");
}

#[test]
fn names_read_only_branch_folder() {
    let sandbox = repo_of_ordinary_user();
    let dir = sandbox.repo.join(".git/refs/heads/proq");
    set_mode(&dir, 0o555);
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty", "-n", "y"]).to_text(), @r"
    --- stderr
    error: cannot change the repository: you may not write to [ROOT]/repo/.git/refs/heads/proq; nothing was changed
    hint: make it writable: chmod u+rwx '[ROOT]/repo/.git/refs/heads/proq'
    --- code 1
    ");
    set_mode(&dir, 0o755);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y"]).ok();
}

#[test]
fn diff_refuses_unreadable_changed_file() {
    let sandbox = repo_of_ordinary_user();
    let file = sandbox.lane_path("x").join("one");
    set_mode(&file, 0o000);
    for args in [&["diff", "x"][..], &["diff", "--stat", "x"]] {
        insta::allow_duplicates!(insta::assert_snapshot!(sandbox.proq(args).to_text(), @r"
        --- stderr
        error: files in [ROOT]/repo/.proq-worktrees/x cannot be read: one; nothing was changed
        hint: make them readable: chmod u+r '[ROOT]/repo/.proq-worktrees/x/one'
        --- code 1
        "));
    }
    set_mode(&file, 0o644);
    assert!(sandbox.proq(&["diff", "x"]).ok().contains("+1"));
}

#[test]
fn doctor_does_not_call_unreadable_lanes_readable() {
    let sandbox = repo_of_ordinary_user();
    let store = sandbox.repo.join(".git/proq");
    for (mode, effect) in [
        (0o555, "; lanes can be read, not changed\n"),
        // It can be listed, but no file in it can be reached.
        (0o444, "; lanes can be neither read nor changed\n"),
        // The store is the only finding.
        (0o000, "repo/.git/proq (permission denied)\n"),
    ] {
        set_mode(&store, mode);
        let out = sandbox.proq(&["doctor"]);
        set_mode(&store, 0o700);
        assert!(out.stdout.contains(effect), "{}", out.to_text());
        assert_eq!(out.stdout.contains("lanes can be read"), mode == 0o555, "{}", out.to_text());
    }
}
