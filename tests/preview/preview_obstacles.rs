//! Tests of previews under difficult conditions: a base that moved, files in the way, locks, and manual
//! switches.

use std::fs::File;

use proq_test_kit::snapshots::{assert_no_preview_left, assert_same_image, waiting_snapshots};
use proq_test_kit::{Output, Sandbox, WorktreeState, file_names};

fn sandbox_with(lane: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.sh("seq 1 20 > long.txt; echo k > keep.txt; echo '*.log' > .gitignore");
    sandbox.commit_all("base");
    sandbox.lane_with_commit("one", lane);
    sandbox
}

/// Asserts that a command fails with `code` and changes neither files nor refs. A snapshot of files that were
/// moved and restored may stay. Returns the output.
#[track_caller]
fn assert_refused_unchanged(sandbox: &Sandbox, args: &[&str], code: i32) -> String {
    let refs = ["for-each-ref", "refs/heads", "refs/proq/saved", "refs/proq/conflict"];
    let state =
        || (WorktreeState::capture(sandbox, &sandbox.repo), sandbox.git(&refs), waiting_snapshots(sandbox));
    let before = state();
    let text = sandbox.proq(args).fails(code);
    let after = state();
    assert_same_image(&before.0, &after.0);
    assert_eq!((before.1, before.2), (after.1, after.2), "refs, snapshots");
    text
}

/// Returns the command that follows `prefix` in the standard error of a command.
#[track_caller]
fn command_in_warning(out: &Output, prefix: &str) -> String {
    command_in(&out.stderr, prefix)
}

#[track_caller]
fn command_in(text: &str, prefix: &str) -> String {
    let offset = text.find(prefix).unwrap_or_else(|| panic!("{text}"));
    text[offset + prefix.len()..].lines().next().unwrap().trim().to_owned()
}

/// Promise: worktree/untracked-in-the-way
#[test]
fn refuses_ignored_file_where_the_lane_has_a_file() {
    let sandbox = sandbox_with("echo lane > x.log; git add -f x.log; echo lane > keep.txt");
    sandbox.sh("echo precious > x.log; echo s > a.txt; git add a.txt; echo u > a.txt; echo u > untracked");
    let text = assert_refused_unchanged(&sandbox, &["preview", "one"], 1);
    assert!(text.contains("untracked files in "), "{text}");
    assert!(text.contains("x.log"), "{text}");
    assert_no_preview_left(&sandbox);
}

/// Promise: worktree/untracked-in-the-way
#[test]
fn refuses_ignored_folder_where_the_lane_has_a_file() {
    let sandbox = sandbox_with("echo lane > x.log; git add -f x.log");
    sandbox.sh("mkdir x.log; echo precious > x.log/in");
    let text = assert_refused_unchanged(&sandbox, &["preview", "one"], 1);
    assert!(text.contains("x.log/in"), "{text}");
    assert_no_preview_left(&sandbox);
}

/// Promise: worktree/ignored-files-stay
#[test]
fn keeps_ignored_files_that_the_lane_does_not_ignore() {
    let sandbox = sandbox_with("echo '*.tmp' > .gitignore; echo lane > lane.txt");
    sandbox.lane_with_commit("two", "git rm -q .gitignore");
    sandbox.sh("echo precious > x.log; mkdir d; echo l > d/y.log; echo mine > a.txt");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    // A file that is ignored in one preview and untracked in the next is no edit of the next lane.
    sandbox.sh("echo t > z.tmp");
    let _ = sandbox.proq(&["preview", "two"]).ok();
    assert_eq!(sandbox.read("z.tmp"), "t\n");
    assert_eq!(sandbox.read("x.log"), "precious\n");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("rm z.tmp");
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    assert_no_preview_left(&sandbox);
}

/// Promise: worktree/open-operation
#[test]
fn refuses_open_git_operations() {
    for (operation, command) in [
        ("merge", "git merge -q side"),
        ("rebase", "git rebase -q side"),
        ("cherry-pick", "git cherry-pick side"),
        ("revert", "git revert --no-commit HEAD"),
        ("bisect", "git bisect start"),
    ] {
        let sandbox = sandbox_with("echo lane > lane.txt");
        sandbox.sh("git switch -qc side; echo side > a.txt; git commit -qam side; git switch -q main; echo main > a.txt; git commit -qam main");
        sandbox.sh(&format!("{command} > /dev/null 2>&1 || true"));
        let text = assert_refused_unchanged(&sandbox, &["preview", "one"], 1);
        let unmerged = text.contains("has unmerged paths: a.txt");
        assert!(unmerged || text.contains(&format!("a {operation} is in progress")), "{operation}: {text}");
        assert_no_preview_left(&sandbox);
        if !unmerged {
            sandbox.sh(&format!("{} > /dev/null 2>&1", command_in(&text, "or abort it: ")));
            let _ = sandbox.proq(&["preview", "one"]).ok();
        }
    }
}

