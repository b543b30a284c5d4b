//! Owns the tests of checks that belong to a lane's task: where they count, whose fault a red one is, where they are told.

use super::redispatch::old_lane;
use super::resolve::{GOOD, conflicting};
use super::support::{Output, Sandbox};

/// Makes a lane with checks of its own, and commits what a shell script does in it.
#[track_caller]
fn lane(sandbox: &Sandbox, name: &str, script: &str, checks: &[&str]) {
    let mut args = vec!["spawn", "--empty", "-n", name];
    args.extend(checks.iter().flat_map(|check| ["--check", check]));
    let _ = sandbox.proq(&args).ok();
    sandbox.commit_in_lane(name, script);
}

/// The lines that checks have written to a file of the sandbox.
fn lines(sandbox: &Sandbox, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(sandbox.root().join(file)).unwrap_or_default();
    text.lines().map(ToOwned::to_owned).collect()
}

/// The lanes of a landing's answer with this result.
fn with(answer: &serde_json::Value, result: &str) -> Vec<String> {
    let lanes = answer["lanes"].as_array().unwrap().iter().filter(|l| l["result"] == result);
    lanes.map(|l| l["lane"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn assert_red(sandbox: &Sandbox, out: &Output, landed: &[&str], failed: &[&str]) {
    assert_eq!(out.code, 4, "{}", out.stderr);
    let answer = out.json();
    assert_eq!((with(&answer, "landed"), with(&answer, "check-failed")), (own(landed), own(failed)));
    for name in failed {
        assert_eq!(sandbox.row(name)["state"], "check-failed");
    }
    assert_eq!(sandbox.git(&["for-each-ref", "refs/proq/pending"]), "");
    sandbox.assert_healthy();
}

fn own(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_lane_that_does_not_do_its_task_is_left_out_though_the_base_does_not_either() {
    let sandbox = Sandbox::new();
    let before = sandbox.git(&["rev-parse", "main"]);
    lane(&sandbox, "pay", "echo half > half.txt", &["echo looking; test -e pay.txt"]);
    let out = sandbox.proq(&["merge", "pay"]);
    insta::assert_snapshot!(out.shown(), @r"
    check failed pay: its own check `echo looking; test -e pay.txt` failed (exit code 1) with it on main; main does not have it
        $ echo looking; test -e pay.txt
        looking
    --- stderr
    checked 1 lane on main: 2 runs
    hint: all that it wrote: git proq logs pay --check
    --- code 4
    ");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), before);
    assert_eq!(sandbox.row("pay")["state"], "check-failed");
    let log = sandbox.proq(&["logs", "pay", "--check"]).ok();
    assert!(log.starts_with("$ echo looking; test -e pay.txt\nlooking\n--- once more\n"), "{log}");
    let shown = sandbox.proq(&["show", "pay"]).ok();
    assert!(shown.contains("its own `echo looking; test -e pay.txt` failed with it on main"), "{shown}");
    sandbox.commit_in_lane("pay", "echo pay > pay.txt");
    let out = sandbox.proq(&["merge", "--all"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(out.stderr.contains("checked 1 lane on main: 1 run"), "{}", out.stderr);
    assert_eq!(sandbox.read("pay.txt"), "pay\n");
    sandbox.assert_healthy();
}

#[test]
fn a_check_runs_where_its_lane_is_and_nowhere_else() {
    let sandbox = Sandbox::new();
    let noted = |name: &str| format!("echo \"{name} of $PROQ_LANES\" >> $ROOT/runs");
    lane(&sandbox, "one", "echo 1 > one.txt", &[&noted("one"), "test -e one.txt"]);
    lane(&sandbox, "two", "echo 2 > two.txt", &[]);
    lane(&sandbox, "bad", "echo 3 > bad.txt", &[&noted("bad"), "test ! -e bad.txt"]);
    let all = noted("all");
    let args = ["merge", "one", "two", "bad", "--order", "given", "--json", "--verify", &all];
    let out = sandbox.proq(&args);
    assert_red(&sandbox, &out, &["one", "two"], &["bad"]);
    let whole = ["all of one two bad", "one of one two bad", "bad of one two bad"];
    let mut wanted: Vec<&str> = [whole, whole].concat();
    wanted.extend(["all of one", "one of one", "all of one two", "one of one two"]);
    assert_eq!(lines(&sandbox, "runs"), wanted);
    let answer = out.json();
    assert_eq!(answer["checks"]["commands"], serde_json::json!([all]));
    assert_eq!(answer["checks"]["tasks"][0]["lane"], "one");
    assert_eq!(answer["checks"]["tasks"][1]["commands"][1], "test ! -e bad.txt");
    let check = &answer["lanes"][2]["check"];
    assert_eq!((&check["task_of"], &check["command"]), (&"bad".into(), &"test ! -e bad.txt".into()));
    assert_eq!((sandbox.read("one.txt"), sandbox.read("two.txt")), ("1\n".into(), "2\n".into()));
}

#[test]
fn a_lane_that_breaks_the_task_of_one_below_it_is_at_fault() {
    let sandbox = Sandbox::new();
    lane(&sandbox, "pay", "echo pay > pay.txt", &["test -e pay.txt && test ! -e broken.txt"]);
    lane(&sandbox, "mid", "echo mid > mid.txt", &[]);
    lane(&sandbox, "breaks", "echo broken > broken.txt", &[]);
    let out = sandbox.proq(&["merge", "pay", "mid", "breaks", "--order", "given"]);
    let said = out.fails(4);
    insta::assert_snapshot!(said.lines().find(|l| l.starts_with("check failed")).unwrap(), @"check failed breaks: `test -e pay.txt && test ! -e broken.txt`, a check of lane 'pay', failed (exit code 1) with it on main, mid and 1 other lane, but not without it; main does not have it");
    assert_eq!(sandbox.git(&["ls-files"]), "a.txt\nmid.txt\npay.txt");
    // Once that lane is on the base, nobody asks for it any more.
    let _ = sandbox.proq(&["merge", "breaks"]).ok();
    assert_eq!(sandbox.read("broken.txt"), "broken\n");
    sandbox.assert_healthy();
}

#[test]
fn a_line_that_is_red_on_the_base_is_excused_for_the_landing_and_not_for_the_task() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "--add", "proq.verify.commands", "test -e done.txt"]);
    lane(&sandbox, "other", "echo other > other.txt", &[]);
    lane(&sandbox, "lazy", "echo lazy > lazy.txt", &["test -e done.txt"]);
    let out = sandbox.proq(&["merge", "other", "lazy", "--order", "given", "--json"]);
    assert!(out.stderr.contains("`test -e done.txt` fails on main itself"), "{}", out.stderr);
    assert_red(&sandbox, &out, &["other"], &["lazy"]);
    assert_eq!(sandbox.read("other.txt"), "other\n");
}

#[test]
fn lanes_with_the_same_check_run_it_once() {
    let sandbox = Sandbox::new();
    let check = "echo run >> $ROOT/runs";
    for name in ["one", "two", "three"] {
        lane(&sandbox, name, &format!("echo {name} > {name}.txt"), &[check, check]);
    }
    let _ = sandbox.proq(&["merge", "--all", "--verify", check]).ok();
    assert_eq!(lines(&sandbox, "runs").len(), 1);
    assert_eq!(sandbox.git(&["ls-files"]), "a.txt\none.txt\nthree.txt\ntwo.txt");
}

#[test]
fn what_was_good_with_other_checks_is_looked_at_again() {
    let sandbox = Sandbox::new();
    let merge = |name: &str| {
        let out = sandbox.proq(&["merge", name, "--verify", "echo all >> $ROOT/runs"]);
        assert_eq!(out.code, 0, "{}", out.stderr);
        let _ = sandbox.proq(&["undo"]).ok();
        lines(&sandbox, "runs").len()
    };
    lane(&sandbox, "plain", "echo same > same.txt", &[]);
    lane(&sandbox, "picky", "echo same > same.txt", &["echo picky >> $ROOT/runs"]);
    lane(&sandbox, "same", "echo same > same.txt", &["echo picky >> $ROOT/runs"]);
    // The same files each time; what was run on them is what counts, and in which lane they are.
    assert_eq!([merge("plain"), merge("plain"), merge("picky")], [1, 1, 3]);
    assert_eq!([merge("picky"), merge("same"), merge("plain")], [3, 5, 5]);
}

#[test]
fn with_other_ways_to_land_the_checks_count_all_the_same() {
    for strategy in ["rebase", "squash"] {
        let sandbox = Sandbox::new();
        lane(&sandbox, "good", "echo good > good.txt", &["test -e good.txt"]);
        lane(&sandbox, "bad", "echo bad > bad.txt", &["test ! -e bad.txt"]);
        sandbox.sh("echo on > on.txt; git add on.txt; git commit -qm on");
        let out = sandbox.proq(&["merge", "--all", "--strategy", strategy, "--json"]);
        assert_red(&sandbox, &out, &["good"], &["bad"]);
        assert_eq!(sandbox.git(&["ls-files"]), "a.txt\ngood.txt\non.txt", "{strategy}");
    }
}

#[test]
fn all_or_none_and_several_bases() {
    let sandbox = Sandbox::new();
    sandbox.git(&["branch", "dev"]);
    lane(&sandbox, "good", "echo good > good.txt", &["test -e good.txt"]);
    let _ = sandbox.proq(&["spawn", "--empty", "-n", "bad", "--base", "dev", "--check", "false"]).ok();
    sandbox.commit_in_lane("bad", "echo bad > bad.txt");
    let refs = sandbox.git(&["for-each-ref", "refs/heads"]);
    let out = sandbox.proq(&["merge", "good", "bad", "--atomic", "--json"]);
    assert_eq!(
        (with(&out.json(), "refused"), with(&out.json(), "check-failed")),
        (own(&["good"]), own(&["bad"]))
    );
    assert_eq!(sandbox.git(&["for-each-ref", "refs/heads"]), refs);
    let out = sandbox.proq(&["merge", "good", "bad", "--json"]);
    assert_red(&sandbox, &out, &["good"], &["bad"]);
    assert_eq!(sandbox.read("good.txt"), "good\n");
}

#[test]
fn several_states_at_once_find_the_same_lanes() {
    let sandbox = Sandbox::new();
    for n in 0..7 {
        let checks: &[&str] = match n {
            1 => &["test ! -e l4.txt"],
            6 => &["false"],
            _ => &[],
        };
        lane(&sandbox, &format!("l{n}"), &format!("echo {n} > l{n}.txt"), checks);
    }
    let names = ["l0", "l1", "l2", "l3", "l4", "l5", "l6"];
    let args: Vec<&str> =
        ["merge", "--json", "--order", "given", "--jobs", "3"].into_iter().chain(names).collect();
    assert_red(&sandbox, &sandbox.proq(&args), &["l0", "l1", "l2", "l3", "l5"], &["l4", "l6"]);
}

#[test]
fn no_checks_leaves_them_out_and_verify_does_not() {
    let sandbox = Sandbox::new();
    lane(&sandbox, "pay", "echo half > half.txt", &["test -e pay.txt"]);
    let _ = sandbox.proq(&["merge", "pay", "--verify", "true"]).fails(4);
    let out = sandbox.proq(&["merge", "pay", "--no-checks", "--json"]);
    assert_eq!((out.code, &out.json()["checks"]), (0, &serde_json::Value::Null));
    assert_eq!(sandbox.read("half.txt"), "half\n");
}

#[test]
fn a_dry_run_names_them_and_runs_nothing() {
    let sandbox = Sandbox::new();
    lane(&sandbox, "one", "echo one > one.txt", &["echo mine >> $ROOT/runs"]);
    lane(&sandbox, "two", "echo two > two.txt", &[]);
    let out = sandbox.proq(&["merge", "one", "two", "--dry-run", "--verify", "echo all >> $ROOT/runs"]);
    insta::assert_snapshot!(out.shown(), @r"
    would land one on main
    would land two on main
    would check with: echo all >> $ROOT/runs
    would check with: echo mine >> $ROOT/runs, for one
    --- code 0
    ");
    let out = sandbox.proq(&["merge", "one", "--dry-run", "--no-checks"]).ok();
    assert!(!out.contains("would check"), "{out}");
    assert_eq!(lines(&sandbox, "runs").len(), 0);
}

#[test]
fn spawn_and_show_tell_them_and_a_blank_one_is_refused() {
    let sandbox = Sandbox::new();
    let asked = ["spawn", "--empty", "-n", "pay", "--check", "make pay", "--check", "make refunds"];
    let out = sandbox.proq(&[&asked[..], &["--dry-run"]].concat());
    insta::assert_snapshot!(out.shown(), @r"
    would make lane 'pay'
      branch    proq/pay
      worktree  [ROOT]/repo/.proq-worktrees/pay
      from      7f85e07d (main)
      runs      nothing
      lands if  `make pay` succeeds
      lands if  `make refunds` succeeds
    --- code 0
    ");
    let out = sandbox.proq(&[&asked[..], &["--json"]].concat()).json();
    assert_eq!(out["checks"], serde_json::json!(["make pay", "make refunds"]));
    let shown = sandbox.proq(&["show", "pay"]).ok();
    assert!(
        shown.contains("\nlands if   `make pay` succeeds\nlands if   `make refunds` succeeds\n"),
        "{shown}"
    );
    assert_eq!(sandbox.proq(&["show", "pay", "--json"]).json()["checks"], out["checks"]);
    let said = sandbox.proq(&["spawn", "--empty", "-n", "none", "--check", " "]).fails(2);
    assert!(said.contains("error: --check names no command"), "{said}");
    assert!(sandbox.row("none").is_null());
    // Records of before they were there are read as ever.
    let record = sandbox.repo.join(".git/proq/lanes/pay/lane.toml");
    let text = std::fs::read_to_string(&record).unwrap();
    assert!(text.starts_with("format = 1\n"), "{text}");
    let old: String = text.split_inclusive('\n').filter(|l| !l.starts_with("checks")).collect();
    assert_ne!(old, text);
    std::fs::write(&record, old).unwrap();
    assert!(!sandbox.proq(&["show", "pay"]).ok().contains("lands if"));
}

#[test]
fn who_resolves_a_conflict_is_told_what_must_succeed() {
    let sandbox = conflicting();
    let record = sandbox.repo.join(".git/proq/lanes/clash/lane.toml");
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, text.replacen("attempt =", "checks = ['make clash']\nattempt =", 1)).unwrap();
    sandbox.git(&["config", "--add", "proq.verify.commands", "make everything"]);
    sandbox.program("listens", &format!("{GOOD}; printf %s \"$1\" > $ROOT/prompt"));
    let _ = sandbox.proq(&["resolve", "clash", "--agent", "listens"]).ok();
    let prompt = std::fs::read_to_string(sandbox.root().join("prompt")).unwrap();
    let told = "Before it lands, these shell commands must succeed with it, at the top of the repository:\n\n\
                - `make everything`\n- `make clash`\n";
    assert!(prompt.contains(told), "{prompt}");
}

#[test]
fn a_task_that_starts_afresh_keeps_them() {
    let sandbox = old_lane();
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
