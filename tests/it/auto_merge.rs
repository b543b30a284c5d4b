//! Owns the tests of `git proq spawn --auto-merge`: what lands by itself, what is tried again, and what never happens.

use std::process::Stdio;

use super::profiles::configure;
use super::runs::with_claude;
use super::support::patience::{Beside, wait_until_free};
use super::support::{Output, Sandbox};

/// Makes a lane that lands by itself, its agent a shell script, and waits for its landing.
fn spawn(sandbox: &Sandbox, name: &str, script: &str) -> Output {
    sandbox.proq(&["spawn", "--auto-merge", "--wait", "-n", name, "--", "sh", "-ec", script])
}

/// Why lanes did not land by themselves, in order.
fn refusals(sandbox: &Sandbox) -> Vec<String> {
    let all = sandbox.events("merge.refused");
    all.iter().map(|event| event["message"].as_str().unwrap().to_owned()).collect()
}

/// A lane that is done and was refused, since the base's checkout has an edit in the way.
fn refused(name: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "mine\n");
    let out = spawn(&sandbox, name, "echo lane > a.txt");
    assert_eq!(out.code, 1, "{}", out.shown());
    sandbox
}

fn has(sandbox: &Sandbox, file: &str) -> bool {
    sandbox.repo.join(file).exists()
}