/// Promise: worktree/git-locks
#[test]
fn refuses_locks_held_by_git() {
    let sandbox = sandbox_with("echo lane > a.txt");
    sandbox.sh("echo mine > a.txt; echo u > untracked");
    let lock = sandbox.repo.join(".git/index.lock");
    drop(File::create(&lock).unwrap());
    let text = assert_refused_unchanged(&sandbox, &["preview", "one"], 5);
    assert!(text.contains("another git command is running"), "{text}");
    std::fs::remove_file(&lock).unwrap();
    assert_no_preview_left(&sandbox);
    let lock = sandbox.repo.join(".git/HEAD.lock");
    drop(File::create(&lock).unwrap());
    let _ = assert_refused_unchanged(&sandbox, &["preview", "one"], 5);
    std::fs::remove_file(&lock).unwrap();
    assert_no_preview_left(&sandbox);
    let _ = sandbox.proq(&["preview", "one"]).ok();
}

/// Promise: worktree/git-locks
#[test]
fn back_changes_nothing_while_head_is_locked() {
    let sandbox = sandbox_with("echo lane > a.txt");
    sandbox.sh("echo mine > a.txt");
    let original = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo edit > keep.txt; echo n > new.txt; git add new.txt");
    let lock = sandbox.repo.join(".git/HEAD.lock");
    drop(File::create(&lock).unwrap());
    let _ = assert_refused_unchanged(&sandbox, &["preview", "--back"], 5);
    std::fs::remove_file(&lock).unwrap();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&original, &WorktreeState::capture(&sandbox, &sandbox.repo));
}

#[test]
fn restores_changes_on_top_of_a_moved_base() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox
        .lane_with_commit("other", "sed -i s/^20$/twenty/ long.txt; echo o > other.txt; chmod +x keep.txt");
    sandbox.sh("sed -i s/^1$/one/ long.txt; git add long.txt; sed -i s/^3$/three/ long.txt; echo u > untracked; mkdir -p void; rm a.txt; echo n > ann; git add -N ann");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["merge", "other"]).ok();
    let back = sandbox.proq(&["preview", "--back"]);
    insta::assert_snapshot!(back.to_text(), @r"
    the main checkout is on main again
    --- stderr
    restored your uncommitted changes on top of the new main
    --- code 0
    ");
    insta::assert_snapshot!(sandbox.git(&["status", "--short"]), @r"
     D a.txt
     A ann
    MM long.txt
    ?? untracked
    ");
    let staged = sandbox.git(&["show", ":long.txt"]);
    assert!(staged.starts_with("one\n2\n3\n") && staged.ends_with("\ntwenty"), "{staged}");
    let text = sandbox.read("long.txt");
    assert!(text.starts_with("one\n2\nthree\n") && text.ends_with("\ntwenty\n"), "{text}");
    assert_eq!((sandbox.read("untracked"), sandbox.read("other.txt")), ("u\n".into(), "o\n".into()));
    assert!(sandbox.repo.join("void").is_dir());
    assert_eq!(waiting_snapshots(&sandbox), Vec::<String>::new());
}

/// Promise: preview/conflicting-changes
#[test]
fn changes_conflicting_with_moved_base_stay_in_a_snapshot() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.lane_with_commit("other", "echo other > a.txt; echo other > b.txt");
    sandbox
        .sh("echo mine > a.txt; echo u > untracked; echo s > staged; git add staged; echo later >> staged");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["merge", "other"]).ok();
    let out = sandbox.proq(&["preview", "--back"]);
    let command = command_in_warning(&out, "restore them and resolve: ");
    let _ = out.fails(3);
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    assert_eq!(sandbox.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "main");
    assert_eq!(sandbox.git(&["for-each-ref", "--format=x", "refs/proq/snap"]), "x");
    assert!(command.starts_with("git stash apply "), "{command}");
    sandbox.sh(&format!("{command} > /dev/null 2>&1 || true"));
    assert_eq!(sandbox.read("untracked"), "u\n");
    assert_eq!(sandbox.read("staged"), "s\nlater\n");
    let text = sandbox.read("a.txt");
    assert!(text.contains("mine") && text.contains("other") && text.contains("<<<<<<<"), "{text}");
    // The preview is closed: the changes are not restored a second time.
    let _ = sandbox.proq(&["preview", "--back"]).fails(1);
}

