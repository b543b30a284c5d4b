//! Locks that a killed git leaves: those of the killed operation are removed, those of others stay.

use std::time::{Duration, SystemTime};

use proq_test_kit::faults::{kill_at, recover, with_git_wrapper};
use proq_test_kit::waiting::wait_until;
use proq_test_kit::{RepoState, Sandbox, fixtures};

/// Returns a landing that was killed while its refs were locked, the state before it, and the commit that it
/// was landing.
fn killed_landing() -> (Sandbox, RepoState, String) {
    let uninterrupted = fixtures::dirty_with_lanes();
    let _ = uninterrupted.proq(&["merge", "--no-cleanup", "one"]).ok();
    let landed_commit = uninterrupted.git(&["rev-parse", "main"]);
    let sandbox = fixtures::dirty_with_lanes();
    // Only git knows what this setting means for new files, so git has to lock and move the refs.
    sandbox.git(&["config", "core.sharedRepository", "umask"]);
    let before = RepoState::capture(&sandbox);
    kill_at(&sandbox, "transition.staged", &["merge", "one"]);
    wait_for_git_locks(&sandbox);
    (sandbox, before, landed_commit)
}

/// Waits until the git of the killed program has released its locks. It removes them by name as soon as its
/// input ends, so it would also remove a lock that a test creates there earlier.
fn wait_for_git_locks(sandbox: &Sandbox) {
    let locks = ["HEAD.lock", "refs/heads/main.lock", "packed-refs.lock"]
        .map(|name| sandbox.repo.join(".git").join(name));
    wait_until("git to let go of the refs", || !locks.iter().any(|lock| lock.exists()));
}

/// Promise: concurrency/locks-of-killed-git
#[test]
fn locks_of_killed_git_are_removed() {
    let (sandbox, before, landed_commit) = killed_landing();
    for (lock, text) in [
        ("HEAD.lock", ""),
        ("refs/heads/main.lock", &format!("{landed_commit}\n")[..]),
        ("packed-refs.lock", "# pack-refs with: peeled fully-peeled sorted \n"),
        ("packed-refs.new", "# pack-refs with"),
    ] {
        sandbox.write(&format!(".git/{lock}"), text);
    }
    recover(&sandbox);
    RepoState::capture(&sandbox).assert_same(&before, "after recovery");
    let _ = sandbox.proq(&["merge", "one"]).ok();
}

#[test]
fn partly_written_locks_are_removed() {
    let (sandbox, before, landed_commit) = killed_landing();
    sandbox.write(".git/refs/heads/main.lock", &landed_commit[..7]);
    recover(&sandbox);
    RepoState::capture(&sandbox).assert_same(&before, "after recovery");
}

#[test]
fn locks_of_killed_switch_are_removed() {
    let sandbox = fixtures::dirty_with_lanes();
    let before = RepoState::capture(&sandbox);
    kill_at(&sandbox, "transition.staged", &["preview", "one"]);
    sandbox.write(".git/HEAD.lock", "ref: refs/heads/proq/one-preview\n");
    recover(&sandbox);
    RepoState::capture(&sandbox).assert_same(&before, "after recovery");
}

/// A git that cannot remove its own lock reports success, and only the user may remove that lock.
#[test]
fn recovery_waits_for_lock_that_git_could_not_remove() {
    let sandbox = fixtures::preview_with_commit();
    let before = RepoState::capture(&sandbox);
    let leave_lock = r#""$REAL" "$@"; code=$?
        test -e "$ROOT/once" || { : > "$ROOT/once"; : > "$ROOT/repo/.git/packed-refs.lock"; }
        exit $code"#;
    let text = sandbox
        .output(with_git_wrapper(&sandbox, "update-ref --stdin", leave_lock, &["preview", "--back"]))
        .fails(5);
    assert!(
        text.contains("hint: if no git command is running there: rm '[ROOT]/repo/.git/packed-refs.lock'"),
        "{text}"
    );
    for _ in 0..2 {
        let waiting = sandbox.proq(&["list"]);
        assert!(waiting.stderr.contains("cannot recover the interrupted command"), "{}", waiting.to_text());
    }
    std::fs::remove_file(sandbox.repo.join(".git/packed-refs.lock")).unwrap();
    let recovered = recover(&sandbox);
    assert!(recovered.contains("everything is as it was before"), "{recovered}");
    RepoState::capture(&sandbox).assert_same(&before, "after recovery");
}

/// Promise: concurrency/foreign-locks
#[test]
fn lock_with_other_content_is_kept_and_named() {
    let (sandbox, _, _) = killed_landing();
    let lock = sandbox.repo.join(".git/refs/heads/main.lock");
    let theirs = format!("{}\n", sandbox.git(&["rev-parse", "proq/two"]));
    std::fs::write(&lock, &theirs).unwrap();
    let _ = sandbox.proq(&["list"]).ok();
    assert_eq!(std::fs::read_to_string(&lock).unwrap(), theirs);
    let error = sandbox.proq(&["merge", "one"]).fails(1);
    assert!(error.contains("refs/heads/main.lock"), "{error}");
    std::fs::remove_file(&lock).unwrap();
    let _ = sandbox.proq(&["merge", "one"]).ok();
    recover(&sandbox);
}

