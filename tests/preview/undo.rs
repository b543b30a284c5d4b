//! Tests of undo and redo: each kind of operation is undone bit for bit, and refused undos change nothing.

use proq_test_kit::snapshots::assert_same_image;
use proq_test_kit::{Output, RepoState, Sandbox, WorktreeState, file_names, fixtures};

/// Runs a command, undoes it and redoes it, twice: each time the state is the expected one.
#[track_caller]
fn there_and_back(fixture: fn() -> Sandbox, args: &[&str], force: bool) {
    let sandbox = fixture();
    let before = RepoState::capture(&sandbox).without_removed_lanes();
    let out = sandbox.proq(args);
    assert!([0, 3].contains(&out.code), "{}", out.to_text());
    let after = RepoState::capture(&sandbox).without_removed_lanes();
    assert_ne!(before, after);
    let undo: &[&str] = if force { &["undo", "--force"] } else { &["undo"] };
    for _ in 0..2 {
        let _ = sandbox.proq(undo).ok();
        RepoState::capture(&sandbox).without_removed_lanes().assert_same(&before, "undone");
        let _ = sandbox.proq(&["op", "redo"]).ok();
        RepoState::capture(&sandbox).without_removed_lanes().assert_same(&after, "redone");
    }
    let unfinished = file_names(&sandbox.repo.join(".git/proq/work"));
    assert_eq!(unfinished, [""; 0]);
    sandbox.git(&["fsck", "--connectivity-only", "--no-dangling", "--no-progress"]);
}

macro_rules! there_and_back {
    ($($name:ident: $scene:ident, [$($arg:expr),*] $(, $force:ident)?;)*) => {
        $(#[test]
        fn $name() {
            let force: &[&str] = &[$(stringify!($force))?];
            there_and_back(fixtures::$scene, &[$($arg),*], !force.is_empty());
        })*
    };
}

there_and_back! {
    spawn: clean_checkout, ["spawn", "--empty", "-n", "new"];
    spawn_with_carried_changes: dirty_without_lanes, ["spawn", "--empty", "--carry", "-n", "new"], force;
    preview_of_a_clean_checkout: two_lanes, ["preview", "one"];
    preview: dirty_with_lanes, ["preview", "one"];
    switch: edited_preview, ["preview", "two"];
    refresh: outdated_preview, ["preview", "--refresh"];
    back: preview_over_dirty, ["preview", "--back"];
    back_with_edits: edited_preview, ["preview", "--back"];
    back_with_a_commit: preview_with_commit, ["preview", "--back"];
    back_onto_a_moved_base: preview_with_moved_base, ["preview", "--back"];
    landing: two_lanes, ["merge", "one"];
    landing_over_a_dirty_checkout: dirty_with_lanes, ["merge", "one"];
    landing_that_conflicts: conflicting_lane, ["merge", "clash"];
    landing_of_all: lanes_with_one_conflict, ["merge", "--all"];
    landing_on_a_base_elsewhere: base_not_checked_out, ["merge", "one"];
    landing_without_cleanup: dirty_with_lanes, ["merge", "--no-cleanup", "one"];
    landing_of_previewed_lane: preview_over_dirty, ["merge", "one"];
    discard: unfinished_lane, ["discard", "--force", "one"];
    discard_of_previewed_lane: edited_preview, ["discard", "--force", "one"];
    cleanup: landed_lane, ["cleanup"];
}

#[test]
fn undo_and_redo_of_restored_snapshot() {
    let sandbox = fixtures::restorable_snapshot();
    let before = RepoState::capture(&sandbox);
    let id = proq_test_kit::snapshots::snapshot_ids(&sandbox).pop().unwrap();
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    let after = RepoState::capture(&sandbox);
    assert_ne!(before, after);
    let _ = sandbox.proq(&["undo"]).ok();
    RepoState::capture(&sandbox).assert_same(&before, "undone");
    let _ = sandbox.proq(&["op", "redo"]).ok();
    RepoState::capture(&sandbox).assert_same(&after, "redone");
}

/// Returns the output of a refused command; asserts that nothing has changed.
#[track_caller]
fn assert_refused(sandbox: &Sandbox, args: &[&str]) -> String {
    let before = RepoState::capture(sandbox);
    let out: Output = sandbox.proq(args);
    assert_ne!(out.code, 0, "{}", out.to_text());
    RepoState::capture(sandbox).assert_same(&before, "refused");
    out.to_text()
}

