//! Owns the tests of kills in a checkout whose paths are in odd states: kinds that were swapped, entries with flags, files that
//! git was told to forget.

use super::kit::{dies, dies_in_git, recovers};
use crate::preview_identity::same;
use crate::snap::ids;
use crate::support::{Image, Sandbox, State, names, scenes};

/// A checkout with a committed file `chosen.txt`, then changed.
fn changed(deed: &str) -> Sandbox {
    let sandbox = scenes::two_lanes();
    sandbox.sh("echo chosen >chosen.txt");
    sandbox.commit_all("chosen");
    sandbox.sh(&format!("{deed}; echo more >>b.txt"));
    sandbox
}

/// A checkout that was changed, and where everything was thrown away by hand after a preview: a snapshot has it. Returns its id.
fn thrown_away(deed: &str) -> (Sandbox, String) {
    let sandbox = changed(deed);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("git update-index -q --really-refresh || :; git reset -q --hard; git clean -qfd");
    let id = ids(&sandbox)[0].clone();
    (sandbox, id)
}

#[test]
fn a_file_that_a_recovery_brought_back_is_not_taken_for_one_that_was_filled_in() {
    for deed in [
        "git rm -q --cached chosen.txt",
        "git rm -q --cached chosen.txt; echo chosen.txt >>.git/info/exclude",
        ": >chosen.txt",
        "printf cho >chosen.txt",
    ] {
        for at in ["clear.given", "clear.given:2"] {
            let sandbox = changed(deed);
            let before = State::of(&sandbox);
            dies(&sandbox, "clear.filled", &["preview", "one"]);
            dies(&sandbox, at, &["list"]);
            recovers(&sandbox);
            State::of(&sandbox).is(&before, &format!("{deed}, {at}"));
        }
    }
}

#[test]
fn a_file_that_was_filled_in_makes_way_for_the_folder_that_was_in_its_place() {
    for deed in ["", "echo staged >chosen.txt; git add chosen.txt;"] {
        let sandbox = changed(&format!("{deed} rm chosen.txt; mkdir chosen.txt; echo x >chosen.txt/x"));
        let before = State::of(&sandbox);
        dies(&sandbox, "clear.filled", &["preview", "one"]);
        recovers(&sandbox);
        State::of(&sandbox).is(&before, deed);
    }
}

#[test]
fn a_restore_that_was_taken_back_beside_a_file_with_a_flag_can_be_run_again() {
    let (sandbox, id) = thrown_away("git update-index --skip-worktree chosen.txt; echo mine >chosen.txt");
    assert_eq!(sandbox.read("chosen.txt"), "mine\n");
    let before = State::of(&sandbox);
    dies(&sandbox, "restore.installed", &["snap", "restore", &id]);
    recovers(&sandbox);
    State::of(&sandbox).is(&before, "taken back");
    let _ = sandbox.proq(&["snap", "restore", &id]).ok();
    assert_eq!((&*sandbox.read("chosen.txt"), &*sandbox.read("b.txt")), ("mine\n", "b\nmore\n"));
    assert!(!sandbox.repo.join(".git/proq/snaps").join(&id).join("files").exists());
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!((&*sandbox.read("chosen.txt"), &*sandbox.read("b.txt")), ("mine\n", "b\n"));
}

#[test]
fn a_copy_of_what_a_restore_meets_goes_when_that_is_cut_short() {
    let (sandbox, id) = thrown_away("git update-index --skip-worktree chosen.txt; echo mine >chosen.txt");
    let before = State::of(&sandbox);
    dies(&sandbox, "snap.copied", &["snap", "restore", &id]);
    recovers(&sandbox);
    State::of(&sandbox).is(&before, "taken back");
    assert_eq!(names(&sandbox.repo.join(".git/proq/snaps")), [&*id]);
}

#[test]
fn a_copy_that_a_recovery_had_begun_to_remove_goes_in_the_next() {
    let (sandbox, id) = thrown_away("echo 'chosen.txt text' >.git/info/attributes");
    sandbox.sh("printf 'as edited\\r\\n' >chosen.txt");
    let before = State::of(&sandbox);
    dies(&sandbox, "step.before:3", &["snap", "restore", &id]);
    dies(&sandbox, "snap.emptied", &["list"]);
    recovers(&sandbox);
    State::of(&sandbox).is(&before, "taken back");
    assert_eq!(names(&sandbox.repo.join(".git/proq/snaps")), [&*id]);
}

#[test]
fn empty_folders_of_a_restore_that_is_taken_back_go_though_that_is_cut_short() {
    let (sandbox, id) = thrown_away("mkdir -p hollow/er");
    assert!(!sandbox.repo.join("hollow").exists());
    let before = State::of(&sandbox);
    dies(&sandbox, "restore.installed", &["snap", "restore", &id]);
    assert!(sandbox.repo.join("hollow/er").is_dir());
    dies(&sandbox, "aside.cleared", &["list"]);
    recovers(&sandbox);
    assert!(!sandbox.repo.join("hollow").exists());
    State::of(&sandbox).is(&before, "taken back");
}

#[test]
fn a_git_that_is_killed_while_it_compares_leaves_no_lock_beside_a_snapshot() {
    let sandbox = changed("echo '*.txt text eol=crlf' >.git/info/attributes; printf 'x\\r\\n' >chosen.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["undo"]).ok();
    let before = State::of(&sandbox);
    let snap = sandbox.repo.join(".git/proq/snaps").join(&ids(&sandbox)[0]);
    let act = ": > \"$GIT_INDEX_FILE.lock\"";
    dies_in_git(&sandbox, "update-index -z --index-info", act, &["op", "redo"]);
    recovers(&sandbox);
    State::of(&sandbox).is(&before, "taken back");
    assert!(!snap.join("check.lock").exists());
}

/// An undo of a landing that ends at some point leaves all of what is in no commit or nothing of it, in each checkout.
#[test]
fn an_undo_that_is_killed_brings_flags_and_empty_folders_back_or_leaves_the_landing() {
    let in_a_checkout = ["transition.staged", "transition.moved", "transition.installed"];
    let in_a_checkout = in_a_checkout.iter().flat_map(|at| ["", ":2"].map(|time| format!("{at}{time}")));
    let of_a_step = ["", ":2", ":3", ":4"].map(|time| format!("step.after{time}"));
    let mut back = 0;
    for at in in_a_checkout.chain(of_a_step).chain(["journal.ended".to_owned()]) {
        let sandbox = Sandbox::new();
        sandbox.sh("echo c >c; echo x >x");
        sandbox.commit_all("base");
        sandbox.lane_of("one", "rm c; echo l >f");
        let own = "git update-index --assume-unchanged c; mkdir f";
        sandbox.sh(&format!("{own}; git worktree add -qf ../other main; cd ../other; {own}"));
        let other = sandbox.root().join("other");
        let images = || [Image::of(&sandbox, &sandbox.repo), Image::of(&sandbox, &other)];
        let before = images();
        let _ = sandbox.proq(&["merge", "one"]).ok();
        let landed = images();
        dies(&sandbox, &at, &["undo"]);
        recovers(&sandbox);
        println!("killed at {at}");
        if images() == before {
            back += 1;
        } else {
            landed.iter().zip(&images()).for_each(|(landed, now)| same(landed, now));
            let _ = sandbox.proq(&["undo"]).ok();
            before.iter().zip(&images()).for_each(|(before, now)| same(before, now));
        }
    }
    assert!(back > 0);
}
