//! Owns the tests of tasks that are folders with steps: each step in runs of its own, and what is kept and told of them.

use super::runs::with_claude;
use super::support::Sandbox;
use super::support::patience::wait_until_free;

/// The folder of the task.
pub const FOLDER: &str = "tasks/pay/PAY-3-refunds";

/// Its steps.
const TASK: &str = "# Task: PAY-3 - Refunds\n\n## Dependencies\n- **None**\n\n## File Scope\n- `src/pay/`\n\n### Step 1: Look\n- [ ] look\n\
                    ### Step 2: Do\n- [ ] first\n- [ ] second\n### Step 3: Test\n- [ ] tests\n";

/// What the agent can do: `tick` the first box that is open, `work`, which commits a file as well, `plan` a step, `judge`. `$what` is
/// what it was asked for: `plan`, `work` or `review`.
const HANDS: &str = r#"begin
    s=tasks/pay/PAY-3-refunds/STATUS.md; said=$(cat "$notes/prompt.$n"); what=work
    case $said in *'You review '*) what=review;; *'is to be done, below its heading'*|*'below its heading in STATUS.md was not'*) what=plan;; esac
    tick() { sed -i '0,/- \[ \]/s//- [x]/' $s; }
    work() { mkdir -p src/pay; echo $n > src/pay/$n; tick; git add -A; git commit -qm "work $n"; }
    plan() { echo "plan $n" >> $s; }
    judge() { sed "s|All done.|$1|" "$notes/well"; exit 0; }
"#;

/// A repository with such a task, which nobody tracks, and an agent for it.
pub fn with_task(level: u8, script: &str) -> Sandbox {
    let sandbox = with_claude(&format!("{HANDS}{script}"));
    sandbox.write(&format!("{FOLDER}/PROMPT.md"), &format!("{TASK}\n**Review level:** {level}\n"));
    sandbox
}

impl Sandbox {
    /// Has the task done, and waits for the end.
    pub fn do_task(&self, more: &[&str]) -> super::support::Output {
        let args = ["spawn", "claude", "--folder", FOLDER, "-n", "x", "--wait"];
        self.proq(&[&args[..], more].concat())
    }

    /// STATUS.md of the lane.
    #[track_caller]
    pub fn status_of_x(&self) -> String {
        std::fs::read_to_string(self.lane("x").join(FOLDER).join("STATUS.md")).unwrap()
    }

    /// What each run of the lane was for, as `show` tells it, and how it ended.
    #[track_caller]
    pub fn parts(&self) -> Vec<String> {
        let shown = self.proq(&["show", "x", "--json"]).json();
        let part = |run: &serde_json::Value| {
            let stint = &run["stint"];
            format!(
                "{} {} {}",
                stint["part"].as_str().unwrap_or("-"),
                stint["step"],
                run["class"].as_str().unwrap_or("-")
            )
        };
        shown["runs"].as_array().unwrap().iter().map(part).collect()
    }

    /// The files that the lane has and its base has not.
    #[track_caller]
    pub fn new_files(&self) -> String {
        self.git(&["diff", "--name-only", "main", "proq/x"])
    }
}

#[test]
fn each_step_is_worked_at_until_its_boxes_are_ticked() {
    let sandbox = with_task(0, "work; well");
    // How it ends is looked at, so nobody is to be faster than it.
    sandbox.git(&["config", "proq.agent.linger", "30"]);
    assert_eq!(sandbox.do_task(&[]).ok(), "x: done (4 of 4 boxes in 4 iterations)\n");
    assert_eq!(sandbox.parts(), ["work 1 done", "work 2 done", "work 2 done", "work 3 done"]);
    assert_eq!(sandbox.new_files(), "src/pay/1\nsrc/pay/2\nsrc/pay/3\nsrc/pay/4");
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
    // Each in a conversation of its own, and told of its own step.
    assert!(sandbox.note("prompt.3").starts_with("# Refunds, step 2: Do\n"), "{}", sandbox.note("prompt.3"));
    let session = |n: u32| {
        let args = sandbox.note(&format!("args.{n}"));
        args.lines().skip_while(|line| *line != "--session-id").nth(1).map(ToOwned::to_owned).unwrap()
    };
    assert_ne!(session(1), session(2));
    let events = sandbox.proq(&["events", "--json"]).ok();
    assert_eq!(events.matches("agent.step").count(), 3, "{events}");
    sandbox.assert_healthy();
}

