//! Tests of checks over many lanes, of parallel checks, and of interrupted checks.

use std::os::unix::process::ExitStatusExt;
use std::process::Child;

use proq_test_kit::{Output, Sandbox};

/// Starts a landing and returns once its check has written to the pipe `started`.
fn merge_until_checked(sandbox: &Sandbox, args: &[&str]) -> Child {
    sandbox.pipe("started");
    let mut command = sandbox.proq_command(&sandbox.repo, args);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    assert_eq!(sandbox.read_pipe("started"), "go\n");
    child
}

fn wait_for_output(sandbox: &Sandbox, child: Child) -> Output {
    let out = child.wait_with_output().unwrap();
    let code = out.status.code().or(out.status.signal().map(|s| 128 + s)).unwrap();
    Output { stdout: sandbox.normalize(&out.stdout), stderr: sandbox.normalize(&out.stderr), code }
}

fn send_signal(sandbox: &Sandbox, child: &Child, name: &str) {
    let _ = sandbox.sh(&format!("kill -{name} {}", child.id()));
}

/// A check that signals its start, records its process id and never ends.
const ENDLESS_CHECK: &str = "echo $$ > $ROOT/pid; echo go > $ROOT/started; sleep 600";

fn check_pid(sandbox: &Sandbox) -> String {
    std::fs::read_to_string(sandbox.root().join("pid")).unwrap().trim().to_owned()
}

/// Promise: checks/failing-sets
#[test]
fn finds_failing_pairs_among_thirty_lanes() {
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
        sandbox.lane_with_commit(name, &script);
    }
    let check = "echo run >> $ROOT/runs; for p in p1 p2 p3; do if test -e $p-a && test -e $p-b; then echo red >> $ROOT/reds; exit 1; fi; done";
    let mut args = vec!["merge", "--verify", check, "--json"];
    args.extend(names.iter().map(String::as_str));
    let out = sandbox.proq(&args);
    assert_eq!(out.code, 4, "{}", out.stderr);
    let answer = out.json();
    let lanes_with_result = |result: &str| -> Vec<String> {
        let lanes = answer["lanes"].as_array().unwrap().iter().filter(|l| l["result"] == result);
        lanes.map(|l| l["lane"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(lanes_with_result("check-failed"), ["lane-11", "lane-20", "lane-29"]);
    assert_eq!(lanes_with_result("landed").len(), 27);
    for (n, name) in names.iter().enumerate() {
        assert_eq!(sandbox.repo.join(format!("{name}.txt")).exists(), ![11, 20, 29].contains(&n), "{name}");
    }
    let count = |file: &str| std::fs::read_to_string(sandbox.root().join(file)).unwrap().lines().count();
    // Each failed run was retried once.
    let (runs, retries) = (count("runs"), count("reds") / 2);
    assert_eq!(count("reds") % 2, 0);
    // Bound for `k` failing pairs among `n` lanes: k * ceil(log2(n)) + k + 2 runs.
    assert!(runs - retries <= 3 * 5 + 3 + 2, "{runs} runs, {retries} of them tries of a red one");
    assert_eq!(answer["checks"]["runs"], runs);
    sandbox.assert_healthy();
}

#[test]
fn jobs_checks_states_in_parallel() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    sandbox.lane_with_commit("two", "echo two > two.txt");
    sandbox.pipe("meet");
    // Each check ends only after the other has started: one after the other they would time out.
    let check = "if test -e two.txt; then timeout 60 cat $ROOT/meet; else timeout 60 sh -c 'echo here > $ROOT/meet'; fi; \
                 basename \"$PWD\" >> $ROOT/slots";
    let out = sandbox.proq(&["merge", "one", "two", "--jobs", "2", "--verify", check]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    let slots = std::fs::read_to_string(sandbox.root().join("slots")).unwrap();
    assert!(slots.contains("git-proq-checks-1"), "{slots}");
    assert_eq!(sandbox.git(&["ls-files"]), "a.txt\none.txt\ntwo.txt");
    sandbox.assert_healthy();
}

#[test]
fn parallel_checks_find_the_same_failures() {
    let sandbox = Sandbox::new();
    for n in 0..7 {
        sandbox.lane_with_commit(&format!("l{n}"), &format!("echo {n} > l{n}.txt"));
    }
    let check = "! { test -e l1.txt && test -e l4.txt; } && test ! -e l6.txt";
    let mut args = vec!["merge", "l0", "l1", "l2", "l3", "l4", "l5", "l6", "--jobs", "3"];
    args.extend(["--verify", check]);
    let out = sandbox.proq(&args).fails(4);
    let failed: Vec<&str> =
        out.lines().filter_map(|l| l.strip_prefix("check failed on ")).map(|l| &l[..2]).collect();
    assert_eq!(failed, ["l4", "l6"]);
    assert_eq!(sandbox.git(&["ls-files"]), "a.txt\nl0.txt\nl1.txt\nl2.txt\nl3.txt\nl5.txt");
    sandbox.assert_healthy();
    // States that were only checked are no part of an undo.
    sandbox.git(&["reflog", "expire", "--expire=now", "--all"]);
    sandbox.git(&["gc", "-q", "--prune=now"]);
    let _ = sandbox.proq(&["undo"]).ok();
    assert_eq!(sandbox.git(&["ls-files"]), "a.txt");
    let _ = sandbox.proq(&["op", "redo"]).ok();
    assert_eq!(sandbox.row("l4")["state"], "check-failed");
    assert_eq!(sandbox.git(&["ls-files"]), "a.txt\nl0.txt\nl1.txt\nl2.txt\nl3.txt\nl5.txt");
    sandbox.assert_healthy();
}

/// Promise: checks/interrupt
#[test]
fn ctrl_c_during_a_check_moves_nothing() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    let before = sandbox.git(&["for-each-ref"]);
    let child = merge_until_checked(&sandbox, &["merge", "one", "--verify", ENDLESS_CHECK]);
    assert_ne!(sandbox.git(&["for-each-ref", "refs/proq/pending"]), "");
    send_signal(&sandbox, &child, "INT");
    let out = wait_for_output(&sandbox, child);
    assert_eq!(out.code, 130, "{}", out.stderr);
    assert!(!sandbox.is_alive(&check_pid(&sandbox)), "the check lives on");
    assert_eq!(sandbox.git(&["for-each-ref"]), before);
    assert_eq!(sandbox.row("one")["state"], "idle");
    let listed = sandbox.proq(&["list"]);
    assert!(!listed.stderr.contains("cut short"), "{}", listed.stderr);
    sandbox.assert_healthy();
    let _ = sandbox.proq(&["merge", "one", "--verify", "true"]).ok();
}

/// Promise: checks/gc-and-crash
#[test]
fn landing_killed_during_a_check_leaves_nothing() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    let before = sandbox.git(&["for-each-ref"]);
    let mut child = merge_until_checked(&sandbox, &["merge", "one", "--verify", ENDLESS_CHECK]);
    // Only the pending ref keeps the checked state from being pruned.
    sandbox.git(&["gc", "-q", "--prune=now"]);
    let pending = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/pending"]);
    sandbox.git(&["cat-file", "-e", &pending]);
    send_signal(&sandbox, &child, "KILL");
    assert!(!child.wait().unwrap().success());
    assert!(sandbox.is_alive(&check_pid(&sandbox)));
    let _ = sandbox.proq(&["list"]).ok();
    assert_eq!(sandbox.git(&["for-each-ref"]), before);
    sandbox.assert_healthy();
    // The process that it left running is killed before the next check runs there.
    let stray = check_pid(&sandbox);
    let _ = sandbox.proq(&["merge", "one", "--verify", "test ! -e left; touch left"]).ok();
    assert!(!sandbox.is_alive(&stray));
    assert_eq!(sandbox.read("one.txt"), "one\n");
    sandbox.assert_healthy();
}

