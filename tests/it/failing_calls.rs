//! Owns the tests of single calls that fail inside a command, each of which was once passed over in silence.

use super::recovery::kit::with_git;
use super::support::{Image, Output, Sandbox};

/// Runs a command with a script in place of git's calls whose arguments hold `moment`; it finds the real one as `$REAL`.
fn at(sandbox: &Sandbox, moment: &str, script: &str, args: &[&str]) -> Output {
    sandbox.output(with_git(sandbox, moment, script, args))
}

#[test]
fn a_file_that_git_could_not_remove_is_removed_with_its_folder() {
    let script = "$REAL \"$@\" || exit; mkdir -p deep; ln \"$ROOT/second\" deep/lane.txt; : > \"$ROOT/happened\"; exit 0";
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "mkdir deep; echo lane > deep/lane.txt");
    let before = Image::of(&sandbox, &sandbox.repo);
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("ln deep/lane.txt \"$ROOT/second\"");
    let _ = at(&sandbox, "read-tree -m -u", script, &["preview", "--back"]).ok();
    assert!(sandbox.root().join("happened").exists());
    assert!(!sandbox.repo.join("deep").exists());
    assert_eq!(before.files, Image::of(&sandbox, &sandbox.repo).files);
}

#[test]
fn a_folder_that_git_could_not_remove_is_removed() {
    let script = "$REAL \"$@\" || exit; mkdir -p deep/er; : > \"$ROOT/happened\"; exit 0";
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "mkdir -p deep/er; echo lane > deep/er/lane.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = at(&sandbox, "read-tree -m -u", script, &["preview", "--back"]).ok();
    assert!(sandbox.root().join("happened").exists());
    assert!(!sandbox.repo.join("deep").exists());
}

#[test]
fn a_file_that_somebody_puts_in_the_place_of_a_removed_one_stays() {
    let script = "$REAL \"$@\" || exit; mkdir -p deep; echo mine > deep/lane.txt; exit 0";
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "mkdir deep; echo lane > deep/lane.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    let _ = at(&sandbox, "read-tree -m -u", script, &["preview", "--back"]).ok();
    assert_eq!(sandbox.read("deep/lane.txt"), "mine\n");
}

