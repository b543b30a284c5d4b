//! Task loop: tasks that are folders with steps, each step in runs of its own.

use proq_test_kit::Sandbox;
use proq_test_kit::claude::sandbox_with_claude;
use proq_test_kit::waiting::wait_until_unlocked;

/// Folder of the task.
pub const FOLDER: &str = "tasks/pay/PAY-3-refunds";

/// Text of the task, with three steps.
const TASK: &str = "# Task: PAY-3 - Refunds\n\n## Dependencies\n- **None**\n\n## File Scope\n- `src/pay/`\n\n### Step 1: Look\n- [ ] look\n\
                    ### Step 2: Do\n- [ ] first\n- [ ] second\n### Step 3: Test\n- [ ] tests\n";

/// Shell functions of the agent: `tick` the first open box, `work` (which also commits a file), `plan` a
/// step, `judge`. `$what` is the kind of prompt: `plan`, `work` or `review`.
const AGENT_SCRIPT: &str = r#"begin
    s=tasks/pay/PAY-3-refunds/STATUS.md; prompt=$(cat "$notes/prompt.$n"); what=work
    case $prompt in *'Review the '*) what=review;; *'- Write a plan for '*|*'rejected the plan for '*) what=plan;; esac
    tick() { sed -i '0,/- \[ \]/s//- [x]/' $s; }
    work() { mkdir -p src/pay; echo $n > src/pay/$n; tick; git add -A; git commit -qm "work $n"; }
    plan() { echo "plan $n" >> $s; }
    judge() { sed "s|All done.|$1|" "$notes/well"; exit 0; }
"#;

/// Returns a repository with such a task, untracked, and an agent for it.
pub fn sandbox_with_task(level: u8, script: &str) -> Sandbox {
    let sandbox = sandbox_with_claude(&format!("{AGENT_SCRIPT}{script}"));
    sandbox.write(&format!("{FOLDER}/PROMPT.md"), &format!("{TASK}\n**Review level:** {level}\n"));
    sandbox
}

/// Spawns a lane for the task and waits for the end of its run.
pub fn spawn_task(sandbox: &Sandbox, more: &[&str]) -> proq_test_kit::Output {
    let args = ["spawn", "claude", "--folder", FOLDER, "-n", "x", "--wait"];
    sandbox.proq(&[&args[..], more].concat())
}

/// Returns STATUS.md of the lane.
#[track_caller]
pub fn lane_status(sandbox: &Sandbox) -> String {
    std::fs::read_to_string(sandbox.lane_path("x").join(FOLDER).join("STATUS.md")).unwrap()
}

/// Returns, for each run of the lane, its part and step as `show` prints them, and its exit class.
#[track_caller]
pub fn run_parts(sandbox: &Sandbox) -> Vec<String> {
    let shown = sandbox.proq(&["show", "x", "--json"]).json();
    let part = |run: &serde_json::Value| {
        let step_run = &run["stint"];
        format!(
            "{} {} {}",
            step_run["part"].as_str().unwrap_or("-"),
            step_run["step"],
            run["class"].as_str().unwrap_or("-")
        )
    };
    shown["runs"].as_array().unwrap().iter().map(part).collect()
}

/// Returns the files that the lane has changed against its base.
#[track_caller]
pub fn lane_files(sandbox: &Sandbox) -> String {
    sandbox.git(&["diff", "--name-only", "main", "proq/x"])
}

