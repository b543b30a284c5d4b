//! Hints about permissions and accounts, followed by the user whom they bind.

use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

use proq_test_kit::runs::{kill_process, kill_supervisor};
use proq_test_kit::waiting::KilledOnDrop;
use proq_test_kit::{Output, Sandbox};

use crate::scenes::play_as_ordinary_user;

#[test]
fn hints_about_unreadable_files_work() {
    play_as_ordinary_user(&[
        [
            "lane x",
            "chmod 0 .proq-worktrees/x/new-x.txt; git proq diff x",
            "make them readable",
            "",
            "git proq diff x | grep -q '^+x'",
        ],
        [
            "lane x; echo keep > .proq-worktrees/x/secret",
            "chmod 0 .proq-worktrees/x/secret; git proq merge x",
            "make it readable",
            "",
            "git -c proq.merge.uncommitted=commit proq merge x && grep -q keep secret",
        ],
        [
            "lane x",
            "chmod 0 .git/proq/lanes/x; git proq show x",
            "make it readable",
            "",
            "git proq merge x && test -f new-x.txt",
        ],
    ]);
}

#[test]
fn hints_about_unwritable_folders_work() {
    play_as_ordinary_user(&[
        [
            "lane x",
            "chmod 555 .git/refs/heads; git proq merge x",
            "make it writable",
            "",
            "git proq merge x && test -f new-x.txt",
        ],
        [
            "mkdir d; echo 1 > d/f; git add d; git commit -qm d; git proq spawn -q --empty -n x; \
             (cd .proq-worktrees/x; echo 2 > d/f; git commit -qam 2)",
            "chmod 555 d; git proq preview x",
            "make it writable",
            "",
            "git proq preview x && grep -q 2 d/f",
        ],
        [
            "lane x",
            "chmod 555 .git/proq/lanes; git proq spawn --empty -n y",
            "git-proq stores its data there",
            "",
            "git proq spawn --empty -n y && test -f .proq-worktrees/y/a.txt",
        ],
    ]);
}

#[test]
fn doctor_names_the_cause_of_an_unreadable_store_once() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo 1 > one");
    sandbox.give_to_ordinary_user();
    sandbox.sh("chmod 0 .git/proq");
    let out = sandbox.proq(&["doctor"]);
    let problems: Vec<&str> = out.stdout.lines().filter(|line| !line.contains("; checked ")).collect();
    let wanted = ["error: cannot read [ROOT]/repo/.git/proq (permission denied)"];
    assert_eq!(problems[..1], wanted, "{}", out.to_text());
    assert!(problems.len() == 2 && problems[1].starts_with("hint: make it readable: "), "{}", out.to_text());
    let _ = sandbox.follow_hint(&out.stdout, "make it readable").ok();
    let _ = sandbox.proq(&["doctor"]).ok();
}

#[test]
fn doctor_checks_git_despite_an_unreadable_store() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("x", "echo 1 > one");
    sandbox.give_to_ordinary_user();
    let tip = sandbox.git(&["rev-parse", "proq/x"]);
    sandbox.git(&["config", "gc.pruneExpire", "now"]);
    sandbox.git(&["config", "proq.nonsense", "1"]);
    sandbox.sh(&format!("rm -f .git/objects/{}/{}; chmod 0 .git/proq", &tip[..2], &tip[2..]));
    let out = sandbox.proq(&["doctor"]);
    for wanted in [
        "error: cannot read [ROOT]/repo/.git/proq (permission denied)",
        "error: refs/heads/proq/x names commit",
        "warning: gc.pruneExpire is 'now'",
        "warning: setting nonsense (from git config) is unknown",
    ] {
        assert!(out.stdout.contains(wanted), "{wanted}: {}", out.to_text());
    }
    assert!(!out.stdout.contains("no lane") && out.code == 1, "{}", out.to_text());
}

/// Returns a sandbox of an ordinary user on a machine where the test can also be root, and so another user.
fn sandbox_beside_root() -> Sandbox {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.sh("id -u"), "0", "this test needs root");
    sandbox.lane_with_commit("x", "echo 1 > one");
    // The real one makes the user root, which this test is as its own account.
    sandbox.program_verbatim("sudo", "exec \"$@\"");
    sandbox.give_to_ordinary_user();
    sandbox
}

