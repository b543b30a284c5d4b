//! Tests of previews from checkouts with entries that git refuses or sees only in part: paths without write
//! or read permission, special files, replaced objects, filtered files, nested repositories.

use std::os::unix::fs::FileTypeExt;
use std::os::unix::process::CommandExt;

use proq_test_kit::snapshots::{assert_no_preview_left, assert_same_image, snapshot_ids};
use proq_test_kit::{Output, Sandbox, WorktreeState};

const BASE_SCRIPT: &str =
    "mkdir -p d/e; echo one >d/one; echo two >d/two; echo three >d/e/three; echo keep >keep.txt; : >d/empty";
const LANE_SCRIPT: &str = "echo lane >a.txt; echo lane >d/one; git rm -q d/two; echo lane >lane.txt";
const DIRTY_SCRIPT: &str =
    "echo mine >keep.txt; echo u >untracked; mkdir -p n/m; echo f >n/m/f; rm d/e/three";
/// User id without special rights, for which file permissions are enforced.
const NOBODY_UID: u32 = 65534;

fn sandbox_with(base: &str, lane: &str, dirty: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh(&format!("{BASE_SCRIPT}; {base}"));
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", lane);
    sandbox.sh(dirty);
    sandbox
}

/// Runs a test with git-proq's own implementation and with git's commands in its place.
fn for_both_implementations(test: impl Fn(&dyn Fn(&Sandbox, &[&str]) -> Output)) {
    for by_git in [false, true] {
        test(&|sandbox, args| {
            let mut command = sandbox.proq_command(&sandbox.repo, args);
            if by_git {
                command.env("PROQ_TEST_BY_GIT", "1");
            }
            sandbox.output(command)
        });
    }
}

/// Runs the program as a user for whom file permissions are enforced.
fn run_as_nobody(sandbox: &Sandbox, args: &[&str]) -> Output {
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    if sandbox.sh("id -u") == "0" {
        sandbox.sh(&format!(
            "git config --global safe.directory '*'; chown -hR {NOBODY_UID}:{NOBODY_UID} \"$ROOT\""
        ));
        command.uid(NOBODY_UID).gid(NOBODY_UID);
    }
    sandbox.output(command)
}

/// Asserts that the preview is refused with all texts in `expected`, and that nothing changes.
#[track_caller]
fn assert_preview_refused(sandbox: &Sandbox, run: impl Fn(&Sandbox, &[&str]) -> Output, expected: &[&str]) {
    let before = WorktreeState::capture(sandbox, &sandbox.repo);
    let text = run(sandbox, &["preview", "one"]).fails(1);
    for part in expected {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("could not be undone"), "{text}");
    assert_same_image(&before, &WorktreeState::capture(sandbox, &sandbox.repo));
    assert_no_preview_left(sandbox);
}

/// Promise: worktree/unusable-paths
#[test]
fn refuses_unwritable_folders_before_moving_files() {
    for (setup, expected) in [
        // The folder holds a file that the lane changes, or one that the user changed.
        ("chmod 555 d", "d cannot be changed in"),
        ("echo more >>d/e/three; chmod 555 d/e", "d/e cannot be changed in"),
        ("mkdir -p ro/a; echo f >ro/a/f; chmod 555 ro/a", "ro/a cannot be changed in"),
        ("echo more >>d/e/three; chmod 444 d", "d cannot be changed in"),
    ] {
        let sandbox = sandbox_with("", LANE_SCRIPT, &format!("{DIRTY_SCRIPT}; {setup}"));
        assert_preview_refused(&sandbox, run_as_nobody, &[expected, "nothing was changed", "chmod u+rwx '"]);
        sandbox.sh("chmod 755 d d/e; test ! -d ro/a || chmod 755 ro/a");
        let before = WorktreeState::capture(&sandbox, &sandbox.repo);
        let _ = run_as_nobody(&sandbox, &["preview", "one"]).ok();
        let _ = run_as_nobody(&sandbox, &["preview", "--back"]).ok();
        assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    }
}