#[test]
fn untracked_file_added_by_the_base_is_a_conflict() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.lane_with_commit("other", "echo other > new.txt");
    sandbox.sh("echo mine > new.txt; echo mine > a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["merge", "other"]).ok();
    let out = sandbox.proq(&["--json", "preview", "--back"]);
    let id = out.json()["snapshot"].as_str().unwrap().to_owned();
    assert_eq!(out.json()["conflicts"][0], "new.txt");
    let _ = out.fails(3);
    assert_eq!(sandbox.read("new.txt"), "other\n");
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    assert_eq!(sandbox.git(&["show", &format!("{id}^3:new.txt")]), "mine");
}

/// Promise: preview/identity
#[test]
fn restores_files_and_index_on_base_with_the_same_tree() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.sh("echo s > a.txt; git add a.txt; echo u > a.txt");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.git(&[
        "update-ref",
        "refs/heads/main",
        &sandbox.git(&["commit-tree", "-p", "main", "-m", "same", "main^{tree}"]),
    ]);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let after = WorktreeState::capture(&sandbox, &sandbox.repo);
    assert_eq!((before.files, before.index, before.status), (after.files, after.index, after.status));
}

/// Promise: preview/manual-git
#[test]
fn restores_changes_after_a_manual_switch_to_the_base() {
    let sandbox = sandbox_with("echo lane > a.txt; echo lane > lane.txt");
    sandbox.sh("echo s > a.txt; git add a.txt; echo u > a.txt; echo n > lane.txt");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.git(&["switch", "-q", "main"]);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    assert_no_preview_left(&sandbox);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.lane_with_commit("two", "echo two > two.txt");
    let _ = sandbox.proq(&["preview", "two"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    assert_no_preview_left(&sandbox);
}

#[test]
fn names_edits_in_the_way_of_parked_changes() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.sh("echo mine > a.txt; echo u > u.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("git switch -q main; echo edit > a.txt");
    let text = sandbox.proq(&["preview", "--back"]).fails(1);
    assert!(text.contains("these files are in the way: a.txt"), "{text}");
    assert_eq!(sandbox.read("a.txt"), "edit\n");
    sandbox.git(&["checkout", "-q", "a.txt"]);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!((sandbox.read("a.txt"), sandbox.read("u.txt")), ("mine\n".into(), "u\n".into()));
    assert_no_preview_left(&sandbox);
}

/// Promise: preview/manual-git
#[test]
fn third_branch_is_refused_with_a_switch_hint() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.sh("git branch other; echo mine > a.txt");
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    for detached in [false, true] {
        if detached {
            sandbox.sh("git stash -q; git checkout -q --detach; git stash pop -q");
        }
        let _ = sandbox.proq(&["preview", "one"]).ok();
        sandbox.git(&["switch", "-q", "other"]);
        let _ = assert_refused_unchanged(&sandbox, &["preview", "one"], 1);
        let _ = assert_refused_unchanged(&sandbox, &["preview", "--refresh"], 1);
        let out = sandbox.proq(&["preview", "--back"]);
        let command = command_in_warning(&out, "switch back and leave it: ");
        let _ = out.fails(1);
        let (switch, back_command) = command.split_once(" && ").unwrap();
        assert_eq!(back_command, "git proq preview --back");
        sandbox.sh(&format!("{switch} 2> /dev/null"));
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        let after = WorktreeState::capture(&sandbox, &sandbox.repo);
        assert_eq!((&before.files, &before.index), (&after.files, &after.index));
        assert_no_preview_left(&sandbox);
    }
}

#[test]
fn names_the_deleted_branch_the_preview_started_from() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.sh("git switch -qc topic; echo mine > a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let tip = sandbox.git(&["rev-parse", "topic"]);
    sandbox.git(&["branch", "-qD", "topic"]);
    let text = assert_refused_unchanged(&sandbox, &["preview", "--back"], 1);
    assert!(text.contains("cannot return to branch 'topic': it no longer exists"), "{text}");
    sandbox.git(&["branch", "topic", &tip]);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("a.txt"), "mine\n");
}

