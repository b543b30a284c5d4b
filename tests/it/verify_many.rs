//! Owns the tests of checks over many lanes, of several at once, and of those that are cut short.

use std::os::unix::process::ExitStatusExt;
use std::process::Child;

use super::support::{Output, Sandbox};

/// Starts a landing and returns once its check has written to the pipe `started`.
fn merge_until_checked(sandbox: &Sandbox, args: &[&str]) -> Child {
    sandbox.pipe("started");
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    assert_eq!(sandbox.hear("started"), "go\n");
    child
}

fn end_of(sandbox: &Sandbox, child: Child) -> Output {
    let out = child.wait_with_output().unwrap();
    let code = out.status.code().or(out.status.signal().map(|s| 128 + s)).unwrap();
    Output { stdout: sandbox.plain(&out.stdout), stderr: sandbox.plain(&out.stderr), code }
}

fn signal(sandbox: &Sandbox, child: &Child, name: &str) {
    let _ = sandbox.sh(&format!("kill -{name} {}", child.id()));
}

/// A check that says that it is there, notes its number and waits without end.
const WAITS: &str = "echo $$ > $ROOT/pid; echo go > $ROOT/started; sleep 600";

fn pid(sandbox: &Sandbox) -> String {
    std::fs::read_to_string(sandbox.root().join("pid")).unwrap().trim().to_owned()
}

#[test]
fn of_thirty_lanes_those_that_are_red_in_combination_are_named_and_the_others_land() {
    let sandbox = Sandbox::new();
    let pairs = [("p1", 3, 11), ("p2", 7, 29), ("p3", 0, 20)];
    let names: Vec<String> = (0..30).map(|n| format!("lane-{n:02}")).collect();
    for (n, name) in names.iter().enumerate() {
        let mut script = format!("echo {n} > {name}.txt");
        for (pair, a, b) in pairs {
            if n == a || n == b {
                script.push_str(&format!("; touch {pair}-{}", if n == a { "a" } else { "b" }));
            }
        }
        sandbox.lane_of(name, &script);
    }
    let check = "echo run >> $ROOT/runs; for p in p1 p2 p3; do if test -e $p-a && test -e $p-b; then echo red >> $ROOT/reds; exit 1; fi; done";
    let mut args = vec!["merge", "--verify", check, "--json"];
    args.extend(names.iter().map(String::as_str));
    let out = sandbox.proq(&args);
    assert_eq!(out.code, 4, "{}", out.stderr);
    let answer = out.json();
    let with = |result: &str| -> Vec<String> {
        let lanes = answer["lanes"].as_array().unwrap().iter().filter(|l| l["result"] == result);
        lanes.map(|l| l["lane"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(with("check-failed"), ["lane-11", "lane-20", "lane-29"]);
    assert_eq!(with("landed").len(), 27);
    for (n, name) in names.iter().enumerate() {
        assert_eq!(sandbox.repo.join(format!("{name}.txt")).exists(), ![11, 20, 29].contains(&n), "{name}");
    }
    let count = |file: &str| std::fs::read_to_string(sandbox.root().join(file)).unwrap().lines().count();
    // Each red run was tried once more.
    let (runs, retries) = (count("runs"), count("reds") / 2);
    assert_eq!(count("reds") % 2, 0);
    // k * ceil(log2(n)) + k + 2.
    assert!(runs - retries <= 3 * 5 + 3 + 2, "{runs} runs, {retries} of them tries of a red one");
    assert_eq!(answer["checks"]["runs"], runs);
    sandbox.assert_healthy();
}

#[test]
fn several_states_are_checked_at_the_same_time() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo one > one.txt");
    sandbox.lane_of("two", "echo two > two.txt");
    sandbox.pipe("meet");
    // Each is over only when the other one has come as far: one after the other they would wait in vain.
    let check = "if test -e two.txt; then timeout 60 cat $ROOT/meet; else timeout 60 sh -c 'echo here > $ROOT/meet'; fi; \
                 basename \"$PWD\" >> $ROOT/slots";
    let out = sandbox.proq(&["merge", "one", "two", "--jobs", "2", "--verify", check]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    let slots = std::fs::read_to_string(sandbox.root().join("slots")).unwrap();
    assert!(slots.contains("slot-0"), "{slots}");
    assert_eq!(sandbox.git(&["ls-files"]), "a.txt\none.txt\ntwo.txt");
    sandbox.assert_healthy();
}

#[test]
fn several_at_once_find_the_same_lanes() {
    let sandbox = Sandbox::new();
    for n in 0..7 {
        sandbox.lane_of(&format!("l{n}"), &format!("echo {n} > l{n}.txt"));
    }
    let check = "! { test -e l1.txt && test -e l4.txt; } && test ! -e l6.txt";
    let mut args = vec!["merge", "l0", "l1", "l2", "l3", "l4", "l5", "l6", "--jobs", "3"];
    args.extend(["--verify", check]);
    let out = sandbox.proq(&args).fails(4);
    let failed: Vec<&str> =
        out.lines().filter_map(|l| l.strip_prefix("check failed ")).map(|l| &l[..2]).collect();
    assert_eq!(failed, ["l4", "l6"]);
    assert_eq!(sandbox.git(&["ls-files"]), "a.txt\nl0.txt\nl1.txt\nl2.txt\nl3.txt\nl5.txt");
    sandbox.assert_healthy();
    // States that were only looked at are no part of what is taken back.
    sandbox.git(&["reflog", "expire", "--expire=now", "--all"]);
    sandbox.git(&["gc", "-q", "--prune=now"]);
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git(&["ls-files"]), "a.txt");
    let _ = sandbox.proq(&["op", "redo"]).ok();
    assert_eq!(sandbox.row("l4")["state"], "check-failed");
    assert_eq!(sandbox.git(&["ls-files"]), "a.txt\nl0.txt\nl1.txt\nl2.txt\nl3.txt\nl5.txt");
    sandbox.assert_healthy();
}

#[test]
fn ctrl_c_in_the_middle_of_a_check_moves_nothing() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo one > one.txt");
    let before = sandbox.git(&["for-each-ref"]);
    let child = merge_until_checked(&sandbox, &["merge", "one", "--verify", WAITS]);
    assert_ne!(sandbox.git(&["for-each-ref", "refs/proq/pending"]), "");
    signal(&sandbox, &child, "INT");
    let out = end_of(&sandbox, child);
    assert_eq!(out.code, 130, "{}", out.stderr);
    assert!(!sandbox.lives(&pid(&sandbox)), "the check lives on");
    assert_eq!(sandbox.git(&["for-each-ref"]), before);
    assert_eq!(sandbox.row("one")["state"], "idle");
    let listed = sandbox.proq(&["list"]);
    assert!(!listed.stderr.contains("cut short"), "{}", listed.stderr);
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["merge", "one", "--verify", "true"]).ok();
}

