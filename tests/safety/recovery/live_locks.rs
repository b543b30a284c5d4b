//! Locks that a living process may hold while a killed operation is recovered: they stay until it ends.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::time::Instant;

use proq_test_kit::faults::{kill_at, recover};
use proq_test_kit::waiting::{KilledOnDrop, WAIT_LIMIT, wait_until};
use proq_test_kit::{Output, RepoState, Sandbox, fixtures};

/// Returns a landing that was killed while its refs were locked, and the state before it. A packed branch `extra`
/// was created since.
fn killed_landing_with_packed_branch() -> (Sandbox, RepoState) {
    let sandbox = fixtures::dirty_with_lanes();
    // Only git knows what this setting means for new files, so git has to lock and move the refs.
    sandbox.git(&["config", "core.sharedRepository", "umask"]);
    let before = RepoState::capture(&sandbox);
    sandbox.git(&["branch", "extra", "main"]);
    sandbox.git(&["pack-refs", "--all"]);
    kill_at(&sandbox, "transition.staged", &["merge", "one"]);
    // The git of the killed program removes its locks by name as soon as its input ends.
    let locks = ["HEAD.lock", "refs/heads/main.lock", "packed-refs.lock"];
    wait_until("git to let go of the refs", || {
        !locks.iter().any(|lock| sandbox.repo.join(".git").join(lock).exists())
    });
    (sandbox, before)
}

/// Starts a git in a repository that holds the lock on packed-refs, to delete the branch `extra`.
fn git_that_deletes_extra(sandbox: &Sandbox, dir: &std::path::Path) -> KilledOnDrop {
    let mut command = sandbox.command("git", dir);
    command.args(["update-ref", "--stdin"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut git = KilledOnDrop(command.spawn().unwrap());
    request(&mut git.0, "start\ndelete refs/heads/extra\nprepare\n");
    let mut answers = BufReader::new(git.0.stdout.as_mut().unwrap()).lines();
    assert_eq!(answers.next().unwrap().unwrap(), "start: ok");
    assert_eq!(answers.next().unwrap().unwrap(), "prepare: ok");
    git
}

fn request(git: &mut Child, lines: &str) {
    let mut input = git.stdin.as_ref().unwrap();
    input.write_all(lines.as_bytes()).unwrap();
}

/// Runs a command that does not wait for locks.
fn proq_without_wait(sandbox: &Sandbox, args: &[&str]) -> Output {
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    command.env("PROQ_LOCK_TIMEOUT", "0");
    sandbox.output(command)
}

/// Promise: concurrency/foreign-locks
#[test]
fn lock_of_living_git_is_kept() {
    let (sandbox, before) = killed_landing_with_packed_branch();
    let lock = sandbox.repo.join(".git/packed-refs.lock");
    let mut git = git_that_deletes_extra(&sandbox, &sandbox.repo);
    assert!(lock.exists());
    let started = Instant::now();
    let mut list = sandbox.proq_command(&sandbox.repo, &["list"]);
    list.env("PROQ_LOCK_TIMEOUT", "600");
    let listed = sandbox.output(list);
    assert!(started.elapsed() < WAIT_LIMIT, "a command that only reads waited {:?}", started.elapsed());
    assert_eq!(listed.code, 0, "{}", listed.to_text());
    assert!(listed.stderr.contains("cannot recover the interrupted command"), "{}", listed.stderr);
    let holder = format!("git (process {}) is running and may hold", git.0.id());
    assert!(listed.stderr.contains(&holder), "{}", listed.stderr);
    let error = proq_without_wait(&sandbox, &["merge", "one"]).fails(5);
    assert!(error.contains("is running and may hold"), "{error}");
    assert!(error.contains("hint: wait until it has ended, then try again"), "{error}");
    assert!(lock.exists());
    request(&mut git.0, "commit\n");
    drop(git.0.stdin.take());
    assert_eq!(git.exit_code(), Some(0));
    assert_eq!(sandbox.git(&["for-each-ref", "refs/heads/extra"]), "");
    recover(&sandbox);
    RepoState::capture(&sandbox).assert_same(&before, "after recovery");
}

/// Promise: concurrency/foreign-locks
#[test]
fn lock_that_another_program_has_open_is_kept() {
    let (sandbox, _) = killed_landing_with_packed_branch();
    let lock = sandbox.repo.join(".git/packed-refs.lock");
    let mut command = sandbox.command("sh", &sandbox.root());
    command.args(["-c", "exec 9>repo/.git/packed-refs.lock; echo held; read end"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = KilledOnDrop(command.spawn().unwrap());
    let mut answers = BufReader::new(program.0.stdout.as_mut().unwrap()).lines();
    assert_eq!(answers.next().unwrap().unwrap(), "held");
    let error = proq_without_wait(&sandbox, &["merge", "one"]).fails(5);
    assert!(lock.exists());
    let _ = sandbox.follow_hint(&error, "if it does not use that lock: ").ok();
    assert!(!lock.exists());
    recover(&sandbox);
}

/// Neither a git in another repository nor one that only reads delays the recovery.
/// Promise: concurrency/locks-of-killed-git
#[test]
fn lock_is_removed_beside_unrelated_gits() {
    let (sandbox, _) = killed_landing_with_packed_branch();
    sandbox.sh("git clone -q . other && git -C other branch extra && git -C other pack-refs --all");
    let mut reading = sandbox.command("git", &sandbox.repo);
    reading.args(["cat-file", "--batch"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let _reading = KilledOnDrop(reading.spawn().unwrap());
    let _other = git_that_deletes_extra(&sandbox, &sandbox.repo.join("other"));
    sandbox.write(".git/packed-refs.lock", "");
    let listed = proq_without_wait(&sandbox, &["list"]);
    assert!(!listed.stderr.contains("cannot recover"), "{}", listed.to_text());
    assert!(!sandbox.repo.join(".git/packed-refs.lock").exists());
}

/// A git has locked no ref as long as it waits for the editor of a message or of a rebase.
/// Promise: concurrency/locks-of-killed-git
#[test]
fn lock_is_removed_beside_git_in_its_editor() {
    for args in [["commit", "--amend"], ["rebase", "--interactive"]] {
        let (sandbox, _) = killed_landing_with_packed_branch();
        let lane = sandbox.lane_path("two");
        let mut command = sandbox.command("git", &lane);
        command.args(args).args((args[0] == "rebase").then_some("main"));
        let editor = "echo open; read end; :";
        command.env("GIT_EDITOR", editor).env("GIT_SEQUENCE_EDITOR", editor);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut editing = KilledOnDrop(command.spawn().unwrap());
        let mut lines = BufReader::new(editing.0.stdout.as_mut().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "open", "{args:?}");
        sandbox.write(".git/packed-refs.lock", "");
        let listed = proq_without_wait(&sandbox, &["list"]);
        assert!(!listed.stderr.contains("cannot recover"), "{args:?}: {}", listed.to_text());
        assert!(!sandbox.repo.join(".git/packed-refs.lock").exists(), "{args:?}");
    }
}