#[test]
fn refuses_preview_in_a_bare_repository() {
    let sandbox = Sandbox::new();
    sandbox.sh("git clone -q --bare . ../bare.git");
    let bare = sandbox.root().join("bare.git");
    let _ = sandbox.proq_in(&bare, &["spawn", "--empty", "-n", "one"]).ok();
    let text = sandbox.proq_in(&bare, &["preview", "one"]).fails(1);
    assert!(text.contains("cannot use a bare repository here: it has no main checkout"), "{text}");
}

#[test]
fn merge_and_discard_leave_the_lanes_preview_first() {
    for (args, has_landed) in [
        (&["merge", "proq/one"][..], true),
        (&["merge", "--all"], true),
        (&["discard", "--force", "one"], false),
        (&["cleanup", "--force", "one"], false),
    ] {
        let sandbox = sandbox_with("echo lane > lane.txt");
        sandbox.sh("echo s > a.txt; git add a.txt; echo u > a.txt; echo u > untracked");
        let before = WorktreeState::capture(&sandbox, &sandbox.repo);
        let _ = sandbox.proq(&["preview", "one"]).ok();
        let _ = sandbox.proq(args).ok();
        assert_eq!(sandbox.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "main", "{args:?}");
        assert_eq!(sandbox.repo.join("lane.txt").exists(), has_landed, "{args:?}");
        let after = WorktreeState::capture(&sandbox, &sandbox.repo);
        assert_eq!(before.status, after.status, "{args:?}");
        assert_eq!(sandbox.git(&["for-each-ref", "refs/heads/proq"]), "", "{args:?}");
        assert_eq!(waiting_snapshots(&sandbox), Vec::<String>::new(), "{args:?}");
    }
}

#[test]
fn refused_merge_or_discard_keeps_the_preview() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.sh("echo mine > a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let text = assert_refused_unchanged(&sandbox, &["discard", "one"], 1);
    assert!(text.contains("1 commit that is not on main"), "{text}");
    sandbox.write_in(&sandbox.lane_path("one"), "left.txt", "left\n");
    let text = assert_refused_unchanged(&sandbox, &["merge", "one"], 1);
    assert!(text.contains("uncommitted work: left.txt"), "{text}");
}

#[test]
fn commits_made_in_a_preview_land_with_their_lane() {
    for args in [["merge", "empty"], ["merge", "--all"]] {
        let sandbox = Sandbox::new();
        let _ = sandbox.proq(&["spawn", "--empty", "-n", "empty"]).ok();
        let _ = sandbox.proq(&["preview", "empty"]).ok();
        sandbox.sh("echo made > made.txt; git add .; git commit -qm made");
        let _ = sandbox.proq(&args).ok();
        assert_eq!(sandbox.read("made.txt"), "made\n");
        assert_eq!(sandbox.git(&["log", "-1", "--format=%P", "main"]).split(' ').count(), 2);
    }
}

/// Promise: worktree/hooks-without-locks
#[test]
fn hooks_run_after_locks_are_released() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    let hook = "#!/bin/sh\nset -e\ntest ! -e .git/index.lock; test ! -e .git/HEAD.lock\n\
                git proq list -q > /dev/null; git commit -q --allow-empty -m \"by the $1 hook\" < /dev/null\n\
                echo ran >> \"$ROOT/ran\"\n";
    for name in ["post-checkout", "post-merge"] {
        let path = format!(".git/hooks/{name}");
        sandbox.write(&path, hook);
        sandbox.sh(&format!("chmod +x {path}"));
    }
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let _ = sandbox.proq(&["merge", "one"]).ok();
    assert_eq!(sandbox.read("../ran"), "ran\nran\nran\n");
}

/// Promise: worktree/submodules-unchanged
#[test]
fn submodules_stay_unchanged_with_submodule_recurse() {
    let sandbox = Sandbox::new();
    sandbox.sh(
        "git init -q ../lib; cd ../lib; echo 1 > f; git add f; git commit -qm 1; echo 2 > f; git commit -qam 2
         cd \"$OLDPWD\"; git -c protocol.file.allow=always submodule add -q ../lib lib
         git -C lib checkout -q HEAD~1; git add lib; git config submodule.recurse true",
    );
    sandbox.commit_all("lib at 1");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "one"]).ok();
    let lane = sandbox.lane_path("one");
    let second = sandbox.git_in(&sandbox.root().join("lib"), &["rev-parse", "HEAD"]);
    sandbox.git_in(&lane, &["update-index", "--cacheinfo", &format!("160000,{second},lib")]);
    sandbox.git_in(&lane, &["commit", "-qm", "lib at 2"]);
    let before = WorktreeState::capture(&sandbox, &sandbox.repo);
    for (args, has_note) in [(&["preview", "one"][..], true), (&["preview", "--back"], false)] {
        let out = sandbox.proq(args);
        assert_eq!(
            out.stderr.contains("the folder of submodule lib is unchanged"),
            has_note,
            "{}",
            out.stderr
        );
        let _ = out.ok();
        assert_eq!(sandbox.read("lib/f"), "1\n");
        assert_eq!(sandbox.git_in(&sandbox.repo.join("lib"), &["log", "--format=%s", "HEAD"]), "1");
    }
    assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    assert!(sandbox.proq(&["snap", "list"]).ok().is_empty(), "no edits were made");
}