#[test]
fn each_step_runs_until_its_boxes_are_ticked() {
    let sandbox = sandbox_with_task(0, "work; well");
    // The test checks how a run ended, so the agent must not be ended before that.
    sandbox.git(&["config", "proq.agent.linger", "30"]);
    assert_eq!(spawn_task(&sandbox, &[]).ok(), "x: done (4 of 4 boxes in 4 iterations)\n");
    assert_eq!(run_parts(&sandbox), ["work 1 done", "work 2 done", "work 2 done", "work 3 done"]);
    assert_eq!(lane_files(&sandbox), "src/pay/1\nsrc/pay/2\nsrc/pay/3\nsrc/pay/4");
    let row = sandbox.row("x");
    assert_eq!(
        (&row["task"]["done"], &row["task"]["of"], &row["scope"]),
        (&4.into(), &4.into(), &serde_json::Value::Null)
    );
    assert!(sandbox.proq(&["list"]).ok().contains("done 4/4"));
    let shown = sandbox.proq(&["show", "x"]).ok();
    for text in [
        "tasks/pay/PAY-3-refunds",
        "4 of 4, after 4 iterations",
        "claude, step 2: done, exit code 0",
        "src/pay/",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    // Each step has a conversation of its own and a prompt for that step.
    assert!(
        sandbox.agent_record("prompt.3").starts_with("# Refunds, step 2: Do\n"),
        "{}",
        sandbox.agent_record("prompt.3")
    );
    let session = |n: u32| {
        let args = sandbox.agent_record(&format!("args.{n}"));
        args.lines().skip_while(|line| *line != "--session-id").nth(1).map(ToOwned::to_owned).unwrap()
    };
    assert_ne!(session(1), session(2));
    let events = sandbox.proq(&["events", "--json"]).ok();
    assert_eq!(events.matches("agent.step").count(), 3, "{events}");
    sandbox.assert_healthy();
}

#[test]
fn step_prompt_names_everything_it_needs() {
    let sandbox = sandbox_with_task(0, "work; well");
    let _ = spawn_task(&sandbox, &[]).ok();
    let prompt = sandbox.agent_record("prompt.1");
    let (instructions, task) = prompt.split_once("# The complete task\n").unwrap();
    assert!(task.contains("- [ ] second\n"), "{task}");
    insta::assert_snapshot!(instructions, @"
    # Refunds, step 1: Look

    You are working on one step of a task, in a separate conversation. From earlier conversations you only know what was written down.

    - The task is in `tasks/pay/PAY-3-refunds/PROMPT.md`. Read it first, or below.
    - The progress is in `tasks/pay/PAY-3-refunds/STATUS.md`: boxes, and notes below each step. Read that file too.
    - Work on step 1: Look only. The text below its heading in STATUS.md describes the progress.
    - Tick a box in STATUS.md (`- [x]`) when its item is done, and only then. Below the step, write a few lines with what the next agent needs to know.
    - Commit your work at the end. Finish when every box of the step is ticked; the next step starts in another conversation.
    - git ignores `tasks/pay/PAY-3-refunds/STATUS.md`: never add it with -f. git-proq saves it anyway.
    ");
}

/// Promise: task-loop/status-never-lands
#[test]
fn status_file_is_created_and_never_lands() {
    let sandbox = sandbox_with_task(
        2,
        "case $what in plan) plan; git add -A; git add -f tasks; git commit -qm all;; review) judge APPROVE;;
        *) work; git add -f $s; git commit -qm forced; well; exit;; esac; well",
    );
    let out = spawn_task(&sandbox, &[]).ok();
    assert_eq!(out, "x: done (4 of 4 boxes in 7 iterations)\n");
    assert!(lane_status(&sandbox).starts_with("# Status: Refunds\n"), "{}", lane_status(&sandbox));
    assert!(!lane_files(&sandbox).contains("tasks/"), "{}", lane_files(&sandbox));
    assert!(sandbox.lane_path("x").join(FOLDER).join(".reviews/step-1-plan-1.md").exists());
    assert_eq!(sandbox.git_in(&sandbox.lane_path("x"), &["status", "--short"]), "");
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert!(!sandbox.git(&["ls-tree", "-r", "--name-only", "main"]).contains("tasks/"));
    // The user's own files there are unchanged.
    assert_eq!(sandbox.git(&["status", "--short"]), "?? tasks/");
    assert!(!sandbox.repo.join(FOLDER).join("STATUS.md").exists());
}

/// Promise: task-loop/status-never-lands
#[test]
fn tracked_task_lands_only_its_tracked_files() {
    let sandbox = sandbox_with_task(0, "work; well");
    sandbox.commit_all("task");
    let _ = spawn_task(&sandbox, &[]).ok();
    assert!(!lane_files(&sandbox).contains("tasks/"), "{}", lane_files(&sandbox));
    assert_eq!(sandbox.git_in(&sandbox.lane_path("x"), &["status", "--short"]), "");
    let _ = sandbox.proq(&["discard", "x", "--force"]).ok();
    sandbox.write(&format!("{FOLDER}/STATUS.md"), "### Step 1: a\n- [x] was\n- [ ] mine\n");
    sandbox.commit_all("status");
    assert_eq!(spawn_task(&sandbox, &[]).ok(), "x: done (2 of 2 boxes in 1 iteration)\n");
    assert!(lane_files(&sandbox).contains("tasks/pay/PAY-3-refunds/STATUS.md"), "{}", lane_files(&sandbox));
    assert!(lane_status(&sandbox).contains("- [x] mine"));
}

/// Promise: task-loop/no-progress-ends
#[test]
fn three_iterations_without_progress_fail() {
    let sandbox = sandbox_with_task(0, "[ $n = 1 ] && work; well");
    let out = spawn_task(&sandbox, &[]).fails(4);
    assert_eq!(out, "x: failed (three iterations without a new box; 1 of 4 boxes in 4 iterations)\n");
    assert_eq!(run_parts(&sandbox).len(), 4);
    sandbox.git(&["config", "proq.swarm.maxIterations", "6"]);
    // When the user resumes the task, the count starts again.
    let out = sandbox.proq(&["run", "x", "--wait"]).fails(4);
    assert!(out.contains("it has used its 6 iterations; 1 of 4 boxes"), "{out}");
}

#[test]
fn hints_of_a_task_without_iterations_left_work() {
    let script = "[ $n = 1 ] && work
        case $(cat $notes/prompt.$n) in *'fix the failing step'*) echo > fixed; git add -A; git commit -qm fix;; esac
        well";
    let sandbox = sandbox_with_task(0, script);
    let _ = spawn_task(&sandbox, &[]).fails(4);
    sandbox.git(&["config", "proq.swarm.maxIterations", "4"]);
    let refused = sandbox.proq(&["run", "x"]).fails(1);
    assert!(
        refused.contains("cannot continue the task of lane 'x': it has used its 4 iterations"),
        "{refused}"
    );
    let shown = sandbox.follow_hint(&refused, "show its progress").ok();
    assert!(shown.contains("1 of 4 boxes"), "{shown}");
    let _ = sandbox.follow_hint(&refused, "or start an agent with a new prompt").ok();
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(sandbox.git(&["show", "proq/x:fixed"]), "");
}