/// Promise: concurrency/foreign-locks
#[test]
fn lock_older_than_operation_is_kept() {
    let (sandbox, _, landed_commit) = killed_landing();
    let lock = sandbox.repo.join(".git/refs/heads/main.lock");
    std::fs::write(&lock, format!("{landed_commit}\n")).unwrap();
    let old = SystemTime::now() - Duration::from_hours(1);
    std::fs::File::options().write(true).open(&lock).unwrap().set_modified(old).unwrap();
    let _ = sandbox.proq(&["list"]).ok();
    assert!(lock.exists());
    let error = sandbox.proq(&["merge", "one"]).fails(1);
    assert!(error.contains("refs/heads/main.lock"), "{error}");
}

/// Promise: concurrency/foreign-locks
#[test]
fn foreign_index_lock_is_kept() {
    let sandbox = fixtures::dirty_with_lanes();
    kill_at(&sandbox, "journal.planned", &["merge", "one"]);
    sandbox.write(".git/index.lock", "theirs");
    let _ = sandbox.proq(&["list"]).ok();
    assert_eq!(sandbox.read(".git/index.lock"), "theirs");
    std::fs::remove_file(sandbox.repo.join(".git/index.lock")).unwrap();
    recover(&sandbox);
}

/// The branch has moved by then, so the index has to be installed; the lock that held it is gone.
#[test]
fn index_is_installed_though_its_lock_was_removed() {
    for (scene, by_git) in
        [(fixtures::two_lanes as fn() -> Sandbox, false), (fixtures::dirty_with_lanes, true)]
    {
        let sandbox = scene();
        let (staged, changed) = (sandbox.git(&["diff", "--cached"]), sandbox.git(&["diff"]));
        kill_at(&sandbox, "transition.moved", &["merge", "one"]);
        let git_index_count = sandbox.sh("find .git/proq/work -name index | wc -l | tr -d ' '");
        assert_eq!(git_index_count, if by_git { "1" } else { "0" });
        std::fs::remove_file(sandbox.repo.join(".git/index.lock")).unwrap();
        recover(&sandbox);
        assert_eq!(sandbox.git(&["rev-parse", "main:"]), sandbox.git(&["rev-parse", "proq/one:"]));
        assert_eq!(sandbox.git(&["diff", "--cached"]), staged, "by git: {by_git}");
        assert_eq!(sandbox.git(&["diff"]), changed, "by git: {by_git}");
    }
}

/// Freed refs belong to no operation; the folder of the process identifies the locks of its git.
/// Promise: concurrency/locks-of-killed-git
#[test]
fn locks_of_git_killed_while_freeing_refs_are_removed() {
    // A packed ref has no folder of its own before git locks it.
    let locked = "mkdir -p \"$GIT/refs/proq/op\"; : >\"$GIT/refs/proq/op/20200101-000000-1-1-0.lock\"";
    for (only_git, first) in [(true, ":"), (false, ":"), (true, locked), (false, locked)] {
        let sandbox = fixtures::dirty_with_lanes();
        sandbox.git(&["update-ref", "refs/proq/op/20200101-000000-1-1-0", "HEAD"]);
        sandbox.sh("git pack-refs --all");
        let git = sandbox.repo.join(".git").display().to_string();
        let act = format!(
            "GIT='{git}'; {first}; : >\"$GIT/packed-refs.lock\"; cp \"$GIT/packed-refs\" \"$GIT/packed-refs.new\""
        );
        let act =
            if only_git { format!("{act}; kill -9 $$") } else { format!("{act}; kill -9 $PPID; exit 0") };
        let out = sandbox.output(with_git_wrapper(&sandbox, " -d refs/proq/op/", &act, &["gc"]));
        assert_eq!(out.code, if only_git { 1 } else { 137 }, "{}", out.to_text());
        recover(&sandbox);
        let _ = sandbox.proq(&["gc"]).ok();
        assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/op/"]), "");
    }
}

/// Promise: concurrency/locks-of-killed-git
#[test]
fn lock_of_snapshot_ref_being_freed_is_removed() {
    let sandbox = fixtures::dirty_with_lanes();
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.sh("git pack-refs --all");
    let git = sandbox.repo.join(".git").display().to_string();
    let act = format!(
        "mkdir -p '{git}/refs/proq/snap'; : >\"{git}/$(echo \"$*\" | grep -o 'refs/proq/snap/[^ ]*').lock\"; : >'{git}/packed-refs.lock'; kill -9 $PPID; exit 0"
    );
    let run_gc = |act: &str| {
        let mut command = with_git_wrapper(&sandbox, " -d refs/proq/snap/", act, &["gc"]);
        command.env("PROQ_OP_KEEP", "0").env("PROQ_TEST_NOW", "2026-01-02T03:09:05Z");
        sandbox.output(command)
    };
    let out = run_gc(&act);
    assert_eq!(out.code, 137, "{}", out.to_text());
    assert_ne!(sandbox.sh("find .git -path '*/proq/locks' -prune -o -name '*.lock' -print"), "");
    let _ = sandbox.proq(&["list"]).ok();
    assert_eq!(sandbox.sh("find .git -path '*/proq/locks' -prune -o -name '*.lock' -print"), "");
    let _ = run_gc("exec \"$REAL\" \"$@\"").ok();
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/snap/"]), "");
}

