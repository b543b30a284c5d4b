//! Permission bits that git does not record: they belong to the user, and are restored with the files.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use proq_test_kit::Sandbox;
use proq_test_kit::faults::kill_at;
use proq_test_kit::snapshots::snapshot_ids;

/// Returns the permission bits of every file and folder in the main checkout, as `bits path`.
fn modes(sandbox: &Sandbox) -> Vec<String> {
    let mut all = Vec::new();
    collect_modes(&sandbox.repo, &sandbox.repo, &mut all);
    all.sort();
    all
}

fn collect_modes(top: &Path, dir: &Path, all: &mut Vec<String>) {
    for entry in dir.read_dir().unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_name() == ".git" || entry.file_name() == ".proq-worktrees" {
            continue;
        }
        let meta = path.symlink_metadata().unwrap();
        let name = path.strip_prefix(top).unwrap().display();
        all.push(format!("{:o} {name}", meta.permissions().mode() & 0o7777));
        if meta.is_dir() {
            collect_modes(top, &path, all);
        }
    }
}

/// Returns a repository with two lanes: `one` changes a file with the bits of a secret and a read-only file,
/// and removes a folder; `two` changes none of these.
fn sandbox_with_lanes() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("mkdir -p own/deep; for f in secret fixed own/deep/key; do seq 9 >$f; done");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "for f in secret fixed; do echo lane >>$f; done; git rm -qr own");
    sandbox.lane_with_commit("two", "echo two >two");
    sandbox.sh("chmod 600 secret own/deep/key; chmod 444 fixed; chmod 700 own; chmod 750 own/deep");
    sandbox
}

/// Promise: worktree/permission-bits
#[test]
fn preview_and_merge_undo_restore_permission_bits() {
    let sandbox = sandbox_with_lanes();
    let before = modes(&sandbox);
    assert!(
        before.contains(&"600 secret".to_owned()) && before.contains(&"700 own".to_owned()),
        "{before:?}"
    );
    for steps in [
        &[&["preview", "one"][..], &["preview", "--back"]][..],
        &[&["preview", "two"], &["preview", "one"], &["preview", "two"], &["preview", "--back"]],
        &[&["preview", "one"], &["undo"]],
        &[&["merge", "one"], &["undo"]],
        &[&["merge", "--all"], &["undo"]],
    ] {
        for step in steps {
            let _ = sandbox.proq(step).ok();
        }
        assert_eq!(modes(&sandbox), before, "{steps:?}");
        assert_eq!(sandbox.git(&["status", "--short"]), "", "{steps:?}");
    }
}

/// Promise: worktree/permission-bits-swapped
#[test]
fn swapped_files_and_folders_get_default_bits() {
    for ways in [
        &[&["preview", "one"][..], &["preview", "--back"]][..],
        &[&["preview", "one"], &["undo"], &["op", "redo"], &["undo"]],
        &[&["merge", "one"], &["undo"], &["op", "redo"], &["undo"]],
        &[&["preview", "one"], &["merge", "one"], &["undo"]],
    ] {
        for edit in ["true", "echo edit >>fixed"] {
            let sandbox = Sandbox::new();
            sandbox.sh("mkdir -p own/deep; for f in secret fixed own/deep/key; do seq 9 >$f; done");
            sandbox.commit_all("base");
            sandbox.lane_with_commit("one", "rm -r own secret; echo l >own; mkdir secret; echo l >secret/in");
            sandbox.sh(&format!(
                "{edit}; chmod 600 secret own/deep/key; chmod 444 fixed; chmod 700 own; chmod 750 own/deep"
            ));
            let before = modes(&sandbox);
            for args in ways {
                let _ = sandbox.proq(args).ok();
                let now = modes(&sandbox);
                if now.iter().any(|line| line.ends_with(" own/deep")) {
                    assert_eq!(now, before, "{ways:?}");
                } else {
                    assert!(now.contains(&"644 own".to_owned()), "{ways:?}: {now:?}");
                    assert!(now.contains(&"755 secret".to_owned()), "{ways:?}: {now:?}");
                }
            }
        }
    }
}