/// Promise: task-loop/boxes-undone
#[test]
fn crashed_iteration_is_retried_with_its_boxes_reset() {
    let sandbox = sandbox_with_task(0, "work; [ $n = 2 ] && kill -9 $$; well");
    assert_eq!(spawn_task(&sandbox, &[]).ok(), "x: done (4 of 4 boxes in 4 iterations)\n");
    assert_eq!(
        run_parts(&sandbox),
        ["work 1 done", "work 2 crashed", "work 2 done", "work 2 done", "work 3 done"]
    );
    assert_eq!(lane_files(&sandbox), "src/pay/1\nsrc/pay/3\nsrc/pay/4\nsrc/pay/5");
    let left = sandbox.repo.join(".git/proq/lanes/x/runs/2.d/status-left.md");
    assert_eq!(std::fs::read_to_string(left).unwrap().matches("[x]").count(), 2);
}

#[test]
fn lost_status_is_restored_and_work_committed() {
    let script = "if [ $n = 2 ]; then rm -r tasks; echo half > half; well; exit; fi; work; well";
    let sandbox = sandbox_with_task(0, script);
    assert_eq!(spawn_task(&sandbox, &[]).ok(), "x: done (4 of 4 boxes in 5 iterations)\n");
    assert_eq!(sandbox.git(&["show", "proq/x:half"]), "half");
    assert!(sandbox.git(&["log", "--format=%b", "main..proq/x"]).contains("Left uncommitted by the agent"));
    assert!(!lane_files(&sandbox).contains("tasks/"), "{}", lane_files(&sandbox));
}

/// Promise: strangers/task-folder-copy
#[test]
fn refuses_status_that_is_no_regular_file() {
    let sandbox = sandbox_with_task(0, "rm $s; ln -s $ROOT/outside $s; well");
    std::fs::write(sandbox.root().join("outside"), "- [x] all\n").unwrap();
    let out = spawn_task(&sandbox, &[]).fails(4);
    assert!(out.contains("PAY-3-refunds/STATUS.md is no file"), "{out}");
    let sandbox =
        sandbox_with_task(0, "mv tasks moved; mkdir $ROOT/elsewhere; ln -s $ROOT/elsewhere tasks; well");
    let out = spawn_task(&sandbox, &[]).fails(4);
    assert!(out.contains("tasks is not a folder in the lane"), "{out}");
    assert_eq!(std::fs::read_dir(sandbox.root().join("elsewhere")).unwrap().count(), 0);
    let sandbox = sandbox_with_task(0, "truncate -s 9M $s; well");
    assert!(spawn_task(&sandbox, &[]).fails(4).contains("STATUS.md is too large"));
}