#[test]
fn foreign_lock_on_ref_being_freed_is_kept() {
    let sandbox = fixtures::dirty_with_lanes();
    let name = "refs/proq/op/20200101-000000-1-1-0";
    sandbox.git(&["update-ref", name, "HEAD"]);
    let act = "kill -9 $PPID; exit 0";
    let out = sandbox.output(with_git_wrapper(&sandbox, " -d refs/proq/op/", act, &["gc"]));
    assert_eq!(out.code, 137, "{}", out.to_text());
    // The other git writes the commit the ref is to have.
    let (lock, theirs) = (format!(".git/{name}.lock"), sandbox.git(&["rev-parse", "HEAD"]));
    sandbox.write(&lock, &theirs);
    let _ = sandbox.proq(&["list"]).ok();
    assert_eq!(sandbox.read(&lock), theirs);
    let error = sandbox.proq(&["gc"]).fails(1);
    assert!(error.contains(&lock) && !error.contains("delete it: wait"), "{error}");
}

/// Promise: concurrency/locks-of-killed-git
#[test]
fn head_lock_of_killed_branch_update_is_removed() {
    let sandbox = fixtures::preview_over_dirty();
    // Only git deletes a packed ref.
    sandbox.sh("git pack-refs --all");
    let git = sandbox.repo.join(".git").display().to_string();
    let act = format!(": >'{git}/HEAD.lock'; kill -9 $$");
    let out = sandbox.output(with_git_wrapper(&sandbox, " -d refs/heads/", &act, &["preview", "--back"]));
    assert_ne!(out.code, 0, "{}", out.to_text());
    recover(&sandbox);
    let _ = sandbox.proq(&["preview", "--back"]).ok();
}

/// A worktree registration to which git has not given a commit yet is an error to `git fsck`, whichever
/// process was killed.
#[test]
fn half_added_check_worktree_is_removed() {
    let none = "rm \"$admin/HEAD\"";
    let zeros = "echo 0000000000000000000000000000000000000000 >\"$admin/HEAD\"";
    for (head, kill_target) in [(none, "$PPID; exit 0"), (zeros, "$PPID; exit 0"), (none, "$$")] {
        let sandbox = fixtures::dirty_with_lanes();
        let before = RepoState::capture(&sandbox);
        let admin = sandbox.repo.join(".git/worktrees/git-proq-checks-1");
        let act = format!(
            "\"$REAL\" \"$@\"; admin='{}'; {head}; echo initializing >\"$admin/locked\"; kill -9 {kill_target}",
            admin.display()
        );
        let args = ["merge", "one", "--verify", "true"];
        let out = sandbox.output(with_git_wrapper(&sandbox, "worktree add", &act, &args));
        assert_eq!(out.code, if kill_target == "$$" { 1 } else { 137 }, "{}", out.to_text());
        recover(&sandbox);
        assert!(!admin.exists());
        RepoState::capture(&sandbox).assert_same(&before, "after recovery");
        let _ = sandbox.proq(&args).ok();
    }
}

/// An operation is not abandoned because another git runs: it stays open for as many commands as that takes.
#[test]
fn operation_stays_open_until_foreign_lock_is_gone() {
    for at in ["transition.staged", "transition.moved"] {
        for lock in ["HEAD.lock", "packed-refs.lock", "refs/heads/proq/one-preview.lock"] {
            for last_command in [&["list"][..], &["doctor", "--fix"]] {
                let sandbox = fixtures::dirty_with_lanes();
                let before = RepoState::capture(&sandbox);
                kill_at(&sandbox, at, &["preview", "one"]);
                let lock = sandbox.repo.join(".git").join(lock);
                // A git that holds such a lock on request ends with its parent and removes it. Before 2.46
                // git is not used for HEAD's lock, which then stays: the test removes it, and creates a lock
                // of another process.
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
                let _ = sandbox.proq(last_command).ok();
                recover(&sandbox);
                RepoState::capture(&sandbox).assert_same(&before, &format!("{at} {}", lock.display()));
            }
        }
    }
}

#[test]
fn lock_of_another_git_is_named() {
    let sandbox = fixtures::dirty_with_lanes();
    let before = RepoState::capture(&sandbox);
    let lock = sandbox.repo.join(".git/HEAD.lock");
    std::fs::write(&lock, "theirs").unwrap();
    let error = sandbox.proq(&["preview", "one"]).fails(5);
    assert!(
        error.contains("another git command holds ")
            && error.contains("if no git command is running there: rm "),
        "{error}"
    );
    std::fs::remove_file(&lock).unwrap();
    recover(&sandbox);
    RepoState::capture(&sandbox).assert_same(&before, "after it was refused");
}