#[test]
fn a_lane_lands_when_its_run_is_done() {
    let sandbox = Sandbox::new();
    let out = spawn(&sandbox, "x", "echo 1 > one");
    let commit = sandbox.git(&["rev-parse", "--short=8", "main"]);
    insta::assert_snapshot!(out.shown().replace(&commit, "[COMMIT]"), @r"
    x: done
    landed x on main ([COMMIT])
    --- code 0
    ");
    assert!(has(&sandbox, "one"));
    assert_eq!(sandbox.row("x@1")["state"], "landed");
    let said = sandbox.proq(&["logs", "x@1", "--merge"]).ok();
    assert_eq!(said, format!("landed x on main ({commit})\n"));
    let shown = sandbox.proq(&["show", "x@1"]).ok();
    assert!(shown.contains("by itself  it landed\n"), "{shown}");
    assert!(shown.contains("git proq logs x@1 --merge --run 1\n"), "{shown}");
    sandbox.assert_healthy();
}

#[test]
fn who_does_not_wait_is_told_what_will_happen() {
    let sandbox = Sandbox::new();
    let plan = sandbox.proq(&["spawn", "--auto-merge", "-n", "x", "--dry-run", "--", "true"]).ok();
    assert!(plan.ends_with("  then      lands on main\n"), "{plan}");
    sandbox.pipe("go");
    let args = ["spawn", "--auto-merge", "-n", "x", "--", "sh", "-ec", "cat $ROOT/go; echo 1 > one"];
    insta::assert_snapshot!(sandbox.proq(&args).shown(), @r"
    lane 'x' on branch proq/x, from main
      [ROOT]/repo/.proq-worktrees/x
    --- stderr
    your command is at work there; when it is done, the lane lands by itself
    hint: follow it: git proq logs -f x   wait for it: git proq wait x
    --- code 0
    ");
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(shown.contains("by itself  lands on main when its run is done\n"), "{shown}");
    assert!(sandbox.proq(&["show", "x", "--json"]).json()["auto_merge"] == true);
    insta::assert_snapshot!(sandbox.proq(&["logs", "x", "--merge"]).shown(), @r"
    --- stderr
    error: lane 'x' was not landed by itself
    hint: land it: git proq merge x
    --- code 1
    ");
    sandbox.tell("go");
    sandbox.until("merge.landed", "x", 1);
    assert!(has(&sandbox, "one"));
    assert_eq!(sandbox.proq(&["spawn", "--auto-merge", "--empty", "-n", "y"]).code, 2);
}

#[test]
fn only_what_is_done_lands() {
    let sandbox = Sandbox::new();
    let work = "echo 1 > one; git add -A; git commit -qm one;";
    let out = spawn(&sandbox, "failed", &format!("{work} exit 3"));
    assert_eq!(out.fails(4), "failed: failed (exit code 3)\n");
    let out = spawn(&sandbox, "nothing", "true");
    assert_eq!(out.ok(), "nothing: no-change\n");
    sandbox.pipe("up");
    let script = format!("{work} echo > $ROOT/up; sleep 600 & wait");
    let _ = sandbox.proq(&["spawn", "--auto-merge", "-n", "stopped", "--", "sh", "-ec", &script]).ok();
    sandbox.hear("up");
    let _ = sandbox.proq(&["stop", "stopped"]).ok();
    assert_eq!(sandbox.git(&["rev-list", "--count", "main"]), "1");
    // Nor does the next landing take them along.
    sandbox.lane_of("other", "echo 1 > other");
    let _ = sandbox.proq(&["merge", "other"]).ok();
    assert_eq!(refusals(&sandbox), [""; 0]);
    assert!(!sandbox.repo.join(".git/proq/locks/lanes/failed.landing.lock").exists());
}

#[test]
fn what_is_refused_stays_done_and_lands_after_the_next_landing() {
    let sandbox = refused("late");
    let row = sandbox.row("late");
    assert_eq!((&row["state"], sandbox.read("a.txt").as_str()), (&"done".into(), "mine\n"));
    let all = sandbox.proq(&["events", "--json", "--last", "1"]).json();
    let last = &all["events"][0];
    assert_eq!(
        (&last["event"], &last["lane"], &last["state"]),
        (&"merge.refused".into(), &"late".into(), &"done".into())
    );
    let why = last["message"].as_str().unwrap().strip_prefix("lane 'late' did not land by itself: ").unwrap();
    assert!(why.contains("a.txt"), "{why}");
    let shown = sandbox.proq(&["show", "late"]).ok();
    assert!(
        shown.contains(&format!("by itself  refused: {why}; tried again after the next landing on main\n")),
        "{shown}"
    );
    assert!(sandbox.proq(&["logs", "late", "--merge"]).ok().contains(why));
    // Not on another base, and not without a landing.
    sandbox.git(&["checkout", "-q", "--", "a.txt"]);
    sandbox.git(&["branch", "other"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "elsewhere", "--base", "other"]).ok();
    sandbox.commit_in_lane("elsewhere", "echo 1 > elsewhere");
    let _ = sandbox.proq(&["merge", "elsewhere"]).ok();
    sandbox.lane_of("y", "echo 1 > y");
    let _ = sandbox.proq(&["merge", "y", "--dry-run"]).ok();
    assert!(!retries(&sandbox, "late"));
    let _ = sandbox.proq(&["merge", "y"]).ok();
    sandbox.until("merge.landed", "late", 1);
    assert_eq!(sandbox.read("a.txt"), "lane\n");
    assert_eq!(refusals(&sandbox).len(), 1);
}

/// Whether a process is at work, or has been, that tries a lane again. It is there when who has started it has ended. No lane
/// of another test may have this name: those run at the same time.
fn retries(sandbox: &Sandbox, lane: &str) -> bool {
    let all = sandbox.output({
        let mut command = sandbox.command("ps", &sandbox.root());
        command.args(["-e", "-o", "args="]);
        command
    });
    let wanted = format!("--auto retry {lane}");
    let now = all.stdout.lines().any(|line| line.trim_end().ends_with(&wanted));
    now || sandbox.proq(&["logs", lane, "--merge"]).stdout.matches("refused").count() > 1
}

#[test]
fn one_try_again_does_not_bring_about_another() {
    let sandbox = refused("again-one");
    assert_eq!(spawn(&sandbox, "again-two", "echo other > a.txt").code, 1);
    // That was a landing, after which the first was tried again.
    sandbox.until("merge.refused", "again-one", 2);
    let _ = sandbox.proq(&["merge", "--auto", "retry", "again-one"]).fails(1);
    assert_eq!(refusals(&sandbox).len(), 4);
    assert!(!retries(&sandbox, "again-two"));
    assert_eq!(sandbox.row("again-two")["state"], "done");
}

#[test]
fn two_that_are_done_at_the_same_time_both_land() {
    let sandbox = Sandbox::new();
    let begin = |name| {
        sandbox.pipe(&format!("go-{name}"));
        let script = format!("cat $ROOT/go-{name}; echo 1 > {name}");
        let args = ["spawn", "--auto-merge", "--wait", "-n", name, "--", "sh", "-ec", &script];
        Beside(sandbox.proq_command(&sandbox.repo, &args).stdout(Stdio::null()).spawn().unwrap())
    };
    let mut all = ["one", "two", "three"].map(begin);
    for name in ["one", "two", "three"] {
        sandbox.tell(&format!("go-{name}"));
    }
    assert_eq!(all.each_mut().map(Beside::code), [Some(0); 3]);
    assert!(["one", "two", "three"].iter().all(|name| has(&sandbox, name)));
    assert_eq!(refusals(&sandbox), [""; 0]);
    sandbox.assert_healthy();
}

#[test]
fn it_queues_like_any_landing_and_knows_nothing_of_the_run() {
    let sandbox = Sandbox::new();
    sandbox.pipe("here");
    sandbox.pipe("go");
    let check = "test -z \"$PROQ_LANE$PROQ_TASK_FILE$GIT_INDEX_FILE\"; timeout 60 sh -c 'echo here > $ROOT/here'; timeout 60 cat $ROOT/go";
    sandbox.git(&["config", "proq.verify.commands", &format!("set -e; {check}")]);
    let mut command = sandbox.proq_command(
        &sandbox.repo,
        &["spawn", "--auto-merge", "-n", "x", "--", "sh", "-ec", "echo 1 > one"],
    );
    command.env("GIT_INDEX_FILE", sandbox.repo.join(".git/index"));
    let _ = sandbox.output(command).ok();
    assert_eq!(sandbox.hear("here"), "here\n");
    let queue = sandbox.proq(&["queue", "--json"]).json();
    assert_eq!(queue["queue"][0]["lanes"], serde_json::json!(["x"]));
    assert_eq!(queue["queue"][0]["command"], "git proq merge --auto run-ended x");
    assert_eq!(sandbox.row("x")["state"], "done", "its run is over");
    sandbox.tell("go");
    sandbox.until("merge.landed", "x", 1);
    sandbox.git(&["config", "proq.verify.commands", "test ! -e two"]);
    let out = spawn(&sandbox, "y", "echo 1 > two");
    assert!(out.clone().fails(4).contains("check failed y"), "{}", out.shown());
    assert_eq!(sandbox.row("y")["state"], "check-failed");
    assert_eq!(refusals(&sandbox), [""; 0]);
}

#[test]
fn who_is_sent_at_a_conflict_is_the_lane_s_own_agent() {
    // On the base it stands for somebody else, whose git is not an agent's.
    let script = "case $(git log -1 --format=%s) in first) echo lane > a.txt; git commit -qam lane;
        unset GIT_CONFIG_PARAMETERS; git -C \"$ROOT/repo\" commit -q --allow-empty -m x; cd \"$ROOT/repo\"; echo main > a.txt; git commit -qam main;; *)
        printf 'main\\nlane\\n' > a.txt; git add a.txt;; esac";
    let run = |settings: &[&str], agent: &[&str]| {
        let sandbox = Sandbox::new();
        sandbox.program("able", script);
        for value in settings {
            sandbox.git(&["config", "proq.merge.conflictAgent", value]);
        }
        let args = [&["spawn", "--auto-merge", "--wait", "-n", "x"], agent].concat();
        let out = sandbox.proq(&args);
        (sandbox, out)
    };
    let (sandbox, out) = run(&[], &["able", "Do it"]);
    assert_eq!(out.code, 0, "{}", out.shown());
    assert_eq!(sandbox.read("a.txt"), "main\nlane\n");
    assert_eq!(sandbox.proq(&["show", "x@1", "--json"]).json()["runs"].as_array().unwrap().len(), 2);
    // The landing followed the first run; the second was sent at its conflict.
    let said = sandbox.proq(&["logs", "x@1", "--merge"]).ok();
    assert!(said.contains("landed x on main"), "{said}");
    // A command is no agent, and who says that nobody is to be sent is heard.
    for (settings, agent) in [(&[][..], &["--", "able"][..]), (&[""], &["able", "Do it"])] {
        let (sandbox, out) = run(settings, agent);
        assert!(out.clone().fails(3).contains("conflict x with main"), "{}", out.shown());
        assert_eq!(
            (&sandbox.row("x")["state"], sandbox.read("a.txt").as_str()),
            (&"conflict".into(), "main\n")
        );
    }
}

#[test]
fn what_the_main_checkout_shows_stays_on_show() {
    let sandbox = Sandbox::new();
    sandbox.pipe("up");
    sandbox.pipe("go");
    let script = "echo 1 > one; git add -A; git commit -qm one; echo > $ROOT/up; cat $ROOT/go";
    let _ = sandbox.proq(&["spawn", "--auto-merge", "-n", "x", "--", "sh", "-ec", script]).ok();
    sandbox.hear("up");
    let _ = sandbox.proq(&["preview", "x"]).ok();
    sandbox.tell("go");
    sandbox.until("merge.refused", "x", 1);
    assert_eq!(sandbox.git(&["branch", "--show-current"]), "proq/x-preview");
    let why = &refusals(&sandbox)[0];
    assert!(why.ends_with("the main checkout shows it; git proq preview --back leaves it"), "{why}");
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.lane_of("y", "echo 1 > y");
    let _ = sandbox.proq(&["merge", "y"]).ok();
    sandbox.until("merge.landed", "x", 1);
    assert!(has(&sandbox, "one"));
}

#[test]
fn what_is_undone_does_not_come_back_by_itself() {
    let sandbox = Sandbox::new();
    let _ = spawn(&sandbox, "undone", "echo 1 > one").ok();
    let log = sandbox.proq(&["op", "log", "--json"]).json();
    let number = log["operations"][0]["operation"].to_string();
    let out = sandbox.proq(&["undo", &number]);
    assert!(out.stderr.contains("lane 'undone' does not land by itself any more"), "{}", out.shown());
    assert_eq!((&sandbox.row("undone")["state"], has(&sandbox, "one")), (&"done".into(), false));
    assert_eq!(sandbox.proq(&["show", "undone", "--json"]).json()["auto_merge"], serde_json::Value::Null);
    sandbox.lane_of("y", "echo 1 > y");
    let _ = sandbox.proq(&["merge", "y"]).ok();
    assert!(!retries(&sandbox, "undone"));
    assert!(!has(&sandbox, "one"));
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["op", "redo"]).ok();
    sandbox.assert_healthy();
}

#[test]
fn what_its_agent_left_running_keeps_it_and_is_named() {
    let sandbox = with_claude(
        r#"begin; echo 1 > one; setsid sh -c 'echo > "$ROOT/up"; read go < "$ROOT/go"' > /dev/null 2>&1 &
        read up < "$ROOT/up"; well"#,
    );
    sandbox.pipe("up");
    sandbox.pipe("go");
    // Nobody looks for what this one leaves.
    configure(&sandbox, "[agents.mine]\nlike = 'claude'\nprogram = 'claude'\nstrays = 'none'\n");
    let out = sandbox.proq(&["spawn", "--auto-merge", "--wait", "-n", "x", "mine", "do it"]);
    assert_eq!((out.code, out.stderr.contains("without a word")), (1, false), "{}", out.shown());
    let why = "lane 'x' did not land by itself: a process of its agent lives on; git proq stop x ends it";
    assert_eq!(refusals(&sandbox), [why]);
    sandbox.tell("go");
    wait_until_free(&sandbox.lock("x", "alive.lock"));
    sandbox.lane_of("y", "echo 1 > y");
    let _ = sandbox.proq(&["merge", "y"]).ok();
    sandbox.until("merge.landed", "x", 1);
}

#[cfg(debug_assertions)]
#[test]
fn one_that_is_killed_is_picked_up_by_the_next_landing() {
    // Before it has its turn, before the base has moved, and right after.
    for at in ["ticket.drafted", "transition.locked", "transition.moved"] {
        let sandbox = Sandbox::new();
        let mut command = sandbox.proq_command(
            &sandbox.repo,
            &["spawn", "--auto-merge", "--wait", "-n", "x", "--", "sh", "-ec", "echo 1 > one"],
        );
        command.env("PROQ_TEST_DIE_AT", at);
        let out = sandbox.output(command);
        // What can be finished is.
        let finished = at == "transition.moved";
        assert_eq!(out.code, i32::from(!finished), "{at}: {}", out.shown());
        assert_eq!(
            out.stderr.contains("its landing ended without a word"),
            !finished,
            "{at}: {}",
            out.shown()
        );
        sandbox.lane_of("y", "echo 1 > y");
        let out = sandbox.proq(&["merge", "y"]);
        assert_eq!(out.code, 0, "{at}: {}", out.shown());
        if finished {
            assert_eq!(sandbox.row("x")["state"], "landed");
        } else {
            sandbox.until("merge.landed", "x", 1);
        }
        assert!(has(&sandbox, "one") && has(&sandbox, "y"), "{at}");
        assert_eq!(refusals(&sandbox), [""; 0], "{at}");
    }
}

/// Merges a lane of somebody else, after which lanes that were refused are tried again.
fn land_another(sandbox: &Sandbox, name: &str) -> Output {
    sandbox.lane_of(name, &format!("echo 1 > {name}"));
    let out = sandbox.proq(&["merge", name]);
    assert_eq!(out.code, 0, "{}", out.shown());
    out
}

#[test]
fn what_was_committed_after_the_run_does_not_land_by_itself() {
    let sandbox = refused("moved-on");
    sandbox.git(&["checkout", "-q", "--", "a.txt"]);
    sandbox.commit_in_lane("moved-on", "echo half > half");
    let why = "lane 'moved-on' did not land by itself: its branch has moved since its run ended; git proq merge moved-on lands it";
    let out = land_another(&sandbox, "y");
    assert!(out.stderr.contains(why), "{}", out.shown());
    // It is said once.
    let out = land_another(&sandbox, "z");
    assert!(!out.stderr.contains("moved-on"), "{}", out.shown());
    assert!(!retries(&sandbox, "moved-on"));
    assert_eq!((refusals(&sandbox).len(), refusals(&sandbox)[1].as_str()), (2, why));
    assert_eq!((has(&sandbox, "half"), &sandbox.row("moved-on")["state"]), (false, &"done".into()));
    let shown = sandbox.proq(&["show", "moved-on"]).ok();
    let line =
        "by itself  refused: its branch has moved since its run ended; git proq merge moved-on lands it\n";
    assert!(shown.contains(line), "{shown}");
    let _ = sandbox.proq(&["merge", "moved-on"]).ok();
    assert_eq!((has(&sandbox, "half"), sandbox.read("a.txt").as_str()), (true, "lane\n"));
}

#[test]
fn a_commit_made_while_it_lands_by_itself_keeps_it_from_landing() {
    let sandbox = Sandbox::new();
    sandbox.pipe("here");
    sandbox.pipe("go");
    let check = "timeout 60 sh -c 'echo here > $ROOT/here'; timeout 60 cat $ROOT/go";
    sandbox.git(&["config", "proq.verify.commands", check]);
    let args = ["spawn", "--auto-merge", "-n", "x", "--", "sh", "-ec", "echo 1 > one"];
    let _ = sandbox.proq(&args).ok();
    sandbox.hear("here");
    sandbox.commit_in_lane("x", "echo half > half");
    sandbox.tell("go");
    sandbox.until("merge.refused", "x", 1);
    assert!(!has(&sandbox, "one") && !has(&sandbox, "half"));
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(shown.contains("by itself  refused: its branch has moved since its run ended; "), "{shown}");
}

#[test]
fn what_its_landing_committed_lands_and_what_came_later_does_not() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.agent.autocommit", "never"]);
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    sandbox.write("a.txt", "mine\n");
    for name in ["committed", "dirty"] {
        assert_eq!(spawn(&sandbox, name, &format!("echo lane > a.txt; echo 1 > {name}")).code, 1);
        assert_eq!(sandbox.git_in(&sandbox.lane(name), &["status", "--short"]), "", "it is committed");
    }
    // The second landing, refused or not, has the first one tried again.
    sandbox.until("merge.refused", "committed", 2);
    sandbox.git(&["checkout", "-q", "--", "a.txt"]);
    sandbox.write_in(&sandbox.lane("dirty"), "half", "half\n");
    let _ = land_another(&sandbox, "y");
    sandbox.until("merge.landed", "committed", 1);
    sandbox.until("merge.refused", "dirty", 2);
    assert!(has(&sandbox, "committed") && !has(&sandbox, "dirty"));
    assert_eq!(sandbox.git_in(&sandbox.lane("dirty"), &["status", "--short"]), "?? half");
    let _ = sandbox.proq(&["merge", "dirty"]).ok();
    assert!(has(&sandbox, "dirty") && has(&sandbox, "half"));
}

#[test]
fn what_its_agent_resolved_is_tried_again() {
    let script = "case $(git log -1 --format=%s) in first) echo lane > a.txt; git commit -qam lane;
        unset GIT_CONFIG_PARAMETERS; cd \"$ROOT/repo\"; echo main > a.txt; git commit -qam main;; *)
        printf 'main\\nlane\\n' > a.txt; git add a.txt; echo mine > \"$ROOT/repo/a.txt\";; esac";
    let sandbox = Sandbox::new();
    sandbox.program("able", script);
    let out = sandbox.proq(&["spawn", "--auto-merge", "--wait", "-n", "x", "able", "Do it"]);
    assert_eq!((out.code, sandbox.read("a.txt").as_str()), (1, "mine\n"), "{}", out.shown());
    sandbox.git(&["checkout", "-q", "--", "a.txt"]);
    let _ = land_another(&sandbox, "y");
    sandbox.until("merge.landed", "x", 1);
    assert_eq!(sandbox.read("a.txt"), "main\nlane\n");
}

#[test]
fn settings_that_an_agent_changes_keep_other_lanes_from_landing_by_themselves() {
    let sandbox = refused("waits");
    sandbox.git(&["checkout", "-q", "--", "a.txt"]);
    sandbox.lane_with("x", "git config proq.verify.commands true");
    let _ = land_another(&sandbox, "y");
    assert!(!retries(&sandbox, "waits") && sandbox.row("waits")["state"] == "done");
    let shown = sandbox.proq(&["show", "waits"]).ok();
    let line = "refused: while lane 'x' ran, it or somebody else changed setting proq.verify.commands; git proq merge waits lands it\n";
    assert!(shown.contains(line), "{shown}");
    let _ = sandbox.proq(&["merge", "waits"]).ok();
}

#[test]
fn a_lane_of_which_it_could_not_be_written_what_its_run_changed_waits() {
    let sandbox = refused("waits");
    sandbox.git(&["checkout", "-q", "--", "a.txt"]);
    std::fs::create_dir_all(sandbox.repo.join(".git/proq/fences/waits-1")).unwrap();
    let _ = land_another(&sandbox, "y");
    assert!(!retries(&sandbox, "waits") && sandbox.row("waits")["state"] == "done");
    let shown = sandbox.proq(&["show", "waits"]).ok();
    assert!(shown.contains("refused: what its run changed beside it is not known; "), "{shown}");
    let _ = sandbox.proq(&["merge", "waits"]).ok();
}

/// An agent that changes what its landing has to pass does not land by that.
#[test]
fn who_changes_settings_while_it_runs_does_not_land_by_itself() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.verify.commands", "test ! -e bad"]);
    let before = sandbox.git(&["rev-parse", "main"]);
    let write = "echo bad > bad; git add -A; git commit -qm bad;";
    for (name, change, what) in [
        ("x", "git config proq.verify.commands true", "setting proq.verify.commands"),
        (
            "i",
            "echo '[proq \"verify\"] commands = :' > $ROOT/more; git config include.path $ROOT/more",
            "setting proq.verify.commands",
        ),
        (
            "h",
            "printf '#!/bin/sh\\ntouch $ROOT/ran\\n' > $ROOT/repo/.git/hooks/post-merge; chmod +x $ROOT/repo/.git/hooks/post-merge",
            "hook post-merge",
        ),
    ] {
        let out = spawn(&sandbox, name, &format!("{write} {change}"));
        assert_eq!(out.code, 1, "{}", out.shown());
        assert_eq!(sandbox.git(&["rev-parse", "main"]), before, "{name}");
        assert_eq!(sandbox.row(name)["state"], "done");
        let why = refusals(&sandbox).pop().unwrap();
        assert!(why.contains(what) && why.ends_with(&format!("; git proq merge {name} lands it")), "{why}");
        let shown = sandbox.proq(&["show", name]).ok();
        let line = shown.lines().find(|line| line.trim_start().starts_with("by itself")).unwrap();
        assert!(line.contains(what) && !line.contains("tried again"), "{line}");
        sandbox.sh("git config proq.verify.commands 'test ! -e bad'; git config --unset-all include.path || :; rm -f .git/hooks/post-merge");
    }
    // The next landing does not take them along.
    sandbox.lane_of("y", "echo y > y");
    let _ = sandbox.proq(&["merge", "y"]).ok();
    for name in ["x", "i", "h"] {
        wait_until_free(&sandbox.lock(name, "landing.lock"));
        assert_eq!(sandbox.row(name)["state"], "done");
    }
    let said = sandbox.proq(&["merge", "x"]).fails(4);
    assert!(said.contains("check failed x"), "{said}");
    let out = spawn(&sandbox, "z", "echo z > z");
    assert_eq!(out.code, 0, "{}", out.shown());
    assert!(has(&sandbox, "z") && !has(&sandbox, "bad"));
}