/// Promise: strangers/task-folder-copy
#[test]
fn refuses_task_folder_that_cannot_be_copied() {
    let sandbox = sandbox_with_task(0, "well");
    let assert_refused = |message: &str, script: &str| {
        sandbox.sh(script);
        let out = spawn_task(&sandbox, &[]);
        assert!(out.code != 0 && out.stderr.contains(message), "{message}: {}", out.to_text());
        assert!(!sandbox.repo.join(".git/proq/lanes/x").exists());
    };
    assert_refused("link is a link, which is not followed", &format!("ln -s /etc/passwd {FOLDER}/link"));
    assert_refused("pipe is neither a file nor a folder", &format!("rm {FOLDER}/link; mkfifo {FOLDER}/pipe"));
    assert_refused("is a repository of its own", &format!("rm {FOLDER}/pipe; git init -q {FOLDER}/nested"));
    assert_refused("is too large", &format!("rm -rf {FOLDER}/nested; truncate -s 33M {FOLDER}/big"));
    sandbox.sh("rm tasks/pay/*/big; mkdir -p tasks/b/B-1; echo x > tasks/b/B-1/PROMPT.md");
    let error = sandbox.proq(&["spawn", "claude", "--folder", "tasks"]).fails(1);
    assert!(error.contains("'tasks' is not one task but 2"), "{error}");
    let error = sandbox.proq(&["spawn", "claude", "--folder", "a.txt"]).fails(1);
    assert!(error.contains("'a.txt'"), "{error}");
}

#[test]
fn hostile_task_names_run_nothing() {
    let name = "PAY-9-$(touch pwned) `touch pwned` ; \"'#!*";
    let sandbox = sandbox_with_task(0, "work; well");
    let folder = format!("tasks/pay/{name}");
    sandbox.write(&format!("{folder}/PROMPT.md"), "# T\u{1b}[2J\n- [ ] a\n");
    let out = sandbox.proq(&["spawn", "claude", "--folder", &folder, "-n", "y", "--wait"]);
    // This agent ticks another task's file: nothing is ticked here, and nothing was run.
    assert_eq!(out.code, 4, "{}", out.to_text());
    assert!(!out.to_text().contains('\u{1b}'));
    assert!(sandbox.lane_path("y").join(&folder).join("STATUS.md").exists());
    assert!(!sandbox.repo.join("pwned").exists() && !sandbox.lane_path("y").join("pwned").exists());
    assert!(!sandbox.git(&["diff", "--name-only", "main", "proq/y"]).contains("tasks/"));
    let odd = sandbox.proq(&["spawn", "claude", "--folder", "tasks/pay/A-1\nb"]);
    assert!(odd.code != 0);
}