/// Follows a hint with `sudo` as the owner of the sandbox.
fn follow_with_sudo(sandbox: &Sandbox, printed: &str, purpose: &str) -> Output {
    assert!(printed.contains(&format!("hint: {purpose}: sudo ")), "{printed}");
    let wanted = &sandbox.hint_commands(printed)[0];
    let owner = sandbox.repo.metadata().unwrap().uid().to_string();
    sandbox.as_own_account(|| {
        let mut command = sandbox.command("sh", &sandbox.repo);
        command.args(["-c", wanted]).env("USER", owner);
        sandbox.output(command)
    })
}

#[test]
#[ignore = "needs root"]
fn hint_about_a_folder_of_root_makes_it_yours() {
    let sandbox = sandbox_beside_root();
    sandbox.as_own_account(|| sandbox.sh("chown -R 0:0 .git/proq"));
    let problems = sandbox.proq(&["doctor"]).stdout;
    assert_eq!(problems.matches("error: ").count(), 1, "{problems}");
    assert!(problems.contains("cannot read [ROOT]/repo/.git/proq: it belongs to root"), "{problems}");
    let refused = sandbox.proq(&["spawn", "--empty", "-n", "y"]).fails(1);
    assert!(refused.contains(": [ROOT]/repo/.git/proq belongs to root"), "{refused}");
    let _ = follow_with_sudo(&sandbox, &refused, "make the folder yours").ok();
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "y"]).ok();
    assert!(sandbox.lane_path("y").join("a.txt").exists());
}

/// An account without an entry in the list of users, as in some containers, has no home folder but `HOME`.
#[test]
#[ignore = "needs root"]
fn hint_about_a_missing_home_sets_a_folder_for_checks() {
    let sandbox = sandbox_beside_root();
    let merge = || {
        let mut command = sandbox.proq_command(&sandbox.repo, &["merge", "x", "--verify", "test -f one"]);
        command.env_remove("HOME");
        sandbox.output(command)
    };
    let refused = merge().fails(1);
    let wanted = &sandbox.hint_commands(&refused)[0];
    assert!(refused.contains("hint: set their folder: "), "{refused}");
    let mut follow = sandbox.command("sh", &sandbox.repo);
    follow.args(["-c", wanted]).env("TMPDIR", sandbox.root());
    let _ = sandbox.output(follow).ok();
    let _ = merge().ok();
    assert_eq!(sandbox.read("one"), "1\n");
    let made = sandbox.sh("ls -d \"$(git config proq.verify.location)\"/*");
    assert!(made.starts_with("[ROOT]/tmp.") && made.contains("/repo-"), "{made}");
}

/// What an agent started with `sudo` belongs to root: its open files are hidden from the user.
#[test]
#[ignore = "needs root"]
fn hint_about_an_unknown_process_finds_it() {
    let sandbox = sandbox_beside_root();
    sandbox.pipe("up");
    sandbox.start_lane("y", "echo $$ > \"$ROOT/up\"; exec sleep 600");
    let agent = sandbox.read_pipe("up");
    kill_supervisor(&sandbox, "y");
    kill_process(&sandbox, agent.trim());
    // The part of lsof that the hint needs, for machines that lack it.
    sandbox.program_verbatim(
        "lsof",
        "for fd in /proc/[0-9]*/fd/*; do\n\
         if [ \"$(readlink \"$fd\")\" = \"$1\" ]; then pid=${fd#/proc/}; echo \"PID ${pid%%/*}\"; fi\ndone",
    );
    let lock = std::fs::File::open(sandbox.lane_lock("y", "alive.lock")).unwrap();
    lock.lock().unwrap();
    let mut sleep = sandbox.as_own_account(|| sandbox.command("sleep", &sandbox.root()));
    let left = KilledOnDrop(sleep.arg("600").stdin(Stdio::from(lock)).spawn().unwrap());
    drop(sleep);
    let refused = sandbox.proq(&["stop", "y"]).fails(1);
    let found = follow_with_sudo(&sandbox, &refused, "find it by the file that it has open").ok();
    assert!(found.contains(&format!("PID {}\n", left.0.id())), "{found}");
    drop(left);
    let ended = sandbox.proq(&["stop", "y"]).fails(1);
    assert!(ended.contains("it has no running agent"), "{ended}");
    assert_eq!(sandbox.row("y")["state"], "failed");
}
