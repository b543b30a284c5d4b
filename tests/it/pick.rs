//! Owns the tests of `git proq pick`: one lands, the others go with everything saved, and never before.

use std::process::Stdio;

use super::support::Sandbox;

/// Three attempts, of which the last has uncommitted work too.
fn three() -> Sandbox {
    let sandbox = Sandbox::new();
    let _ = sandbox.proq(&["spawn", "--empty", "--count", "3", "-n", "pay"]).ok();
    for n in 1..=3 {
        sandbox.commit_in_lane(&format!("pay-{n}"), &format!("echo {n} > pay.txt"));
    }
    sandbox.write_in(&sandbox.lane("pay-3"), "left.txt", "left\n");
    sandbox
}

/// The lanes that are there.
fn there(sandbox: &Sandbox) -> Vec<String> {
    let answer = sandbox.proq(&["list", "--json"]).json();
    answer["lanes"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn one_lands_and_the_others_are_discarded_with_everything_saved() {
    let sandbox = three();
    let tips: Vec<String> =
        ["pay-1", "pay-3"].map(|n| sandbox.git(&["rev-parse", &format!("proq/{n}")])).into();
    let out = sandbox.proq(&["pick", "pay-2"]);
    insta::assert_snapshot!(out.shown(), @r"
    landed pay-2 on main (55faeadf)
    discarded pay-1
    discarded pay-3
    --- stderr
    its commits are kept: git branch NEW-NAME a2c274f1
    its folder, ignored files included, is kept for 7 days: [ROOT]/repo/.git/proq/trash/pay-1-[ID]
    its commits are kept: git branch NEW-NAME df324df8
    its uncommitted files are kept: git stash apply 009941bd
    its folder, ignored files included, is kept for 7 days: [ROOT]/repo/.git/proq/trash/pay-3-[ID]
    hint: bring the others back: git proq undo   once more takes the landing back too
    --- code 0
    ");
    assert_eq!(sandbox.read("pay.txt"), "2\n");
    assert_eq!(there(&sandbox), [""; 0]);
    for tip in &tips {
        let saved =
            sandbox.git(&["for-each-ref", "--contains", tip, "--format=%(refname)", "refs/proq/saved"]);
        assert!(saved.starts_with("refs/proq/saved/pay-"), "{saved}");
    }
    // The first undo is about the others, the second about the landing.
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(
        (there(&sandbox), sandbox.read("pay.txt")),
        (vec!["pay-1".to_owned(), "pay-3".to_owned()], "2\n".to_owned())
    );
    assert_eq!(std::fs::read_to_string(sandbox.lane("pay-3").join("left.txt")).unwrap(), "left\n");
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(there(&sandbox), ["pay-1", "pay-2", "pay-3"]);
    assert!(!sandbox.repo.join("pay.txt").exists());
    // And it can be done otherwise.
    let _ = sandbox.proq(&["pick", "--strategy", "squash", "--no-cleanup", "proq/pay-1"]).ok();
    assert_eq!((there(&sandbox), sandbox.read("pay.txt")), (vec!["pay-1".to_owned()], "1\n".to_owned()));
    assert_eq!(sandbox.git(&["rev-list", "--count", "--min-parents=2", "main"]), "0");
    sandbox.assert_healthy();
}

#[test]
fn a_dry_run_says_what_would_go_and_changes_nothing() {
    let sandbox = three();
    let before = sandbox.traces();
    insta::assert_snapshot!(sandbox.proq(&["pick", "--dry-run", "pay-2"]).shown(), @r"
    would land pay-2 on main
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
    assert_eq!(sandbox.traces(), before);
}

#[test]
fn where_it_does_not_land_nothing_is_discarded() {
    // A conflict.
    let sandbox = three();
    sandbox.write("pay.txt", "mine\n");
    sandbox.commit_all("mine");
    let out = sandbox.proq(&["pick", "pay-1"]).fails(3);
    assert!(out.contains("nothing was discarded; the attempts of 'pay' stay as they are"), "{out}");
    assert_eq!(there(&sandbox), ["pay-1", "pay-2", "pay-3"]);
    // A check.
    let sandbox = three();
    let _ = sandbox.proq(&["pick", "pay-1", "--verify", "test ! -e pay.txt"]).fails(4);
    assert_eq!(there(&sandbox), ["pay-1", "pay-2", "pay-3"]);
    // Nothing in it, or nothing good.
    let sandbox = Sandbox::new();
    let script = "test $PROQ_LANE = pay-1 && exit 3; test $PROQ_LANE = pay-2 || echo 1 > one.txt";
    let _ =
        sandbox.proq(&["spawn", "--wait", "--count", "3", "-n", "pay", "--", "sh", "-c", script]).fails(4);
    for bad in ["pay-1", "pay-2"] {
        let _ = sandbox.proq(&["pick", bad]).fails(1);
    }
    assert_eq!(there(&sandbox), ["pay-1", "pay-2", "pay-3"]);
    assert_eq!(sandbox.git(&["rev-list", "--count", "main"]), "1");
}

#[test]
fn what_is_no_attempt_is_not_picked() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("alone", "echo 1 > one.txt");
    insta::assert_snapshot!(sandbox.proq(&["pick", "alone"]).shown(), @r"
    --- stderr
    error: lane 'alone' is not one of several attempts; nothing was changed
    hint: land it: git proq merge alone
    --- code 1
    ");
    for nobody in ["nobody", "pay", "pay-1@1", "../x", "--", "é\n"] {
        assert!([1, 2].contains(&sandbox.proq(&["pick", nobody]).code), "{nobody}");
    }
    // A group of one has nothing to discard.
    let _ = sandbox.proq(&["spawn", "--empty", "--count", "1", "-n", "pay"]).ok();
    sandbox.commit_in_lane("pay-1", "echo 1 > pay.txt");
    assert_eq!(sandbox.proq(&["pick", "pay-1"]).stderr, "");
    assert_eq!(there(&sandbox), ["alone"]);
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(there(&sandbox), ["alone", "pay-1"]);
}

#[test]
fn agents_at_work_in_other_attempts_are_stopped_only_when_that_is_asked_for() {
    for how in ["--stop", "--force"] {
        let sandbox = Sandbox::new();
        sandbox.pipe("go");
        let script = "test $PROQ_LANE = pay-1 || read line < \"$ROOT/go\"; echo 1 > \"$PROQ_LANE\"";
        let _ = sandbox.proq(&["spawn", "--count", "2", "-n", "pay", "--", "sh", "-c", script]).ok();
        let _ = sandbox.proq(&["wait", "pay-1"]).ok();
        let _ = sandbox.started_row("pay-2");
        let before = sandbox.git(&["rev-parse", "main"]);
        let out = sandbox.proq(&["pick", "pay-1"]);
        let said = "error: agents are still at work in pay-2; nothing was changed
hint: wait for them: git proq wait pay-2
hint: or stop them: git proq pick pay-1 --stop\n";
        assert_eq!(out.fails(1), said);
        assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
        // A landing that fails has stopped nobody.
        let _ = sandbox.proq(&["pick", "pay-1", how, "--verify", "test ! -e pay-1"]).fails(4);
        assert_eq!(sandbox.row("pay-2")["state"], "running");
        let _ = sandbox.proq(&["pick", "pay-1", how]).ok();
        assert_eq!(there(&sandbox), [""; 0]);
        assert_eq!(sandbox.row("pay-2@1")["state"], "discarded");
    }
}

#[test]
fn what_comes_while_it_lands_is_landed_or_saved() {
    let sandbox = three();
    sandbox.pipe("checking");
    sandbox.pipe("go");
    let check = "test -e $ROOT/seen || { touch $ROOT/seen; echo > $ROOT/checking; read line < $ROOT/go; }";
    let mut pick = sandbox.proq_command(&sandbox.repo, &["pick", "pay-1", "--verify", check]);
    let pick = pick.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _ = sandbox.hear("checking");
    sandbox.commit_in_lane("pay-1", "echo later > later.txt");
    sandbox.commit_in_lane("pay-2", "echo later > later.txt");
    let late = sandbox.git(&["rev-parse", "proq/pay-2"]);
    // Somebody else discards the third.
    let _ = sandbox.proq(&["discard", "--force", "pay-3"]).ok();
    sandbox.tell("go");
    let out = pick.wait_with_output().unwrap();
    let text = sandbox.plain(&[out.stdout, out.stderr].concat());
    assert_eq!(out.status.code(), Some(0), "{text}");
    assert!(text.contains("discarded pay-2") && !text.contains("discarded pay-3"), "{text}");
    // The lane as it is when the base moves was checked anew and has landed; what came to another one is on a ref.
    assert_eq!(there(&sandbox), [""; 0], "{text}");
    assert_eq!(sandbox.read("later.txt"), "later\n");
    let saved = sandbox.git(&["for-each-ref", "--contains", &late, "--format=%(refname)", "refs/proq/saved"]);
    assert!(saved.starts_with("refs/proq/saved/pay-2-"), "{saved}");
    sandbox.assert_healthy();
}

#[cfg(debug_assertions)]
#[test]
fn cut_off_after_the_landing_the_same_command_ends_it() {
    for more in [&[][..], &["--no-cleanup"]] {
        let sandbox = three();
        let args = [&["pick", "pay-2"], more].concat();
        let mut command = sandbox.proq_command(&sandbox.repo, &args);
        command.env("PROQ_TEST_DIE_AT", "pick.landed");
        assert_eq!(sandbox.output(command).code, 137);
        assert_eq!(sandbox.read("pay.txt"), "2\n");
        assert_eq!(there(&sandbox).len(), if more.is_empty() { 2 } else { 3 });
        // A tidy-up says what is left, and keeps it.
        let _ = sandbox.proq(&["cleanup"]);
        assert!(there(&sandbox).contains(&"pay-1".to_owned()));
        let _ = sandbox.proq(&["pick", "pay-2"]).ok();
        assert_eq!(there(&sandbox), [""; 0]);
        // Once it is over, there is nothing of that name any more.
        let _ = sandbox.proq(&["pick", "pay-2"]).fails(1);
        sandbox.assert_healthy();
    }
}

#[cfg(debug_assertions)]
#[test]
fn once_one_has_landed_another_is_not_picked() {
    let sandbox = three();
    let mut command = sandbox.proq_command(&sandbox.repo, &["pick", "pay-2"]);
    command.env("PROQ_TEST_DIE_AT", "pick.landed");
    assert_eq!(sandbox.output(command).code, 137);
    sandbox.commit_in_lane("pay-1", "git mv pay.txt other.txt");
    let tip = sandbox.git(&["rev-parse", "main"]);
    let refused = "refused pay-1: another attempt of 'pay' was picked: 'pay-2' is on main\n";
    for more in [&["--dry-run"][..], &[]] {
        let out = sandbox.proq(&[&["pick", "pay-1"], more].concat());
        assert!(out.stderr.contains("hint: land it as well: git proq merge pay-1\n"), "{}", out.stderr);
        assert!(out.fails(1).contains(refused));
    }
    assert_eq!((sandbox.git(&["rev-parse", "main"]), there(&sandbox).len()), (tip, 2));
    let _ = sandbox.proq(&["merge", "pay-1"]).ok();
    assert_eq!(sandbox.read("other.txt"), "1\n");
}

#[cfg(debug_assertions)]
#[test]
fn cut_off_while_discarding_all_others_are_there_and_go_the_next_time() {
    for at in ["step.after:11", "step.before:14", "step.after:16", "step.after:20"] {
        let sandbox = three();
        let mut command = sandbox.proq_command(&sandbox.repo, &["pick", "pay-2"]);
        command.env("PROQ_TEST_DIE_AT", at);
        assert_eq!(sandbox.output(command).code, 137, "{at}");
        let _ = sandbox.proq(&["list"]).ok();
        assert_eq!(sandbox.read("pay.txt"), "2\n", "{at}");
        assert_eq!(there(&sandbox), ["pay-1", "pay-3"], "{at}");
        assert_eq!(
            std::fs::read_to_string(sandbox.lane("pay-3").join("left.txt")).unwrap(),
            "left\n",
            "{at}"
        );
        let _ = sandbox.proq(&["pick", "pay-2"]).ok();
        assert_eq!(there(&sandbox), [""; 0], "{at}");
        sandbox.assert_healthy();
    }
}

/// A later group of the same name is another one: what landed of the first says nothing about it.
#[test]
fn what_landed_of_an_older_group_discards_nothing_of_a_younger_one() {
    let sandbox = three();
    sandbox.git_in(&sandbox.lane("pay-3"), &["clean", "-qf"]);
    let _ = sandbox.proq(&["pick", "pay-3"]).ok();
    let mut command = sandbox.proq_command(&sandbox.repo, &["spawn", "--empty", "--count", "2", "-n", "pay"]);
    command.env("PROQ_TEST_NOW", "2026-01-03T00:00:00Z");
    let _ = sandbox.output(command).ok();
    let out = sandbox.proq(&["pick", "pay-3"]).fails(1);
    assert!(out.contains("there is no lane 'pay-3'"), "{out}");
    assert_eq!(there(&sandbox), ["pay-1", "pay-2"]);
}

#[test]
fn an_attempt_on_show_is_left_before_it_goes() {
    let sandbox = three();
    sandbox.write("mine.txt", "mine\n");
    let _ = sandbox.proq(&["preview", "pay-1"]).ok();
    let _ = sandbox.proq(&["pick", "pay-2"]).ok();
    assert_eq!(sandbox.git(&["symbolic-ref", "--short", "HEAD"]), "main");
    assert_eq!((sandbox.read("pay.txt"), sandbox.read("mine.txt")), ("2\n".to_owned(), "mine\n".to_owned()));
    sandbox.assert_healthy();
}

/// A worktree that somebody has locked is not taken away: the landing stands, and the rest goes.
#[test]
fn an_attempt_that_must_be_kept_is_told_and_the_landing_stands() {
    let sandbox = three();
    sandbox.git(&["worktree", "lock", ".proq-worktrees/pay-1"]);
    let out = sandbox.proq(&["pick", "pay-2"]).fails(1);
    assert!(out.contains("landed pay-2 on main") && out.contains("lane 'pay-1' was kept"), "{out}");
    assert_eq!(there(&sandbox), ["pay-1"]);
    sandbox.git(&["worktree", "unlock", ".proq-worktrees/pay-1"]);
    let _ = sandbox.proq(&["pick", "pay-2"]).ok();
    assert_eq!(there(&sandbox), [""; 0]);
}