#[test]
fn what_a_run_is_told_names_everything_that_it_needs() {
    let sandbox = with_task(0, "work; well");
    let _ = sandbox.do_task(&[]).ok();
    let said = sandbox.note("prompt.1");
    let (said, task) = said.split_once("# The whole task\n").unwrap();
    assert!(task.contains("- [ ] second\n"), "{task}");
    insta::assert_snapshot!(said, @r"
    # Refunds, step 1: Look

    You work at one step of a task, in a conversation of its own. What was found out in others is not known to you but by what was written down.

    - The task is in `tasks/pay/PAY-3-refunds/PROMPT.md`. Read it first, or below.
    - How far it has come is in `tasks/pay/PAY-3-refunds/STATUS.md`: boxes, and what was noted below each step. Read that too.
    - Work at step 1: Look, and at nothing else. What stands below its heading in STATUS.md is how far it has come.
    - Tick a box in STATUS.md (`- [x]`) when what it says is done, and only then. Note below the step, in a few lines, what whoever goes on has to know.
    - Commit your work at the end. When every box of the step is ticked, end; the next one is begun in another conversation.
    - Git leaves `tasks/pay/PAY-3-refunds/STATUS.md` out of commits, and so do you: never add it with -f. It is kept all the same.
    ");
}

#[test]
fn status_is_made_of_the_task_and_never_lands_whatever_the_agent_adds() {
    let sandbox = with_task(
        2,
        "case $what in plan) plan; git add -A; git add -f tasks; git commit -qm all;; review) judge APPROVE;;
        *) work; git add -f $s; git commit -qm forced; well; exit;; esac; well",
    );
    let out = sandbox.do_task(&[]).ok();
    assert_eq!(out, "x: done (4 of 4 boxes in 7 iterations)\n");
    assert!(sandbox.status_of_x().starts_with("# Status: Refunds\n"), "{}", sandbox.status_of_x());
    assert!(!sandbox.new_files().contains("tasks/"), "{}", sandbox.new_files());
    assert!(sandbox.lane("x").join(FOLDER).join(".reviews/step-1-plan-1.md").exists());
    assert_eq!(sandbox.git_in(&sandbox.lane("x"), &["status", "--short"]), "");
    let _ = sandbox.proq(&["merge", "x"]).ok();
    assert!(!sandbox.git(&["ls-tree", "-r", "--name-only", "main"]).contains("tasks/"));
    // What the user has there is as it was.
    assert_eq!(sandbox.git(&["status", "--short"]), "?? tasks/");
    assert!(!sandbox.repo.join(FOLDER).join("STATUS.md").exists());
}

#[test]
fn a_tracked_task_lands_only_what_is_tracked_of_it() {
    let sandbox = with_task(0, "work; well");
    sandbox.commit_all("task");
    let _ = sandbox.do_task(&[]).ok();
    assert!(!sandbox.new_files().contains("tasks/"), "{}", sandbox.new_files());
    assert_eq!(sandbox.git_in(&sandbox.lane("x"), &["status", "--short"]), "");
    let _ = sandbox.proq(&["discard", "x", "--force"]).ok();
    sandbox.write(&format!("{FOLDER}/STATUS.md"), "### Step 1: a\n- [x] was\n- [ ] mine\n");
    sandbox.commit_all("status");
    assert_eq!(sandbox.do_task(&[]).ok(), "x: done (2 of 2 boxes in 1 iteration)\n");
    assert!(sandbox.new_files().contains("tasks/pay/PAY-3-refunds/STATUS.md"), "{}", sandbox.new_files());
    assert!(sandbox.status_of_x().contains("- [x] mine"));
}

#[test]
fn three_iterations_of_which_nothing_comes_are_a_failure() {
    let sandbox = with_task(0, "[ $n = 1 ] && work; well");
    let out = sandbox.do_task(&[]).fails(4);
    assert_eq!(out, "x: failed (three iterations without a new box; 1 of 4 boxes in 4 iterations)\n");
    assert_eq!(sandbox.parts().len(), 4);
    sandbox.git(&["config", "proq.swarm.maxIterations", "6"]);
    // Somebody has it go on: it begins to count anew.
    let out = sandbox.proq(&["run", "x", "--wait"]).fails(4);
    assert!(out.contains("it has had its 6 iterations; 1 of 4 boxes"), "{out}");
}

#[test]
fn a_crash_is_tried_again_from_where_the_iteration_began_boxes_included() {
    let sandbox = with_task(0, "work; [ $n = 2 ] && kill -9 $$; well");
    assert_eq!(sandbox.do_task(&[]).ok(), "x: done (4 of 4 boxes in 4 iterations)\n");
    assert_eq!(
        sandbox.parts(),
        ["work 1 done", "work 2 crashed", "work 2 done", "work 2 done", "work 3 done"]
    );
    assert_eq!(sandbox.new_files(), "src/pay/1\nsrc/pay/3\nsrc/pay/4\nsrc/pay/5");
    let left = sandbox.repo.join(".git/proq/lanes/x/runs/2.d/status-left.md");
    assert_eq!(std::fs::read_to_string(left).unwrap().matches("[x]").count(), 2);
}

