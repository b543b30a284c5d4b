//! Owns the tests of repositories that several users share: what git-proq writes for all of them has the rights that git gives
//! by `core.sharedRepository`, whatever the umask.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::support::{Output, Sandbox};

/// A repository that git made with this setting, for a user who shares nothing by habit.
fn shared(how: &str) -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox.sh(&format!(
        "rm -rf .git; umask 077; git init -q -b main --shared={how}; echo a > a.txt; git add .; git commit -qm first"
    ));
    sandbox
}

/// Runs the program for that user.
fn proq(sandbox: &Sandbox, args: &[&str]) -> Output {
    let direct = sandbox.proq_command(&sandbox.repo, args);
    let mut command = sandbox.command("sh", &sandbox.repo);
    command.args(["-c", "umask 077; exec \"$@\"", "sh"]).arg(direct.get_program()).args(args);
    sandbox.output(command)
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().permissions().mode() & 0o7777
}

/// The rights that folders and files of objects have.
fn of_objects(sandbox: &Sandbox) -> (BTreeSet<u32>, BTreeSet<u32>) {
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

#[test]
fn what_a_landing_writes_has_the_rights_that_git_gives() {
    for how in ["umask", "group", "true", "1", "0660", "0640", "all", "world", "2", "0664"] {
        let sandbox = shared(how);
        let index = sandbox.repo.join(".git/index");
        let before = (mode(&index), of_objects(&sandbox));
        assert_eq!((before.1.0.len(), before.1.1.len()), (1, 1), "{how}");
        let work = "umask 077; echo one > one.txt; git add .; git commit -qm one";
        let _ = proq(&sandbox, &["spawn", "-n", "one", "--wait", "--", "sh", "-ec", work]).ok();
        let lane = mode(&sandbox.repo.join(".git/worktrees/one/index"));
        // With both sides changed trees and a merge commit are to be written.
        sandbox.sh("umask 077; echo main > main.txt; git add .; git commit -qm main");
        let _ = proq(&sandbox, &["merge", "one"]).ok();
        assert_eq!((lane, mode(&index), of_objects(&sandbox)), (before.0, before.0, before.1), "{how}");
        assert_eq!(sandbox.git(&["status", "--short"]), "");
    }
}

#[test]
fn what_a_preview_writes_has_the_rights_that_git_gives() {
    let sandbox = shared("group");
    let (index, head) = (sandbox.repo.join(".git/index"), sandbox.repo.join(".git/HEAD"));
    let before = (mode(&index), mode(&head), of_objects(&sandbox));
    let _ = proq(&sandbox, &["spawn", "--empty", "-n", "one"]).ok();
    sandbox.sh_in(&sandbox.lane("one"), "umask 077; echo one > one.txt; git add .; git commit -qm one");
    sandbox.write("a.txt", &"mine\n".repeat(5000));
    for args in [&["preview", "one"][..], &["preview", "--back"]] {
        let _ = proq(&sandbox, args).ok();
        assert_eq!((mode(&index), mode(&head), of_objects(&sandbox)), before, "{args:?}");
    }
    // Detached, HEAD is written without git.
    sandbox.sh("umask 077; git switch -q --detach");
    for args in [&["preview", "one"][..], &["preview", "--back"]] {
        let _ = proq(&sandbox, args).ok();
        assert_eq!((mode(&index), mode(&head), of_objects(&sandbox)), before, "{args:?}");
    }
}

#[test]
fn a_lane_that_is_given_a_folder_anew_has_an_index_for_all() {
    let sandbox = shared("group");
    let _ = proq(&sandbox, &["spawn", "--empty", "-n", "one"]).ok();
    let _ = proq(&sandbox, &["discard", "one"]).ok();
    sandbox.sh("rm .git/info/exclude");
    let _ = proq(&sandbox, &["spawn", "--empty", "-n", "two"]).ok();
    let lane = mode(&sandbox.repo.join(".git/worktrees/two/index"));
    assert_eq!(lane, mode(&sandbox.repo.join(".git/index")));
    assert_eq!(mode(&sandbox.repo.join(".git/info/exclude")), 0o660);
}