#[test]
fn a_landing_that_was_killed_in_a_check_leaves_nothing() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo one > one.txt");
    let before = sandbox.git(&["for-each-ref"]);
    let mut child = merge_until_checked(&sandbox, &["merge", "one", "--verify", WAITS]);
    // Only the ref leads to what is being checked.
    sandbox.git(&["gc", "-q", "--prune=now"]);
    let pending = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/pending"]);
    sandbox.git(&["cat-file", "-e", &pending]);
    signal(&sandbox, &child, "KILL");
    assert!(!child.wait().unwrap().success());
    assert!(sandbox.lives(&pid(&sandbox)));
    let _ = sandbox.proq(&["list"]).ok();
    assert_eq!(sandbox.git(&["for-each-ref"]), before);
    sandbox.assert_healthy();
    // What it left running is ended before anything else runs there.
    let left = pid(&sandbox);
    let _ = sandbox.proq(&["merge", "one", "--verify", "test ! -e left; touch left"]).ok();
    assert!(!sandbox.lives(&left));
    assert_eq!(sandbox.read("one.txt"), "one\n");
    sandbox.assert_healthy();
}

#[test]
fn what_fled_from_a_check_of_a_killed_landing_is_ended_before_the_next() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo one > one.txt");
    let check =
        "setsid sh -c 'echo $$ > $ROOT/pid; echo go > $ROOT/started; exec sleep 600' > /dev/null 2>&1 &
        echo $$ > $ROOT/shell; sleep 600";
    let mut child = merge_until_checked(&sandbox, &["merge", "one", "--verify", check]);
    signal(&sandbox, &child, "KILL");
    assert!(!child.wait().unwrap().success());
    let _ = sandbox.sh("kill -KILL $(cat $ROOT/shell)");
    let left = pid(&sandbox);
    assert!(sandbox.lives(&left));
    let _ = sandbox.proq(&["merge", "one", "--verify", "true"]).ok();
    assert!(!sandbox.lives(&left));
}

#[test]
fn what_flees_from_one_check_is_ended_before_the_next() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo one > one.txt");
    sandbox.lane_of("two", "echo two > two.txt");
    sandbox.pipe("fled");
    let check = "setsid sh -c 'echo $$ > $ROOT/pid; echo go > $ROOT/fled; exec sleep 600' > /dev/null 2>&1 &
        cat $ROOT/fled";
    let _ = sandbox.proq(&["merge", "one", "--verify", check]).ok();
    let fled = pid(&sandbox);
    assert!(sandbox.lives(&fled));
    let _ = sandbox.proq(&["merge", "two", "--verify", "! kill -0 $(cat $ROOT/pid)"]).ok();
    assert!(!sandbox.lives(&fled));
}

#[test]
fn two_landings_at_once_do_not_meet_in_one_worktree() {
    let sandbox = Sandbox::new();
    for name in ["one", "two", "three", "four"] {
        sandbox.lane_of(name, &format!("echo {name} > {name}.txt"));
    }
    let check = "mkdir busy || { echo met >> $ROOT/met; exit 1; }; git status --porcelain -uno >> $ROOT/met; rmdir busy";
    let merges: Vec<Child> = ["one", "two", "three", "four"]
        .iter()
        .map(|name| {
            let mut command = sandbox.proq_command(&sandbox.repo, &["merge", name, "--verify", check]);
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    for merge in merges {
        let out = end_of(&sandbox, merge);
        assert_eq!(out.code, 0, "{}", out.stderr);
    }
    assert_eq!(std::fs::read_to_string(sandbox.root().join("met")).unwrap(), "");
    assert_eq!(sandbox.git(&["ls-files"]), "a.txt\nfour.txt\none.txt\nthree.txt\ntwo.txt");
    sandbox.assert_healthy();
}

#[test]
fn a_base_that_moves_during_a_check_is_checked_anew() {
    let sandbox = Sandbox::new();
    sandbox.lane_of("one", "echo one > one.txt");
    let check = "git ls-files | tr '\\n' ' ' >> $ROOT/seen; echo >> $ROOT/seen; \
                 test -e late.txt || { cd $ROOT/repo && echo late > late.txt && git add late.txt && git commit -qm late; }";
    let out = sandbox.proq(&["merge", "one", "--verify", check]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    let seen = std::fs::read_to_string(sandbox.root().join("seen")).unwrap();
    assert_eq!(seen, "a.txt one.txt \na.txt late.txt one.txt \n");
    assert_eq!(sandbox.git(&["ls-files"]), "a.txt\nlate.txt\none.txt");
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/pending"]), "");
    sandbox.assert_healthy();
}