#[test]
fn a_lost_status_comes_back_and_what_was_left_is_a_checkpoint() {
    let script = "if [ $n = 2 ]; then rm -r tasks; echo half > half; well; exit; fi; work; well";
    let sandbox = with_task(0, script);
    assert_eq!(sandbox.do_task(&[]).ok(), "x: done (4 of 4 boxes in 5 iterations)\n");
    assert_eq!(sandbox.git(&["show", "proq/x:half"]), "half");
    assert!(sandbox.git(&["log", "--format=%b", "main..proq/x"]).contains("Left uncommitted by the agent"));
    assert!(!sandbox.new_files().contains("tasks/"), "{}", sandbox.new_files());
}

#[test]
fn what_is_no_file_is_refused_by_name_and_never_followed() {
    let sandbox = with_task(0, "rm $s; ln -s $ROOT/outside $s; well");
    std::fs::write(sandbox.root().join("outside"), "- [x] all\n").unwrap();
    let out = sandbox.do_task(&[]).fails(4);
    assert!(out.contains("PAY-3-refunds/STATUS.md is no file"), "{out}");
    let sandbox = with_task(0, "mv tasks moved; mkdir $ROOT/elsewhere; ln -s $ROOT/elsewhere tasks; well");
    let out = sandbox.do_task(&[]).fails(4);
    assert!(out.contains("tasks is no folder in the lane"), "{out}");
    assert_eq!(std::fs::read_dir(sandbox.root().join("elsewhere")).unwrap().count(), 0);
    let sandbox = with_task(0, "truncate -s 9M $s; well");
    assert!(sandbox.do_task(&[]).fails(4).contains("STATUS.md is too large"));
}

#[test]
fn a_folder_that_cannot_be_brought_is_refused_before_anything_is_made() {
    let sandbox = with_task(0, "well");
    let refused = |what: &str, script: &str| {
        sandbox.sh(script);
        let out = sandbox.do_task(&[]);
        assert!(out.code != 0 && out.stderr.contains(what), "{what}: {}", out.shown());
        assert!(!sandbox.repo.join(".git/proq/lanes/x").exists());
    };
    refused("link is a link, and is not followed", &format!("ln -s /etc/passwd {FOLDER}/link"));
    refused("pipe is neither a file nor a folder", &format!("rm {FOLDER}/link; mkfifo {FOLDER}/pipe"));
    refused("is a repository of its own", &format!("rm {FOLDER}/pipe; git init -q {FOLDER}/nested"));
    refused("is too large", &format!("rm -rf {FOLDER}/nested; truncate -s 33M {FOLDER}/big"));
    sandbox.sh("rm tasks/pay/*/big; mkdir -p tasks/b/B-1; echo x > tasks/b/B-1/PROMPT.md");
    let said = sandbox.proq(&["spawn", "claude", "--folder", "tasks"]).fails(1);
    assert!(said.contains("'tasks' is not one task but 2"), "{said}");
    let said = sandbox.proq(&["spawn", "claude", "--folder", "a.txt"]).fails(1);
    assert!(said.contains("'a.txt'"), "{said}");
}

#[test]
fn hostile_names_stay_names() {
    let name = "PAY-9-$(touch pwned) `touch pwned` ; \"'#!*";
    let sandbox = with_task(0, "work; well");
    let folder = format!("tasks/pay/{name}");
    sandbox.write(&format!("{folder}/PROMPT.md"), "# T\u{1b}[2J\n- [ ] a\n");
    let out = sandbox.proq(&["spawn", "claude", "--folder", &folder, "-n", "y", "--wait"]);
    // This agent looks for another task's file: nothing is ticked, and nothing was run.
    assert_eq!(out.code, 4, "{}", out.shown());
    assert!(!out.shown().contains('\u{1b}'));
    assert!(sandbox.lane("y").join(&folder).join("STATUS.md").exists());
    assert!(!sandbox.repo.join("pwned").exists() && !sandbox.lane("y").join("pwned").exists());
    assert!(!sandbox.git(&["diff", "--name-only", "main", "proq/y"]).contains("tasks/"));
    let odd = sandbox.proq(&["spawn", "claude", "--folder", "tasks/pay/A-1\nb"]);
    assert!(odd.code != 0);
}

