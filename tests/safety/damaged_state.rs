//! State that a power cut or a manual edit left incomplete: branches whose file names no commit, snapshots
//! that lack a part.

use std::fs::{remove_file, write};
use std::path::PathBuf;
use std::process::Stdio;

use proq_test_kit::conflict::hint_commands;
use proq_test_kit::faults::kill_at;
use proq_test_kit::snapshots::snapshot_ids;
use proq_test_kit::waiting::KilledOnDrop;
use proq_test_kit::{RepoState, Sandbox, file_names, fixtures};

use super::git_failures::full_disk_at;

/// Contents of a branch's file after a power cut, or after a manual edit.
const BROKEN_REF_CONTENTS: [&[u8]; 2] = [b"", b"nothing that names a commit\n"];

fn branch_file(sandbox: &Sandbox, branch: &str) -> PathBuf {
    sandbox.repo.join(".git/refs/heads").join(branch)
}

/// Returns the command that follows `begins` on a line, as a user copies it.
fn command_after(text: &str, begins: &str) -> String {
    let line = text.lines().find_map(|line| line.split_once(begins));
    line.unwrap_or_else(|| panic!("no command after '{begins}': {text}")).1.to_owned()
}

/// Promise: operations/recovery-blocked
#[test]
fn failed_undo_of_broken_branch_blocks_no_command() {
    let sandbox = fixtures::two_lanes();
    let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
    for (n, bytes) in BROKEN_REF_CONTENTS.iter().enumerate() {
        write(branch_file(&sandbox, "proq/one"), bytes).unwrap();
        let undone = sandbox.proq(&["undo"]).fails(1);
        let listed = sandbox.proq(&["list"]).fails(0);
        assert!(!listed.contains("cut short") && !undone.contains("tries again"), "{listed}");
        let _ = sandbox.proq(&["spawn", "--empty", "-n", &format!("new-{n}")]).ok();
        let _ = sandbox.proq(&["discard", "--force", &format!("new-{n}")]).ok();
        let _ = sandbox.proq(&["undo"]).ok();
        let _ = sandbox.proq(&["undo"]).ok();
        sandbox.sh(&command_after(&undone, "then run the command again: "));
    }
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/one:one.txt"]), "one");
    sandbox.assert_healthy();
}

/// Promise: operations/broken-branch
#[test]
fn undo_blocked_by_nested_branch_gives_hint() {
    let sandbox = fixtures::two_lanes();
    let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
    sandbox.git(&["branch", "proq/one/below"]);
    let undone = sandbox.proq(&["undo"]).fails(1);
    sandbox.sh(&command_after(&undone, "the conflicting branch: "));
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/one:one.txt"]), "one");
}

/// Promise: operations/broken-branch
#[test]
fn broken_branch_counts_as_missing_and_hides_no_lane() {
    let around: &[u8] = b"ref: refs/heads/proq/one\n";
    for bytes in BROKEN_REF_CONTENTS.into_iter().chain([around]) {
        let sandbox = fixtures::two_lanes();
        let at = sandbox.git(&["rev-parse", "proq/one"]);
        write(branch_file(&sandbox, "proq/one"), bytes).unwrap();
        let shown = String::from_utf8_lossy(bytes).into_owned();
        for args in [&["list"][..], &["matrix"], &["cleanup"]] {
            let out = sandbox.proq(args).ok();
            assert!(args != ["list"] || out.contains("two"), "{shown}: {out}");
        }
        if bytes != around {
            // A symbolic ref needs another command.
            let report = sandbox.proq(&["doctor"]).fails(1);
            sandbox.sh(&command_after(&report, "restore the branch: "));
            assert_eq!(sandbox.git(&["rev-parse", "proq/one"]), at, "{shown}");
        }
        let _ = sandbox.proq(&["merge", "two"]).ok();
        assert_eq!(sandbox.read("two.txt"), "two\n", "{shown}");
    }
}

/// Promise: operations/recovery-blocked
#[test]
fn pipe_in_place_of_file_blocks_no_other_lane() {
    let sandbox = fixtures::preview_over_dirty();
    kill_at(&sandbox, "step.after:3", &["preview", "--back"]);
    remove_file(sandbox.repo.join("a.txt")).unwrap();
    sandbox.sh("mkfifo a.txt");
    let _ = sandbox.proq(&["list"]).ok();
    let out = sandbox.proq(&["merge", "two"]).fails(0);
    assert!(!out.contains("cannot recover the interrupted command"), "{out}");
    assert_eq!(sandbox.git(&["show", "main:two.txt"]), "two");
}