/// Promise: checks/leftover-processes
#[test]
fn kills_detached_process_of_killed_landing() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    let check =
        "setsid sh -c 'echo $$ > $ROOT/pid; echo go > $ROOT/started; exec sleep 600' > /dev/null 2>&1 &
        echo $$ > $ROOT/shell; sleep 600";
    let mut child = merge_until_checked(&sandbox, &["merge", "one", "--verify", check]);
    send_signal(&sandbox, &child, "KILL");
    assert!(!child.wait().unwrap().success());
    let _ = sandbox.sh("kill -KILL $(cat $ROOT/shell)");
    let stray = check_pid(&sandbox);
    assert!(sandbox.is_alive(&stray));
    let _ = sandbox.proq(&["merge", "one", "--verify", "true"]).ok();
    assert!(!sandbox.is_alive(&stray));
}

/// Promise: checks/leftover-processes
#[test]
fn kills_detached_process_before_the_next_check() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
    sandbox.lane_with_commit("two", "echo two > two.txt");
    sandbox.pipe("fled");
    let check = "setsid sh -c 'echo $$ > $ROOT/pid; echo go > $ROOT/fled; exec sleep 600' > /dev/null 2>&1 &
        cat $ROOT/fled";
    let _ = sandbox.proq(&["merge", "one", "--verify", check]).ok();
    let stray = check_pid(&sandbox);
    assert!(sandbox.is_alive(&stray));
    let _ = sandbox
        .proq(&["merge", "two", "--verify", "ps -o stat= -p $(cat $ROOT/pid) | grep -v '^Z' && exit 1 || :"])
        .ok();
    assert!(!sandbox.is_alive(&stray));
}

/// Promise: checks/worktree-not-shared
#[test]
fn concurrent_landings_never_share_a_check_worktree() {
    let sandbox = Sandbox::new();
    for name in ["one", "two", "three", "four"] {
        sandbox.lane_with_commit(name, &format!("echo {name} > {name}.txt"));
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
        let out = wait_for_output(&sandbox, merge);
        assert_eq!(out.code, 0, "{}", out.stderr);
    }
    assert_eq!(std::fs::read_to_string(sandbox.root().join("met")).unwrap(), "");
    assert_eq!(sandbox.git(&["ls-files"]), "a.txt\nfour.txt\none.txt\nthree.txt\ntwo.txt");
    sandbox.assert_healthy();
}

/// Promise: checks/exact-commit
#[test]
fn base_moved_during_check_is_checked_again() {
    let sandbox = Sandbox::new();
    sandbox.lane_with_commit("one", "echo one > one.txt");
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