#[test]
fn what_is_sent_meanwhile_is_told_and_the_steps_go_on() {
    let sandbox =
        with_task(0, "if [ $n = 1 ]; then echo up > $ROOT/up; cat $ROOT/go >/dev/null; fi; work; well");
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = sandbox.proq(&["spawn", "claude", "--folder", FOLDER, "-n", "x"]).ok();
    sandbox.hear("up");
    let _ = sandbox.proq(&["send", "x", "mind the gap"]).ok();
    sandbox.tell("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(sandbox.note("prompt.2").trim(), "mind the gap");
    assert!(sandbox.note("args.2").contains("--resume"));
    assert_eq!(sandbox.parts().len(), 4, "{:?}", sandbox.parts());
    assert_eq!(sandbox.row("x")["state"], "done");
}

#[test]
fn time_and_money_are_for_all_runs_together() {
    // Each costs 0.0125.
    let sandbox = with_task(0, "work; well");
    let out = sandbox.do_task(&["--budget", "0.03"]).fails(4);
    assert!(out.contains("it cost more than it may"), "{out}");
    assert_eq!(sandbox.parts().len(), 3);
    let _ = sandbox.proq(&["run", "x", "--budget", "1", "--wait"]).ok();
    assert_eq!(sandbox.row("x")["state"], "done");
}

#[test]
fn it_can_be_asked_to_wrap_up() {
    let script = r#"if [ $n = 1 ]; then echo up > $ROOT/up
        timeout 60 sh -c 'until [ -e "$PROQ_WRAP_UP" ]; do :; done' && echo 1 > wrapped; fi; work; well"#;
    let sandbox = with_task(0, script);
    sandbox.pipe("up");
    let _ = sandbox.proq(&["spawn", "claude", "--folder", FOLDER, "-n", "x"]).ok();
    sandbox.hear("up");
    let out = sandbox.proq(&["stop", "--wrap-up", "x"]);
    assert!(
        out.stderr.contains("x: stopped (asked to wrap up; 1 of 4 boxes in 1 iteration)"),
        "{}",
        out.shown()
    );
    assert_eq!(sandbox.git(&["show", "proq/x:wrapped"]), "1");
    assert_eq!(sandbox.parts(), ["work 1 done"]);
    let shown = sandbox.proq(&["show", "x", "--prompt"]).ok();
    assert!(shown.contains("`PROQ_WRAP_UP`"), "{shown}");
    let _ = sandbox.proq(&["run", "x", "--wait"]).ok();
    assert_eq!(sandbox.parts().len(), 4);
}

#[test]
fn one_that_does_not_wrap_up_is_stopped_after_the_grace() {
    let sandbox = with_task(0, "echo up > $ROOT/up; exec sleep 600");
    sandbox.pipe("up");
    sandbox.git(&["config", "proq.agent.abortGrace", "0"]);
    let _ = sandbox.proq(&["spawn", "claude", "--folder", FOLDER, "-n", "x"]).ok();
    sandbox.hear("up");
    let _ = sandbox.proq(&["stop", "--wrap-up", "x"]).ok();
    assert_eq!(sandbox.row("x")["state"], "stopped");
    wait_until_free(&sandbox.lock("x", "alive.lock"));
}

#[test]
fn it_is_done_afresh_from_the_first_step() {
    let sandbox = with_task(0, "[ $n -lt 3 ] || [ $n -gt 5 ] && work; well");
    let _ = sandbox.do_task(&[]).fails(4);
    let _ = sandbox.proq(&["redispatch", "x"]).ok();
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(sandbox.parts(), ["work 1 done", "work 2 done", "work 2 done", "work 3 done"]);
}

#[test]
fn commits_without_a_ticked_box_are_no_progress() {
    let sandbox = with_task(0, "echo $n > more.txt; git add -A; git commit -qm \"more $n\"; well");
    let out = sandbox.do_task(&[]).fails(4);
    assert_eq!(out, "x: failed (three iterations without a new box; 0 of 4 boxes in 3 iterations)\n");
}

#[test]
fn how_many_iterations_may_come_to_nothing_is_a_setting() {
    let sandbox = with_task(0, "echo $n > more.txt; git add -A; git commit -qm \"more $n\"; well");
    for (most, said) in [
        ("1", "an iteration without a new box; 0 of 4 boxes in 1 iteration"),
        ("2", "2 iterations without a new box; 0 of 4 boxes in 2 iterations"),
    ] {
        sandbox.git(&["config", "proq.swarm.maxIdle", most]);
        assert_eq!(sandbox.do_task(&[]).fails(4), format!("x: failed ({said})\n"));
        let _ = sandbox.proq(&["discard", "x", "--force"]).ok();
    }
}

#[test]
fn a_task_without_steps_is_done_by_one_good_run() {
    let sandbox = with_task(0, "echo $n > more.txt; git add -A; git commit -qm more; well");
    sandbox.write(&format!("{FOLDER}/PROMPT.md"), "# Task: PAY-3 - Refunds\n\nPay it back.\n");
    assert_eq!(sandbox.do_task(&[]).ok(), "x: done (1 of 1 boxes in 1 iteration)\n");
    assert_eq!(sandbox.new_files(), "more.txt");
}