#[test]
fn unwritable_parent_does_not_block_moves_below_it() {
    let sandbox =
        sandbox_with("", "echo lane >a.txt", "echo more >>d/e/three; echo new >d/e/new; chmod 555 d");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = run_as_nobody(&sandbox, &["preview", "one"]).ok();
    assert_eq!(sandbox.read("d/e/three"), "three\n");
    let _ = run_as_nobody(&sandbox, &["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    sandbox.sh("chmod 755 d");
}

/// Promise: worktree/unusable-paths
#[test]
fn refuses_unreadable_lane_file_by_name() {
    let sandbox = sandbox_with("", "echo lane >d/two", DIRTY_SCRIPT);
    let _ = run_as_nobody(&sandbox, &["list"]).ok();
    sandbox.sh("touch -d 2005-02-03 d/two; git update-index -q --refresh || true; chmod 000 d/two");
    let text = run_as_nobody(&sandbox, &["preview", "one"]).fails(1);
    assert!(text.contains("cannot be read: d/two; nothing was changed"), "{text}");
    assert_eq!((sandbox.read("keep.txt"), sandbox.read("untracked")), ("mine\n".into(), "u\n".into()));
    assert_no_preview_left(&sandbox);
}

/// Promise: worktree/unusable-paths
#[test]
fn refuses_named_pipe_over_tracked_file() {
    for_both_implementations(|run| {
        for file in ["keep.txt", "d/one"] {
            let sandbox = sandbox_with("", LANE_SCRIPT, &format!("{DIRTY_SCRIPT}; rm {file}; mkfifo {file}"));
            // Both ends are open, so no open of the pipe waits for the other end.
            let open = std::fs::File::options().read(true).write(true).open(sandbox.repo.join(file)).unwrap();
            let text = run(&sandbox, &["preview", "one"]).fails(1);
            assert!(text.contains(&format!("{file} is a named pipe; nothing was changed")), "{text}");
            drop(open);
            let kind = std::fs::symlink_metadata(sandbox.repo.join(file)).unwrap().file_type();
            assert!(kind.is_fifo());
            assert_eq!(sandbox.read("untracked"), "u\n");
            assert_no_preview_left(&sandbox);
        }
    });
}

/// Promise: worktree/unusable-paths
#[test]
fn refuses_replaced_objects_before_moving_files() {
    for_both_implementations(|run| {
        for (rev, file) in
            [("HEAD:keep.txt", "keep.txt"), ("HEAD:d/one", "d/one"), ("proq/one:lane.txt", "lane.txt")]
        {
            let replace =
                format!("git replace $(git rev-parse {rev}) $(echo other | git hash-object -w --stdin)");
            let sandbox = sandbox_with("", LANE_SCRIPT, &format!("{DIRTY_SCRIPT}; {replace}"));
            let id = sandbox.git(&["rev-parse", rev]);
            let delete_replacement = format!("git replace -d {id}");
            assert_preview_refused(
                &sandbox,
                run,
                &["`git replace` exchanges the content of", file, &delete_replacement],
            );
            sandbox.sh(&delete_replacement);
            let before = WorktreeState::capture(&sandbox, &sandbox.repo);
            let _ = run(&sandbox, &["preview", "one"]).ok();
            let _ = run(&sandbox, &["preview", "--back"]).ok();
            assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
        }
        // Replaced objects are no obstacle when git-proq does not write their content: unchanged files and
        // commits.
        let replace = "git replace $(git rev-parse HEAD:d/e/three) $(echo other | git hash-object -w --stdin)
            git replace HEAD $(git commit-tree -m other HEAD^{tree})";
        let sandbox = sandbox_with("", LANE_SCRIPT, &format!("echo mine >keep.txt; {replace}"));
        let before = WorktreeState::capture(&sandbox, &sandbox.repo);
        let _ = run(&sandbox, &["preview", "one"]).ok();
        let _ = run(&sandbox, &["preview", "--back"]).ok();
        assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    });
}

/// Promise: worktree/line-endings
#[test]
fn restores_line_endings_that_safecrlf_rejects() {
    for_both_implementations(|run| {
        let settings = "git config core.safecrlf true; git config core.autocrlf input";
        let dirty = "printf 'a\\r\\nb\\r\\n' >keep.txt; printf 'x\\r\\n' >crlf; echo u >untracked";
        let sandbox = sandbox_with("", LANE_SCRIPT, &format!("{settings}; {dirty}"));
        let before = WorktreeState::capture(&sandbox, &sandbox.repo);
        let _ = run(&sandbox, &["preview", "one"]).ok();
        assert!(!sandbox.repo.join("crlf").exists());
        let _ = run(&sandbox, &["preview", "--back"]).ok();
        assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
        assert_eq!(sandbox.read("crlf"), "x\r\n");
    });
}

#[test]
fn converted_files_are_not_reported_as_modified() {
    for_both_implementations(|run| {
        // The files were written before a rule about line endings applied to them.
        let settings = "git config core.autocrlf true; git update-index -q --refresh";
        let sandbox = sandbox_with("", LANE_SCRIPT, &format!("{settings}; {DIRTY_SCRIPT}"));
        let status = |sandbox: &Sandbox| sandbox.git(&["status", "--porcelain"]);
        let before = status(&sandbox);
        let _ = run(&sandbox, &["preview", "one"]).ok();
        let _ = run(&sandbox, &["preview", "--back"]).ok();
        assert_eq!(status(&sandbox), before);
        assert_eq!(sandbox.git(&["diff", "--name-only"]), "d/e/three\nkeep.txt");
    });
}

/// Promise: worktree/nested-repository-kept
#[test]
fn nested_repository_in_a_lane_folder_keeps_its_files() {
    for_both_implementations(|run| {
        for dirty in [DIRTY_SCRIPT, "true"] {
            let nested = "git init -q nest; echo x >nest/x; git -C nest add x; git -C nest commit -qm x; echo u >nest/u";
            let lane = format!("{LANE_SCRIPT}; mkdir nest; echo lane >nest/lane");
            let sandbox = sandbox_with("", &lane, &format!("{dirty}; {nested}"));
            sandbox.lane_with_commit("two", "mkdir nest; echo two >nest/two");
            let before = WorktreeState::capture(&sandbox, &sandbox.repo);
            let _ = run(&sandbox, &["preview", "one"]).ok();
            assert_eq!((sandbox.read("nest/lane"), sandbox.read("nest/u")), ("lane\n".into(), "u\n".into()));
            let _ = run(&sandbox, &["preview", "two"]).ok();
            assert_eq!((sandbox.read("nest/two"), sandbox.read("nest/x")), ("two\n".into(), "x\n".into()));
            sandbox.sh("echo more >>nest/u; echo edit >>nest/two");
            let _ = run(&sandbox, &["preview", "--back"]).ok();
            assert_eq!(sandbox.read("nest/u"), "u\nmore\n");
            sandbox.sh("echo u >nest/u");
            assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
        }
    });
}

/// Scripts that remove a tracked file from the index, flag it, or put another entry in its place.
const FORGET_SCRIPTS: &[&str] = &[
    "git rm -q --cached keep.txt",
    "git rm -q --cached keep.txt; echo keep.txt >>.git/info/exclude",
    "git rm -q --cached keep.txt; echo keep.txt >>.git/info/exclude; echo secret >>keep.txt",
    "git rm -q --cached keep.txt; echo keep.txt >>.git/info/exclude; : >keep.txt; chmod 600 keep.txt",
    "git rm -q --cached keep.txt; echo keep.txt >>.git/info/exclude; ln -sf nowhere keep.txt",
    "git rm -q --cached keep.txt d/e/three; echo keep.txt >>.git/info/exclude",
    "git rm -q --cached d/one d/two; echo d/one >>.git/info/exclude",
    "git rm -qr --cached d; echo d/ >>.git/info/exclude; echo new >d/new",
    "git mv keep.txt moved; echo new >keep.txt; echo keep.txt >>.git/info/exclude",
    "rm keep.txt; mkdir -p keep.txt/in keep.txt/empty; echo i >keep.txt/in/f; echo keep.txt >>.git/info/exclude",
    "rm keep.txt; mkdir -p keep.txt; echo i >keep.txt/a.o; echo s >keep.txt/s; echo '*.o' >>.git/info/exclude",
    "rm -r d; echo file >d; echo d >>.git/info/exclude",
    "rm -r d; ln -s nowhere d; echo d >>.git/info/exclude",
    "rm -r d/e; echo file >d/e; echo d/e >>.git/info/exclude; rm keep.txt",
    "git rm -q --cached keep.txt; git add -N keep.txt; echo more >>keep.txt",
    "git rm -q --cached d/empty; git add -N d/empty",
    "git rm -q --cached d/empty; git add -N d/empty; rm d/empty; mkdir d/empty; echo i >d/empty/i",
    "git update-index --skip-worktree keep.txt; rm keep.txt; mkdir keep.txt; echo i >keep.txt/i",
    "git update-index --assume-unchanged d/one; rm -r d; echo d >d",
];

/// Promise: worktree/unusual-entries
#[test]
fn restores_untracked_and_flagged_files_exactly() {
    for_both_implementations(|run| {
        for setup in FORGET_SCRIPTS {
            let sandbox = sandbox_with("", "echo lane >lane.txt", setup);
            sandbox.lane_with_commit("two", "echo two >two.txt; echo two >d/two");
            let before = WorktreeState::capture(&sandbox, &sandbox.repo);
            for lane in ["one", "two"] {
                let _ = run(&sandbox, &["preview", lane]).ok();
                assert_eq!(sandbox.git(&["status", "--porcelain"]), "", "{setup}");
            }
            let _ = run(&sandbox, &["preview", "--back"]).ok();
            assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
            assert_no_preview_left(&sandbox);
            // Undo restores it as well.
            for args in [&["undo"][..], &["preview", "--back"], &["preview", "one"], &["undo"]] {
                let _ = run(&sandbox, args).ok();
            }
            assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
        }
    });
}

/// Promise: worktree/ignored-file-parked
#[test]
fn parked_ignored_file_is_stored_in_no_object() {
    for_both_implementations(|run| {
        let setup = "git rm -q --cached keep.txt; echo keep.txt >>.git/info/exclude; echo secret >keep.txt";
        let sandbox = sandbox_with("", LANE_SCRIPT, &format!("{DIRTY_SCRIPT}; {setup}"));
        let _ = run(&sandbox, &["preview", "one"]).ok();
        assert_eq!(sandbox.read("keep.txt"), "keep\n");
        let find_object = "git cat-file -e $(echo secret | git hash-object --stdin) 2>/dev/null && echo it is there || true";
        assert_eq!(sandbox.sh(find_object), "");
        let _ = run(&sandbox, &["preview", "--back"]).ok();
        assert_eq!((sandbox.read("keep.txt"), sandbox.sh(find_object)), ("secret\n".into(), String::new()));
    });
}

/// Promise: worktree/ignored-file-parked
#[test]
fn parked_ignored_file_returns_onto_a_moved_base() {
    let setup = "git rm -q --cached keep.txt; echo keep.txt >>.git/info/exclude; echo secret >keep.txt";
    let sandbox = sandbox_with("", LANE_SCRIPT, &format!("{DIRTY_SCRIPT}; rm keep.txt; {setup}"));
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox
        .sh("git worktree add -q ../wt main; cd ../wt; echo m >moved.txt; git add .; git commit -qm moved; git worktree remove .");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!((sandbox.read("keep.txt"), sandbox.read("moved.txt")), ("secret\n".into(), "m\n".into()));
    assert_eq!(sandbox.git(&["ls-files", "keep.txt"]), "");
}

#[test]
fn undo_of_restore_keeps_an_edited_ignored_file() {
    let setup = "git rm -q --cached keep.txt; echo keep.txt >>.git/info/exclude; echo secret >keep.txt";
    for change in ["", "echo newer >keep.txt", "echo newer >keep.txt; rm d/one"] {
        let sandbox = sandbox_with("", LANE_SCRIPT, &format!("echo mine >d/two; {setup}"));
        for args in [&["preview", "one"][..], &["preview", "--back"]] {
            let _ = sandbox.proq(args).ok();
        }
        let id = snapshot_ids(&sandbox).pop().unwrap();
        sandbox.sh(&format!("git checkout -q d/two; {change}"));
        let before = WorktreeState::capture(&sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["snap", "restore", &id]).ok();
        assert_eq!(sandbox.read("d/two"), "mine\n");
        let after = WorktreeState::capture(&sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["undo"]).ok();
        assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
        let _ = sandbox.proq(&["op", "redo"]).ok();
        assert_same_image(&after, &WorktreeState::capture(&sandbox, &sandbox.repo));
    }
}

/// Promise: snapshots/differing-ignored-files
#[test]
fn restore_names_ignored_files_that_differ() {
    let setup = "git rm -q --cached keep.txt; echo keep.txt >>.git/info/exclude; echo secret >keep.txt";
    for (change, differs) in [
        ("", false),
        ("rm keep.txt", true),
        ("echo newer >keep.txt", true),
        ("rm keep.txt; mkdir keep.txt", true),
        ("rm keep.txt; mkfifo keep.txt", true),
    ] {
        let sandbox = sandbox_with("", LANE_SCRIPT, &format!("echo mine >d/two; {setup}"));
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let id = snapshot_ids(&sandbox).pop().unwrap();
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        sandbox.sh(&format!("git checkout -q d/two; {change}"));
        for more in [&["--dry-run"][..], &[]] {
            let out = sandbox.proq(&[&["snap", "restore", &id], more].concat());
            assert_eq!(out.stderr.contains("keep.txt is not as it was"), differs, "{}", out.to_text());
            assert_eq!(out.stdout.contains("exactly as it was"), !differs, "{}", out.to_text());
            assert_eq!(out.stdout.contains("but for ignored files"), differs, "{}", out.to_text());
        }
    }
}

/// Promise: worktree/unusual-entries
#[test]
fn failed_preview_leaves_untracked_and_flagged_files() {
    for_both_implementations(|run| {
        for setup in FORGET_SCRIPTS {
            let sandbox = sandbox_with("", "echo lane >lane.txt", setup);
            sandbox.sh(": >.git/HEAD.lock");
            let before = WorktreeState::capture(&sandbox, &sandbox.repo);
            let text = run(&sandbox, &["preview", "one"]).fails(5);
            assert!(text.contains("HEAD.lock"), "{setup}: {text}");
            assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
        }
    });
}

/// Promise: worktree/unusual-entries
#[test]
fn refuses_special_entries_removed_from_the_index() {
    for_both_implementations(|run| {
        for (setup, expected) in [
            ("mkfifo keep.txt", "keep.txt is a named pipe; nothing was changed"),
            ("mkdir keep.txt; mkfifo keep.txt/p", "keep.txt/p is a named pipe; nothing was changed"),
            ("git init -q keep.txt", "keep.txt is a repository of its own; nothing was changed"),
        ] {
            let forget = "git rm -q --cached keep.txt; rm keep.txt; echo keep.txt >>.git/info/exclude";
            let sandbox = sandbox_with("", LANE_SCRIPT, &format!("{DIRTY_SCRIPT}; {forget}; {setup}"));
            let text = run(&sandbox, &["preview", "one"]).fails(1);
            assert!(text.contains(expected), "{text}");
            assert_eq!(sandbox.read("untracked"), "u\n");
            assert_no_preview_left(&sandbox);
        }
    });
}

/// Creates a sandbox whose git directory is on another file system than its checkout.
fn sandbox_on_two_file_systems() -> (Sandbox, tempfile::TempDir) {
    let sandbox = Sandbox::new();
    let disk = sandbox.dir_on_other_filesystem();
    let git_dir = disk.path().join("git");
    sandbox.sh(&format!("mv .git {0}; echo 'gitdir: {0}' >.git; {BASE_SCRIPT}", git_dir.display()));
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", LANE_SCRIPT);
    sandbox.sh(DIRTY_SCRIPT);
    (sandbox, disk)
}

/// Kills a command at each file that it moves to another file system, then kills the recovery too. Asserts
/// that the checkout is as before: no file is missing, duplicated or truncated, and no saved ref is left.
#[track_caller]
fn assert_files_moved_once(args: &[&str]) {
    let mut killed = 0;
    for point in ["file.copied", "file.twice"] {
        for n in 1.. {
            let (sandbox, _disk) = sandbox_on_two_file_systems();
            if args != ["preview", "one"] {
                let _ = sandbox.proq(&["preview", "one"]).ok();
            }
            let mut args = args.to_vec();
            let id = snapshot_ids(&sandbox).pop();
            if args[0] == "snap" {
                let _ = sandbox.proq(&["preview", "--back"]).ok();
                sandbox.sh("git reset -q --hard; git clean -qfd");
                args.extend(id.as_deref());
            }
            let saved_refs = || sandbox.git(&["for-each-ref", "refs/proq/snap", "refs/proq/saved"]);
            let (before, saved_before) = (WorktreeState::capture(&sandbox, &sandbox.repo), saved_refs());
            let mut command = sandbox.proq_command(&sandbox.repo, &args);
            command.env("PROQ_TEST_DIE_AT", format!("{point}:{n}"));
            if sandbox.output(command).code == 0 {
                break;
            }
            // The recovery is killed, too.
            let mut recovery = sandbox.proq_command(&sandbox.repo, &["list"]);
            recovery.env("PROQ_TEST_DIE_AT", point);
            drop(sandbox.output(recovery));
            let _ = sandbox.proq(&["list"]).ok();
            assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
            assert_eq!(saved_before, saved_refs(), "{point}:{n}");
            killed += 1;
        }
    }
    assert!(killed >= 3, "{killed}");
}

/// Promise: worktree/cross-device-move
#[test]
#[ignore = "needs a second file system"]
fn killed_preview_moves_each_file_once() {
    assert_files_moved_once(&["preview", "one"]);
}

/// Promise: worktree/cross-device-move
#[test]
#[ignore = "needs a second file system"]
fn killed_back_moves_each_file_once() {
    assert_files_moved_once(&["preview", "--back"]);
}

/// Promise: worktree/cross-device-move
#[test]
#[ignore = "needs a second file system"]
fn killed_undo_moves_each_file_once() {
    assert_files_moved_once(&["undo"]);
}

/// Promise: worktree/cross-device-move
#[test]
#[ignore = "needs a second file system"]
fn killed_restore_moves_each_file_once() {
    assert_files_moved_once(&["snap", "restore"]);
}
