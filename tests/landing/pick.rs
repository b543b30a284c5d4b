//! Tests of `git proq pick`: one attempt lands, and the others are saved and discarded, but never before the
//! landing.

use std::process::Stdio;

use proq_test_kit::Sandbox;

/// Creates three attempts; the last one has an uncommitted file too.
fn three_attempts() -> Sandbox {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "--count", "3", "-n", "pay"]).ok();
    for n in 1..=3 {
        sandbox.commit_in_lane(&format!("pay-{n}"), &format!("echo {n} > pay.txt"));
    }
    sandbox.write_in(&sandbox.lane_path("pay-3"), "left.txt", "left\n");
    sandbox
}

/// Returns the names of all lanes.
fn lane_names(sandbox: &Sandbox) -> Vec<String> {
    let answer = sandbox.proq(&["list", "--json"]).json();
    answer["lanes"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

/// Promise: concurrency/pick
#[test]
fn lands_one_and_discards_the_others_after_saving() {
    let sandbox = three_attempts();
    let tips: Vec<String> =
        ["pay-1", "pay-3"].map(|n| sandbox.git(&["rev-parse", &format!("proq/{n}")])).into();
    let out = sandbox.proq(&["pick", "pay-2"]);
    insta::assert_snapshot!(out.to_text(), @r"
    landed pay-2 on main (55faeadf)
    discarded pay-1
    discarded pay-3
    --- stderr
    its commits are kept: git branch restored-a2c274f1 a2c274f1
    its folder, ignored files included, is kept for 7 days: [ROOT]/repo/.git/proq/trash/pay-1-[ID]
    its commits are kept: git branch restored-df324df8 df324df8
    its uncommitted files are kept: git stash apply 009941bd
    its folder, ignored files included, is kept for 7 days: [ROOT]/repo/.git/proq/trash/pay-3-[ID]
    hint: restore the others; once more, undo the landing too: git proq undo
    --- code 0
    ");
    assert_eq!(sandbox.read("pay.txt"), "2\n");
    assert_eq!(lane_names(&sandbox), [""; 0]);
    for tip in &tips {
        let saved =
            sandbox.git(&["for-each-ref", "--contains", tip, "--format=%(refname)", "refs/proq/saved"]);
        assert!(saved.starts_with("refs/proq/saved/pay-"), "{saved}");
    }
    // The first undo restores the other attempts, the second one undoes the landing.
    let undone = sandbox.proq(&["undo"]).ok();
    assert!(undone.ends_with(": git proq pick pay-2 (the other attempts)\n"), "{undone}");
    assert_eq!(
        (lane_names(&sandbox), sandbox.read("pay.txt")),
        (vec!["pay-1".to_owned(), "pay-3".to_owned()], "2\n".to_owned())
    );
    assert_eq!(std::fs::read_to_string(sandbox.lane_path("pay-3").join("left.txt")).unwrap(), "left\n");
    let undone = sandbox.proq(&["undo"]).ok();
    assert!(undone.ends_with(": git proq pick pay-2 (the merge)\n"), "{undone}");
    assert_eq!(lane_names(&sandbox), ["pay-1", "pay-2", "pay-3"]);
    assert!(!sandbox.repo.join("pay.txt").exists());
    // Another attempt can be picked after that.
    let _ = sandbox.proq(&["pick", "--strategy", "squash", "--no-cleanup", "proq/pay-1"]).ok();
    assert_eq!((lane_names(&sandbox), sandbox.read("pay.txt")), (vec!["pay-1".to_owned()], "1\n".to_owned()));
    assert_eq!(sandbox.git(&["rev-list", "--count", "--min-parents=2", "main"]), "0");
    sandbox.assert_healthy();
}

#[test]
fn dry_run_lists_discards_and_changes_nothing() {
    let sandbox = three_attempts();
    let before = sandbox.lane_leftovers();
    insta::assert_snapshot!(sandbox.proq(&["pick", "--dry-run", "pay-2"]).to_text(), @r"
    would land pay-2 on main
    1 file changed, 1 insertion(+)
    --- stderr
    would discard pay-1, after saving: 1 commit that is not on main
    would discard pay-3, after saving: 1 uncommitted file (left.txt); 1 commit that is not on main
    --- code 0
    ");
    let answer = sandbox.proq(&["pick", "--dry-run", "--json", "pay-2"]).json();
    assert_eq!((&answer["group"], &answer["lanes"][0]["result"]), (&"pay".into(), &"landed".into()));
    assert_eq!(
        (&answer["discarded"][1]["lane"], &answer["discarded"][1]["removed"]),
        (&"pay-3".into(), &false.into())
    );
    assert_eq!(sandbox.lane_leftovers(), before);
}

/// Promise: concurrency/pick
#[test]
fn discards_nothing_when_the_pick_does_not_land() {
    // The pick conflicts.
    let sandbox = three_attempts();
    sandbox.write("pay.txt", "mine\n");
    sandbox.commit_all("mine");
    let out = sandbox.proq(&["pick", "pay-1"]).fails(3);
    assert!(out.contains("nothing was discarded: the attempts of 'pay' are unchanged"), "{out}");
    assert_eq!(lane_names(&sandbox), ["pay-1", "pay-2", "pay-3"]);
    // A check fails.
    let sandbox = three_attempts();
    let _ = sandbox.proq(&["pick", "pay-1", "--verify", "test ! -e pay.txt"]).fails(4);
    assert_eq!(lane_names(&sandbox), ["pay-1", "pay-2", "pay-3"]);
    // The attempt failed or changed nothing.
    let sandbox = Sandbox::new();
    let script = "test $PROQ_LANE = pay-1 && exit 3; test $PROQ_LANE = pay-2 || echo 1 > one.txt";
    let _ =
        sandbox.proq(&["spawn", "--wait", "--count", "3", "-n", "pay", "--", "sh", "-c", script]).fails(4);
    for bad in ["pay-1", "pay-2"] {
        let _ = sandbox.proq(&["pick", bad]).fails(1);
    }
    assert_eq!(lane_names(&sandbox), ["pay-1", "pay-2", "pay-3"]);
    assert_eq!(sandbox.git(&["rev-list", "--count", "main"]), "1");
}

#[test]
fn refuses_a_lane_that_is_no_attempt() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("alone", "echo 1 > one.txt");
    insta::assert_snapshot!(sandbox.proq(&["pick", "alone"]).to_text(), @r"
    --- stderr
    error: cannot pick lane 'alone': it is not one of several attempts
    hint: merge it: git proq merge alone
    --- code 1
    ");
    for unknown in ["nobody", "pay", "pay-1@1", "../x", "--", "é\n"] {
        assert!([1, 2].contains(&sandbox.proq(&["pick", unknown]).code), "{unknown}");
    }
    // A group of one has nothing to discard.
    let _ = sandbox.proq(&["spawn", "--empty", "--count", "1", "-n", "pay"]).ok();
    sandbox.commit_in_lane("pay-1", "echo 1 > pay.txt");
    assert_eq!(sandbox.proq(&["pick", "pay-1"]).stderr, "");
    assert_eq!(lane_names(&sandbox), ["alone"]);
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(lane_names(&sandbox), ["alone", "pay-1"]);
}

/// Promise: concurrency/pick
#[test]
fn stops_running_attempts_only_with_an_option() {
    for option in ["--stop", "--force"] {
        let sandbox = Sandbox::new();
        sandbox.pipe("go");
        let script = "test $PROQ_LANE = pay-1 || read line < \"$ROOT/go\"; echo 1 > \"$PROQ_LANE\"";
        let _ = sandbox.proq(&["spawn", "--count", "2", "-n", "pay", "--", "sh", "-c", script]).ok();
        let _ = sandbox.proq(&["wait", "pay-1"]).ok();
        let _ = sandbox.started_row("pay-2");
        let before = sandbox.git(&["rev-parse", "main"]);
        let out = sandbox.proq(&["pick", "pay-1"]);
        let refusal = "error: cannot pick a lane: agents are running in pay-2
hint: wait for them: git proq wait pay-2
hint: or stop them: git proq pick pay-1 --stop\n";
        assert_eq!(out.fails(1), refusal);
        assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
        // A failed landing stops no agent.
        let _ = sandbox.proq(&["pick", "pay-1", option, "--verify", "test ! -e pay-1"]).fails(4);
        assert_eq!(sandbox.row("pay-2")["state"], "running");
        let _ = sandbox.proq(&["pick", "pay-1", option]).ok();
        assert_eq!(lane_names(&sandbox), [""; 0]);
        assert_eq!(sandbox.row("pay-2@1")["state"], "discarded");
    }
}

/// Promise: concurrency/pick
#[test]
fn commits_made_during_a_pick_land_or_are_saved() {
    let sandbox = three_attempts();
    sandbox.pipe("checking");
    sandbox.pipe("go");
    let check = "test -e $ROOT/seen || { touch $ROOT/seen; echo > $ROOT/checking; read line < $ROOT/go; }";
    let mut pick = sandbox.proq_command(&sandbox.repo, &["pick", "pay-1", "--verify", check]);
    let pick = pick.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _ = sandbox.read_pipe("checking");
    sandbox.commit_in_lane("pay-1", "echo later > later.txt");
    sandbox.commit_in_lane("pay-2", "echo later > later.txt");
    let late = sandbox.git(&["rev-parse", "proq/pay-2"]);
    // Another process discards the third attempt.
    let _ = sandbox.proq(&["discard", "--force", "pay-3"]).ok();
    sandbox.write_pipe("go");
    let out = pick.wait_with_output().unwrap();
    let text = sandbox.normalize(&[out.stdout, out.stderr].concat());
    assert_eq!(out.status.code(), Some(0), "{text}");
    assert!(text.contains("discarded pay-2") && !text.contains("discarded pay-3"), "{text}");
    // The picked lane was checked again with its new commit and landed; the new commit of the other attempt
    // is saved under a ref.
    assert_eq!(lane_names(&sandbox), [""; 0], "{text}");
    assert_eq!(sandbox.read("later.txt"), "later\n");
    let saved = sandbox.git(&["for-each-ref", "--contains", &late, "--format=%(refname)", "refs/proq/saved"]);
    assert!(saved.starts_with("refs/proq/saved/pay-2-"), "{saved}");
    sandbox.assert_healthy();
}

/// Promise: concurrency/pick
#[cfg(debug_assertions)]
#[test]
fn retry_completes_a_pick_killed_after_landing() {
    for more in [&[][..], &["--no-cleanup"]] {
        let sandbox = three_attempts();
        let args = [&["pick", "pay-2"], more].concat();
        let mut command = sandbox.proq_command(&sandbox.repo, &args);
        command.env("PROQ_TEST_DIE_AT", "pick.landed");
        assert_eq!(sandbox.output(command).code, 137);
        assert_eq!(sandbox.read("pay.txt"), "2\n");
        assert_eq!(lane_names(&sandbox).len(), if more.is_empty() { 2 } else { 3 });
        // `cleanup` keeps the attempts.
        let _ = sandbox.proq(&["cleanup"]);
        assert!(lane_names(&sandbox).contains(&"pay-1".to_owned()));
        let _ = sandbox.proq(&["pick", "pay-2"]).ok();
        assert_eq!(lane_names(&sandbox), [""; 0]);
        // After the pick has finished, no lane of that name exists.
        let _ = sandbox.proq(&["pick", "pay-2"]).fails(1);
        sandbox.assert_healthy();
    }
}

/// Promise: concurrency/pick
#[cfg(debug_assertions)]
#[test]
fn refuses_a_second_pick_after_one_landed() {
    let sandbox = three_attempts();
    let mut command = sandbox.proq_command(&sandbox.repo, &["pick", "pay-2"]);
    command.env("PROQ_TEST_DIE_AT", "pick.landed");
    assert_eq!(sandbox.output(command).code, 137);
    sandbox.commit_in_lane("pay-1", "git mv pay.txt other.txt");
    let tip = sandbox.git(&["rev-parse", "main"]);
    let refused = "refused pay-1: another attempt of 'pay' was picked: 'pay-2' is on main\n";
    for more in [&["--dry-run"][..], &[]] {
        let out = sandbox.proq(&[&["pick", "pay-1"], more].concat());
        assert!(out.stderr.contains("hint: merge it as well: git proq merge pay-1\n"), "{}", out.stderr);
        assert!(out.fails(1).contains(refused));
    }
    assert_eq!((sandbox.git(&["rev-parse", "main"]), lane_names(&sandbox).len()), (tip, 2));
    let _ = sandbox.proq(&["merge", "pay-1"]).ok();
    assert_eq!(sandbox.read("other.txt"), "1\n");
}

#[cfg(debug_assertions)]
#[test]
fn retry_completes_a_pick_killed_while_discarding() {
    for point in ["step.after:11", "step.before:14", "step.after:16", "step.after:20"] {
        let sandbox = three_attempts();
        let mut command = sandbox.proq_command(&sandbox.repo, &["pick", "pay-2"]);
        command.env("PROQ_TEST_DIE_AT", point);
        assert_eq!(sandbox.output(command).code, 137, "{point}");
        let _ = sandbox.proq(&["list"]).ok();
        assert_eq!(sandbox.read("pay.txt"), "2\n", "{point}");
        assert_eq!(lane_names(&sandbox), ["pay-1", "pay-3"], "{point}");
        assert_eq!(
            std::fs::read_to_string(sandbox.lane_path("pay-3").join("left.txt")).unwrap(),
            "left\n",
            "{point}"
        );
        let _ = sandbox.proq(&["pick", "pay-2"]).ok();
        assert_eq!(lane_names(&sandbox), [""; 0], "{point}");
        sandbox.assert_healthy();
    }
}

/// A later group of the same name is separate: a landing of the first group does not count for it.
/// Promise: concurrency/pick
#[test]
fn older_landed_group_discards_no_newer_attempts() {
    let sandbox = three_attempts();
    sandbox.git_in(&sandbox.lane_path("pay-3"), &["clean", "-qf"]);
    let _ = sandbox.proq(&["pick", "pay-3"]).ok();
    let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "--count", "2", "-n", "pay"]);
    command.env("PROQ_TEST_NOW", "2026-01-03T00:00:00Z");
    let _ = sandbox.output(command).ok();
    let out = sandbox.proq(&["pick", "pay-3"]).fails(1);
    assert!(out.contains("there is no lane 'pay-3'"), "{out}");
    assert_eq!(lane_names(&sandbox), ["pay-1", "pay-2"]);
}

#[test]
fn leaves_the_preview_of_a_discarded_attempt() {
    let sandbox = three_attempts();
    sandbox.write("mine.txt", "mine\n");
    let _ = sandbox.proq(&["preview", "pay-1"]).ok();
    let _ = sandbox.proq(&["pick", "pay-2"]).ok();
    assert_eq!(sandbox.git(&["symbolic-ref", "--short", "HEAD"]), "main");
    assert_eq!((sandbox.read("pay.txt"), sandbox.read("mine.txt")), ("2\n".to_owned(), "mine\n".to_owned()));
    sandbox.assert_healthy();
}

/// A locked worktree is not removed: the landing stands, and the other attempts are discarded.
#[test]
fn keeps_a_locked_attempt_and_the_landing() {
    let sandbox = three_attempts();
    sandbox.git(&["worktree", "lock", ".proq-worktrees/pay-1"]);
    let out = sandbox.proq(&["pick", "pay-2"]).fails(1);
    assert!(out.contains("landed pay-2 on main") && out.contains("cannot remove lane 'pay-1'"), "{out}");
    assert_eq!(lane_names(&sandbox), ["pay-1"]);
    sandbox.git(&["worktree", "unlock", ".proq-worktrees/pay-1"]);
    let _ = sandbox.proq(&["pick", "pay-2"]).ok();
    assert_eq!(lane_names(&sandbox), [""; 0]);
}