#[test]
fn commits_made_in_a_preview_reach_their_lane_when_the_first_try_fails() {
    let script = "case \"$PWD\" in */.proq-worktrees/one) [ -e \"$ROOT/tried\" ] || { : > \"$ROOT/tried\"; \
         echo 'fatal: input/output error' >&2; exit 128; };; esac";
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo lane > lane.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo fix > fix.txt; git add fix.txt; git commit -qm fix");
    let made = sandbox.git(&["rev-parse", "HEAD"]);
    let _ = at(&sandbox, "read-tree -m -u", script, &["preview", "--back"]).ok();
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
    let script = "case \"$PWD\" in */.proq-worktrees/one) $REAL \"$@\"; rc=$?; cd \"$($REAL rev-parse --git-dir)\"; \
         mv index ../../was; mkdir -p index/x; exit $rc;; esac";
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo lane > lane.txt");
    let _ = sandbox.proq(&["preview", "one"]).ok();
    sandbox.sh("echo fix > fix.txt; git add fix.txt; git commit -qm fix; echo edit > a.txt");
    let before = (Image::of(&sandbox, &sandbox.repo), sandbox.git(&["rev-parse", "proq/one"]));
    let text = at(&sandbox, "update-ref --stdin", script, &["preview", "--back"]).fails(1);
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
    let script = "$REAL \"$@\" | while read -r line; do \
         case $line in commit*) echo 'fatal: no room for the log';; *) echo \"$line\";; esac; done; exit 128";
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo lane > lane.txt");
    sandbox.sh("echo mine > a.txt");
    let before = Image::of(&sandbox, &sandbox.repo);
    let out = at(&sandbox, "update-ref --stdin", script, &["preview", "one"]);
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
fn a_lock_that_a_git_left_which_was_killed_after_it_had_moved_the_branch_goes() {
    // The last that git does is to lock a HEAD that names the branch, for its log.
    let script = "n=0; $REAL \"$@\" | while read -r line; do \
         case $line in commit*) n=$((n + 1));; esac; \
         case $n$line in 2commit*) : > .git/HEAD.lock; echo killed;; *) echo \"$line\";; esac; done; exit 137";
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo lane > lane.txt");
    let out = at(&sandbox, "update-ref --stdin", script, &["merge", "one"]);
    assert!(out.stderr.contains("warning: "), "{}", out.shown());
    let _ = out.ok();
    assert_eq!(sandbox.read("lane.txt"), "lane\n");
    assert!(!sandbox.repo.join(".git/HEAD.lock").exists());
    sandbox.sh("echo more > a.txt; git commit -qam more");
}

#[test]
fn a_git_that_is_killed_while_it_deletes_the_ref_of_a_step_leaves_nothing() {
    let script = "n=0; $REAL \"$@\" | while read -r line; do echo \"$line\"; \
         case $line in commit*) n=$((n + 1));; esac; \
         case $n$line in 2commit*) : > .git/packed-refs.lock; break;; esac; done; exit 137";
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo lane > lane.txt");
    let _ = at(&sandbox, "update-ref --stdin", script, &["merge", "--no-cleanup", "one"]).ok();
    assert_eq!(sandbox.read("lane.txt"), "lane\n");
    assert!(!sandbox.repo.join(".git/packed-refs.lock").exists());
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/op"]), "");
}

#[test]
fn a_landing_goes_on_where_a_hook_refuses_the_ref_of_its_step() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo lane > lane.txt");
    sandbox.sh("printf '#!/bin/sh\\n! grep -q refs/proq/\\n' >.git/hooks/reference-transaction; chmod +x .git/hooks/reference-transaction");
    let _ = sandbox.proq(&["merge", "--no-cleanup", "one"]).ok();
    assert_eq!(sandbox.read("lane.txt"), "lane\n");
}

#[test]
fn a_ref_that_git_made_before_it_failed_is_taken_back() {
    let script = "$REAL \"$@\"; echo 'fatal: input/output error' >&2; exit 128";
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo lane > lane.txt");
    sandbox.sh("echo mine > a.txt");
    let state = || (Image::of(&sandbox, &sandbox.repo), sandbox.git(&["for-each-ref", "refs/heads"]));
    let before = state();
    let _ = at(&sandbox, "update-ref --no-deref", script, &["preview", "one"]).fails(1);
    assert_eq!(before, state());
    let _ = sandbox.proq(&["preview", "one"]).ok();
}

/// Attributes that a merge goes by: where not all of them could be written down, the next lane is not merged by those that were.
#[test]
fn a_lane_is_not_merged_by_half_of_the_attributes() {
    let script =
        "[ -e \"$ROOT/tried\" ] || { : > \"$ROOT/tried\"; echo 'fatal: out of memory' >&2; exit 128; }";
    for (attributes, wanted) in [("f -merge", "conflict"), ("f merge=union", "landed")] {
        let sandbox = Sandbox::new();
        sandbox.sh("git config merge.renormalize true; mkdir d; seq 30 > d/f");
        sandbox.write("d/.gitattributes", &format!("{attributes}\n"));
        sandbox.commit_all("base");
        for n in ["1", "2", "3"] {
            sandbox.lane_of(&format!("l{n}"), &format!("sed -i '25s/.*/lane{n}/' d/f"));
        }
        sandbox.sh("sed -i '25s/.*/ours/' d/f; git commit -qam ours");
        let out = at(&sandbox, "cat-file blob", script, &["merge", "--all", "--no-cleanup", "--json"]);
        let answer: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
        let lanes = answer["lanes"].as_array().unwrap();
        let of = |n: usize| (lanes[n]["lane"].as_str().unwrap(), lanes[n]["result"].as_str().unwrap());
        assert_eq!(of(0), ("l1", "refused"), "{answer:#}");
        assert_eq!((of(1), of(2)), (("l2", wanted), ("l3", wanted)), "{attributes}: {answer:#}");
        sandbox.sh("rm ../tried");
    }
}
