//! Repositories shared by several users: files that git-proq writes for all of them have the modes that git
//! gives them by `core.sharedRepository`, whatever the umask.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use proq_test_kit::{Output, Sandbox};

/// Returns a repository created with this setting, for a user with a private umask.
fn sandbox_with_shared_repository(how: &str) -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.sh(&format!(
        "rm -rf .git; umask 077; git init -q -b main --shared={how}; echo a > a.txt; git add .; git commit -qm first"
    ));
    sandbox
}

/// Runs git-proq with the private umask.
fn proq_with_strict_umask(sandbox: &Sandbox, args: &[&str]) -> Output {
    let direct = sandbox.proq_command(&sandbox.repo, args);
    let mut command = sandbox.command("sh", &sandbox.repo);
    command.args(["-c", "umask 077; exec \"$@\"", "sh"]).arg(direct.get_program()).args(args);
    sandbox.output(command)
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().permissions().mode() & 0o7777
}

/// Returns the modes of the folders and files of loose objects.
fn object_modes(sandbox: &Sandbox) -> (BTreeSet<u32>, BTreeSet<u32>) {
    let (mut folders, mut files) = (BTreeSet::new(), BTreeSet::new());
    for folder in std::fs::read_dir(sandbox.repo.join(".git/objects")).unwrap().flatten() {
        if folder.file_name().len() != 2 {
            continue;
        }
        folders.insert(mode(&folder.path()));
        files.extend(std::fs::read_dir(folder.path()).unwrap().flatten().map(|file| mode(&file.path())));
    }
    (folders, files)
}

/// Promise: snapshots/shared-repository
#[test]
fn landing_writes_files_with_shared_modes() {
    for how in ["umask", "group", "true", "1", "0660", "0640", "all", "world", "2", "0664"] {
        let sandbox = sandbox_with_shared_repository(how);
        let index = sandbox.repo.join(".git/index");
        let before = (mode(&index), object_modes(&sandbox));
        assert_eq!((before.1.0.len(), before.1.1.len()), (1, 1), "{how}");
        let work = "umask 077; echo one > one.txt; git add .; git commit -qm one";
        let _ =
            proq_with_strict_umask(&sandbox, &["spawn", "-n", "one", "--wait", "--", "sh", "-ec", work]).ok();
        let lane = mode(&sandbox.repo.join(".git/worktrees/one/index"));
        // With changes on both sides, trees and a merge commit have to be written.
        sandbox.sh("umask 077; echo main > main.txt; git add .; git commit -qm main");
        let _ = proq_with_strict_umask(&sandbox, &["merge", "one"]).ok();
        assert_eq!((lane, mode(&index), object_modes(&sandbox)), (before.0, before.0, before.1), "{how}");
        assert_eq!(sandbox.git(&["status", "--short"]), "");
    }
}

/// Promise: snapshots/shared-repository
#[test]
fn preview_writes_files_with_shared_modes() {
    let sandbox = sandbox_with_shared_repository("group");
    let (index, head) = (sandbox.repo.join(".git/index"), sandbox.repo.join(".git/HEAD"));
    let before = (mode(&index), mode(&head), object_modes(&sandbox));
    let _ = proq_with_strict_umask(&sandbox, &["spawn", "--empty", "-n", "one"]).ok();
    sandbox.sh_in(&sandbox.lane_path("one"), "umask 077; echo one > one.txt; git add .; git commit -qm one");
    sandbox.write("a.txt", &"mine\n".repeat(5000));
    for args in [&["preview", "one"][..], &["preview", "--back"]] {
        let _ = proq_with_strict_umask(&sandbox, args).ok();
        assert_eq!((mode(&index), mode(&head), object_modes(&sandbox)), before, "{args:?}");
    }
    // With a detached HEAD, HEAD is written without git.
    sandbox.sh("umask 077; git switch -q --detach");
    for args in [&["preview", "one"][..], &["preview", "--back"]] {
        let _ = proq_with_strict_umask(&sandbox, args).ok();
        assert_eq!((mode(&index), mode(&head), object_modes(&sandbox)), before, "{args:?}");
    }
}

/// Promise: snapshots/shared-repository
#[test]
fn reused_worktree_has_shared_index() {
    let sandbox = sandbox_with_shared_repository("group");
    let _ = proq_with_strict_umask(&sandbox, &["spawn", "--empty", "-n", "one"]).ok();
    let _ = proq_with_strict_umask(&sandbox, &["discard", "one"]).ok();
    sandbox.sh("rm .git/info/exclude");
    let _ = proq_with_strict_umask(&sandbox, &["spawn", "--empty", "-n", "two"]).ok();
    let lane = mode(&sandbox.repo.join(".git/worktrees/two/index"));
    assert_eq!(lane, mode(&sandbox.repo.join(".git/index")));
    assert_eq!(mode(&sandbox.repo.join(".git/info/exclude")), 0o660);
}
