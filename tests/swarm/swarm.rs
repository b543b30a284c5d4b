//! Tests of running a plan: order of the tasks, where they land, and what is reported.

use proq_test_kit::Sandbox;
use proq_test_kit::plans::{install_worker, repo_with_plan};

/// Six tasks: two paths from the first to the fourth, one task after that, and one that is independent.
pub(super) const DIAMOND: &str = r#"format = 1
summary = "A diamond"
agent = "worker"
[[task]]
id = "top"
title = "The top"
[[task]]
id = "left"
title = "The left side"
needs = ["top"]
[[task]]
id = "right"
title = "The right side"
needs = ["top"]
[[task]]
id = "bottom"
title = "The bottom"
needs = ["left", "right"]
[[task]]
id = "foot"
title = "What it stands on"
needs = ["bottom"]
[[task]]
id = "alone"
title = "Something else"
"#;

/// Returns the tasks that were run, each with its attempt, in order.
pub(super) fn recorded_runs(sandbox: &Sandbox) -> Vec<String> {
    let text = std::fs::read_to_string(sandbox.root().join("ran")).unwrap_or_default();
    text.lines().map(ToOwned::to_owned).collect()
}

/// Returns a task of `status --json`.
#[track_caller]
pub(super) fn task_status(sandbox: &Sandbox, name: &str) -> serde_json::Value {
    let status = sandbox.proq(&["status", "--json"]).json();
    let tasks = status["tasks"].as_array().unwrap();
    tasks.iter().find(|task| task["name"] == name).unwrap().clone()
}

#[test]
fn batch_completes_and_lands_in_one_step() {
    let sandbox = repo_with_plan(DIAMOND);
    let out = sandbox.proq(&["swarm", "plan.toml"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(out.stdout.contains("batch 20260102-030405 is complete: 6 of 6 tasks landed"), "{}", out.stdout);
    assert!(out.stderr.contains("git proq merge --batch 20260102-030405"), "{}", out.stderr);
    let mut order = recorded_runs(&sandbox);
    let at = |name: &str| order.iter().position(|ran| ran.starts_with(name)).unwrap();
    assert!(at("top") < at("left") && at("top") < at("right"));
    assert!(at("left") < at("bottom") && at("right") < at("bottom") && at("bottom") < at("foot"));
    order.sort();
    assert_eq!(order, ["alone 1", "bottom 1", "foot 1", "left 1", "right 1", "top 1"]);
    // The user's branch and checkout are unchanged; the batch's branch has all tasks.
    assert_eq!(sandbox.git(&["log", "--oneline", "main"]).lines().count(), 1);
    let files = sandbox.git(&["ls-tree", "--name-only", "proq/batch-20260102-030405"]);
    assert_eq!(files, "a.txt\nalone.txt\nbottom.txt\nfoot.txt\nleft.txt\nright.txt\ntop.txt");
    assert_eq!(sandbox.proq(&["list", "--json"]).json()["lanes"].as_array().unwrap().len(), 0);
    let outputs = || ["status", "report"].map(|command| sandbox.proq(&["batch", command]).to_text());
    assert_eq!(sandbox.proq(&["status", "--json"]).json()["on_base"], false);
    assert!(outputs().iter().all(|told| !told.contains("is on main")), "{:?}", outputs());
    let landed = sandbox.proq(&["merge", "--batch", "20260102-030405"]).ok();
    assert!(landed.contains("landed"), "{landed}");
    assert!(sandbox.repo.join("foot.txt").exists());
    // `status` and `report` now name the base and no longer suggest the landing.
    assert_eq!(sandbox.proq(&["status", "--json"]).json()["on_base"], true);
    let [status, report] = outputs();
    assert!(status.contains("; merged into main\n") && !status.contains("merge it into"), "{status}");
    assert!(status.contains("hint: clean up: git proq cleanup --batch 20260102-030405\n"), "{status}");
    assert!(report.contains("proq/batch-20260102-030405 for main; all of it is on main\n"), "{report}");
    let cleaned = sandbox.proq(&["cleanup", "--batch", "20260102-030405"]).ok();
    assert!(cleaned.contains("cleaned up batch 20260102-030405: 0 lanes"), "{cleaned}");
    assert_eq!(sandbox.git(&["branch", "--list", "proq/*"]), "");
    // The operation log names commands that a user can type.
    let log = sandbox.proq(&["op", "log"]).ok();
    assert!(!log.contains(" _") && log.contains("git proq batch resume 20260102-030405"), "{log}");
    assert!(
        log.contains("branch proq/batch-20260102-030405 removed") && !log.contains("records only"),
        "{log}"
    );
}

#[test]
fn task_starts_from_its_dependencies() {
    let sandbox = repo_with_plan(DIAMOND);
    install_worker(&sandbox, "ls > \"$ROOT/seen-$name\"");
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).ok();
    let files = |name: &str| std::fs::read_to_string(sandbox.root().join(format!("seen-{name}"))).unwrap();
    assert_eq!(files("top"), "a.txt\n");
    for name in ["top.txt", "left.txt", "right.txt"] {
        assert!(files("bottom").lines().any(|file| file == name), "{}", files("bottom"));
    }
}

#[test]
fn prompt_has_plan_text_and_place_in_plan() {
    let plan = "format = 1\nsummary = \"A shop\"\nagent = \"worker\"\n[[group]]\ntheme = \"x\"\nprompt = \"Be brief.\"\n\
                [[group.task]]\nid = \"one\"\ntitle = \"One\"\n[[group.task]]\nid = \"two\"\ntitle = \"Two\"\nprompt = \"Make it two.\"\nneeds = [\"one\"]\n";
    let sandbox = repo_with_plan(plan);
    install_worker(&sandbox, "printf '%s' \"$1\" > $ROOT/told-$name");
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).ok();
    insta::assert_snapshot!(std::fs::read_to_string(sandbox.root().join("told-two")).unwrap(), @"
    Make it two.

    Be brief.

    This is task `two` of a plan (A shop). Do only this task: other agents work on the rest of the plan. The tasks that it depends on are done and included here: `one`.
    ");
}

#[test]
fn doctor_reports_leftovers_of_unrecorded_batch() {
    let sandbox = repo_with_plan(DIAMOND);
    install_worker(&sandbox, "[ $name != left ] || exit 1");
    sandbox.git(&["config", "proq.swarm.maxAttempts", "1"]);
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).fails(4);
    sandbox.assert_healthy();
    let lane = sandbox.row("left");
    assert_eq!(lane["batch"]["task"], "left", "{lane}");
    assert_eq!(lane["batch"]["batch"], "20260102-030405");
    sandbox.sh("rm .git/proq/batches/20260102-030405/batch.toml");
    let report = sandbox.proq(&["doctor"]).stdout;
    for finding in [
        "batches/20260102-030405 belongs to a batch whose creation was not completed",
        "lane 'left' is for left of batch 20260102-030405, which has no record: it is not being continued",
        "proq/batch-20260102-030405 is the branch of a batch which has no record",
    ] {
        assert!(report.contains(finding), "{report}");
    }
}