/// Promise: operations/pipes-and-links
#[test]
fn recovery_does_not_wait_for_pipes() {
    let check_recovery = |prepare: &str, args: &[&str], at: &str, after_kill: &str| {
        let sandbox = fixtures::two_lanes();
        sandbox.sh(prepare);
        kill_at(&sandbox, at, args);
        sandbox.sh(after_kill);
        let mut list = sandbox.proq_command(&sandbox.repo, &["list"]);
        let list = list.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        assert_eq!(KilledOnDrop(list).exit_code(), Some(0), "{args:?}");
    };
    let link = "mkfifo ../pipe; ln -s ../pipe new-link; echo edit >>a.txt";
    check_recovery(link, &["preview", "one"], "transition.installed", "true");
    check_recovery("true", &["merge", "one"], "transition.moved", "rm one.txt; mkfifo one.txt");
}

/// Promise: operations/unreadable-parked
#[test]
#[ignore = "needs an account other than root"]
fn unreadable_parked_files_do_not_count_as_restored() {
    let sandbox = fixtures::dirty_with_lanes();
    let before = RepoState::capture(&sandbox);
    kill_at(&sandbox, "clear.filled", &["preview", "one"]);
    sandbox.sh("chmod 0 .git/proq/snaps/*/files");
    let out = sandbox.proq(&["list"]);
    assert!(out.stderr.contains("cannot recover the interrupted command"), "{}", out.to_text());
    sandbox.sh("chmod 700 .git/proq/snaps/*/files");
    let _ = sandbox.proq(&["list"]).ok();
    RepoState::capture(&sandbox).assert_same(&before, "taken back");
}

/// Promise: preview/damaged-snapshot
#[test]
fn changes_are_restored_with_broken_saved_index() {
    for bytes in [None, Some(&b""[..]), Some(b"garbage"), Some(b"DIRC\0\0\0\x02")] {
        let sandbox = fixtures::two_lanes();
        sandbox.sh("echo mine >>a.txt; echo new >untracked");
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let index = sandbox.repo.join(".git/proq/snaps").join(&snapshot_ids(&sandbox)[0]).join("index");
        match bytes {
            Some(bytes) => write(&index, bytes).unwrap(),
            None => remove_file(&index).unwrap(),
        }
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert!(sandbox.read("a.txt").ends_with("mine\n"), "{bytes:?}");
        assert_eq!(sandbox.read("untracked"), "new\n", "{bytes:?}");
        let _ = sandbox.proq(&["merge", "two"]).ok();
    }
}

#[test]
fn saved_index_is_kept_when_git_cannot_read_it() {
    let sandbox = full_disk_at("ls-files -v");
    sandbox.lane_with_commit("one", "echo one >one.txt");
    sandbox.sh("echo mine >>a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let index = sandbox.repo.join(".git/proq/snaps").join(&snapshot_ids(&sandbox)[0]).join("index");
    // The library leaves such an index to git.
    write(&index, "garbage").unwrap();
    let mut back = sandbox.proq_command(&sandbox.repo, &["preview", "--back"]);
    back.env("FULL", "before");
    let _ = sandbox.output(back).fails(1);
    assert_eq!(std::fs::read(&index).unwrap(), b"garbage");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert!(sandbox.read("a.txt").ends_with("mine\n"));
}

/// Promise: preview/damaged-snapshot
#[test]
fn preview_ends_though_parked_objects_are_lost() {
    let damages = [
        ("", "git has lost your changes from before the preview"),
        ("rm .git/proq/snaps/*/snap.toml;", "your changes from before the preview are lost"),
        ("rm -r .git/proq/snaps/*;", "your changes from before the preview are lost"),
    ];
    for (damage, warning) in damages {
        let sandbox = fixtures::two_lanes();
        sandbox.sh("echo mine >>a.txt");
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let lose = "for r in $(git for-each-ref --format='%(refname)' refs/proq/snap); do git update-ref -d $r; done";
        sandbox.sh(&format!("{damage} {lose}; git reflog expire --expire=now --all; git gc -q --prune=now"));
        let out = sandbox.proq(&["preview", "--back"]).fails(0);
        assert!(out.contains(warning), "{damage}: {out}");
        if let Some((_, list_command)) = out.split_once("list the files that are left: ") {
            let id = file_names(&sandbox.repo.join(".git/proq/snaps")).remove(0);
            let look = list_command.lines().next().unwrap().replace("[ID]", &id);
            sandbox.sh(&look.replace("[ROOT]", sandbox.root().to_str().unwrap()));
        }
        let _ = sandbox.proq(&["merge", "one"]).ok();
    }
}

#[test]
fn hint_frees_name_of_broken_or_symbolic_ref() {
    for make in [": >.git/refs/heads/proq/new", "git symbolic-ref refs/heads/proq/new refs/heads/main"] {
        let sandbox = Sandbox::new();
        sandbox.sh(&format!("mkdir -p .git/refs/heads/proq; {make}"));
        let refused = sandbox.proq(&["spawn", "--empty", "-n", "new"]).fails(1);
        sandbox.sh(&hint_commands(&sandbox, &refused)[0]);
        let _ = sandbox.proq(&["spawn", "--empty", "-n", "new"]).ok();
        assert_eq!(sandbox.git(&["rev-parse", "proq/new"]), sandbox.git(&["rev-parse", "main"]), "{make}");
    }
}