#[test]
fn edits_in_a_submodule_do_not_block_undo() {
    let sandbox = Sandbox::new();
    sandbox.sh("git init -q ../lib; cd ../lib; echo 1 > f; git add f; git commit -qm 1
         cd \"$OLDPWD\"; git -c protocol.file.allow=always submodule add -q ../lib lib");
    sandbox.commit_all("lib");
    sandbox.lane_with_commit("one", "echo lane > lane.txt");
    for edit in ["true", "echo mine >> a.txt"] {
        sandbox.sh(&format!("echo mine >> lib/f; {edit}"));
        let before = WorktreeState::capture(&sandbox, &sandbox.repo);
        for args in [&["preview", "one"][..], &["preview", "--back"], &["undo"]] {
            let _ = sandbox.proq(args).ok();
        }
        assert!(sandbox.repo.join("lane.txt").exists());
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_same_image(&before, &WorktreeState::capture(&sandbox, &sandbox.repo));
    }
}

/// Creates a tracked file in an ignored folder, and a lane that changes another file.
fn sandbox_with_ignored_folder() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("l/f", "f\n");
    sandbox.write("k", "k\n");
    sandbox.write(".gitignore", "l\n");
    sandbox.sh("git add -A; git add -f l/f; git commit -qm first; mkdir ../outside");
    sandbox.lane_with_commit("x", "echo lane >a.txt");
    sandbox.write("k", "mine\n");
    sandbox
}

/// Promise: worktree/no-write-through-links
#[test]
fn writes_nothing_through_a_symlink_over_a_folder() {
    for (setup, outside) in [
        ("rm -r l; ln -s ../outside l", ""),
        ("mv l/f ../outside/f; rmdir l; ln -s ../outside l", "f"),
        ("mv l/f ../outside/f; rmdir l; ln -s ../outside l; echo mine >../outside/f", "f"),
    ] {
        let sandbox = sandbox_with_ignored_folder();
        sandbox.sh(setup);
        let state = || {
            sandbox
                .sh("git status --porcelain; cat k; ls -l ../outside; cat ../outside/* || true; readlink l")
        };
        let before = state();
        let _ = sandbox.proq(&["preview", "x"]).ok();
        assert_eq!(sandbox.read("l/f"), "f\n", "{setup}");
        assert!(!sandbox.repo.join("l").is_symlink(), "{setup}");
        let _ = sandbox.proq(&["preview", "--back"]).ok();
        assert_eq!(state(), before, "{setup}");
        assert_eq!(file_names(&sandbox.root().join("outside")).join(" "), outside, "{setup}");
        sandbox.assert_healthy();
    }
}

#[test]
fn conflicting_untracked_file_returns_on_a_new_branch() {
    let sandbox = sandbox_with("echo lane > lane.txt");
    sandbox.lane_with_commit("two", "echo landed > mine");
    sandbox.sh("echo mine > mine; echo edit > a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["merge", "two"]).ok();
    let out = sandbox.proq(&["preview", "--back"]);
    let command = command_in_warning(&out, "restore them on a new branch: ");
    let _ = out.fails(3);
    sandbox.sh(&command);
    assert_eq!((sandbox.read("mine").as_str(), sandbox.read("a.txt").as_str()), ("mine\n", "edit\n"));
    assert_eq!(sandbox.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "restored");
}

#[test]
fn untracked_file_conflicting_with_own_lane_is_kept() {
    let sandbox = sandbox_with("echo landed > mine");
    sandbox.sh("echo mine > mine");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo more > more; git add more; git commit -qm more; git branch -f main HEAD; echo x > x; git add x; git commit -qm x");
    let out = sandbox.proq(&["merge", "one"]);
    let command = command_in_warning(&out, "they are saved: ");
    let _ = out.ok();
    sandbox.sh(&command);
    assert_eq!(sandbox.read("mine"), "mine\n");
}
