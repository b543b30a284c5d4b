//! Owns the tests of undo and redo: each kind of operation is taken back bit for bit, and what undo refuses.

use super::preview_identity::same;
use super::support::{Image, Output, Sandbox, State, names, scenes};

/// Runs a command, takes it back and does it again: each time everything is as it was.
#[track_caller]
fn there_and_back(scene: fn() -> Sandbox, args: &[&str], force: bool) {
    let sandbox = scene();
    let before = State::of(&sandbox).without_remains();
    let out = sandbox.proq(args);
    assert!([0, 3].contains(&out.code), "{}", out.shown());
    let after = State::of(&sandbox).without_remains();
    assert_ne!(before, after);
    let undo: &[&str] = if force { &["undo", "--force"] } else { &["undo"] };
    for _ in 0..2 {
        let _ = sandbox.proq(undo).ok();
        State::of(&sandbox).without_remains().is(&before, "undone");
        let _ = sandbox.proq(&["op", "redo"]).ok();
        State::of(&sandbox).without_remains().is(&after, "redone");
    }
    let left = names(&sandbox.repo.join(".git/proq/work"));
    assert_eq!(left, [""; 0]);
    sandbox.git(&["fsck", "--connectivity-only", "--no-dangling", "--no-progress"]);
}

macro_rules! there_and_back {
    ($($name:ident: $scene:ident, [$($arg:expr),*] $(, $force:ident)?;)*) => {
        $(#[test]
        fn $name() {
            let force: &[&str] = &[$(stringify!($force))?];
            there_and_back(scenes::$scene, &[$($arg),*], !force.is_empty());
        })*
    };
}

there_and_back! {
    spawn: clean, ["spawn", "--empty", "-n", "new"];
    spawn_with_what_it_carries: carried, ["spawn", "--empty", "--carry", "-n", "new"], force;
    preview_of_a_clean_checkout: two_lanes, ["preview", "one"];
    preview: dirty, ["preview", "one"];
    switch: edited, ["preview", "two"];
    refresh: outdated, ["preview", "--refresh"];
    back: shown, ["preview", "--back"];
    back_with_edits: edited, ["preview", "--back"];
    back_with_a_commit: committed, ["preview", "--back"];
    back_onto_a_moved_base: moved, ["preview", "--back"];
    landing: two_lanes, ["merge", "one"];
    landing_over_a_dirty_checkout: dirty, ["merge", "one"];
    landing_that_conflicts: conflicting, ["merge", "clash"];
    landing_of_all: all_lanes, ["merge", "--all"];
    landing_on_a_base_elsewhere: elsewhere, ["merge", "one"];
    landing_without_cleanup: dirty, ["merge", "--no-cleanup", "one"];
    landing_of_the_lane_on_show: shown, ["merge", "one"];
    discard: unfinished, ["discard", "--force", "one"];
    discard_of_the_lane_on_show: edited, ["discard", "--force", "one"];
    cleanup: landed, ["cleanup"];
}

#[test]
fn restored_snapshot() {
    let sandbox = scenes::thrown_away();
    let before = State::of(&sandbox);
    let id = super::snap::ids(&sandbox).pop().unwrap();
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    let after = State::of(&sandbox);
    assert_ne!(before, after);
    let _ = sandbox.proq(&["undo"]).ok();
    State::of(&sandbox).is(&before, "undone");
    let _ = sandbox.proq(&["op", "redo"]).ok();
    State::of(&sandbox).is(&after, "redone");
}

/// What a refused undo says; nothing may have changed.
#[track_caller]
fn refused(sandbox: &Sandbox, args: &[&str]) -> String {
    let before = State::of(sandbox);
    let out: Output = sandbox.proq(args);
    assert_ne!(out.code, 0, "{}", out.shown());
    State::of(sandbox).is(&before, "refused");
    out.shown()
}

