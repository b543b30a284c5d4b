//! Owns running a plan: what is done, what lands where, and what is said of it.

use crate::support::Sandbox;

/// Six tasks: two ways from the first to the fourth, one after that, and one by itself.
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

/// An agent that notes that it ran, and commits a file called after its task; before that it does what `more` says.
pub(super) fn worker(sandbox: &Sandbox, more: &str) {
    let script = format!(
        r#"
name=$(echo "$PROQ_TASK" | tr / -)
echo "$PROQ_TASK $PROQ_TASK_ATTEMPT" >> "$ROOT/ran"
{more}
echo "work of $PROQ_TASK" > "$name.txt"
git add -A && git commit -qm "work of $PROQ_TASK"
"#
    );
    sandbox.program("worker", &script);
}

/// The tasks that were run, each with its attempt, in order.
pub(super) fn ran(sandbox: &Sandbox) -> Vec<String> {
    let text = std::fs::read_to_string(sandbox.root().join("ran")).unwrap_or_default();
    text.lines().map(ToOwned::to_owned).collect()
}

/// A repository with a plan in it.
pub(super) fn planned(plan: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("plan.toml", plan);
    worker(&sandbox, "");
    sandbox
}

/// A task's line of `status --json`.
#[track_caller]
pub(super) fn task(sandbox: &Sandbox, name: &str) -> serde_json::Value {
    let status = sandbox.proq(&["status", "--json"]).json();
    let tasks = status["tasks"].as_array().unwrap();
    tasks.iter().find(|task| task["name"] == name).unwrap().clone()
}

#[test]
fn a_plan_is_run_to_its_end_and_lands_in_one_step() {
    let sandbox = planned(DIAMOND);
    let out = sandbox.proq(&["swarm", "plan.toml"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    assert!(out.stdout.contains("batch 20260102-030405 is complete: 6 of 6 tasks landed"), "{}", out.stdout);
    assert!(out.stderr.contains("git proq merge --batch 20260102-030405"), "{}", out.stderr);
    let mut order = ran(&sandbox);
    let at = |name: &str| order.iter().position(|ran| ran.starts_with(name)).unwrap();
    assert!(at("top") < at("left") && at("top") < at("right"));
    assert!(at("left") < at("bottom") && at("right") < at("bottom") && at("bottom") < at("foot"));
    order.sort();
    assert_eq!(order, ["alone 1", "bottom 1", "foot 1", "left 1", "right 1", "top 1"]);
    // The user's own branch and checkout are as they were; the batch's branch has all of it.
    assert_eq!(sandbox.git(&["log", "--oneline", "main"]).lines().count(), 1);
    let files = sandbox.git(&["ls-tree", "--name-only", "proq/batch-20260102-030405"]);
    assert_eq!(files, "a.txt\nalone.txt\nbottom.txt\nfoot.txt\nleft.txt\nright.txt\ntop.txt");
    assert_eq!(sandbox.proq(&["list", "--json"]).json()["lanes"].as_array().unwrap().len(), 0);
    let told = || ["status", "report"].map(|command| sandbox.proq(&[command]).shown());
    assert_eq!(sandbox.proq(&["status", "--json"]).json()["on_base"], false);
    assert!(told().iter().all(|told| !told.contains("is on main")), "{:?}", told());
    let landed = sandbox.proq(&["merge", "--batch", "20260102-030405"]).ok();
    assert!(landed.contains("landed"), "{landed}");
    assert!(sandbox.repo.join("foot.txt").exists());
    // It is told where it is, and not to land it once more.
    assert_eq!(sandbox.proq(&["status", "--json"]).json()["on_base"], true);
    let [status, report] = told();
    assert!(status.contains("; all of that is on main\n") && !status.contains("land it on"), "{status}");
    assert!(status.contains("hint: tidy up: git proq cleanup --batch 20260102-030405\n"), "{status}");
    assert!(report.contains("proq/batch-20260102-030405 for main; all of it is on main\n"), "{report}");
    let gone = sandbox.proq(&["cleanup", "--batch", "20260102-030405"]).ok();
    assert!(gone.contains("cleaned up batch 20260102-030405: 0 lanes"), "{gone}");
    assert_eq!(sandbox.git(&["branch", "--list", "proq/*"]), "");
    // What was done is told by commands that a person can type.
    let log = sandbox.proq(&["op", "log"]).ok();
    assert!(!log.contains(" _") && log.contains("git proq resume 20260102-030405"), "{log}");
    assert!(
        log.contains("branch proq/batch-20260102-030405 removed") && !log.contains("records only"),
        "{log}"
    );
}

#[test]
fn each_task_starts_from_what_it_needs() {
    let sandbox = planned(DIAMOND);
    worker(&sandbox, "ls > \"$ROOT/seen-$name\"");
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).ok();
    let seen = |name: &str| std::fs::read_to_string(sandbox.root().join(format!("seen-{name}"))).unwrap();
    assert_eq!(seen("top"), "a.txt\n");
    for name in ["top.txt", "left.txt", "right.txt"] {
        assert!(seen("bottom").lines().any(|file| file == name), "{}", seen("bottom"));
    }
}

#[test]
fn the_agent_is_told_the_plans_words_and_where_it_stands() {
    let plan = "format = 1\nsummary = \"A shop\"\nagent = \"worker\"\n[[group]]\ntheme = \"x\"\nprompt = \"Be brief.\"\n\
                [[group.task]]\nid = \"one\"\ntitle = \"One\"\n[[group.task]]\nid = \"two\"\ntitle = \"Two\"\nprompt = \"Make it two.\"\nneeds = [\"one\"]\n";
    let sandbox = planned(plan);
    worker(&sandbox, "printf '%s' \"$1\" > $ROOT/told-$name");
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).ok();
    insta::assert_snapshot!(std::fs::read_to_string(sandbox.root().join("told-two")).unwrap(), @r"
    Make it two.

    Be brief.

    This is task `two` of a plan (A shop). Do this task and no other: others are at work on the rest of the plan. What it builds on is done and is here: `one`.
    ");
}

#[test]
fn the_doctor_names_what_is_left_of_batches_of_which_nothing_is_known() {
    let sandbox = planned(DIAMOND);
    worker(&sandbox, "[ $name != left ] || exit 1");
    sandbox.git(&["config", "proq.swarm.maxAttempts", "1"]);
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).fails(4);
    sandbox.assert_healthy();
    let lane = sandbox.row("left");
    assert_eq!(lane["batch"]["task"], "left", "{lane}");
    assert_eq!(lane["batch"]["batch"], "20260102-030405");
    sandbox.sh("rm .git/proq/batches/20260102-030405/batch.toml");
    let said = sandbox.proq(&["doctor"]).stdout;
    for what in [
        "batches/20260102-030405 belongs to a batch that was never finished",
        "lane 'left' is for left of batch 20260102-030405, of which nothing is known: nobody goes on with it",
        "proq/batch-20260102-030405 is the branch of a batch of which nothing is known",
    ] {
        assert!(said.contains(what), "{said}");
    }
}

