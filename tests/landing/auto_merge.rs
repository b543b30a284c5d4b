//! Tests of `git proq spawn --auto-merge`: automatic landings, their retries, and the cases that never land.

use std::process::Stdio;

use proq_test_kit::claude::{sandbox_with_claude, write_user_config};
use proq_test_kit::waiting::{KilledOnDrop, wait_until_unlocked};
use proq_test_kit::{Output, Sandbox};

/// Runs `script` as the agent of a new auto-merge lane and waits for its landing.
fn spawn_auto_merge(sandbox: &Sandbox, name: &str, script: &str) -> Output {
    sandbox.proq(&["spawn", "--auto-merge", "--wait", "-n", name, "--", "sh", "-ec", script])
}

/// Returns the messages of all refused automatic landings, in order.
fn refusals(sandbox: &Sandbox) -> Vec<String> {
    let all = sandbox.events("merge.refused");
    all.iter().map(|event| event["message"].as_str().unwrap().to_owned()).collect()
}

/// Creates a finished lane whose landing was refused because the base's checkout has an edit in the way.
fn with_refused_lane(name: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "mine\n");
    let out = spawn_auto_merge(&sandbox, name, "echo lane > a.txt");
    assert_eq!(out.code, 1, "{}", out.to_text());
    sandbox
}

fn has_file(sandbox: &Sandbox, file: &str) -> bool {
    sandbox.repo.join(file).exists()
}

