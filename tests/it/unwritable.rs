//! Owns the tests of what permissions keep from git: it is refused by name before anything moves.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use super::support::{Output, Sandbox};

/// A repository with a lane that permissions hold back from: as root it belongs to another user, who runs every command.
fn repository() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.lane_of("x", "echo 1 > one");
    if is_root(&sandbox) {
        sandbox.sh_in(&sandbox.root(), "chown -R 12345:12345 .; cp \"$(command -v git-proq)\" home/git-proq");
    }
    sandbox
}

fn is_root(sandbox: &Sandbox) -> bool {
    sandbox.root().metadata().unwrap().uid() == 0 || sandbox.root().join("home/git-proq").exists()
}

fn proq(sandbox: &Sandbox, args: &[&str]) -> Output {
    if !is_root(sandbox) {
        return sandbox.proq(args);
    }
    let mut command = sandbox.command("setpriv", &sandbox.repo);
    command.args(["--reuid=12345", "--regid=12345", "--clear-groups"]);
    command.arg(sandbox.root().join("home/git-proq")).args(args);
    sandbox.output(command)
}

fn set_mode(dir: &Path, mode: u32) {
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_git_directory_that_may_not_be_written_is_refused_before_anything_moves() {
    let sandbox = repository();
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
            let out = proq(&sandbox, args);
            let refusal = format!(
                "error: cannot change the repository: you may not write to [ROOT]/repo/.git{folder}; nothing was changed\n\
                 hint: make it writable for you: chmod u+rwx '[ROOT]/repo/.git{folder}'\n"
            );
            assert!(out.code == 1 && out.stderr.ends_with(&refusal), "{args:?}: {}", out.shown());
        }
        let out = proq(&sandbox, &["doctor"]);
        let found = format!("you may not write to [ROOT]/repo/.git{folder}");
        assert!(out.code == 1 && out.stdout.contains(&found), "{}", out.shown());
        set_mode(&dir, 0o755);
        let out = proq(&sandbox, &["doctor", "--json"]);
        assert!(!out.stdout.contains("left by hand"), "{}", out.stdout);
    }
    let _ = proq(&sandbox, &["preview", "x"]).ok();
    let _ = proq(&sandbox, &["preview", "--back"]).ok();
    let _ = proq(&sandbox, &["merge", "x"]).ok();
    assert_eq!(sandbox.read("one"), "1\n");
}

#[test]
fn a_folder_of_branches_that_may_not_be_written_is_named_and_not_tried_again() {
    let sandbox = repository();
    let dir = sandbox.repo.join(".git/refs/heads/proq");
    set_mode(&dir, 0o555);
    insta::assert_snapshot!(proq(&sandbox, &["spawn", "--empty", "-n", "y"]).shown(), @r"
    --- stderr
    error: cannot change the repository: you may not write to [ROOT]/repo/.git/refs/heads/proq; nothing was changed
    hint: make it writable for you: chmod u+rwx '[ROOT]/repo/.git/refs/heads/proq'
    --- code 1
    ");
    set_mode(&dir, 0o755);
    let _ = proq(&sandbox, &["spawn", "--empty", "-n", "y"]).ok();
}

#[test]
fn a_changed_file_that_may_not_be_read_is_named_in_place_of_half_a_difference() {
    let sandbox = repository();
    let file = sandbox.lane("x").join("one");
    set_mode(&file, 0o000);
    for args in [&["diff", "x"][..], &["diff", "--stat", "x"]] {
        insta::allow_duplicates!(insta::assert_snapshot!(proq(&sandbox, args).shown(), @r"
        --- stderr
        error: files in [ROOT]/repo/.proq-worktrees/x cannot be read: one; nothing was changed
        hint: make them readable for you: chmod u+r '[ROOT]/repo/.proq-worktrees/x/one'
        --- code 1
        "));
    }
    set_mode(&file, 0o644);
    assert!(proq(&sandbox, &["diff", "x"]).ok().contains("+1"));
}
