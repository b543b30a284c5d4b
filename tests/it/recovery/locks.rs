//! Owns the tests of locks that a killed git leaves: the dead operation's go, anybody else's stay.

use std::time::{Duration, SystemTime};

use super::kit::{dies, recovers, with_git};
use crate::support::patience::wait_until;
use crate::support::{Sandbox, State, scenes};

/// A landing that was killed while its refs were locked, with the commit that it was bringing.
fn killed_landing() -> (Sandbox, State, String) {
    let whole = scenes::dirty();
    let _ = whole.proq(&["merge", "--no-cleanup", "one"]).ok();
    let to = whole.git(&["rev-parse", "main"]);
    let sandbox = scenes::dirty();
    let before = State::of(&sandbox);
    dies(&sandbox, "transition.staged", &["merge", "one"]);
    git_lets_go(&sandbox);
    (sandbox, before, to)
}

/// Waits for the dead program's git, which takes its own locks away as soon as nobody talks to it any more, by their names:
/// a lock that a test makes there earlier would go with them.
fn git_lets_go(sandbox: &Sandbox) {
    let locks = ["HEAD.lock", "refs/heads/main.lock", "packed-refs.lock"]
        .map(|name| sandbox.repo.join(".git").join(name));
    wait_until("git to let go of the refs", || !locks.iter().any(|lock| lock.exists()));
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

/// What is freed is nobody's operation; the folder of the process is what tells its git's locks by.
#[test]
fn locks_of_a_git_that_was_killed_while_it_freed_refs_go() {
    // A ref that is packed has no folder of its own before git locks it.
    let locked = "mkdir -p \"$GIT/refs/proq/op\"; : >\"$GIT/refs/proq/op/20200101-000000-1-1-0.lock\"";
    for (alone, first) in [(true, ":"), (false, ":"), (true, locked), (false, locked)] {
        let sandbox = scenes::dirty();
        sandbox.git(&["update-ref", "refs/proq/op/20200101-000000-1-1-0", "HEAD"]);
        sandbox.sh("git pack-refs --all");
        let git = sandbox.repo.join(".git").display().to_string();
        let act = format!(
            "GIT='{git}'; {first}; : >\"$GIT/packed-refs.lock\"; cp \"$GIT/packed-refs\" \"$GIT/packed-refs.new\""
        );
        let act = if alone { format!("{act}; kill -9 $$") } else { format!("{act}; kill -9 $PPID; exit 0") };
        let out = sandbox.output(with_git(&sandbox, " -d refs/proq/op/", &act, &["gc"]));
        assert_eq!(out.code, if alone { 1 } else { 137 }, "{}", out.shown());
        recovers(&sandbox);
        let _ = sandbox.proq(&["gc"]).ok();
        assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/op/"]), "");
    }
}

#[test]
fn the_lock_of_a_snapshots_ref_that_was_being_freed_goes() {
    let sandbox = scenes::dirty();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("git pack-refs --all");
    let git = sandbox.repo.join(".git").display().to_string();
    let act = format!(
        "mkdir -p '{git}/refs/proq/snap'; : >\"{git}/$(echo \"$*\" | grep -o 'refs/proq/snap/[^ ]*').lock\"; : >'{git}/packed-refs.lock'; kill -9 $PPID; exit 0"
    );
    let free = |act: &str| {
        let mut command = with_git(&sandbox, " -d refs/proq/snap/", act, &["gc"]);
        command.env("PROQ_OP_KEEP", "0").env("PROQ_TEST_NOW", "2026-01-02T03:09:05Z");
        sandbox.output(command)
    };
    let out = free(&act);
    assert_eq!(out.code, 137, "{}", out.shown());
    assert_ne!(sandbox.sh("find .git -path '*/proq/locks' -prune -o -name '*.lock' -print"), "");
    let _ = sandbox.proq(&["list"]).ok();
    assert_eq!(sandbox.sh("find .git -path '*/proq/locks' -prune -o -name '*.lock' -print"), "");
    let _ = free("exec \"$REAL\" \"$@\"").ok();
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/snap/"]), "");
}

#[test]
fn a_lock_of_somebody_elses_on_a_ref_that_was_being_freed_stays() {
    let sandbox = scenes::dirty();
    let name = "refs/proq/op/20200101-000000-1-1-0";
    sandbox.git(&["update-ref", name, "HEAD"]);
    let act = "kill -9 $PPID; exit 0";
    let out = sandbox.output(with_git(&sandbox, " -d refs/proq/op/", act, &["gc"]));
    assert_eq!(out.code, 137, "{}", out.shown());
    // Their git writes where the ref is to go.
    let (lock, theirs) = (format!(".git/{name}.lock"), sandbox.git(&["rev-parse", "HEAD"]));
    sandbox.write(&lock, &theirs);
    let _ = sandbox.proq(&["list"]).ok();
    assert_eq!(sandbox.read(&lock), theirs);
    let said = sandbox.proq(&["gc"]).fails(1);
    assert!(said.contains(&lock) && !said.contains("delete it: wait"), "{said}");
}

#[test]
fn the_lock_of_a_head_whose_branch_was_being_moved_goes() {
    let sandbox = scenes::shown();
    let git = sandbox.repo.join(".git").display().to_string();
    let act = format!(": >'{git}/HEAD.lock'; kill -9 $$");
    let out = sandbox.output(with_git(&sandbox, " -d refs/heads/", &act, &["preview", "--back"]));
    assert_ne!(out.code, 0, "{}", out.shown());
    recovers(&sandbox);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
}

/// What git has not come to give a commit is an error to `git fsck`, whoever was killed over it.
#[test]
fn a_worktree_for_checks_that_git_had_only_begun_to_add_goes() {
    let none = "rm \"$admin/HEAD\"";
    let zeros = "echo 0000000000000000000000000000000000000000 >\"$admin/HEAD\"";
    for (head, end) in [(none, "$PPID; exit 0"), (zeros, "$PPID; exit 0"), (none, "$$")] {
        let sandbox = scenes::dirty();
        let before = State::of(&sandbox);
        let admin = sandbox.repo.join(".git/worktrees/slot-0");
        let act = format!(
            "\"$REAL\" \"$@\"; admin='{}'; {head}; echo initializing >\"$admin/locked\"; kill -9 {end}",
            admin.display()
        );
        let args = ["merge", "one", "--verify", "true"];
        let out = sandbox.output(with_git(&sandbox, "worktree add", &act, &args));
        assert_eq!(out.code, if end == "$$" { 1 } else { 137 }, "{}", out.shown());
        recovers(&sandbox);
        assert!(!admin.exists());
        State::of(&sandbox).is(&before, "after recovery");
        let _ = sandbox.proq(&args).ok();
    }
}

/// Nothing is given up because another git is at work: what was cut short stays open over as many commands as that takes.
#[test]
fn what_a_living_gits_lock_keeps_open_ends_when_that_is_gone() {
    for at in ["transition.staged", "transition.moved"] {
        for lock in ["HEAD.lock", "packed-refs.lock", "refs/heads/proq/one-preview.lock"] {
            for last in [&["list"][..], &["doctor", "--fix"]] {
                let sandbox = scenes::dirty();
                let before = State::of(&sandbox);
                dies(&sandbox, at, &["preview", "one"]);
                let lock = sandbox.repo.join(".git").join(lock);
                // A git that was asked for it ends with its asker, and takes its lock along. An older one is not asked for HEAD's,
                // and the lock of that stays: somebody has removed it, and has one of their own now.
                if sandbox.git_version() < (2, 46) && lock.ends_with("HEAD.lock") {
                    drop(std::fs::remove_file(&lock));
                }
                wait_until("the end of its git", || !lock.exists());
                std::fs::write(&lock, "theirs").unwrap();
                let old = SystemTime::now() - Duration::from_hours(1);
                std::fs::File::options().write(true).open(&lock).unwrap().set_modified(old).unwrap();
                for _ in 0..2 {
                    let _ = sandbox.proq(&["list"]).ok();
                    assert_eq!(std::fs::read_to_string(&lock).unwrap(), "theirs");
                }
                std::fs::remove_file(&lock).unwrap();
                let _ = sandbox.proq(last).ok();
                recovers(&sandbox);
                State::of(&sandbox).is(&before, &format!("{at} {}", lock.display()));
            }
        }
    }
}

#[test]
fn a_lock_that_another_git_holds_is_named() {
    let sandbox = scenes::dirty();
    let before = State::of(&sandbox);
    let lock = sandbox.repo.join(".git/HEAD.lock");
    std::fs::write(&lock, "theirs").unwrap();
    let said = sandbox.proq(&["preview", "one"]).fails(5);
    assert!(
        said.contains("another git command holds ") && said.contains("if no git runs there any more: rm "),
        "{said}"
    );
    std::fs::remove_file(&lock).unwrap();
    recovers(&sandbox);
    State::of(&sandbox).is(&before, "after it was refused");
}