#[test]
fn sent_message_is_delivered_between_steps() {
    let sandbox = sandbox_with_task(
        0,
        "if [ $n = 1 ]; then echo up > $ROOT/up; cat $ROOT/go >/dev/null; fi; work; well",
    );
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = sandbox.proq(&["spawn", "claude", "--folder", FOLDER, "-n", "x"]).ok();
    sandbox.read_pipe("up");
    let _ = sandbox.proq(&["send", "x", "mind the gap"]).ok();
    sandbox.write_pipe("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(sandbox.agent_record("prompt.2").trim(), "mind the gap");
    assert!(sandbox.agent_record("args.2").contains("--resume"));
    assert_eq!(run_parts(&sandbox).len(), 4, "{:?}", run_parts(&sandbox));
    assert_eq!(sandbox.row("x")["state"], "done");
}

#[test]
fn budget_covers_all_runs() {
    // Each run costs 0.0125.
    let sandbox = sandbox_with_task(0, "work; well");
    let out = spawn_task(&sandbox, &["--budget", "0.03"]).fails(4);
    assert!(out.contains("it has used up its budget"), "{out}");
    assert_eq!(run_parts(&sandbox).len(), 3);
    let _ = sandbox.proq(&["run", "x", "--budget", "1", "--wait"]).ok();
    assert_eq!(sandbox.row("x")["state"], "done");
}

#[test]
fn wrap_up_stops_after_current_iteration() {
    let script = r#"if [ $n = 1 ]; then echo up > $ROOT/up
        timeout 60 sh -c 'until [ -e "$PROQ_WRAP_UP" ]; do :; done' && echo 1 > wrapped; fi; work; well"#;
    let sandbox = sandbox_with_task(0, script);
    sandbox.pipe("up");
    let _ = sandbox.proq(&["spawn", "claude", "--folder", FOLDER, "-n", "x"]).ok();
    sandbox.read_pipe("up");
    let out = sandbox.proq(&["stop", "--wrap-up", "x"]);
    assert!(
        out.stderr.contains("x: stopped (asked to wrap up; 1 of 4 boxes in 1 iteration)"),
        "{}",
        out.to_text()
    );
    assert_eq!(sandbox.git(&["show", "proq/x:wrapped"]), "1");
    assert_eq!(run_parts(&sandbox), ["work 1 done"]);
    let shown = sandbox.proq(&["show", "x", "--prompt"]).ok();
    assert!(shown.contains("`PROQ_WRAP_UP`"), "{shown}");
    let _ = sandbox.proq(&["run", "x", "--wait"]).ok();
    assert_eq!(run_parts(&sandbox).len(), 4);
}

#[test]
fn wrap_up_stops_agent_after_grace_period() {
    let sandbox = sandbox_with_task(0, "echo up > $ROOT/up; exec sleep 600");
    sandbox.pipe("up");
    sandbox.git(&["config", "proq.agent.abortGrace", "0"]);
    let _ = sandbox.proq(&["spawn", "claude", "--folder", FOLDER, "-n", "x"]).ok();
    sandbox.read_pipe("up");
    let _ = sandbox.proq(&["stop", "--wrap-up", "x"]).ok();
    assert_eq!(sandbox.row("x")["state"], "stopped");
    wait_until_unlocked(&sandbox.lane_lock("x", "alive.lock"));
}

#[test]
fn redispatched_task_starts_at_first_step() {
    let sandbox = sandbox_with_task(0, "[ $n -lt 3 ] || [ $n -gt 5 ] && work; well");
    let _ = spawn_task(&sandbox, &[]).fails(4);
    let _ = sandbox.proq(&["redispatch", "x"]).ok();
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(run_parts(&sandbox), ["work 1 done", "work 2 done", "work 2 done", "work 3 done"]);
}

#[test]
fn commits_without_ticked_box_are_no_progress() {
    let sandbox = sandbox_with_task(0, "echo $n > more.txt; git add -A; git commit -qm \"more $n\"; well");
    let out = spawn_task(&sandbox, &[]).fails(4);
    assert_eq!(out, "x: failed (three iterations without a new box; 0 of 4 boxes in 3 iterations)\n");
}

#[test]
fn idle_iteration_limit_is_configurable() {
    let sandbox = sandbox_with_task(0, "echo $n > more.txt; git add -A; git commit -qm \"more $n\"; well");
    for (max_idle, outcome) in [
        ("1", "an iteration without a new box; 0 of 4 boxes in 1 iteration"),
        ("2", "2 iterations without a new box; 0 of 4 boxes in 2 iterations"),
    ] {
        sandbox.git(&["config", "proq.swarm.maxIdle", max_idle]);
        assert_eq!(spawn_task(&sandbox, &[]).fails(4), format!("x: failed ({outcome})\n"));
        let _ = sandbox.proq(&["discard", "x", "--force"]).ok();
    }
}

#[test]
fn task_without_steps_needs_one_good_run() {
    let sandbox = sandbox_with_task(0, "echo $n > more.txt; git add -A; git commit -qm more; well");
    sandbox.write(&format!("{FOLDER}/PROMPT.md"), "# Task: PAY-3 - Refunds\n\nPay it back.\n");
    assert_eq!(spawn_task(&sandbox, &[]).ok(), "x: done (1 of 1 boxes in 1 iteration)\n");
    assert_eq!(lane_files(&sandbox), "more.txt");
}