#[test]
fn progress_file_matches_status() {
    let sandbox = repo_with_plan(DIAMOND);
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q", "--progress-file", "far.json"]).ok();
    let progress: serde_json::Value = serde_json::from_str(&sandbox.read("far.json")).unwrap();
    assert_eq!(
        (&progress["schema"], &progress["state"], &progress["counts"]["landed"]),
        (&1.into(), &"over".into(), &6.into())
    );
    let answer = sandbox.proq(&["status", "--json"]).json();
    assert_eq!(answer["tasks"], progress["tasks"]);
}

/// Four independent tasks.
const WIDE: &str = "format = 1\nsummary = \"Wide\"\nagent = \"worker\"\n[[task]]\nid = \"a-1\"\ntitle = \"A\"\n[[task]]\nid = \"b\"\ntitle = \"B\"\n\
                    [[task]]\nid = \"c\"\ntitle = \"C\"\n[[task]]\nid = \"d\"\ntitle = \"D\"\n";

#[test]
fn creates_lanes_of_one_wave_in_one_operation() {
    let sandbox = repo_with_plan(WIDE);
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q", "--max-parallel", "4"]).ok();
    let log = sandbox.proq(&["op", "log", "--json"]).json();
    let spawns: Vec<_> =
        log["operations"].as_array().unwrap().iter().filter(|op| op["kind"] == "spawn").collect();
    assert_eq!((spawns.len(), &spawns[0]["did"]), (1, &"lanes a-1, b, c, d created".into()));
}

#[test]
fn uncreatable_lane_does_not_block_other_tasks() {
    let sandbox = repo_with_plan(WIDE);
    // A branch cannot have the name of a folder of branches.
    sandbox.sh("for n in c c-2 c-3; do git branch proq/$n/in-the-way; done");
    sandbox.git(&["config", "proq.swarm.maxAttempts", "1"]);
    let out = sandbox.proq(&["swarm", "plan.toml", "-q"]);
    let landed = |name: &str| task_status(&sandbox, name)["state"] == "landed";
    assert!(landed("a-1") && landed("b") && landed("d"), "{}", out.to_text());
}

#[test]
fn long_plan_is_truncated_without_confirmation() {
    use std::fmt::Write;
    let mut plan = "format = 1\nagent = \"worker\"\n".to_owned();
    for n in 1..=24 {
        write!(plan, "[[task]]\nid = \"t{n}\"\ntitle = \"Task {n}\"\n").unwrap();
    }
    let sandbox = repo_with_plan(&plan);
    let all = sandbox.proq(&["swarm", "plan.toml", "--yes", "--dry-run"]);
    assert!(all.stderr.contains("Task 24\n") && !all.stderr.contains(" more; "), "{}", all.to_text());
    let out = sandbox.proq(&["swarm", "plan.toml", "--yes", "--max-parallel", "8"]);
    assert_eq!(out.code, 0, "{}", out.to_text());
    assert!(out.stderr.contains("Task 20\n") && !out.stderr.contains("Task 21\n"), "{}", out.stderr);
    assert!(out.stderr.contains("\nand 4 more; --dry-run lists all\n"), "{}", out.stderr);
    assert_eq!(out.stderr.matches(": queued\n").count(), 11, "{}", out.stderr);
    assert!(out.stderr.contains("  6 more: queued\n"), "{}", out.stderr);
}
