//! Tests of a git that is missing, too old, or fails midway: no partial lane is left.

use proq_test_kit::{Output, Sandbox};

/// Installs a git wrapper that fails `command` as if the disk were full, before or after the real call as
/// `FULL` selects.
pub fn full_disk_at(command: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let mut which = sandbox.command("sh", &sandbox.root());
    which.args(["-c", "command -v git"]);
    let git = sandbox.output(which).ok();
    sandbox.program(
        "git",
        &format!(
            "case \" $* \" in *\" {command} \"*)\n\
             if [ \"$FULL\" = after ]; then {0} \"$@\"; fi\n\
             if [ -n \"$FULL\" ]; then echo 'fatal: could not write file: No space left on device' >&2; exit 128; fi;;\n\
             esac\nexec {0} \"$@\"",
            git.trim()
        ),
    );
    sandbox
}

fn spawn(sandbox: &Sandbox, full: &str) -> Output {
    let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "-n", "x", "--", "true"]);
    command.env("FULL", full);
    sandbox.output(command)
}

/// Promise: operations/full-disk
#[test]
fn full_disk_during_checkout_leaves_nothing() {
    let sandbox = full_disk_at("read-tree");
    // `ident` files must be written by git itself.
    sandbox.write(".gitattributes", "* ident\n");
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-qm", "attributes"]);
    insta::assert_snapshot!(spawn(&sandbox, "before").to_text(), @r"
    --- stderr
    error: `git read-tree -v -m -u HEAD` failed: could not write file: No space left on device
    hint: free some disk space, then run the command again: df -h
    --- code 1
    ");
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
    let _ = spawn(&sandbox, "after").fails(1);
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
    let _ = spawn(&sandbox, "").ok();
}

#[test]
fn partly_written_file_leaves_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("long", &"line\n".repeat(100_000));
    sandbox.git(&["add", "long"]);
    sandbox.git(&["commit", "-qm", "long"]);
    let mut limited = sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "-v", "-n", "x"]);
    let program = limited.get_program().to_owned();
    let arguments: Vec<_> = limited.get_args().map(ToOwned::to_owned).collect();
    limited = sandbox.command("sh", &sandbox.repo);
    limited.args(["-c", "trap '' XFSZ; ulimit -f 128; exec \"$@\"", "sh"]).arg(program).args(arguments);
    let out = sandbox.output(limited);
    assert!(out.code == 1 && out.stderr.contains("unable to write file long"), "{}", out.to_text());
    let _ = sandbox.follow_hint(&out.stderr, "check disk space and limits").ok();
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
}

#[test]
fn full_disk_during_worktree_add_leaves_nothing() {
    let sandbox = full_disk_at("worktree add");
    // With this setting git itself adds the worktree.
    sandbox.git(&["config", "core.sharedRepository", "umask"]);
    insta::assert_snapshot!(spawn(&sandbox, "before").to_text(), @r"
    --- stderr
    error: `git worktree add --quiet --no-checkout -- [ROOT]/repo/.proq-worktrees/x proq/x` failed: could not write file: No space left on device
    hint: free some disk space, then run the command again: df -h
    --- code 1
    ");
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
    let _ = spawn(&sandbox, "after").fails(1);
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
    let _ = spawn(&sandbox, "").ok();
}

#[test]
fn uncreatable_worktree_folder_leaves_nothing() {
    let sandbox = Sandbox::new();
    let worktrees_dir = sandbox.repo.join(".git/worktrees");
    std::fs::write(&worktrees_dir, "in the way").unwrap();
    insta::assert_snapshot!(sandbox.proq(&["spawn", "--empty", "-n", "x"]).to_text(), @r"
    --- stderr
    error: cannot create [ROOT]/repo/.git/worktrees/x
      caused by: Not a directory
    --- code 1
    ");
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
    std::fs::remove_file(&worktrees_dir).unwrap();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
}

/// Promise: operations/full-disk
#[test]
fn unwritable_lane_record_leaves_nothing() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "first"]).ok();
    let _ = sandbox.proq(&["discard", "first"]).ok();
    let lanes = sandbox.repo.join(".git/proq/lanes");
    std::fs::remove_dir_all(&lanes).unwrap();
    std::fs::write(&lanes, "in the way").unwrap();
    let out = sandbox.proq(&["spawn", "--empty", "-n", "x"]);
    insta::assert_snapshot!(out.to_text(), @r"
    --- stderr
    error: cannot create [ROOT]/repo/.git/proq/lanes/x
      caused by: Not a directory
    --- code 1
    ");
    let left = sandbox.lane_leftovers();
    assert!(left.iter().all(|t| t.starts_with("refs/proq/saved/first-")), "{left:?}");
}

