//! Tests of checks that belong to a lane's task: on which states they run, which lane fails for them, and
//! where they are shown.

use proq_test_kit::conflict::{GOOD_SCRIPT, sandbox_with_conflict};
use proq_test_kit::runs::sandbox_with_old_lane;
use proq_test_kit::{Output, Sandbox};

/// Creates a lane with checks of its own, and commits what a shell script does in it.
#[track_caller]
fn lane_with_checks(sandbox: &Sandbox, name: &str, script: &str, checks: &[&str]) {
    let mut args = vec!["spawn", "--empty", "-n", name];
    args.extend(checks.iter().flat_map(|check| ["--check", check]));
    let _ = sandbox.proq(&args).ok();
    sandbox.commit_in_lane(name, script);
}

/// Returns the lines that checks have written to a file of the sandbox.
fn lines(sandbox: &Sandbox, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(sandbox.root().join(file)).unwrap_or_default();
    text.lines().map(ToOwned::to_owned).collect()
}

/// Returns the lanes of a landing's answer with this result.
fn lanes_with_result(answer: &serde_json::Value, result: &str) -> Vec<String> {
    let lanes = answer["lanes"].as_array().unwrap().iter().filter(|l| l["result"] == result);
    lanes.map(|l| l["lane"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn assert_red(sandbox: &Sandbox, out: &Output, landed: &[&str], failed: &[&str]) {
    assert_eq!(out.code, 4, "{}", out.stderr);
    let answer = out.json();
    assert_eq!(
        (lanes_with_result(&answer, "landed"), lanes_with_result(&answer, "check-failed")),
        (to_strings(landed), to_strings(failed))
    );
    for name in failed {
        assert_eq!(sandbox.row(name)["state"], "check-failed");
    }
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/pending"]), "");
    sandbox.assert_healthy();
}

fn to_strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Promise: checks/task-checks
#[test]
fn failed_task_check_refuses_lane_even_if_base_fails() {
    let sandbox = Sandbox::new();
    let before = sandbox.git(&["rev-parse", "main"]);
    lane_with_checks(&sandbox, "pay", "echo half > half.txt", &["echo looking; test -e pay.txt"]);
    let out = sandbox.proq(&["merge", "pay"]);
    insta::assert_snapshot!(out.to_text(), @r"
    check failed on pay: its own check `echo looking; test -e pay.txt` failed (exit code 1) on main
        $ echo looking; test -e pay.txt
        looking
    --- stderr
    checks failed for 1 lane on main (2 runs)
    hint: show its full output: git proq logs pay --checks
    --- code 4
    ");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
    assert_eq!(sandbox.row("pay")["state"], "check-failed");
    let log = sandbox.proq(&["logs", "pay", "--check"]).ok();
    assert!(log.starts_with("$ echo looking; test -e pay.txt\nlooking\n--- retry\n"), "{log}");
    let shown = sandbox.proq(&["show", "pay"]).ok();
    assert!(
        shown.contains("its own `echo looking; test -e pay.txt` failed with this lane on main"),
        "{shown}"
    );
    sandbox.commit_in_lane("pay", "echo pay > pay.txt");
    let out = sandbox.proq(&["merge", "--all"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(out.stderr.contains("checks passed for 1 lane on main (1 run)"), "{}", out.stderr);
    assert_eq!(sandbox.read("pay.txt"), "pay\n");
    sandbox.assert_healthy();
}

/// Promise: checks/task-check-scope
#[test]
fn task_check_runs_only_on_states_with_its_lane() {
    let sandbox = Sandbox::new();
    let recording_check = |name: &str| format!("echo \"{name} of $PROQ_LANES\" >> $ROOT/runs");
    lane_with_checks(&sandbox, "one", "echo 1 > one.txt", &[&recording_check("one"), "test -e one.txt"]);
    lane_with_checks(&sandbox, "two", "echo 2 > two.txt", &[]);
    lane_with_checks(&sandbox, "bad", "echo 3 > bad.txt", &[&recording_check("bad"), "test ! -e bad.txt"]);
    let all = recording_check("all");
    let args = ["merge", "one", "two", "bad", "--order", "given", "--json", "--verify", &all];
    let out = sandbox.proq(&args);
    assert_red(&sandbox, &out, &["one", "two"], &["bad"]);
    let full_stack = ["all of one two bad", "one of one two bad", "bad of one two bad"];
    let mut expected: Vec<&str> = [full_stack, full_stack].concat();
    expected.extend(["all of one", "one of one", "all of one two", "one of one two"]);
    assert_eq!(lines(&sandbox, "runs"), expected);
    let answer = out.json();
    assert_eq!(answer["checks"]["commands"], serde_json::json!([all]));
    assert_eq!(answer["checks"]["tasks"][0]["lane"], "one");
    assert_eq!(answer["checks"]["tasks"][1]["commands"][1], "test ! -e bad.txt");
    let check = &answer["lanes"][2]["check"];
    assert_eq!((&check["task_of"], &check["command"]), (&"bad".into(), &"test ! -e bad.txt".into()));
    assert_eq!((sandbox.read("one.txt"), sandbox.read("two.txt")), ("1\n".into(), "2\n".into()));
}

/// Promise: checks/task-check-scope
#[test]
fn lane_that_breaks_a_lower_lanes_check_is_refused() {
    let sandbox = Sandbox::new();
    lane_with_checks(&sandbox, "pay", "echo pay > pay.txt", &["test -e pay.txt && test ! -e broken.txt"]);
    lane_with_checks(&sandbox, "mid", "echo mid > mid.txt", &[]);
    lane_with_checks(&sandbox, "breaks", "echo broken > broken.txt", &[]);
    let out = sandbox.proq(&["merge", "pay", "mid", "breaks", "--order", "given"]);
    let message = out.fails(4);
    insta::assert_snapshot!(message.lines().find(|l| l.starts_with("check failed")).unwrap(), @"check failed on breaks: `test -e pay.txt && test ! -e broken.txt`, a check of lane 'pay', failed (exit code 1), but passes on main with mid and 1 other lane");
    assert_eq!(sandbox.git(&["ls-files"]), "a.txt\nmid.txt\npay.txt");
    // A check no longer applies once its lane is on the base.
    let _ = sandbox.proq(&["merge", "breaks"]).ok();
    assert_eq!(sandbox.read("broken.txt"), "broken\n");
    sandbox.assert_healthy();
}

/// Promise: checks/task-checks
#[test]
fn base_failure_excuses_landing_but_not_task_check() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "--add", "proq.verify.commands", "test -e done.txt"]);
    lane_with_checks(&sandbox, "other", "echo other > other.txt", &[]);
    lane_with_checks(&sandbox, "lazy", "echo lazy > lazy.txt", &["test -e done.txt"]);
    sandbox.git(&["config", "proq.verify.baseFailures", "warn"]);
    let out = sandbox.proq(&["merge", "other", "lazy", "--order", "given", "--json"]);
    assert!(out.stderr.contains("`test -e done.txt` fails on main itself"), "{}", out.stderr);
    assert_red(&sandbox, &out, &["other"], &["lazy"]);
    assert_eq!(sandbox.read("other.txt"), "other\n");
}

#[test]
fn equal_checks_of_lanes_run_once() {
    let sandbox = Sandbox::new();
    let check = "echo run >> $ROOT/runs";
    for name in ["one", "two", "three"] {
        lane_with_checks(&sandbox, name, &format!("echo {name} > {name}.txt"), &[check, check]);
    }
    let _ = sandbox.proq(&["merge", "--all", "--verify", check]).ok();
    assert_eq!(lines(&sandbox, "runs").len(), 1);
    assert_eq!(sandbox.git(&["ls-files"]), "a.txt\none.txt\nthree.txt\ntwo.txt");
}

#[test]
fn verify_cache_depends_on_checks_and_lane() {
    let sandbox = Sandbox::new();
    let merge = |name: &str| {
        let out = sandbox.proq(&["merge", name, "--verify", "echo all >> $ROOT/runs"]);
        assert_eq!(out.code, 0, "{}", out.stderr);
        let _ = sandbox.proq(&["undo"]).ok();
        lines(&sandbox, "runs").len()
    };
    lane_with_checks(&sandbox, "plain", "echo same > same.txt", &[]);
    lane_with_checks(&sandbox, "picky", "echo same > same.txt", &["echo picky >> $ROOT/runs"]);
    lane_with_checks(&sandbox, "same", "echo same > same.txt", &["echo picky >> $ROOT/runs"]);
    // The files are the same each time; the cache depends on the checks that ran and on the lane.
    assert_eq!([merge("plain"), merge("plain"), merge("picky")], [1, 1, 3]);
    assert_eq!([merge("picky"), merge("same"), merge("plain")], [3, 5, 5]);
}

/// Promise: checks/task-checks
#[test]
fn task_checks_apply_to_rebase_and_squash() {
    for strategy in ["rebase", "squash"] {
        let sandbox = Sandbox::new();
        lane_with_checks(&sandbox, "good", "echo good > good.txt", &["test -e good.txt"]);
        lane_with_checks(&sandbox, "bad", "echo bad > bad.txt", &["test ! -e bad.txt"]);
        sandbox.sh("echo on > on.txt; git add on.txt; git commit -qm on");
        let out = sandbox.proq(&["merge", "--all", "--strategy", strategy, "--json"]);
        assert_red(&sandbox, &out, &["good"], &["bad"]);
        assert_eq!(sandbox.git(&["ls-files"]), "a.txt\ngood.txt\non.txt", "{strategy}");
    }
}

#[test]
fn task_checks_apply_to_atomic_and_many_bases() {
    let sandbox = Sandbox::new();
    sandbox.git(&["branch", "dev"]);
    lane_with_checks(&sandbox, "good", "echo good > good.txt", &["test -e good.txt"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "bad", "--base", "dev", "--check", "false"]).ok();
    sandbox.commit_in_lane("bad", "echo bad > bad.txt");
    let refs = sandbox.git(&["for-each-ref", "refs/heads"]);
    let out = sandbox.proq(&["merge", "good", "bad", "--atomic", "--json"]);
    assert_eq!(
        (lanes_with_result(&out.json(), "refused"), lanes_with_result(&out.json(), "check-failed")),
        (to_strings(&["good"]), to_strings(&["bad"]))
    );
    assert_eq!(sandbox.git(&["for-each-ref", "refs/heads"]), refs);
    let out = sandbox.proq(&["merge", "good", "bad", "--json"]);
    assert_red(&sandbox, &out, &["good"], &["bad"]);
    assert_eq!(sandbox.read("good.txt"), "good\n");
}

#[test]
fn parallel_checks_find_the_same_failures() {
    let sandbox = Sandbox::new();
    for n in 0..7 {
        let checks: &[&str] = match n {
            1 => &["test ! -e l4.txt"],
            6 => &["false"],
            _ => &[],
        };
        lane_with_checks(&sandbox, &format!("l{n}"), &format!("echo {n} > l{n}.txt"), checks);
    }
    let names = ["l0", "l1", "l2", "l3", "l4", "l5", "l6"];
    let args: Vec<&str> =
        ["merge", "--json", "--order", "given", "--jobs", "3"].into_iter().chain(names).collect();
    assert_red(&sandbox, &sandbox.proq(&args), &["l0", "l1", "l2", "l3", "l5"], &["l4", "l6"]);
}

#[test]
fn no_checks_skips_task_checks_and_verify_does_not() {
    let sandbox = Sandbox::new();
    lane_with_checks(&sandbox, "pay", "echo half > half.txt", &["test -e pay.txt"]);
    let _ = sandbox.proq(&["merge", "pay", "--verify", "true"]).fails(4);
    let out = sandbox.proq(&["merge", "pay", "--no-checks", "--json"]);
    assert_eq!((out.code, &out.json()["checks"]), (0, &serde_json::Value::Null));
    assert_eq!(sandbox.read("half.txt"), "half\n");
}

#[test]
fn dry_run_lists_task_checks_and_runs_none() {
    let sandbox = Sandbox::new();
    lane_with_checks(&sandbox, "one", "echo one > one.txt", &["echo mine >> $ROOT/runs"]);
    lane_with_checks(&sandbox, "two", "echo two > two.txt", &[]);
    let out = sandbox.proq(&["merge", "one", "two", "--dry-run", "--verify", "echo all >> $ROOT/runs"]);
    insta::assert_snapshot!(out.to_text(), @"
    would land one on main
    would land two on main
    would check with: echo all >> $ROOT/runs
    would check with: echo mine >> $ROOT/runs, for one
    2 of 2 lanes would land: 2 files changed, 2 insertions(+)
    --- code 0
    ");
    let plan = sandbox.proq(&["merge", "one", "two", "--dry-run", "--verify", "true", "--json"]).json();
    let (both, all) = (serde_json::json!(["true", "echo mine >> $ROOT/runs"]), serde_json::json!(["true"]));
    let checks = |row: &str| plan.pointer(&format!("/{row}/checks")).unwrap().clone();
    assert_eq!(["lanes/0", "lanes/1", "bases/0"].map(checks), [both.clone(), all, both]);
    let out = sandbox.proq(&["merge", "one", "--dry-run", "--no-checks"]).ok();
    assert!(!out.contains("would check"), "{out}");
    assert_eq!(lines(&sandbox, "runs").len(), 0);
}

#[test]
fn spawn_and_show_list_checks_and_refuse_blank_one() {
    let sandbox = Sandbox::new();
    let spawn_args = ["spawn", "--empty", "-n", "pay", "--check", "make pay", "--check", "make refunds"];
    let out = sandbox.proq(&[&spawn_args[..], &["--dry-run"]].concat());
    insta::assert_snapshot!(out.to_text(), @r"
    would create lane 'pay'
      branch    proq/pay
      worktree  [ROOT]/repo/.proq-worktrees/pay
      from      7f85e07d (main)
      runs      nothing
      check     `make pay`
      check     `make refunds`
    --- code 0
    ");
    let out = sandbox.proq(&[&spawn_args[..], &["--json"]].concat()).json();
    assert_eq!(out["checks"], serde_json::json!(["make pay", "make refunds"]));
    let shown = sandbox.proq(&["show", "pay"]).ok();
    assert!(
        shown.contains("\ncheck      `make pay` must pass\ncheck      `make refunds` must pass\n"),
        "{shown}"
    );
    assert_eq!(sandbox.proq(&["show", "pay", "--json"]).json()["checks"], out["checks"]);
    let message = sandbox.proq(&["spawn", "--empty", "-n", "none", "--check", " "]).fails(2);
    assert!(message.contains("error: --check names no command"), "{message}");
    assert!(sandbox.row("none").is_null());
    // Records from before checks were added can still be read.
    let record = sandbox.repo.join(".git/proq/lanes/pay/lane.toml");
    let text = std::fs::read_to_string(&record).unwrap();
    assert!(text.starts_with("format = 1\n"), "{text}");
    let old: String = text.split_inclusive('\n').filter(|l| !l.starts_with("checks")).collect();
    assert_ne!(old, text);
    std::fs::write(&record, old).unwrap();
    assert!(!sandbox.proq(&["show", "pay"]).ok().contains("must pass"));
}

#[test]
fn conflict_prompt_lists_required_checks() {
    let sandbox = sandbox_with_conflict();
    let record = sandbox.repo.join(".git/proq/lanes/clash/lane.toml");
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, text.replacen("attempt =", "checks = ['make clash']\nattempt =", 1)).unwrap();
    sandbox.git(&["config", "--add", "proq.verify.commands", "make everything"]);
    sandbox.program("listens", &format!("{GOOD_SCRIPT}; printf %s \"$1\" > $ROOT/prompt"));
    let _ = sandbox.proq(&["resolve", "clash", "--agent", "listens"]).ok();
    let prompt = std::fs::read_to_string(sandbox.root().join("prompt")).unwrap();
    let expected = "Before the resolution is merged, these shell commands must succeed in the top-level folder of the repository:\n\n\
                - `make everything`\n- `make clash`\n";
    assert!(prompt.contains(expected), "{prompt}");
}

#[test]
fn redispatch_keeps_task_checks() {
    let sandbox = sandbox_with_old_lane();
    let record = sandbox.repo.join(".git/proq/lanes/old/lane.toml");
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, text.replacen("attempt =", "checks = ['test -e pay.txt']\nattempt =", 1))
        .unwrap();
    let _ = sandbox.proq(&["redispatch", "old"]).ok();
    let _ = sandbox.proq(&["wait", "old"]).ok();
    let shown = sandbox.proq(&["show", "old", "--json"]).json();
    assert_eq!(shown["checks"], serde_json::json!(["test -e pay.txt"]));
    assert!(sandbox.proq(&["merge", "old"]).fails(4).contains("its own check `test -e pay.txt`"));
}
