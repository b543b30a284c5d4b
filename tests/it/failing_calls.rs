//! Owns the tests of single calls that fail inside a command, each of which was once passed over in silence.

use super::support::{Image, Output, Sandbox};

/// A git in front of the real one: where its arguments hold `$AT`, a script runs instead, which finds the real one as
/// `$GIT`.
fn with_git(script: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let mut which = sandbox.command("sh", &sandbox.root());
    which.args(["-c", "command -v git"]);
    let git = sandbox.output(which).ok();
    let git = git.trim();
    sandbox.program(
        "git",
        &format!(
            "GIT={git}\n\
             if [ -n \"$AT\" ]; then case \" $* \" in *\" $AT \"*) {script};; esac; fi\n\
             exec $GIT \"$@\""
        ),
    );
    sandbox
}

fn at(sandbox: &Sandbox, moment: &str, args: &[&str]) -> Output {
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    command.env("AT", moment);
    sandbox.output(command)
}

#[test]
fn a_file_that_git_could_not_remove_is_removed_with_its_folder() {
    let sandbox = with_git(
        "$GIT \"$@\" || exit; mkdir -p deep; ln \"$ROOT/second\" deep/lane.txt; : > \"$ROOT/happened\"; exit 0",
    );
    sandbox.lane_of("one", "mkdir deep; echo lane > deep/lane.txt");
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("ln deep/lane.txt \"$ROOT/second\"");
    let _ = at(&sandbox, "read-tree -m -u", &["preview", "--back"]).ok();
    assert!(sandbox.root().join("happened").exists());
    assert!(!sandbox.repo.join("deep").exists());
    assert_eq!(before.files, Image::of(&sandbox, &sandbox.repo).files);
}

#[test]
fn a_folder_that_git_could_not_remove_is_removed() {
    let sandbox = with_git("$GIT \"$@\" || exit; mkdir -p deep/er; : > \"$ROOT/happened\"; exit 0");
    sandbox.lane_of("one", "mkdir -p deep/er; echo lane > deep/er/lane.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = at(&sandbox, "read-tree -m -u", &["preview", "--back"]).ok();
    assert!(sandbox.root().join("happened").exists());
    assert!(!sandbox.repo.join("deep").exists());
}

#[test]
fn a_file_that_somebody_puts_in_the_place_of_a_removed_one_stays() {
    let sandbox = with_git("$GIT \"$@\" || exit; mkdir -p deep; echo mine > deep/lane.txt; exit 0");
    sandbox.lane_of("one", "mkdir deep; echo lane > deep/lane.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = at(&sandbox, "read-tree -m -u", &["preview", "--back"]).ok();
    assert_eq!(sandbox.read("deep/lane.txt"), "mine\n");
}

#[test]
fn commits_made_in_a_preview_reach_their_lane_when_the_first_try_fails() {
    let sandbox = with_git(
        "case \"$PWD\" in */.proq-worktrees/one) [ -e \"$ROOT/tried\" ] || { : > \"$ROOT/tried\"; \
         echo 'fatal: input/output error' >&2; exit 128; };; esac",
    );
    sandbox.lane_of("one", "echo lane > lane.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo fix > fix.txt; git add fix.txt; git commit -qm fix");
    let made = sandbox.git(&["rev-parse", "HEAD"]);
    let _ = at(&sandbox, "read-tree -m -u", &["preview", "--back"]).ok();
    assert!(sandbox.root().join("tried").exists());
    assert_eq!(sandbox.git(&["rev-parse", "proq/one"]), made);
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/saved"]), "");
}

#[test]
fn a_cleanup_that_could_not_do_its_work_says_so_in_its_exit_code() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo lane > lane.txt");
    let _ = sandbox.proq(&["merge", "--no-cleanup", "one"]).ok();
    sandbox.write(".git/proq/history", "in the way\n");
    let text = sandbox.proq(&["cleanup"]).fails(1);
    assert!(text.contains("history"), "{text}");
    assert_eq!(sandbox.row("one")["state"], "landed");
    sandbox.sh("rm .git/proq/history");
    let _ = sandbox.proq(&["cleanup"]).ok();
}

#[test]
fn after_a_step_that_is_stuck_nothing_is_begun_and_the_next_command_puts_it_right() {
    // A folder where the lane's index is to go, when its branch has moved already.
    let sandbox = with_git(
        "case \"$PWD\" in */.proq-worktrees/one) $GIT \"$@\"; rc=$?; cd \"$($GIT rev-parse --git-dir)\"; \
         mv index ../../was; mkdir -p index/x; exit $rc;; esac",
    );
    sandbox.lane_of("one", "echo lane > lane.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo fix > fix.txt; git add fix.txt; git commit -qm fix; echo edit > a.txt");
    let before = (Image::of(&sandbox, &sandbox.repo), sandbox.git(&["rev-parse", "proq/one"]));
    let text = at(&sandbox, "update-ref --stdin", &["preview", "--back"]).fails(1);
    assert!(text.contains("could not all be taken back; the next command tries again"), "{text}");
    assert!(text.contains("fix.txt") || text.contains("index"), "{text}");
    sandbox.sh("cd .git/worktrees/one; rm -r index; mv ../../was index");
    let said = sandbox.proq(&["list"]);
    assert!(said.stderr.contains("everything is as it was before; run it again"), "{}", said.shown());
    assert_eq!(before, (Image::of(&sandbox, &sandbox.repo), sandbox.git(&["rev-parse", "proq/one"])));
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(sandbox.git(&["log", "-1", "--format=%s", "proq/one"]), "fix");
    sandbox.assert_healthy();
}

#[test]
fn a_move_that_git_calls_failed_and_that_has_happened_stands() {
    let sandbox = with_git(
        "$GIT \"$@\" | while read -r line; do \
         case $line in commit*) echo 'fatal: no room for the log';; *) echo \"$line\";; esac; done; exit 128",
    );
    sandbox.lane_of("one", "echo lane > lane.txt");
    sandbox.sh("echo mine > a.txt");
    let before = Image::of(&sandbox, &sandbox.repo);
    let out = at(&sandbox, "update-ref --stdin", &["preview", "one"]);
    if sandbox.git_version() >= (2, 46) {
        // Older ones do not switch HEAD themselves.
        assert!(out.stderr.contains("warning: "), "{}", out.shown());
    }
    let _ = out.ok();
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    assert_eq!(sandbox.read("lane.txt"), "lane\n");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    assert_eq!(before, Image::of(&sandbox, &sandbox.repo));
}

#[test]
fn a_ref_that_git_made_before_it_failed_is_taken_back() {
    let sandbox = with_git("$GIT \"$@\"; echo 'fatal: input/output error' >&2; exit 128");
    sandbox.lane_of("one", "echo lane > lane.txt");
    sandbox.sh("echo mine > a.txt");
    let state = || (Image::of(&sandbox, &sandbox.repo), sandbox.git(&["for-each-ref", "refs/heads"]));
    let before = state();
    let _ = at(&sandbox, "update-ref --no-deref", &["preview", "one"]).fails(1);
    assert_eq!(before, state());
    let _ = sandbox.proq(&["preview", "one"]).ok();
}