/// Promise: operations/undo-built-on
#[test]
fn refuses_undo_of_base_with_newer_commits() {
    let sandbox = fixtures::dirty_with_lanes();
    let _ = sandbox.proq(&["merge", "one"]).ok();
    sandbox.sh("echo more > more.txt; git add more.txt; git commit -qm more more.txt");
    insta::assert_snapshot!(assert_refused(&sandbox, &["undo"]), @r"
    --- stderr
    error: cannot undo operation 3: 'main' has moved to d0cd48fc since; nothing was changed
    hint: undo anyway, saving later commits under refs/proq/saved: git proq undo 3 --force
    --- code 1
    ");
    let tip = sandbox.git(&["rev-parse", "main"]);
    let _ = sandbox.proq(&["undo", "--force"]).ok();
    assert_eq!(sandbox.git(&["log", "--format=%s", "-1", "main"]), "base");
    assert!(sandbox.git(&["for-each-ref", "refs/proq/saved"]).contains(&tip), "what came after is kept");
}

/// Promise: operations/undo-built-on
#[test]
fn refuses_undo_of_pushed_base() {
    let sandbox = fixtures::two_lanes();
    let _ = sandbox.proq(&["merge", "one"]).ok();
    sandbox.sh("git init -q --bare ../hub.git; git remote add origin ../hub.git; git push -q origin main");
    insta::assert_snapshot!(assert_refused(&sandbox, &["undo"]), @r"
    --- stderr
    error: cannot undo operation 3: 'main' was pushed to origin/main; nothing was changed
    hint: undo anyway, saving later commits under refs/proq/saved: git proq undo 3 --force
    --- code 1
    ");
    let _ = sandbox.proq(&["undo", "3", "--force"]).ok();
}

/// Creates a clone whose base equals that of its remote, as is common.
fn repo_with_pushed_base() -> Sandbox {
    let sandbox = fixtures::two_lanes();
    sandbox.sh("git init -q --bare ../hub.git; git remote add origin ../hub.git; git push -q -u origin main");
    sandbox
}

#[test]
fn redo_is_allowed_when_remote_has_the_old_tip() {
    let sandbox = repo_with_pushed_base();
    let before = sandbox.git(&["rev-parse", "main"]);
    let _ = sandbox.proq(&["merge", "one"]).ok();
    let after = sandbox.git(&["rev-parse", "main"]);
    for back in [&["undo"][..], &["op", "restore", "2"]] {
        let _ = sandbox.proq(back).ok();
        assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
        let _ = sandbox.proq(&["op", "redo", "--dry-run"]).ok();
        let _ = sandbox.proq(&["op", "redo"]).ok();
        assert_eq!(sandbox.git(&["rev-parse", "main"]), after);
    }
}

#[test]
fn refused_redo_names_the_undo_itself() {
    let sandbox = repo_with_pushed_base();
    let _ = sandbox.proq(&["merge", "one"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    sandbox.sh("echo more > more.txt; git add more.txt; git commit -qm more more.txt");
    insta::assert_snapshot!(assert_refused(&sandbox, &["op", "redo"]), @r"
    --- stderr
    error: cannot redo operation 4: 'main' has moved to 6fb07932 since; nothing was changed
    hint: show what it did: git proq op show 4
    --- code 1
    ");
    insta::assert_snapshot!(assert_refused(&sandbox, &["op", "redo", "--dry-run"]), @r"
    --- stderr
    error: cannot redo operation 4: 'main' has moved to 6fb07932 since; nothing was changed
    hint: show what it did: git proq op show 4
    --- code 1
    ");
}

#[test]
fn refused_restore_hints_at_the_same_restore_with_force() {
    let sandbox = repo_with_pushed_base();
    let _ = sandbox.proq(&["merge", "one"]).ok();
    let _ = sandbox.proq(&["merge", "two"]).ok();
    sandbox.git(&["push", "-q"]);
    insta::assert_snapshot!(assert_refused(&sandbox, &["op", "restore", "2"]), @r"
    --- stderr
    error: cannot undo operation 4: 'main' was pushed to origin/main; nothing was changed
    hint: undo anyway, saving later commits under refs/proq/saved: git proq op restore 2 --force
    --- code 1
    ");
    let _ = sandbox.proq(&["op", "restore", "2", "--force"]).ok();
    assert_eq!(sandbox.git(&["log", "--format=%s", "-1", "main"]), "base");
}

/// Asserts that `--dry-run` refuses with the same message as the command itself.
#[track_caller]
fn assert_dry_run_refuses_too(sandbox: &Sandbox, args: &[&str]) {
    let message = assert_refused(sandbox, args);
    let dry_args: Vec<&str> = args.iter().copied().chain(["--dry-run"]).collect();
    assert_eq!(assert_refused(sandbox, &dry_args), message);
}

/// Promise: snapshots/dry-run-refuses
#[test]
fn dry_run_refuses_what_undo_refuses() {
    let sandbox = fixtures::two_lanes();
    sandbox.write_in(&sandbox.lane_path("two"), "two.txt", "unsaved\n");
    assert_dry_run_refuses_too(&sandbox, &["undo"]);
    assert_dry_run_refuses_too(&sandbox, &["op", "restore", "0"]);

    let sandbox = repo_with_pushed_base();
    let _ = sandbox.proq(&["merge", "one"]).ok();
    sandbox.write("shared.txt", "mine\n");
    assert_dry_run_refuses_too(&sandbox, &["undo"]);
    sandbox.git(&["checkout", "-q", "shared.txt"]);
    sandbox.git(&["push", "-q"]);
    assert_dry_run_refuses_too(&sandbox, &["undo"]);
    sandbox.sh("echo more > more.txt; git add more.txt; git commit -qm more more.txt");
    assert_dry_run_refuses_too(&sandbox, &["undo"]);
    let _ = sandbox.proq(&["undo", "--force", "--dry-run"]).ok();

    let sandbox = fixtures::edited_preview();
    assert_dry_run_refuses_too(&sandbox, &["undo"]);

    let sandbox = fixtures::two_lanes();
    let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
    sandbox.sh("rm -rf .git/proq/trash/*");
    assert_dry_run_refuses_too(&sandbox, &["undo"]);
}

#[test]
fn dry_run_of_restore_checks_older_operations() {
    // The creation of a lane, whatever happened to the lane since.
    for last in [&["preview", "one"][..], &["merge", "one"], &["discard", "--force", "one"], &["op", "log"]] {
        let sandbox = fixtures::two_lanes();
        let _ = sandbox.proq(last).ok();
        assert_dry_run_refuses_too(&sandbox, &["op", "restore", "0"]);
        let force = ["op", "restore", "0", "--force"];
        let _ = sandbox.proq(&[&force[..], &["--dry-run"]].concat()).ok();
        let _ = sandbox.proq(&force).ok();
    }
    // Edits that are in a preview, or would be restored in it.
    for last in [&["spawn", "--empty", "-n", "z"][..], &["preview", "two"]] {
        let sandbox = fixtures::two_lanes();
        let number = sandbox.proq(&["op", "log", "--json"]).json()["operations"].as_array().unwrap().len();
        let _ = sandbox.proq(&["preview", "one"]).ok();
        sandbox.write("a.txt", "edited there\n");
        let _ = sandbox.proq(last).ok();
        assert_dry_run_refuses_too(&sandbox, &["op", "restore", &number.to_string()]);
        let _ = sandbox.proq(&["op", "restore", &(number + 1).to_string()]).ok();
    }
    // A preview that was opened before its base moved.
    let sandbox = fixtures::two_lanes();
    let number = sandbox.proq(&["op", "log", "--json"]).json()["operations"].as_array().unwrap().len();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["merge", "two"]).ok();
    let _ = sandbox.proq(&["op", "restore", &number.to_string(), "--dry-run"]).ok();
    let _ = sandbox.proq(&["op", "restore", &number.to_string()]).ok();
}

#[test]
fn restores_start_after_lane_name_was_used_twice() {
    let spawn = &["spawn", "--wait", "-n", "x", "claude", "do it"][..];
    for (between, again) in [(&["discard", "x"][..], spawn), (&["redispatch", "x"], &["wait", "x"])] {
        let sandbox = Sandbox::new();
        sandbox.agent("claude", "true");
        let back =
            [&["undo", "--dry-run"][..], &["op", "restore", "0", "--dry-run"], &["op", "restore", "0"]];
        let all = [spawn, between, again].into_iter().chain(back);
        all.for_each(|args| drop(sandbox.proq(args).ok()));
        assert_eq!(sandbox.git(&["for-each-ref", "refs/heads/proq"]), "");
        assert!(!sandbox.lane_path("x").exists());
    }
}

/// Promise: snapshots/dry-run-refuses
#[test]
fn undo_of_preview_back_parks_later_edits() {
    let sandbox = fixtures::preview_over_dirty();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.write("a.txt", "edited at home\n");
    let _ = sandbox.proq(&["undo", "--dry-run"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("a.txt"), "edited at home\n");
}

#[test]
fn refuses_undo_of_preview_back_over_unparked_edits() {
    let sandbox = fixtures::two_lanes();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.write("a.txt", "edited at home\n");
    assert_dry_run_refuses_too(&sandbox, &["undo"]);
    let out = sandbox.proq(&["undo"]).fails(1);
    assert!(
        out.contains("stash them (`git stash pop` restores them): git -C '[ROOT]/repo' stash push"),
        "{out}"
    );
    sandbox.git(&["stash", "push", "-q", "--include-untracked"]);
    let _ = sandbox.proq(&["undo"]).ok();
}

/// Promise: operations/force-keeps-changes
#[test]
fn refuses_undo_over_local_changes_even_with_force() {
    let sandbox = fixtures::two_lanes();
    let _ = sandbox.proq(&["merge", "one"]).ok();
    sandbox.write("shared.txt", "mine\n");
    insta::assert_snapshot!(assert_refused(&sandbox, &["undo"]), @r"
    --- stderr
    error: cannot undo operation 3: local changes in [ROOT]/repo are in the way: shared.txt; nothing was changed
    hint: stash them (`git stash pop` restores them): git -C '[ROOT]/repo' stash push
    --- code 1
    ");
    insta::assert_snapshot!(assert_refused(&sandbox, &["undo", "--force"]), @r"
    --- stderr
    error: cannot undo operation 3: local changes in [ROOT]/repo are in the way: shared.txt; nothing was changed
    hint: stash them (`git stash pop` restores them): git -C '[ROOT]/repo' stash push
    --- code 1
    ");
    sandbox.sh("git checkout -q shared.txt");
    let _ = sandbox.proq(&["undo"]).ok();
}

#[test]
fn refuses_undo_of_preview_with_edits() {
    let sandbox = fixtures::preview_over_dirty();
    sandbox.write("one.txt", "edited\n");
    insta::assert_snapshot!(assert_refused(&sandbox, &["undo"]), @r"
    --- stderr
    error: cannot undo operation 3: [ROOT]/repo has uncommitted changes: one.txt; nothing was changed
    hint: save them for its next preview: git proq preview --back
    --- code 1
    ");
    insta::assert_snapshot!(assert_refused(&sandbox, &["undo", "--force"]), @r"
    --- stderr
    error: cannot undo operation 3: [ROOT]/repo has uncommitted changes: one.txt; nothing was changed
    hint: save them for its next preview: git proq preview --back
    --- code 1
    ");
}

/// Promise: snapshots/undo-moved-branch
#[test]
fn refuses_undo_of_preview_after_base_moved() {
    let sandbox = fixtures::preview_over_dirty();
    sandbox.git(&["worktree", "add", "-q", "--force", "../elsewhere", "main"]);
    sandbox.write_in(&sandbox.root().join("elsewhere"), "new", "new\n");
    sandbox.commit_all_in(&sandbox.root().join("elsewhere"), "new");
    for args in [&["undo", "--dry-run"][..], &["undo"], &["undo", "--force"]] {
        let before = RepoState::capture(&sandbox);
        let out = sandbox.proq(args).fails(1);
        assert!(out.contains(": 'main' has moved to"), "{out}");
        assert!(out.contains("hint: leave the preview instead: git proq preview --back"), "{out}");
        RepoState::capture(&sandbox).assert_same(&before, "refused");
    }
    sandbox.git(&["worktree", "remove", "--force", "../elsewhere"]);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("new"), "new\n");
}

#[test]
fn refuses_undo_of_discard_after_trash_was_emptied() {
    let sandbox = fixtures::unfinished_lane();
    let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
    let trash = sandbox.repo.join(".git/proq/trash");
    std::fs::remove_dir_all(&trash).unwrap();
    insta::assert_snapshot!(assert_refused(&sandbox, &["undo"]), @r"
    --- stderr
    error: cannot undo operation 3: [ROOT]/repo/.git/proq/trash/one-[ID]/admin no longer exists; nothing was changed
    hint: show what it did: git proq op show 3
    --- code 1
    ");
}

#[test]
fn undo_accepts_only_the_last_operation() {
    let sandbox = fixtures::two_lanes();
    insta::assert_snapshot!(assert_refused(&sandbox, &["undo", "1"]), @r"
    --- stderr
    error: cannot undo operation 1: it is not the last one in effect, 2 is; nothing was changed
    hint: undo it and everything after it: git proq op restore 0
    --- code 1
    ");
    insta::assert_snapshot!(assert_refused(&sandbox, &["undo", "9"]), @r"
    --- stderr
    error: there is no operation 9 in the log
    hint: list operations: git proq op log
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["undo", "2", "--dry-run"]).to_text(), @r"
    --- stderr
    error: cannot undo operation 2: cannot remove lane 'two': 1 commit that is not on main; nothing was changed
    hint: remove the lane anyway; everything is saved first: git proq undo 2 --force
    --- code 1
    ");
}

/// Promise: operations/other-terminal
#[test]
fn undo_of_other_sessions_operation_needs_its_number() {
    let sandbox = fixtures::two_lanes();
    let mut elsewhere = sandbox.command("setsid", &sandbox.repo);
    elsewhere.args(["--wait", env!("CARGO_BIN_EXE_git-proq"), "preview", "one"]);
    let _ = sandbox.output(elsewhere).ok();
    insta::assert_snapshot!(assert_refused(&sandbox, &["undo"]), @r"
    --- stderr
    error: operation 3 was started in another terminal or by another program: git proq preview one; nothing was changed
    hint: show what it did: git proq op show 3
    hint: undo it anyway: git proq undo 3
    --- code 1
    ");
    assert_dry_run_refuses_too(&sandbox, &["undo"]);
    insta::assert_snapshot!(assert_refused(&sandbox, &["undo", "--json"]), @r#"
    {
      "causes": [],
      "error": "operation 3 was started in another terminal or by another program: git proq preview one; nothing was changed",
      "exit": 1,
      "hints": [
        "show what it did: git proq op show 3",
        "undo it anyway: git proq undo 3"
      ],
      "schema": 1
    }
    --- code 1
    "#);
    insta::assert_snapshot!(sandbox.proq(&["undo", "3"]).to_text(), @r"
    undid operation 3: git proq preview one
    --- stderr
    hint: redo it: git proq redo
    --- code 0
    ");
}

#[test]
fn refuses_undo_and_redo_without_operations() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(assert_refused(&sandbox, &["undo"]), @r"
    --- stderr
    error: there is nothing to undo
    --- code 1
    ");
    insta::assert_snapshot!(assert_refused(&sandbox, &["op", "redo"]), @r"
    --- stderr
    error: there is nothing to redo
    --- code 1
    ");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "new"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "other"]).ok();
    insta::assert_snapshot!(assert_refused(&sandbox, &["op", "redo"]), @r"
    --- stderr
    error: there is nothing to redo
    --- code 1
    ");
}

#[test]
fn undo_of_preview_back_lists_parked_edits() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo b > b");
    sandbox.commit_all("b");
    sandbox.lane_with_commit("one", "echo lane > lane");
    sandbox.sh("echo mine > a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("echo later > b; echo new > new");
    let later = WorktreeState::capture(&sandbox, &sandbox.repo);
    insta::assert_snapshot!(sandbox.proq(&["undo"]).to_text(), @r"
    undid operation 3: git proq preview --back
    --- stderr
    saved later changes to b, new; restore them: git proq preview --back
    hint: redo it: git proq redo
    --- code 0
    ");
    assert!(!sandbox.repo.join("new").exists());
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_same_image(&later, &WorktreeState::capture(&sandbox, &sandbox.repo));
    // Without new edits the message is left out.
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let plain = sandbox.proq(&["undo"]);
    assert!(!plain.stderr.contains("set aside"), "{}", plain.stderr);
}

#[test]
fn undo_of_preview_lists_edits_parked_for_the_next() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo lane > lane");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo edit > edit");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo more > more");
    let text = sandbox.proq(&["undo"]).to_text();
    assert!(text.contains("saved later changes to more; restore them: git proq preview one"), "{text}");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    assert_eq!((sandbox.read("edit"), sandbox.read("more")), ("edit\n".into(), "more\n".into()));
}