#[test]
fn failed_carry_leaves_nothing() {
    let sandbox = full_disk_at("commit-tree");
    // Signed commits are written by git itself.
    sandbox.git(&["config", "commit.gpgSign", "true"]);
    sandbox.write("a.txt", "mine\n");
    let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "--carry", "-n", "x"]);
    command.env("FULL", "before");
    insta::assert_snapshot!(sandbox.output(command).to_text(), @r"
    --- stderr
    error: `git commit-tree -S -p 7f85e07d4d69da1e41b721a39f72c20b0d2a2e1b -F - a8305634c3ce7e8bf76b2870887319b9a6b6345b` failed: could not write file: No space left on device
    hint: free some disk space, then run the command again: df -h
    --- code 1
    ");
    assert_eq!(sandbox.lane_leftovers(), [""; 0]);
    assert_eq!(sandbox.git(&["status", "--short"]), " M a.txt");
}

#[test]
fn names_version_of_outdated_git() {
    let sandbox = Sandbox::new();
    sandbox.program("git", "echo 'git version 2.38.1'");
    insta::assert_snapshot!(sandbox.proq(&["list"]).to_text(), @r"
    --- stderr
    error: git 2.38 is too old; git-proq needs 2.39 or newer
    hint: upgrade git, or put a newer version first on PATH
    --- code 1
    ");
    sandbox.program("git", "echo 'no version at all'");
    let out = sandbox.proq(&["list"]);
    assert!(out.stderr.starts_with("error: `git --version` printed unexpected output"), "{}", out.stderr);
}

#[test]
fn notices_git_downgrade() {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "x"]).ok();
    let _ = sandbox.proq(&["list"]).ok();
    sandbox.program("git", "echo 'git version 2.38.1'");
    assert!(sandbox.proq(&["list"]).fails(1).contains("2.38 is too old"));
}

#[test]
fn reports_git_missing_on_path() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.proq_command(&sandbox.repo, &["list"]);
    command.env("PATH", sandbox.root());
    insta::assert_snapshot!(sandbox.output(command).to_text(), @r"
    --- stderr
    error: cannot find git on PATH
    hint: install git 2.39 or newer
    --- code 1
    ");
}

#[test]
fn merge_names_file_that_disk_has_no_room_for() {
    let sandbox = Sandbox::new();
    // `ident` files must be written by git itself.
    sandbox.write(".gitattributes", "* ident\n");
    sandbox.commit_all("attributes");
    sandbox.lane_with_commit("x", "echo 1 > one");
    let state = sandbox.git(&["status", "--short"]);
    let mut which = sandbox.command("sh", &sandbox.root());
    which.args(["-c", "command -v git"]);
    let git = sandbox.output(which).ok();
    let fails = "echo 'error: unable to write file one' >&2; exit 128";
    let script = format!("case \" $* \" in *' read-tree '*) {fails};; esac\nexec {} \"$@\"", git.trim());
    sandbox.program("git", &script);
    insta::assert_snapshot!(sandbox.proq(&["merge", "x"]).to_text(), @r"
    refused x: cannot write one: the disk is full, or a limit was reached
    --- stderr
    hint: check disk space and limits: df -h; ulimit -a
    --- code 1
    ");
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s"]), "attributes");
    assert_eq!(sandbox.git(&["status", "--short"]), state);
    std::fs::remove_file(sandbox.root().join("bin/git")).unwrap();
    let _ = sandbox.proq(&["merge", "x"]).ok();
}
