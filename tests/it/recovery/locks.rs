//! Owns the tests of locks that a killed git leaves: the dead operation's go, anybody else's stay.

use std::time::{Duration, SystemTime};

use super::kit::{dies, recovers};
use crate::support::{Sandbox, State, scenes};

/// A landing that was killed while its refs were locked, with the commit that it was bringing.
fn killed_landing() -> (Sandbox, State, String) {
    let whole = scenes::dirty();
    let _ = whole.proq(&["merge", "--no-cleanup", "one"]).ok();
    let to = whole.git(&["rev-parse", "main"]);
    let sandbox = scenes::dirty();
    let before = State::of(&sandbox);
    dies(&sandbox, "transition.staged", &["merge", "one"]);
    (sandbox, before, to)
}

#[test]
fn locks_of_the_dead_operations_git_go() {
    let (sandbox, before, to) = killed_landing();
    for (lock, text) in [
        ("HEAD.lock", ""),
        ("refs/heads/main.lock", &format!("{to}\n")[..]),
        ("packed-refs.lock", "# pack-refs with: peeled fully-peeled sorted \n"),
        ("packed-refs.new", "# pack-refs with"),
    ] {
        sandbox.write(&format!(".git/{lock}"), text);
    }
    recovers(&sandbox);
    State::of(&sandbox).is(&before, "after recovery");
    let _ = sandbox.proq(&["merge", "one"]).ok();
}

#[test]
fn locks_that_git_was_still_writing_go() {
    let (sandbox, before, to) = killed_landing();
    sandbox.write(".git/refs/heads/main.lock", &to[..7]);
    recovers(&sandbox);
    State::of(&sandbox).is(&before, "after recovery");
}

#[test]
fn locks_of_a_switch_go() {
    let sandbox = scenes::dirty();
    let before = State::of(&sandbox);
    dies(&sandbox, "transition.staged", &["preview", "one"]);
    sandbox.write(".git/HEAD.lock", "ref: refs/heads/proq/one-preview\n");
    recovers(&sandbox);
    State::of(&sandbox).is(&before, "after recovery");
}

#[test]
fn a_lock_that_says_something_else_stays_and_is_named() {
    let (sandbox, _, _) = killed_landing();
    let lock = sandbox.repo.join(".git/refs/heads/main.lock");
    let theirs = format!("{}\n", sandbox.git(&["rev-parse", "proq/two"]));
    std::fs::write(&lock, &theirs).unwrap();
    let _ = sandbox.proq(&["list"]).ok();
    assert_eq!(std::fs::read_to_string(&lock).unwrap(), theirs);
    let said = sandbox.proq(&["merge", "one"]).fails(1);
    assert!(said.contains("refs/heads/main.lock"), "{said}");
    std::fs::remove_file(&lock).unwrap();
    let _ = sandbox.proq(&["merge", "one"]).ok();
    recovers(&sandbox);
}

#[test]
fn a_lock_that_is_older_than_the_operation_stays() {
    let (sandbox, _, to) = killed_landing();
    let lock = sandbox.repo.join(".git/refs/heads/main.lock");
    std::fs::write(&lock, format!("{to}\n")).unwrap();
    let old = SystemTime::now() - Duration::from_hours(1);
    std::fs::File::options().write(true).open(&lock).unwrap().set_modified(old).unwrap();
    let _ = sandbox.proq(&["list"]).ok();
    assert!(lock.exists());
    let said = sandbox.proq(&["merge", "one"]).fails(1);
    assert!(said.contains("refs/heads/main.lock"), "{said}");
}

#[test]
fn an_index_lock_of_somebody_else_stays() {
    let sandbox = scenes::dirty();
    dies(&sandbox, "journal.planned", &["merge", "one"]);
    sandbox.write(".git/index.lock", "theirs");
    let _ = sandbox.proq(&["list"]).ok();
    assert_eq!(sandbox.read(".git/index.lock"), "theirs");
    std::fs::remove_file(sandbox.repo.join(".git/index.lock")).unwrap();
    recovers(&sandbox);
}

/// The branch has moved by then, so the index has to go in; the lock that it waited in is gone.
#[test]
fn an_index_goes_in_also_where_somebody_took_its_lock_away() {
    for (scene, by_git) in [(scenes::two_lanes as fn() -> Sandbox, false), (scenes::dirty, true)] {
        let sandbox = scene();
        let (staged, changed) = (sandbox.git(&["diff", "--cached"]), sandbox.git(&["diff"]));
        dies(&sandbox, "transition.moved", &["merge", "one"]);
        let made_by_git = sandbox.sh("find .git/proq/work -name index | wc -l | tr -d ' '");
        assert_eq!(made_by_git, if by_git { "1" } else { "0" });
        std::fs::remove_file(sandbox.repo.join(".git/index.lock")).unwrap();
        recovers(&sandbox);
        assert_eq!(sandbox.git(&["rev-parse", "main:"]), sandbox.git(&["rev-parse", "proq/one:"]));
        assert_eq!(sandbox.git(&["diff", "--cached"]), staged, "by git: {by_git}");
        assert_eq!(sandbox.git(&["diff"]), changed, "by git: {by_git}");
    }
}