#[test]
fn lands_lane_when_its_run_is_done() {
    let sandbox = Sandbox::new();
    let out = spawn_auto_merge(&sandbox, "x", "echo 1 > one");
    let commit = sandbox.git(&["rev-parse", "--short=8", "main"]);
    insta::assert_snapshot!(out.to_text().replace(&commit, "[COMMIT]"), @r"
    x: done
    landed x on main ([COMMIT])
    --- code 0
    ");
    assert!(has_file(&sandbox, "one"));
    assert_eq!(sandbox.row("x@1")["state"], "landed");
    let log = sandbox.proq(&["logs", "x@1", "--merge"]).ok();
    assert_eq!(log, format!("landed x on main ({commit})\n"));
    let shown = sandbox.proq(&["show", "x@1"]).ok();
    assert!(shown.contains("auto-merge it landed\n"), "{shown}");
    assert!(shown.contains("git proq logs x@1 --merge --run 1\n"), "{shown}");
    sandbox.assert_healthy();
}

#[test]
fn spawn_announces_auto_merge() {
    let sandbox = Sandbox::new();
    let plan = sandbox.proq(&["spawn", "--auto-merge", "-n", "x", "--dry-run", "--", "true"]).ok();
    assert!(plan.ends_with("  then      lands on main\n"), "{plan}");
    sandbox.pipe("go");
    let args = ["spawn", "--auto-merge", "-n", "x", "--", "sh", "-ec", "cat $ROOT/go; echo 1 > one"];
    insta::assert_snapshot!(sandbox.proq(&args).to_text(), @r"
    lane 'x' on branch proq/x, from main
      [ROOT]/repo/.proq-worktrees/x
    --- stderr
    your command is running there; the lane is merged when it is done
    hint: follow it: git proq logs -f x
    hint: wait for it: git proq wait x
    --- code 0
    ");
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(shown.contains("auto-merge merged into main when its run is done\n"), "{shown}");
    assert!(sandbox.proq(&["show", "x", "--json"]).json()["auto_merge"] == true);
    insta::assert_snapshot!(sandbox.proq(&["logs", "x", "--merge"]).to_text(), @r"
    --- stderr
    error: lane 'x' has no automatic merge
    hint: merge it: git proq merge x
    --- code 1
    ");
    sandbox.write_pipe("go");
    sandbox.wait_for_events("merge.landed", "x", 1);
    assert!(has_file(&sandbox, "one"));
    assert_eq!(sandbox.proq(&["spawn", "--auto-merge", "--empty", "-n", "y"]).code, 2);
}

#[test]
fn only_successful_runs_land() {
    let sandbox = Sandbox::new();
    let work = "echo 1 > one; git add -A; git commit -qm one;";
    let out = spawn_auto_merge(&sandbox, "failed", &format!("{work} exit 3"));
    assert_eq!(out.fails(4), "failed: failed (exit code 3)\n");
    let out = spawn_auto_merge(&sandbox, "nothing", "true");
    assert_eq!(out.ok(), "nothing: no-change\n");
    sandbox.pipe("up");
    let script = format!("{work} echo > $ROOT/up; sleep 600 & wait");
    let _ = sandbox.proq(&["spawn", "--auto-merge", "-n", "stopped", "--", "sh", "-ec", &script]).ok();
    sandbox.read_pipe("up");
    let _ = sandbox.proq(&["stop", "stopped"]).ok();
    assert_eq!(sandbox.git(&["rev-list", "--count", "main"]), "1");
    // The next landing does not land them either.
    sandbox.lane_with_commit("other", "echo 1 > other");
    let _ = sandbox.proq(&["merge", "other"]).ok();
    assert_eq!(refusals(&sandbox), [""; 0]);
    assert!(!sandbox.repo.join(".git/proq/locks/lanes/failed.landing.lock").exists());
}

/// Promise: concurrency/auto-merge-retried
#[test]
fn refused_lane_lands_after_next_landing() {
    let sandbox = with_refused_lane("late");
    let row = sandbox.row("late");
    assert_eq!((&row["state"], sandbox.read("a.txt").as_str()), (&"done".into(), "mine\n"));
    let all = sandbox.proq(&["events", "--json", "--last", "1"]).json();
    let last = &all["events"][0];
    assert_eq!(last["event"], "merge.refused");
    assert_eq!(last["lane"], "late");
    assert_eq!(last["state"], "done");
    let reason =
        last["message"].as_str().unwrap().strip_prefix("lane 'late' was not merged automatically: ").unwrap();
    assert!(reason.contains("a.txt"), "{reason}");
    let shown = sandbox.proq(&["show", "late"]).ok();
    let line = format!("auto-merge refused: {reason}; tried again after the next landing on main\n");
    assert!(shown.contains(&line), "{shown}");
    assert!(sandbox.proq(&["logs", "late", "--merge"]).ok().contains(reason));
    // Neither a landing on another base nor a dry run triggers the retry.
    sandbox.git(&["checkout", "-q", "--", "a.txt"]);
    sandbox.git(&["branch", "other"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "elsewhere", "--base", "other"]).ok();
    sandbox.commit_in_lane("elsewhere", "echo 1 > elsewhere");
    let _ = sandbox.proq(&["merge", "elsewhere"]).ok();
    sandbox.lane_with_commit("y", "echo 1 > y");
    let _ = sandbox.proq(&["merge", "y", "--dry-run"]).ok();
    assert!(!was_retried(&sandbox, "late"));
    let _ = sandbox.proq(&["merge", "y"]).ok();
    sandbox.wait_for_events("merge.landed", "late", 1);
    assert_eq!(sandbox.read("a.txt"), "lane\n");
    assert_eq!(refusals(&sandbox).len(), 1);
}

/// Returns whether a retry of `lane` is running or has run. The process exists before the command that
/// started it returns. No lane of another test may have this name, as tests run concurrently.
fn was_retried(sandbox: &Sandbox, lane: &str) -> bool {
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
fn retry_does_not_trigger_another_retry() {
    let sandbox = with_refused_lane("again-one");
    assert_eq!(spawn_auto_merge(&sandbox, "again-two", "echo other > a.txt").code, 1);
    // That was a landing, so the first lane was tried again after it.
    sandbox.wait_for_events("merge.refused", "again-one", 2);
    let _ = sandbox.proq(&["merge", "--auto", "retry", "again-one"]).fails(1);
    assert_eq!(refusals(&sandbox).len(), 4);
    assert!(!was_retried(&sandbox, "again-two"));
    assert_eq!(sandbox.row("again-two")["state"], "done");
}

/// Promise: concurrency/auto-merge-retried
#[test]
fn lanes_finished_concurrently_all_land() {
    let sandbox = Sandbox::new();
    let begin = |name| {
        sandbox.pipe(&format!("go-{name}"));
        let script = format!("cat $ROOT/go-{name}; echo 1 > {name}");
        let args = ["spawn", "--auto-merge", "--wait", "-n", name, "--", "sh", "-ec", &script];
        KilledOnDrop(sandbox.proq_command(&sandbox.repo, &args).stdout(Stdio::null()).spawn().unwrap())
    };
    let mut all = ["one", "two", "three"].map(begin);
    for name in ["one", "two", "three"] {
        sandbox.write_pipe(&format!("go-{name}"));
    }
    assert_eq!(all.each_mut().map(KilledOnDrop::exit_code), [Some(0); 3]);
    assert!(["one", "two", "three"].iter().all(|name| has_file(&sandbox, name)));
    assert_eq!(refusals(&sandbox), [""; 0]);
    sandbox.assert_healthy();
}

#[test]
fn auto_merge_queues_without_run_environment() {
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
    assert_eq!(sandbox.read_pipe("here"), "here\n");
    let queue = sandbox.proq(&["queue", "--json"]).json();
    assert_eq!(queue["queue"][0]["lanes"], serde_json::json!(["x"]));
    assert_eq!(queue["queue"][0]["command"], "git proq merge --auto run-ended x");
    assert_eq!(sandbox.row("x")["state"], "done", "its run is over");
    sandbox.write_pipe("go");
    sandbox.wait_for_events("merge.landed", "x", 1);
    sandbox.git(&["config", "proq.verify.commands", "test ! -e two"]);
    let out = spawn_auto_merge(&sandbox, "y", "echo 1 > two");
    assert!(out.clone().fails(4).contains("check failed on y"), "{}", out.to_text());
    assert_eq!(sandbox.row("y")["state"], "check-failed");
    assert_eq!(refusals(&sandbox), [""; 0]);
}

#[test]
fn conflict_resolver_defaults_to_lanes_own_agent() {
    // For the commit on the base the script acts as another user, without the agent's git settings.
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
    assert_eq!(out.code, 0, "{}", out.to_text());
    assert_eq!(sandbox.read("a.txt"), "main\nlane\n");
    assert_eq!(sandbox.proq(&["show", "x@1", "--json"]).json()["runs"].as_array().unwrap().len(), 2);
    // The first run triggered the landing; the second run resolved its conflict.
    let log = sandbox.proq(&["logs", "x@1", "--merge"]).ok();
    assert!(log.contains("landed x on main"), "{log}");
    // A plain command is not an agent, and an empty setting disables conflict agents.
    for (settings, agent) in [(&[][..], &["--", "able"][..]), (&[""], &["able", "Do it"])] {
        let (sandbox, out) = run(settings, agent);
        assert!(out.clone().fails(3).contains("x conflicts with main"), "{}", out.to_text());
        assert_eq!(
            (&sandbox.row("x")["state"], sandbox.read("a.txt").as_str()),
            (&"conflict".into(), "main\n")
        );
    }
}

/// Promise: concurrency/auto-merge-undo
#[test]
fn previewed_lane_does_not_auto_merge() {
    let sandbox = Sandbox::new();
    sandbox.pipe("up");
    sandbox.pipe("go");
    let script = "echo 1 > one; git add -A; git commit -qm one; echo > $ROOT/up; cat $ROOT/go";
    let _ = sandbox.proq(&["spawn", "--auto-merge", "-n", "x", "--", "sh", "-ec", script]).ok();
    sandbox.read_pipe("up");
    let _ = sandbox.proq(&["preview", "x"]).ok();
    sandbox.write_pipe("go");
    sandbox.wait_for_events("merge.refused", "x", 1);
    assert_eq!(sandbox.git(&["branch", "--show-current"]), "proq/x-preview");
    let reason = &refusals(&sandbox)[0];
    assert!(
        reason.ends_with("the main checkout shows it; leave the preview: git proq preview --back"),
        "{reason}"
    );
    let _ = sandbox.proq(&["preview", "--back"]).ok();
    sandbox.lane_with_commit("y", "echo 1 > y");
    let _ = sandbox.proq(&["merge", "y"]).ok();
    sandbox.wait_for_events("merge.landed", "x", 1);
    assert!(has_file(&sandbox, "one"));
}

/// Promise: concurrency/auto-merge-undo
#[test]
fn undo_disables_auto_merge() {
    let sandbox = Sandbox::new();
    let _ = spawn_auto_merge(&sandbox, "undone", "echo 1 > one").ok();
    let log = sandbox.proq(&["op", "log", "--json"]).json();
    let number = log["operations"][0]["operation"].to_string();
    let out = sandbox.proq(&["undo", &number]);
    assert!(out.stderr.contains("disabled the automatic merge of lane 'undone'"), "{}", out.to_text());
    assert_eq!((&sandbox.row("undone")["state"], has_file(&sandbox, "one")), (&"done".into(), false));
    assert_eq!(sandbox.proq(&["show", "undone", "--json"]).json()["auto_merge"], serde_json::Value::Null);
    sandbox.lane_with_commit("y", "echo 1 > y");
    let _ = sandbox.proq(&["merge", "y"]).ok();
    assert!(!was_retried(&sandbox, "undone"));
    assert!(!has_file(&sandbox, "one"));
    let _ = sandbox.proq(&["undo"]).ok();
    let _ = sandbox.proq(&["op", "redo"]).ok();
    sandbox.assert_healthy();
}

/// Promise: concurrency/auto-merge-wait
#[test]
fn surviving_agent_process_blocks_auto_merge() {
    let sandbox = sandbox_with_claude(
        r#"begin; echo 1 > one; setsid sh -c 'echo > "$ROOT/up"; read go < "$ROOT/go"' > /dev/null 2>&1 &
        read up < "$ROOT/up"; well"#,
    );
    sandbox.pipe("up");
    sandbox.pipe("go");
    // This profile disables the search for stray processes.
    write_user_config(&sandbox, "[agents.mine]\nlike = 'claude'\nprogram = 'claude'\nstrays = 'none'\n");
    let out = sandbox.proq(&["spawn", "--auto-merge", "--wait", "-n", "x", "mine", "do it"]);
    assert_eq!((out.code, out.stderr.contains("without a result")), (1, false), "{}", out.to_text());
    let reason = "lane 'x' was not merged automatically: a process of its agent is still running; stop it: git proq stop x";
    assert_eq!(refusals(&sandbox), [reason]);
    sandbox.write_pipe("go");
    wait_until_unlocked(&sandbox.lane_lock("x", "alive.lock"));
    sandbox.lane_with_commit("y", "echo 1 > y");
    let _ = sandbox.proq(&["merge", "y"]).ok();
    sandbox.wait_for_events("merge.landed", "x", 1);
}

/// Promise: concurrency/auto-merge-retried
#[cfg(debug_assertions)]
#[test]
fn killed_auto_merge_lands_with_next_landing() {
    // Killed before the landing has its turn, before the base has moved, and right after.
    for at in ["ticket.drafted", "transition.locked", "transition.moved"] {
        let sandbox = Sandbox::new();
        let mut command = sandbox.proq_command(
            &sandbox.repo,
            &["spawn", "--auto-merge", "--wait", "-n", "x", "--", "sh", "-ec", "echo 1 > one"],
        );
        command.env("PROQ_TEST_DIE_AT", at);
        let out = sandbox.output(command);
        // A landing whose base has moved is completed.
        let finished = at == "transition.moved";
        assert_eq!(out.code, i32::from(!finished), "{at}: {}", out.to_text());
        let is_retried = out.stderr.contains("its automatic merge ended without a result");
        assert_eq!(is_retried, !finished, "{at}: {}", out.to_text());
        sandbox.lane_with_commit("y", "echo 1 > y");
        let out = sandbox.proq(&["merge", "y"]);
        assert_eq!(out.code, 0, "{at}: {}", out.to_text());
        if finished {
            assert_eq!(sandbox.row("x")["state"], "landed");
        } else {
            sandbox.wait_for_events("merge.landed", "x", 1);
        }
        assert!(has_file(&sandbox, "one") && has_file(&sandbox, "y"), "{at}");
        assert_eq!(refusals(&sandbox), [""; 0], "{at}");
    }
}

/// Lands an unrelated lane, after which refused lanes are tried again.
fn land_another(sandbox: &Sandbox, name: &str) -> Output {
    sandbox.lane_with_commit(name, &format!("echo 1 > {name}"));
    let out = sandbox.proq(&["merge", name]);
    assert_eq!(out.code, 0, "{}", out.to_text());
    out
}

#[test]
fn commit_after_run_blocks_auto_merge() {
    let sandbox = with_refused_lane("moved-on");
    sandbox.git(&["checkout", "-q", "--", "a.txt"]);
    sandbox.commit_in_lane("moved-on", "echo half > half");
    let reason = "lane 'moved-on' was not merged automatically: its branch has moved since its run ended; to merge it: git proq merge moved-on";
    let out = land_another(&sandbox, "y");
    assert!(out.stderr.contains(reason), "{}", out.to_text());
    // The warning is printed only once.
    let out = land_another(&sandbox, "z");
    assert!(!out.stderr.contains("moved-on"), "{}", out.to_text());
    assert!(!was_retried(&sandbox, "moved-on"));
    assert_eq!((refusals(&sandbox).len(), refusals(&sandbox)[1].as_str()), (2, reason));
    assert_eq!((has_file(&sandbox, "half"), &sandbox.row("moved-on")["state"]), (false, &"done".into()));
    let shown = sandbox.proq(&["show", "moved-on"]).ok();
    let line = "auto-merge refused: its branch has moved since its run ended; to merge it: git proq merge moved-on\n";
    assert!(shown.contains(line), "{shown}");
    let _ = sandbox.proq(&["merge", "moved-on"]).ok();
    assert_eq!((has_file(&sandbox, "half"), sandbox.read("a.txt").as_str()), (true, "lane\n"));
}

#[test]
fn commit_during_auto_merge_blocks_it() {
    let sandbox = Sandbox::new();
    sandbox.pipe("here");
    sandbox.pipe("go");
    let check = "timeout 60 sh -c 'echo here > $ROOT/here'; timeout 60 cat $ROOT/go";
    sandbox.git(&["config", "proq.verify.commands", check]);
    let args = ["spawn", "--auto-merge", "-n", "x", "--", "sh", "-ec", "echo 1 > one"];
    let _ = sandbox.proq(&args).ok();
    sandbox.read_pipe("here");
    sandbox.commit_in_lane("x", "echo half > half");
    sandbox.write_pipe("go");
    sandbox.wait_for_events("merge.refused", "x", 1);
    assert!(!has_file(&sandbox, "one") && !has_file(&sandbox, "half"));
    let shown = sandbox.proq(&["show", "x"]).ok();
    assert!(shown.contains("auto-merge refused: its branch has moved since its run ended; "), "{shown}");
}

#[test]
fn leftover_work_lands_but_later_edits_do_not() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.agent.autocommit", "never"]);
    sandbox.git(&["config", "proq.merge.uncommitted", "commit"]);
    sandbox.write("a.txt", "mine\n");
    for name in ["committed", "dirty"] {
        assert_eq!(spawn_auto_merge(&sandbox, name, &format!("echo lane > a.txt; echo 1 > {name}")).code, 1);
        assert_eq!(sandbox.git_in(&sandbox.lane_path(name), &["status", "--short"]), "", "it is committed");
    }
    // The second landing, refused or not, triggers a retry of the first lane.
    sandbox.wait_for_events("merge.refused", "committed", 2);
    sandbox.git(&["checkout", "-q", "--", "a.txt"]);
    sandbox.write_in(&sandbox.lane_path("dirty"), "half", "half\n");
    let _ = land_another(&sandbox, "y");
    sandbox.wait_for_events("merge.landed", "committed", 1);
    sandbox.wait_for_events("merge.refused", "dirty", 2);
    assert!(has_file(&sandbox, "committed") && !has_file(&sandbox, "dirty"));
    assert_eq!(sandbox.git_in(&sandbox.lane_path("dirty"), &["status", "--short"]), "?? half");
    let _ = sandbox.proq(&["merge", "dirty"]).ok();
    assert!(has_file(&sandbox, "dirty") && has_file(&sandbox, "half"));
}

#[test]
fn retries_lane_resolved_by_its_agent() {
    let script = "case $(git log -1 --format=%s) in first) echo lane > a.txt; git commit -qam lane;
        unset GIT_CONFIG_PARAMETERS; cd \"$ROOT/repo\"; echo main > a.txt; git commit -qam main;; *)
        printf 'main\\nlane\\n' > a.txt; git add a.txt; echo mine > \"$ROOT/repo/a.txt\";; esac";
    let sandbox = Sandbox::new();
    sandbox.program("able", script);
    let out = sandbox.proq(&["spawn", "--auto-merge", "--wait", "-n", "x", "able", "Do it"]);
    assert_eq!((out.code, sandbox.read("a.txt").as_str()), (1, "mine\n"), "{}", out.to_text());
    sandbox.git(&["checkout", "-q", "--", "a.txt"]);
    let _ = land_another(&sandbox, "y");
    sandbox.wait_for_events("merge.landed", "x", 1);
    assert_eq!(sandbox.read("a.txt"), "main\nlane\n");
}

#[test]
fn settings_changed_by_run_block_other_lanes() {
    let sandbox = with_refused_lane("waits");
    sandbox.git(&["checkout", "-q", "--", "a.txt"]);
    sandbox.run_lane("x", "git config proq.verify.commands true");
    let _ = land_another(&sandbox, "y");
    assert!(!was_retried(&sandbox, "waits") && sandbox.row("waits")["state"] == "done");
    let shown = sandbox.proq(&["show", "waits"]).ok();
    let line = "refused: while lane 'x' ran, the agent or someone else changed setting proq.verify.commands; to merge it: git proq merge waits\n";
    assert!(shown.contains(line), "{shown}");
    let _ = sandbox.proq(&["merge", "waits"]).ok();
}

#[test]
fn unknown_changes_outside_lane_block_auto_merge() {
    let sandbox = with_refused_lane("waits");
    sandbox.git(&["checkout", "-q", "--", "a.txt"]);
    std::fs::create_dir_all(sandbox.repo.join(".git/proq/fences/waits-1")).unwrap();
    let _ = land_another(&sandbox, "y");
    assert!(!was_retried(&sandbox, "waits") && sandbox.row("waits")["state"] == "done");
    let shown = sandbox.proq(&["show", "waits"]).ok();
    assert!(shown.contains("refused: the other changes of its run are unknown; "), "{shown}");
    let _ = sandbox.proq(&["merge", "waits"]).ok();
}

/// An agent cannot land by changing the settings that its landing must satisfy.
/// Promise: concurrency/auto-merge-settings
#[test]
fn settings_changed_by_run_block_its_own_lane() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "proq.verify.commands", "test ! -e bad"]);
    let before = sandbox.git(&["rev-parse", "main"]);
    let write = "echo bad > bad; git add -A; git commit -qm bad;";
    for (name, change, changed_item) in [
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
        let out = spawn_auto_merge(&sandbox, name, &format!("{write} {change}"));
        assert_eq!(out.code, 1, "{}", out.to_text());
        assert_eq!(sandbox.git(&["rev-parse", "main"]), before, "{name}");
        assert_eq!(sandbox.row(name)["state"], "done");
        let reason = refusals(&sandbox).pop().unwrap();
        let hint = format!("; to merge it: git proq merge {name}");
        assert!(reason.contains(changed_item) && reason.ends_with(&hint), "{reason}");
        let shown = sandbox.proq(&["show", name]).ok();
        let line = shown.lines().find(|line| line.trim_start().starts_with("auto-merge")).unwrap();
        assert!(line.contains(changed_item) && !line.contains("tried again"), "{line}");
        sandbox.sh("git config proq.verify.commands 'test ! -e bad'; git config --unset-all include.path || :; rm -f .git/hooks/post-merge");
    }
    // The next landing does not land them either.
    sandbox.lane_with_commit("y", "echo y > y");
    let _ = sandbox.proq(&["merge", "y"]).ok();
    for name in ["x", "i", "h"] {
        wait_until_unlocked(&sandbox.lane_lock(name, "landing.lock"));
        assert_eq!(sandbox.row(name)["state"], "done");
    }
    let output = sandbox.proq(&["merge", "x"]).fails(4);
    assert!(output.contains("check failed on x"), "{output}");
    let out = spawn_auto_merge(&sandbox, "z", "echo z > z");
    assert_eq!(out.code, 0, "{}", out.to_text());
    assert!(has_file(&sandbox, "z") && !has_file(&sandbox, "bad"));
}