/// Promise: worktree/permission-bits
#[test]
fn preview_refresh_restores_permission_bits() {
    let sandbox = sandbox_with_lanes();
    let before = modes(&sandbox);
    let _ = sandbox.proq(&["preview", "two"]).ok();
    sandbox.commit_in_lane("two", "echo more >>secret; git rm -qr own");
    let _ = sandbox.proq(&["preview", "--refresh"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(modes(&sandbox), before);
}

/// Promise: worktree/permission-bits
#[test]
fn snapshot_restore_restores_permission_bits() {
    let sandbox = sandbox_with_lanes();
    sandbox.sh("mkdir -m 700 priv; echo s >priv/s; chmod 600 priv/s; echo own >>secret; mkdir -m 711 empty");
    let before = modes(&sandbox);
    let _ = sandbox.proq(&["preview", "two"]).ok();
    // The base moves, so going back is a merge, and its undo has no file to restore.
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "three", "--base", "main"]).ok();
    sandbox.commit_in_lane("three", "echo three >three");
    let _ = sandbox.proq(&["merge", "three"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    // Undoes going back, then the landing; the preview ends once more below.
    for _ in 0..2 {
        let _ = sandbox.proq(&["undo"]).ok();
    }
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(modes(&sandbox), before);

    let _ = sandbox.proq(&["preview", "two"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("rm -r priv empty; git checkout -q secret");
    let ids = snapshot_ids(&sandbox);
    let _ = sandbox.proq(&["snap", "restore", ids.last().unwrap()]).ok();
    assert_eq!(modes(&sandbox), before);
}

#[test]
fn keeps_new_executable_bit_from_base() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo tool >tool");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "echo lane >>tool");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "two"]).ok();
    sandbox.commit_in_lane("two", "chmod +x tool");
    std::fs::set_permissions(sandbox.repo.join("tool"), Permissions::from_mode(0o600)).unwrap();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["merge", "two"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    assert_ne!(sandbox.repo.join("tool").metadata().unwrap().permissions().mode() & 0o100, 0);
}

/// A file with default bits gets default bits again; under a stricter umask it is open to fewer.
/// Promise: worktree/permission-bits
#[test]
fn restores_permission_bits_under_any_umask() {
    for (there, back) in [("077", "022"), ("002", "022"), ("027", "002")] {
        let sandbox = Sandbox::new();
        sandbox.sh(&format!("umask {there}; mkdir d; echo s >secret; echo x >d/x"));
        sandbox.commit_all("base");
        sandbox.lane_with_commit("one", "git rm -qr secret d");
        let before = modes(&sandbox);
        let proq = sandbox.proq_command(&sandbox.repo, &[]).get_program().to_owned();
        let run = |mask: &str, args: &str| {
            sandbox.sh(&format!("umask {mask}; '{}' {args}", Path::new(&proq).display()));
        };
        for (command, inverse) in [("preview one", "preview --back"), ("merge one", "undo")] {
            run(there, command);
            run(back, inverse);
            assert_eq!(modes(&sandbox), before, "{there} {back} {command}");
        }
    }
}

/// Promise: worktree/permission-bits
#[test]
fn executable_secret_stays_private() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo s >secret");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", "chmod +x secret");
    sandbox.sh("chmod 600 secret");
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert!(modes(&sandbox).contains(&"700 secret".to_owned()), "{:?}", modes(&sandbox));
    let _ = sandbox.proq(&["undo"]).ok();
    assert!(modes(&sandbox).contains(&"600 secret".to_owned()), "{:?}", modes(&sandbox));
}

/// Promise: worktree/permission-bits
#[test]
fn restores_setgid_bits_of_folders() {
    for shared in ["false", "group"] {
        let sandbox = Sandbox::new();
        sandbox.sh("mkdir k plain; echo x >k/x; echo x >plain/x");
        sandbox.commit_all("base");
        sandbox.lane_with_commit("one", "git rm -qr k plain");
        sandbox.sh(&format!(
            "git config core.sharedRepository {shared}; chmod g+s .git .git/proq; chmod 2755 k"
        ));
        let before = modes(&sandbox);
        assert!(before.contains(&"2755 k".to_owned()), "{before:?}");
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_eq!(modes(&sandbox), before, "{shared}");
        kill_at(&sandbox, "transition.brought", &["preview", "one"]);
        let _ = sandbox.proq(&["list"]).ok();
        assert_eq!(modes(&sandbox), before, "{shared}");
    }
}
