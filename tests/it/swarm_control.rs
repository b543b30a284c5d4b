//! Owns what people want of a batch from elsewhere: pause, resume, abort; what two batches have of each other; tidying up.

use super::support::Sandbox;
use super::support::patience::wait_until;
use super::swarm::{DIAMOND, planned, ran, task, worker};

/// A batch whose first task waits for a word: `$ROOT/go`.
fn waiting() -> Sandbox {
    let sandbox = planned(DIAMOND);
    sandbox.pipe("go");
    worker(&sandbox, "if [ $name = top ]; then cat $ROOT/go; fi");
    let out = sandbox.proq(&["swarm", "plan.toml", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    wait_until("the first task to be at work", || task(&sandbox, "top")["state"] == "running");
    sandbox
}

/// Whether somebody goes on with the batch.
pub(super) fn is_held(sandbox: &Sandbox) -> bool {
    let lock = sandbox.repo.join(".git/proq/locks/batches/20260102-030405.lock");
    std::fs::File::open(lock).is_ok_and(|file| file.try_lock_shared().is_err())
}

pub(super) fn kill_scheduler(sandbox: &Sandbox) {
    sandbox.sh("kill -9 $(sed -n 's/^pid = //p' .git/proq/batches/20260102-030405/scheduler.toml)");
    wait_until("its death", || !is_held(sandbox));
}

#[test]
fn a_pause_ends_what_runs_and_starts_nothing() {
    let sandbox = waiting();
    let said = sandbox.proq(&["pause"]).ok();
    assert!(said.contains("batch 20260102-030405 pauses once what runs has ended"), "{said}");
    sandbox.tell("go");
    wait_until("its rest", || !is_held(&sandbox));
    let status = sandbox.proq(&["status", "--json"]).json();
    assert_eq!((&status["state"], &status["why"]), (&"paused".into(), &"asked".into()));
    assert_eq!(task(&sandbox, "top")["state"], "landed");
    assert_eq!(task(&sandbox, "left")["state"], "queued");
    let said = sandbox.proq(&["pause"]).ok();
    assert!(said.contains("does not go on: it is paused"), "{said}");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("6 of 6 tasks landed"), "{}", out.stdout);
    // Only what is new is told.
    assert!(
        out.stderr.contains("  it goes on\n") && out.stderr.contains("  left: worker is at work"),
        "{}",
        out.stderr
    );
    assert!(!out.stderr.contains("  top: ") && !out.stderr.contains("is to pause"), "{}", out.stderr);
}

#[test]
fn what_landed_before_a_pause_or_an_abort_is_named() {
    const BATCH: &str = "20260102-030405";
    let sandbox = waiting();
    let named = |state: &str| {
        let start =
            format!("batch {BATCH} {state}; what it landed on proq/batch-{BATCH} is not on main yet\n");
        let hints = format!(
            "hint: go on with it: git proq resume {BATCH}\n\
             hint: or land what it has on main: git proq merge --batch {BATCH}\n"
        );
        for args in [&[][..], &["list"], &["merge", "--all"]] {
            let out = sandbox.proq(args);
            assert!(out.stderr.contains(&format!("{start}{hints}")), "{}", out.shown());
            assert!(!out.stdout.contains("No lanes yet"), "{}", out.shown());
        }
        assert_eq!(sandbox.proq(&["list", "--json"]).json()["unlanded_batches"][0], BATCH);
    };
    let _ = sandbox.proq(&["pause"]).ok();
    assert!(!sandbox.proq(&["list"]).stderr.contains(BATCH), "it runs");
    sandbox.tell("go");
    wait_until("its rest", || !is_held(&sandbox));
    named("is paused");
    let _ = sandbox.proq(&["abort"]).ok();
    wait_until("its end", || !is_held(&sandbox));
    named("was aborted");
    let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
    assert!(sandbox.repo.join("top.txt").exists());
    assert!(!sandbox.proq(&[]).stderr.contains(BATCH));
}

#[test]
fn agents_that_run_are_taken_over_from_a_dead_scheduler() {
    let sandbox = waiting();
    kill_scheduler(&sandbox);
    let status = sandbox.proq(&["status"]).ok();
    assert!(status.contains("interrupted: "), "{status}");
    let said = sandbox.proq(&["swarm", "plan.toml"]).fails(1);
    assert!(said.contains("is not over (interrupted); nothing was begun"), "{said}");
    let _ = sandbox.proq(&["resume", "--detach"]).ok();
    assert_eq!(task(&sandbox, "top")["state"], "running");
    sandbox.tell("go");
    wait_until("its end", || !is_held(&sandbox));
    assert_eq!(ran(&sandbox).iter().filter(|run| run.starts_with("top")).count(), 1);
    assert_eq!(sandbox.proq(&["status", "--json"]).json()["why"], "complete");
    sandbox.assert_healthy();
}

#[test]
fn what_has_ended_while_nobody_looked_is_found() {
    let sandbox = waiting();
    kill_scheduler(&sandbox);
    sandbox.tell("go");
    wait_until("the end of its run", || sandbox.row("top")["state"] == "done");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert_eq!(ran(&sandbox).iter().filter(|run| run.starts_with("top")).count(), 1);
}

#[test]
fn an_abort_stops_agents_and_keeps_all_for_another_day() {
    let sandbox = waiting();
    sandbox.git(&["config", "proq.agent.abortGrace", "0"]);
    sandbox.git(&["config", "proq.agent.stopGrace", "1"]);
    kill_scheduler(&sandbox);
    // Nobody goes on with it, so somebody has to see to the end of its agents.
    let said = sandbox.proq(&["abort"]).ok();
    assert!(said.contains("is being aborted") || said.contains("is aborted"), "{said}");
    wait_until("its end", || !is_held(&sandbox));
    let status = sandbox.proq(&["status", "--json"]).json();
    assert_eq!((&status["state"], &status["why"]), (&"over".into(), &"aborted".into()));
    assert_eq!(task(&sandbox, "top")["state"], "cut off");
    assert!(sandbox.lane("top").exists());
    let said = sandbox.proq(&["swarm", "plan.toml"]).fails(1);
    assert!(said.contains("is not over (aborted); nothing was begun"), "{said}");
    worker(&sandbox, "");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert_eq!(ran(&sandbox).iter().filter(|run| run.starts_with("top")).count(), 2);
    sandbox.assert_healthy();
}

#[test]
fn an_abort_can_be_hard() {
    let sandbox = waiting();
    worker(&sandbox, "");
    let said = sandbox.proq(&["abort", "--hard"]).ok();
    assert!(said.contains("its agents are being stopped") || said.contains("is aborted"), "{said}");
    wait_until("its end", || !is_held(&sandbox));
    assert_eq!(sandbox.proq(&["status", "--json"]).json()["why"], "aborted");
    let gone = sandbox.proq(&["cleanup", "--batch", "20260102-030405", "--force"]).ok();
    assert!(gone.contains("cleaned up batch 20260102-030405"), "{gone}");
    assert_eq!(sandbox.git(&["branch", "--list", "proq/*"]), "");
    let said = sandbox.proq(&["resume", "20260102-030405"]).fails(1);
    assert!(said.contains("was cleaned up: its lanes and its branch are gone"), "{said}");
    sandbox.assert_healthy();
}

#[test]
fn two_batches_of_a_plan_never_run_a_task_at_the_same_time() {
    let sandbox = waiting();
    let out = sandbox.proq(&["swarm", "plan.toml", "--new", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    let second = || sandbox.proq(&["status", "20260102-030405-2", "--json"]).json();
    wait_until("the second to see that the first has it", || {
        second()["tasks"][0]["detail"] == "batch 20260102-030405 has it"
    });
    assert_eq!(ran(&sandbox).iter().filter(|run| run.starts_with("top")).count(), 1);
    sandbox.tell("go");
    wait_until("the first one's end", || !is_held(&sandbox));
    // Its tasks are free now; the second does them on its own branch.
    sandbox.tell("go");
    wait_until("the second one's end", || second()["state"] == "over");
    assert_eq!(second()["why"], "complete");
    let mut runs = ran(&sandbox);
    runs.sort();
    assert_eq!(runs.len(), 12, "{runs:?}");
}

#[test]
fn no_more_agents_run_than_are_allowed_over_all_batches() {
    let sandbox = planned(DIAMOND);
    sandbox.git(&["config", "proq.agent.maxRunning", "1"]);
    sandbox.pipe("go");
    worker(
        &sandbox,
        "echo begins >> $ROOT/times; if [ $name = top ]; then cat $ROOT/go; fi; echo ends >> $ROOT/times",
    );
    let other = DIAMOND.replace("id = \"", "id = \"o-").replace("needs = [\"", "needs = [\"o-");
    sandbox.write("other.toml", &other.replace("\", \"", "\", \"o-"));
    let begin = |plan: &str| {
        let out = sandbox.proq(&["swarm", plan, "--detach", "-q"]);
        assert_eq!(out.code, 0, "{}", out.stderr);
    };
    begin("plan.toml");
    wait_until("the first task to be at work", || task(&sandbox, "top")["state"] == "running");
    begin("other.toml");
    let status = |id: &str| sandbox.proq(&["status", id, "--json"]).json();
    // It would have begun its first tasks with this.
    let log = sandbox.repo.join(".git/proq/batches/20260102-030405-2/log.jsonl");
    wait_until("the other one to see that there is no room", || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        text.contains("\"event\":\"slots\",\"room\":0") && text.contains("\"event\":\"begun\"")
    });
    assert_eq!(status("20260102-030405-2")["tasks"][0]["state"], "queued");
    sandbox.tell("go");
    wait_until("both", || {
        ["20260102-030405", "20260102-030405-2"].iter().all(|id| status(id)["why"] == "complete")
    });
    let times = std::fs::read_to_string(sandbox.root().join("times")).unwrap();
    assert_eq!(times, "begins\nends\n".repeat(12), "two at once");
}

#[test]
fn what_is_not_committed_would_be_in_no_lane() {
    let sandbox = planned(DIAMOND);
    sandbox.write("a.txt", "changed\n");
    let said = sandbox.proq(&["swarm", "plan.toml", "-q"]).fails(1);
    assert!(
        said.contains("your uncommitted changes would be in no lane: a.txt; nothing was begun"),
        "{said}"
    );
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q", "--ignore-dirty"]).ok();
    assert_eq!(sandbox.read("a.txt"), "changed\n");
}

#[test]
fn a_plan_that_cannot_be_run_is_refused_before_anything_is_made() {
    let sandbox = planned(DIAMOND);
    sandbox.write("nobody.toml", &DIAMOND.replace("agent = \"worker\"\n", ""));
    let said = sandbox.proq(&["swarm", "nobody.toml"]).fails(1);
    assert!(said.contains("nothing says who is to do task 'top'; nothing was begun"), "{said}");
    let said = sandbox.proq(&["swarm", "nobody.toml", "--agent", "absent"]).fails(1);
    assert!(said.contains("there is no program 'absent' on PATH"), "{said}");
    let said = sandbox.proq(&["swarm", "plan.toml", "--retry", "nothing"]).fails(1);
    assert!(said.contains("this plan has no task 'nothing'; nothing was begun"), "{said}");
    let said = sandbox.proq(&["pause"]).fails(2);
    assert!(said.contains("no batch is open"), "{said}");
    sandbox.write("done.yaml", "stories:\n  - id: one\n    title: The first\n    status: done\n");
    let said = sandbox.proq(&["swarm", "done.yaml"]).fails(1);
    assert!(said.contains("all tasks of this plan are done; nothing was begun"), "{said}");
    let (_, hint) = said.split_once("see them: git proq ").unwrap();
    let plan = sandbox.proq(&hint.trim().split(' ').collect::<Vec<_>>()).ok();
    assert!(plan.contains("The first"), "{plan}");
    let _ = sandbox.git(&["switch", "-q", "--detach"]);
    let said = sandbox.proq(&["swarm", "plan.toml"]).fails(2);
    assert!(said.contains("name it: git proq swarm --base BRANCH"), "{said}");
    assert!(!sandbox.repo.join(".git/proq/batches").exists());
}

#[test]
fn what_was_asked_to_wrap_up_is_not_done_and_is_gone_on_with() {
    let sandbox = planned(DIAMOND);
    sandbox.pipe("up");
    let part = r#"ls > "$ROOT/seen-$name-$PROQ_TASK_ATTEMPT"
        if [ $name$PROQ_TASK_ATTEMPT = top1 ]; then
            echo part > part.txt; git add -A; git commit -qm part; echo up > "$ROOT/up"
            until [ -e "$PROQ_WRAP_UP" ]; do sleep 0.02; done; exit 0
        fi"#;
    worker(&sandbox, part);
    let out = sandbox.proq(&["swarm", "plan.toml", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    sandbox.hear("up");
    wait_until("the other task", || task(&sandbox, "alone")["state"] == "landed");
    let _ = sandbox.proq(&["abort"]).ok();
    wait_until("its end", || !is_held(&sandbox));
    assert_eq!(task(&sandbox, "top")["state"], "cut off");
    let files = sandbox.git(&["ls-tree", "--name-only", "proq/batch-20260102-030405"]);
    assert_eq!(files, "a.txt\nalone.txt", "half of a task has landed");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("6 of 6 tasks landed"), "{}", out.stdout);
    let seen = std::fs::read_to_string(sandbox.root().join("seen-top-2")).unwrap();
    assert_eq!(seen, "a.txt\npart.txt\n", "its commits are gone");
    let files = sandbox.git(&["ls-tree", "--name-only", "proq/batch-20260102-030405"]);
    assert!(files.contains("part.txt") && files.contains("top.txt"), "{files}");
    sandbox.assert_healthy();
}

#[test]
fn a_task_waits_for_another_agent_in_its_lane() {
    let sandbox = waiting();
    sandbox.git(&["config", "proq.swarm.maxAttempts", "1"]);
    let _ = sandbox.proq(&["abort", "--hard"]).ok();
    wait_until("its end", || !is_held(&sandbox));
    sandbox.pipe("up");
    worker(&sandbox, "if [ -z \"$PROQ_TASK\" ]; then echo up > $ROOT/up; cat $ROOT/go; exit 0; fi");
    let out = sandbox.proq(&["run", "top", "worker"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    sandbox.hear("up");
    let out = sandbox.proq(&["resume", "--detach"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    let waits = || task(&sandbox, "top")["detail"].to_string().contains("an agent is at work in lane 'top'");
    wait_until("it to wait or be given up", || waits() || !is_held(&sandbox));
    assert!(waits(), "{}", task(&sandbox, "top"));
    sandbox.tell("go");
    wait_until("the end", || !is_held(&sandbox));
    let status = sandbox.proq(&["status", "--json"]).json();
    assert_eq!(status["why"], "complete", "{status}");
}

/// A batch that is paused because the check of its first task fails.
fn with_a_failed_check() -> Sandbox {
    let plan = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"evil\"\ntitle = \"Evil\"\n\
                [[task]]\nid = \"dep\"\ntitle = \"Builds on it\"\nneeds = [\"evil\"]\n";
    let sandbox = planned(plan);
    sandbox.git(&["config", "--add", "proq.verify.commands", "test ! -e BROKEN"]);
    worker(&sandbox, "[ $name != evil ] || touch BROKEN");
    let out = sandbox.proq(&["swarm", "plan.toml", "-q"]);
    assert_eq!(out.code, 4, "{}{}", out.stdout, out.stderr);
    assert_eq!(task(&sandbox, "evil")["state"], "check failed");
    let lane = sandbox.lane("evil");
    sandbox.git_in(&lane, &["rm", "-q", "BROKEN"]);
    sandbox.git_in(&lane, &["commit", "-qm", "repaired"]);
    sandbox
}

#[test]
fn what_a_person_repaired_after_a_failed_check_is_checked_again_and_lands() {
    let sandbox = with_a_failed_check();
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("2 of 2 tasks landed"), "{}", out.stdout);
    // There was no conflict.
    assert!(out.stderr.contains("evil: it was repaired"), "{}", out.stderr);
    assert!(!out.stderr.contains("conflict"), "{}", out.stderr);
    assert_eq!(ran(&sandbox), ["evil 1", "dep 1"]);
    sandbox.assert_healthy();
}

#[test]
fn a_lane_that_a_person_landed_satisfies_what_depends_on_its_task() {
    let sandbox = with_a_failed_check();
    let said = sandbox.proq(&["merge", "evil"]).ok();
    assert!(said.contains("landed evil on proq/batch-20260102-030405"), "{said}");
    let out = sandbox.proq(&["resume", "20260102-030405"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("2 of 2 tasks landed"), "{}", out.stdout);
    assert_eq!(task(&sandbox, "evil")["state"], "landed");
    assert_eq!(ran(&sandbox), ["evil 1", "dep 1"]);
    sandbox.assert_healthy();
}

/// A batch that is over because a person stopped the agent of its first task, which had committed a part.
fn with_a_stopped_task() -> Sandbox {
    let plan = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"one\"\ntitle = \"One\"\n\
                [[task]]\nid = \"two\"\ntitle = \"Two\"\nneeds = [\"one\"]\n";
    let sandbox = planned(plan);
    sandbox.pipe("up");
    let waits = r#"if [ $name$PROQ_TASK_ATTEMPT = one1 ]; then
            echo part > part.txt; git add -A; git commit -qm part; echo up > "$ROOT/up"; exec sleep 600
        fi"#;
    worker(&sandbox, waits);
    let out = sandbox.proq(&["swarm", "plan.toml", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    sandbox.hear("up");
    let _ = sandbox.proq(&["stop", "one"]).ok();
    wait_until("its end", || !is_held(&sandbox));
    assert_eq!(task(&sandbox, "one")["state"], "failed");
    sandbox
}

#[test]
fn a_task_that_a_person_stopped_is_tried_again_by_the_command_that_status_names() {
    let sandbox = with_a_stopped_task();
    let command = "git proq resume 20260102-030405 --retry one";
    for told in [sandbox.proq(&["status"]), sandbox.proq(&["resume", "20260102-030405"])] {
        assert!(told.stderr.contains(&format!("hint: try it again: {command}\n")), "{}", told.shown());
    }
    let out = sandbox.proq(&command.split(' ').skip(2).collect::<Vec<_>>());
    assert_eq!(out.code, 0, "{}", out.shown());
    assert!(out.stdout.contains("2 of 2 tasks landed"), "{}", out.stdout);
    // What had been committed before is there still.
    assert_eq!(sandbox.git(&["show", "proq/one:part.txt"]), "part");
    sandbox.assert_healthy();
}

/// Goes on with a batch by the command that status names, and looks that the second task builds on `files`.
#[track_caller]
fn assert_taken_up(sandbox: &Sandbox, files: &[&str]) {
    let told = sandbox.proq(&["status"]).shown();
    assert!(told.contains("hint: go on with it: git proq resume 20260102-030405\n"), "{told}");
    assert!(told.contains("repaired since; it lands when the batch goes on"), "{told}");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}", out.shown());
    assert!(out.stdout.contains("2 of 2 tasks landed"), "{}", out.shown());
    assert!(out.stderr.contains("one: it was finished in its lane\n"), "{}", out.shown());
    let there = sandbox.git(&["ls-tree", "--name-only", "proq/batch-20260102-030405"]);
    assert!(files.iter().all(|file| there.lines().any(|line| line == *file)), "{there}");
    assert_eq!(ran(sandbox), ["one 1", "two 1"]);
    sandbox.assert_healthy();
}

#[test]
fn what_a_person_commits_after_they_stopped_a_task_lands() {
    let sandbox = with_a_stopped_task();
    let lane = sandbox.lane("one");
    std::fs::write(lane.join("rest.txt"), "rest\n").unwrap();
    sandbox.git_in(&lane, &["add", "rest.txt"]);
    sandbox.git_in(&lane, &["commit", "-qm", "the rest"]);
    assert_taken_up(&sandbox, &["part.txt", "rest.txt", "two.txt"]);
}

#[test]
fn what_another_agent_finishes_after_a_person_stopped_a_task_lands() {
    let sandbox = with_a_stopped_task();
    // One that fails finishes nothing, whatever it has committed.
    sandbox.program("breaker", "echo 1 > broken.txt; git add -A; git commit -qm broken; exit 1");
    let _ = sandbox.proq(&["run", "one", "breaker", "--wait"]).fails(4);
    let told = sandbox.proq(&["resume", "20260102-030405"]).shown();
    assert!(told.contains("there is nothing to go on with"), "{told}");
    sandbox.program("finisher", "echo 1 > rest.txt; git rm -q broken.txt; git add -A; git commit -qm rest");
    let _ = sandbox.proq(&["run", "one", "finisher", "--wait"]).ok();
    assert_taken_up(&sandbox, &["part.txt", "rest.txt", "two.txt"]);
}

#[test]
fn a_lane_that_a_person_landed_after_they_stopped_its_task_counts_as_landed() {
    let sandbox = with_a_stopped_task();
    let said = sandbox.proq(&["merge", "one", "--force"]).ok();
    assert!(said.contains("landed one on proq/batch-20260102-030405"), "{said}");
    assert_taken_up(&sandbox, &["part.txt", "two.txt"]);
}

#[test]
fn an_operation_of_ones_own_before_those_of_a_batch_has_a_way_back_by_hand() {
    let sandbox = planned(DIAMOND);
    let _ = sandbox.proq(&["spawn", "-q", "--empty", "-n", "mine"]).ok();
    let _ = sandbox.proq(&["discard", "mine"]).ok();
    let mine = "2";
    sandbox.pipe("go");
    worker(&sandbox, "if [ $name = top ]; then cat $ROOT/go; fi");
    let _ = sandbox.proq(&["swarm", "plan.toml", "--detach", "-q"]).ok();
    wait_until("another landing", || task(&sandbox, "alone")["state"] == "landed");
    let said = sandbox.proq(&["undo", mine]).fails(1);
    assert!(
        said.contains("error: cannot undo operation 2 by itself: batch 20260102-030405 goes on"),
        "{said}"
    );
    let hint = "hint: see what it saved, to bring that back by hand: git proq op show 2\n";
    // Whatever else takes it back is refused while the batch goes on.
    assert!(said.ends_with(hint) && said.matches("hint: ").count() == 1, "{said}");
    let _ = sandbox.proq(&["op", "show", mine]).ok();
    let ahead = sandbox.proq(&["undo", mine, "--dry-run"]).fails(1);
    assert_eq!(ahead, said);
    let _ = sandbox.proq(&["abort", "--hard"]).ok();
    wait_until("its end", || !is_held(&sandbox));
    let said = sandbox.proq(&["undo", mine]).fails(1);
    assert!(said.contains("batch 20260102-030405 is not over, and landed tasks after it"), "{said}");
    let all = "git proq op restore 1 --force";
    assert!(said.contains(hint) && said.ends_with(&format!("with what the batch landed: {all}\n")), "{said}");
    let _ = sandbox.proq(&all.split(' ').skip(2).collect::<Vec<_>>()).ok();
    assert!(sandbox.proq(&["list"]).stdout.contains("mine"));
}