#[test]
fn how_far_it_is_can_be_had_in_a_file() {
    let sandbox = planned(DIAMOND);
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q", "--progress-file", "far.json"]).ok();
    let far: serde_json::Value = serde_json::from_str(&sandbox.read("far.json")).unwrap();
    assert_eq!(
        (&far["schema"], &far["state"], &far["counts"]["landed"]),
        (&1.into(), &"over".into(), &6.into())
    );
    let answer = sandbox.proq(&["status", "--json"]).json();
    assert_eq!(answer["tasks"], far["tasks"]);
}

/// Four tasks that need nothing.
const WIDE: &str = "format = 1\nsummary = \"Wide\"\nagent = \"worker\"\n[[task]]\nid = \"a-1\"\ntitle = \"A\"\n[[task]]\nid = \"b\"\ntitle = \"B\"\n\
                    [[task]]\nid = \"c\"\ntitle = \"C\"\n[[task]]\nid = \"d\"\ntitle = \"D\"\n";

#[test]
fn lanes_that_are_wanted_at_once_are_made_at_once() {
    let sandbox = planned(WIDE);
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q", "--max-parallel", "4"]).ok();
    let log = sandbox.proq(&["op", "log", "--json"]).json();
    let spawns: Vec<_> =
        log["operations"].as_array().unwrap().iter().filter(|op| op["kind"] == "spawn").collect();
    assert_eq!((spawns.len(), &spawns[0]["did"]), (1, &"lanes a-1, b, c, d made".into()));
}

#[test]
fn a_lane_that_cannot_be_made_does_not_hold_up_the_others() {
    let sandbox = planned(WIDE);
    // No branch can be called as a folder of branches is.
    sandbox.sh("for n in c c-2 c-3; do git branch proq/$n/in-the-way; done");
    sandbox.git(&["config", "proq.swarm.maxAttempts", "1"]);
    let out = sandbox.proq(&["swarm", "plan.toml", "-q"]);
    let landed = |name: &str| task(&sandbox, name)["state"] == "landed";
    assert!(landed("a-1") && landed("b") && landed("d"), "{}", out.shown());
}

#[test]
fn a_long_plan_that_begins_without_a_question_is_not_listed_in_full() {
    use std::fmt::Write;
    let mut plan = "format = 1\nagent = \"worker\"\n".to_owned();
    for n in 1..=24 {
        write!(plan, "[[task]]\nid = \"t{n}\"\ntitle = \"Task {n}\"\n").unwrap();
    }
    let sandbox = planned(&plan);
    let all = sandbox.proq(&["swarm", "plan.toml", "--yes", "--dry-run"]);
    assert!(all.stderr.contains("Task 24\n") && !all.stderr.contains(" more; "), "{}", all.shown());
    let out = sandbox.proq(&["swarm", "plan.toml", "--yes", "--max-parallel", "8"]);
    assert_eq!(out.code, 0, "{}", out.shown());
    assert!(out.stderr.contains("Task 20\n") && !out.stderr.contains("Task 21\n"), "{}", out.stderr);
    assert!(out.stderr.contains("\nand 4 more; --dry-run lists all\n"), "{}", out.stderr);
    assert_eq!(out.stderr.matches(": queued\n").count(), 11, "{}", out.stderr);
    assert!(out.stderr.contains("  6 more: queued\n"), "{}", out.stderr);
}