#[test]
fn a_base_that_somebody_built_on_is_not_moved_back() {
    let sandbox = scenes::dirty();
    let _ = sandbox.proq(&["merge", "one"]).ok();
    sandbox.sh("echo more > more.txt; git add more.txt; git commit -qm more more.txt");
    insta::assert_snapshot!(refused(&sandbox, &["undo"]), @r"
    --- stderr
    error: operation 3 cannot be undone: 'main' has moved on to d0cd48fc since; nothing was changed
    hint: undo it all the same, keeping what came after under a ref: git proq undo 3 --force
    --- code 1
    ");
    let tip = sandbox.git(&["rev-parse", "main"]);
    let _ = sandbox.proq(&["undo", "--force"]).ok();
    assert_eq!(sandbox.git(&["log", "--format=%s", "-1", "main"]), "base");
    assert!(sandbox.git(&["for-each-ref", "refs/proq/saved"]).contains(&tip), "what came after is kept");
}

#[test]
fn a_base_that_was_pushed_is_not_moved_back() {
    let sandbox = scenes::two_lanes();
    let _ = sandbox.proq(&["merge", "one"]).ok();
    sandbox.sh("git init -q --bare ../hub.git; git remote add origin ../hub.git; git push -q origin main");
    insta::assert_snapshot!(refused(&sandbox, &["undo"]), @r"
    --- stderr
    error: operation 3 cannot be undone: 'main' was pushed: origin/main has it; nothing was changed
    hint: undo it all the same, keeping what came after under a ref: git proq undo 3 --force
    --- code 1
    ");
    let _ = sandbox.proq(&["undo", "3", "--force"]).ok();
}

/// A clone whose base is what its remote has, as nearly all are.
fn pushed() -> Sandbox {
    let sandbox = scenes::two_lanes();
    sandbox.sh("git init -q --bare ../hub.git; git remote add origin ../hub.git; git push -q -u origin main");
    sandbox
}

#[test]
fn going_forward_again_is_not_refused_for_what_a_remote_has() {
    let sandbox = pushed();
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
fn a_refused_redo_names_no_other_operation() {
    let sandbox = pushed();
    let _ = sandbox.proq(&["merge", "one"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    sandbox.sh("echo more > more.txt; git add more.txt; git commit -qm more more.txt");
    insta::assert_snapshot!(refused(&sandbox, &["op", "redo"]), @r"
    --- stderr
    error: operation 4, an undo, cannot be taken back: 'main' has moved on to 6fb07932 since; nothing was changed
    hint: see what it did: git proq op show 4
    --- code 1
    ");
    insta::assert_snapshot!(refused(&sandbox, &["op", "redo", "--dry-run"]), @r"
    --- stderr
    error: operation 4, an undo, cannot be taken back: 'main' has moved on to 6fb07932 since; nothing was changed
    hint: see what it did: git proq op show 4
    --- code 1
    ");
}

#[test]
fn a_refused_restore_is_forced_by_the_same_restore() {
    let sandbox = pushed();
    let _ = sandbox.proq(&["merge", "one"]).ok();
    let _ = sandbox.proq(&["merge", "two"]).ok();
    sandbox.git(&["push", "-q"]);
    insta::assert_snapshot!(refused(&sandbox, &["op", "restore", "2"]), @r"
    --- stderr
    error: operation 4 cannot be undone: 'main' was pushed: origin/main has it; nothing was changed
    hint: undo it all the same, keeping what came after under a ref: git proq op restore 2 --force
    --- code 1
    ");
    let _ = sandbox.proq(&["op", "restore", "2", "--force"]).ok();
    assert_eq!(sandbox.git(&["log", "--format=%s", "-1", "main"]), "base");
}

/// `--dry-run` refuses in the words of the command itself.
#[track_caller]
fn refused_alike(sandbox: &Sandbox, args: &[&str]) {
    let said = refused(sandbox, args);
    let dry: Vec<&str> = args.iter().copied().chain(["--dry-run"]).collect();
    assert_eq!(refused(sandbox, &dry), said);
}

#[test]
fn a_dry_run_refuses_what_the_undo_refuses() {
    let sandbox = scenes::two_lanes();
    sandbox.write_in(&sandbox.lane("two"), "two.txt", "unsaved\n");
    refused_alike(&sandbox, &["undo"]);
    refused_alike(&sandbox, &["op", "restore", "0"]);

    let sandbox = pushed();
    let _ = sandbox.proq(&["merge", "one"]).ok();
    sandbox.write("shared.txt", "mine\n");
    refused_alike(&sandbox, &["undo"]);
    sandbox.git(&["checkout", "-q", "shared.txt"]);
    sandbox.git(&["push", "-q"]);
    refused_alike(&sandbox, &["undo"]);
    sandbox.sh("echo more > more.txt; git add more.txt; git commit -qm more more.txt");
    refused_alike(&sandbox, &["undo"]);
    let _ = sandbox.proq(&["undo", "--force", "--dry-run"]).ok();

    let sandbox = scenes::edited();
    refused_alike(&sandbox, &["undo"]);

    let sandbox = scenes::two_lanes();
    let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
    sandbox.sh("rm -rf .git/proq/trash/*");
    refused_alike(&sandbox, &["undo"]);
}

#[test]
fn a_dry_run_refuses_what_an_older_one_of_the_operations_would_refuse() {
    // The making of a lane, whatever came of it since.
    for last in [&["preview", "one"][..], &["merge", "one"], &["discard", "--force", "one"], &["op", "log"]] {
        let sandbox = scenes::two_lanes();
        let _ = sandbox.proq(last).ok();
        refused_alike(&sandbox, &["op", "restore", "0"]);
        let force = ["op", "restore", "0", "--force"];
        let _ = sandbox.proq(&[&force[..], &["--dry-run"]].concat()).ok();
        let _ = sandbox.proq(&force).ok();
    }
    // Edits that are in a preview, or would come back in it.
    for last in [&["spawn", "--empty", "-n", "z"][..], &["preview", "two"]] {
        let sandbox = scenes::two_lanes();
        let number = sandbox.proq(&["op", "log", "--json"]).json()["operations"].as_array().unwrap().len();
        let _ = sandbox.proq(&["preview", "one"]).ok();
        sandbox.write("a.txt", "edited there\n");
        let _ = sandbox.proq(last).ok();
        refused_alike(&sandbox, &["op", "restore", &number.to_string()]);
        let _ = sandbox.proq(&["op", "restore", &(number + 1).to_string()]).ok();
    }
    // A preview that was entered before its base moved.
    let sandbox = scenes::two_lanes();
    let number = sandbox.proq(&["op", "log", "--json"]).json()["operations"].as_array().unwrap().len();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["merge", "two"]).ok();
    let _ = sandbox.proq(&["op", "restore", &number.to_string(), "--dry-run"]).ok();
    let _ = sandbox.proq(&["op", "restore", &number.to_string()]).ok();
}

#[test]
fn a_name_that_was_made_twice_goes_back_to_the_beginning_as_the_dry_run_says() {
    let spawn = &["spawn", "--wait", "-n", "x", "claude", "do it"][..];
    for (between, again) in [(&["discard", "x"][..], spawn), (&["redispatch", "x"], &["wait", "x"])] {
        let sandbox = Sandbox::new();
        sandbox.agent("claude", "true");
        let back =
            [&["undo", "--dry-run"][..], &["op", "restore", "0", "--dry-run"], &["op", "restore", "0"]];
        let all = [spawn, between, again].into_iter().chain(back);
        all.for_each(|args| drop(sandbox.proq(args).ok()));
        assert_eq!(sandbox.git(&["for-each-ref", "refs/heads/proq"]), "");
        assert!(!sandbox.lane("x").exists());
    }
}

#[test]
fn edits_since_a_preview_was_left_are_set_aside_by_its_undo_as_the_dry_run_says() {
    let sandbox = scenes::shown();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.write("a.txt", "edited at home\n");
    let _ = sandbox.proq(&["undo", "--dry-run"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("a.txt"), "edited at home\n");
}

#[test]
fn edits_that_an_undo_would_not_set_aside_refuse_it_with_a_hint_that_helps() {
    let sandbox = scenes::two_lanes();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.write("a.txt", "edited at home\n");
    refused_alike(&sandbox, &["undo"]);
    let out = sandbox.proq(&["undo"]).fails(1);
    assert!(out.contains("hint: set them aside first: git -C '[ROOT]/repo' stash push"), "{out}");
    sandbox.git(&["stash", "push", "-q", "--include-untracked"]);
    let _ = sandbox.proq(&["undo"]).ok();
}

#[test]
fn changes_in_the_way_refuse_an_undo_also_with_force() {
    let sandbox = scenes::two_lanes();
    let _ = sandbox.proq(&["merge", "one"]).ok();
    sandbox.write("shared.txt", "mine\n");
    insta::assert_snapshot!(refused(&sandbox, &["undo"]), @r"
    --- stderr
    error: operation 3 cannot be undone: local changes in [ROOT]/repo stand in the way: shared.txt; nothing was changed
    hint: set them aside first: git -C '[ROOT]/repo' stash push
    --- code 1
    ");
    insta::assert_snapshot!(refused(&sandbox, &["undo", "--force"]), @r"
    --- stderr
    error: operation 3 cannot be undone: local changes in [ROOT]/repo stand in the way: shared.txt; nothing was changed
    hint: set them aside first: git -C '[ROOT]/repo' stash push
    --- code 1
    ");
    sandbox.sh("git checkout -q shared.txt");
    let _ = sandbox.proq(&["undo"]).ok();
}

#[test]
fn edits_in_a_preview_refuse_the_undo_of_entering_it() {
    let sandbox = scenes::shown();
    sandbox.write("one.txt", "edited\n");
    insta::assert_snapshot!(refused(&sandbox, &["undo"]), @r"
    --- stderr
    error: operation 3 cannot be undone: there are uncommitted changes in [ROOT]/repo: one.txt; nothing was changed
    hint: set them aside for its next preview: git proq preview --back
    --- code 1
    ");
    insta::assert_snapshot!(refused(&sandbox, &["undo", "--force"]), @r"
    --- stderr
    error: operation 3 cannot be undone: there are uncommitted changes in [ROOT]/repo: one.txt; nothing was changed
    hint: set them aside for its next preview: git proq preview --back
    --- code 1
    ");
}

#[test]
fn a_branch_that_moved_while_a_lane_was_shown_refuses_the_undo_of_showing_it() {
    let sandbox = scenes::shown();
    sandbox.git(&["worktree", "add", "-q", "--force", "../elsewhere", "main"]);
    sandbox.write_in(&sandbox.root().join("elsewhere"), "new", "new\n");
    sandbox.commit_all_in(&sandbox.root().join("elsewhere"), "new");
    for args in [&["undo", "--dry-run"][..], &["undo"], &["undo", "--force"]] {
        let before = State::of(&sandbox);
        let out = sandbox.proq(args).fails(1);
        assert!(out.contains("cannot be undone: 'main' has moved on to"), "{out}");
        assert!(out.contains("hint: leave the preview instead: git proq preview --back"), "{out}");
        State::of(&sandbox).is(&before, "refused");
    }
    sandbox.git(&["worktree", "remove", "--force", "../elsewhere"]);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.read("new"), "new\n");
}

#[test]
fn a_lane_whose_trash_was_emptied_does_not_come_back() {
    let sandbox = scenes::unfinished();
    let _ = sandbox.proq(&["discard", "--force", "one"]).ok();
    let trash = sandbox.repo.join(".git/proq/trash");
    std::fs::remove_dir_all(&trash).unwrap();
    insta::assert_snapshot!(refused(&sandbox, &["undo"]), @r"
    --- stderr
    error: operation 3 cannot be undone: [ROOT]/repo/.git/proq/trash/one-[ID]/admin is not there any more; nothing was changed
    hint: see what of it is still there: git proq op show 3
    --- code 1
    ");
}

#[test]
fn only_the_last_operation_is_undone() {
    let sandbox = scenes::two_lanes();
    insta::assert_snapshot!(refused(&sandbox, &["undo", "1"]), @r"
    --- stderr
    error: operation 1 is not the last one that stands, 2 is; nothing was changed
    hint: undo it and all that came after it: git proq op restore 0
    --- code 1
    ");
    insta::assert_snapshot!(refused(&sandbox, &["undo", "9"]), @r"
    --- stderr
    error: there is no operation 9 in the log
    hint: see what there is: git proq op log
    --- code 1
    ");
    insta::assert_snapshot!(sandbox.proq(&["undo", "2", "--dry-run"]).shown(), @r"
    --- stderr
    error: operation 2 cannot be undone: lane 'two' was kept: 1 commit that is not on main; nothing was changed
    hint: remove the lane all the same, saving everything first: git proq undo 2 --force
    --- code 1
    ");
}

#[test]
fn an_operation_of_another_session_is_undone_only_by_its_number() {
    let sandbox = scenes::two_lanes();
    let mut elsewhere = sandbox.command("setsid", &sandbox.repo);
    elsewhere.args(["--wait", env!("CARGO_BIN_EXE_git-proq"), "preview", "one"]);
    let _ = sandbox.output(elsewhere).ok();
    insta::assert_snapshot!(refused(&sandbox, &["undo"]), @r"
    --- stderr
    error: operation 3 was started in another terminal or by another program: git proq preview one; nothing was changed
    hint: look at it: git proq op show 3
    hint: undo it all the same: git proq undo 3
    --- code 1
    ");
    refused_alike(&sandbox, &["undo"]);
    insta::assert_snapshot!(refused(&sandbox, &["undo", "--json"]), @r#"
    {
      "causes": [],
      "error": "operation 3 was started in another terminal or by another program: git proq preview one; nothing was changed",
      "exit": 1,
      "hints": [
        "look at it: git proq op show 3",
        "undo it all the same: git proq undo 3"
      ],
      "schema": 1
    }
    --- code 1
    "#);
    insta::assert_snapshot!(sandbox.proq(&["undo", "3"]).shown(), @r"
    undid operation 3: git proq preview one
    --- stderr
    hint: go forward again: git proq op redo
    --- code 0
    ");
}

#[test]
fn nothing_to_undo_and_nothing_to_do_again() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(refused(&sandbox, &["undo"]), @r"
    --- stderr
    error: there is nothing to undo
    --- code 1
    ");
    insta::assert_snapshot!(refused(&sandbox, &["op", "redo"]), @r"
    --- stderr
    error: there is no undo that could be taken back
    --- code 1
    ");
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "new"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "other"]).ok();
    insta::assert_snapshot!(refused(&sandbox, &["op", "redo"]), @r"
    --- stderr
    error: there is no undo that could be taken back
    --- code 1
    ");
}

#[test]
fn an_undo_of_the_way_back_says_what_it_sets_aside_and_how_it_comes_back() {
    let sandbox = Sandbox::new();
    sandbox.sh("echo b > b");
    sandbox.commit_all("b");
    sandbox.lane_of("one", "echo lane > lane");
    sandbox.sh("echo mine > a.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("echo later > b; echo new > new");
    let later = Image::of(&sandbox, &sandbox.repo);
    insta::assert_snapshot!(sandbox.proq(&["undo"]).shown(), @r"
    undid operation 3: git proq preview --back
    --- stderr
    what was changed since is set aside: b, new; it comes back with: git proq preview --back
    hint: go forward again: git proq op redo
    --- code 0
    ");
    assert!(!sandbox.repo.join("new").exists());
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    same(&later, &Image::of(&sandbox, &sandbox.repo));
    // Where there is nothing new there is nothing to say.
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let plain = sandbox.proq(&["undo"]);
    assert!(!plain.stderr.contains("set aside"), "{}", plain.stderr);
}

#[test]
fn an_undo_of_a_preview_says_which_edits_it_sets_aside_for_the_next_one() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo lane > lane");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo edit > edit");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo more > more");
    let text = sandbox.proq(&["undo"]).shown();
    assert!(text.contains("is set aside: more; it comes back with: git proq preview one"), "{text}");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    assert_eq!((sandbox.read("edit"), sandbox.read("more")), ("edit\n".into(), "more\n".into()));
}
