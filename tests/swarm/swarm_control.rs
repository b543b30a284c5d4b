//! Tests of controlling a batch from another process: pause, resume and abort; of concurrent batches; and of
//! cleanup.

use proq_test_kit::Sandbox;
use proq_test_kit::plans::{install_worker, repo_with_plan};
use proq_test_kit::waiting::wait_until;

use super::swarm::{DIAMOND, recorded_runs, task_status};

/// Starts a batch whose first task waits for a line in the pipe `$ROOT/go`.
fn start_waiting_batch() -> Sandbox {
    let sandbox = repo_with_plan(DIAMOND);
    sandbox.pipe("go");
    install_worker(&sandbox, "if [ $name = top ]; then cat $ROOT/go; fi");
    let out = sandbox.proq(&["swarm", "plan.toml", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    wait_until("the first task to be at work", || task_status(&sandbox, "top")["state"] == "running");
    sandbox
}

/// Returns whether a scheduler holds the batch's lock.
pub(super) fn scheduler_is_running(sandbox: &Sandbox) -> bool {
    let lock = sandbox.repo.join(".git/proq/locks/batches/20260102-030405.lock");
    std::fs::File::open(lock).is_ok_and(|file| file.try_lock_shared().is_err())
}

pub(super) fn kill_scheduler(sandbox: &Sandbox) {
    sandbox.sh("kill -9 $(sed -n 's/^pid = //p' .git/proq/batches/20260102-030405/scheduler.toml)");
    wait_until("its death", || !scheduler_is_running(sandbox));
}

#[test]
fn pause_finishes_running_tasks_and_starts_none() {
    let sandbox = start_waiting_batch();
    let message = sandbox.proq(&["pause"]).ok();
    assert!(
        message.contains("batch 20260102-030405 will pause when its running tasks have ended"),
        "{message}"
    );
    sandbox.write_pipe("go");
    wait_until("its rest", || !scheduler_is_running(&sandbox));
    let status = sandbox.proq(&["status", "--json"]).json();
    assert_eq!((&status["state"], &status["why"]), (&"paused".into(), &"asked".into()));
    assert_eq!(task_status(&sandbox, "top")["state"], "landed");
    assert_eq!(task_status(&sandbox, "left")["state"], "queued");
    let message = sandbox.proq(&["pause"]).ok();
    assert!(message.contains("is already paused"), "{message}");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("6 of 6 tasks landed"), "{}", out.stdout);
    // Only new events are printed.
    assert!(
        out.stderr.contains("  resumed\n") && out.stderr.contains("  left: worker is working"),
        "{}",
        out.stderr
    );
    assert!(!out.stderr.contains("  top: ") && !out.stderr.contains("is to pause"), "{}", out.stderr);
}

#[test]
fn names_unlanded_batch_after_pause_and_abort() {
    const BATCH: &str = "20260102-030405";
    let sandbox = start_waiting_batch();
    let assert_named = |state: &str| {
        let start = format!("batch {BATCH} {state}: 2 of 6 tasks landed on proq/batch-{BATCH}");
        let hints = format!(
            "hint: resume it: git proq batch resume {BATCH}\n\
             hint: or land what is done on main: git proq merge --batch {BATCH}\n"
        );
        for args in [&[][..], &["list"], &["merge", "--all"]] {
            let out = sandbox.proq(args);
            assert!(
                out.stderr.contains(&format!("{start}, which is not on main yet\n{hints}")),
                "{}",
                out.to_text()
            );
            assert!(!out.stdout.contains("No lanes yet"), "{}", out.to_text());
        }
        assert_eq!(sandbox.proq(&["list", "--json"]).json()["unlanded_batches"][0], BATCH);
    };
    let _ = sandbox.proq(&["pause"]).ok();
    assert!(!sandbox.proq(&["list"]).stderr.contains(BATCH), "it runs");
    sandbox.write_pipe("go");
    wait_until("its rest", || !scheduler_is_running(&sandbox));
    assert_named("is paused");
    let _ = sandbox.proq(&["abort"]).ok();
    wait_until("its end", || !scheduler_is_running(&sandbox));
    assert_named("was aborted");
    let paused = sandbox.proq(&["pause", BATCH]).ok();
    assert_eq!(paused, format!("batch {BATCH} has already ended: aborted\n"));
    let _ = sandbox.proq(&["merge", "--batch", BATCH]).ok();
    assert!(sandbox.repo.join("top.txt").exists());
    assert!(!sandbox.proq(&[]).stderr.contains(BATCH));
}

/// Promise: operations/killed-scheduler
#[test]
fn resume_takes_over_running_agents() {
    let sandbox = start_waiting_batch();
    kill_scheduler(&sandbox);
    let status = sandbox.proq(&["batch", "status"]).ok();
    assert!(status.contains("interrupted: "), "{status}");
    let message = sandbox.proq(&["swarm", "plan.toml"]).fails(1);
    assert!(message.contains("has not ended (interrupted); nothing was started"), "{message}");
    let _ = sandbox.proq(&["resume", "--detach"]).ok();
    assert_eq!(task_status(&sandbox, "top")["state"], "running");
    sandbox.write_pipe("go");
    wait_until("its end", || !scheduler_is_running(&sandbox));
    assert_eq!(recorded_runs(&sandbox).iter().filter(|run| run.starts_with("top")).count(), 1);
    assert_eq!(sandbox.proq(&["status", "--json"]).json()["why"], "complete");
    sandbox.assert_healthy();
}

/// Promise: operations/killed-scheduler
#[test]
fn resume_finds_run_that_finished_without_scheduler() {
    let sandbox = start_waiting_batch();
    kill_scheduler(&sandbox);
    sandbox.write_pipe("go");
    wait_until("the end of its run", || sandbox.row("top")["state"] == "done");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert_eq!(recorded_runs(&sandbox).iter().filter(|run| run.starts_with("top")).count(), 1);
}

#[test]
fn abort_stops_agents_and_batch_can_be_resumed() {
    let sandbox = start_waiting_batch();
    sandbox.git(&["config", "proq.agent.abortGrace", "0"]);
    sandbox.git(&["config", "proq.agent.stopGrace", "1"]);
    kill_scheduler(&sandbox);
    // No scheduler runs, so `abort` starts one that waits for the agents to end.
    let message = sandbox.proq(&["abort"]).ok();
    assert!(message.contains("is being aborted") || message.contains("is aborted"), "{message}");
    wait_until("its end", || !scheduler_is_running(&sandbox));
    let status = sandbox.proq(&["status", "--json"]).json();
    assert_eq!((&status["state"], &status["why"]), (&"over".into(), &"aborted".into()));
    assert_eq!(task_status(&sandbox, "top")["state"], "cut off");
    assert!(sandbox.lane_path("top").exists());
    let message = sandbox.proq(&["swarm", "plan.toml"]).fails(1);
    assert!(message.contains("has not ended (aborted); nothing was started"), "{message}");
    install_worker(&sandbox, "");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert_eq!(recorded_runs(&sandbox).iter().filter(|run| run.starts_with("top")).count(), 2);
    sandbox.assert_healthy();
}

#[test]
fn hard_abort_stops_agents_at_once() {
    let sandbox = start_waiting_batch();
    install_worker(&sandbox, "");
    let message = sandbox.proq(&["abort", "--hard"]).ok();
    assert!(message.contains("its agents are being stopped") || message.contains("is aborted"), "{message}");
    wait_until("its end", || !scheduler_is_running(&sandbox));
    assert!(!message.contains("cleanup"), "that would be refused: {message}");
    assert_eq!(sandbox.proq(&["status", "--json"]).json()["why"], "aborted");
    let _ = sandbox.proq(&["cleanup", "--batch", "20260102-030405"]).fails(1);
    let cleaned = sandbox.proq(&["cleanup", "--batch", "20260102-030405", "--force"]).ok();
    assert!(cleaned.contains("cleaned up batch 20260102-030405"), "{cleaned}");
    assert_eq!(sandbox.git(&["branch", "--list", "proq/*"]), "");
    let message = sandbox.proq(&["resume", "20260102-030405"]).fails(1);
    assert!(message.contains("was cleaned up: its lanes and its branch no longer exist"), "{message}");
    sandbox.assert_healthy();
}

/// Promise: operations/exclusive-task
#[test]
fn two_batches_of_a_plan_never_share_a_running_task() {
    let sandbox = start_waiting_batch();
    let out = sandbox.proq(&["swarm", "plan.toml", "--new", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    let second = || sandbox.proq(&["status", "20260102-030405-2", "--json"]).json();
    wait_until("the second to see that the first has it", || {
        second()["tasks"][0]["detail"] == "batch 20260102-030405 has it"
    });
    assert_eq!(recorded_runs(&sandbox).iter().filter(|run| run.starts_with("top")).count(), 1);
    sandbox.write_pipe("go");
    wait_until("the first one's end", || !scheduler_is_running(&sandbox));
    // Its tasks are free now; the second batch runs them on its own branch.
    sandbox.write_pipe("go");
    wait_until("the second one's end", || second()["state"] == "over");
    assert_eq!(second()["why"], "complete");
    let mut runs = recorded_runs(&sandbox);
    runs.sort();
    assert_eq!(runs.len(), 12, "{runs:?}");
}

#[test]
fn limits_running_agents_across_batches() {
    let sandbox = repo_with_plan(DIAMOND);
    sandbox.git(&["config", "proq.agent.maxRunning", "1"]);
    sandbox.pipe("go");
    install_worker(
        &sandbox,
        "echo begins >> $ROOT/times; if [ $name = top ]; then cat $ROOT/go; fi; echo ends >> $ROOT/times",
    );
    let other = DIAMOND.replace("id = \"", "id = \"o-").replace("needs = [\"", "needs = [\"o-");
    sandbox.write("other.toml", &other.replace("\", \"", "\", \"o-"));
    let start_batch = |plan: &str| {
        let out = sandbox.proq(&["swarm", plan, "--detach", "-q"]);
        assert_eq!(out.code, 0, "{}", out.stderr);
    };
    start_batch("plan.toml");
    wait_until("the first task to be at work", || task_status(&sandbox, "top")["state"] == "running");
    start_batch("other.toml");
    let status = |id: &str| sandbox.proq(&["status", id, "--json"]).json();
    // Without the limit, this event would have started its first tasks.
    let log = sandbox.repo.join(".git/proq/batches/20260102-030405-2/log.jsonl");
    wait_until("the other one to see that there is no room", || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        text.contains("\"event\":\"slots\",\"room\":0") && text.contains("\"event\":\"begun\"")
    });
    assert_eq!(status("20260102-030405-2")["tasks"][0]["state"], "queued");
    sandbox.write_pipe("go");
    wait_until("both", || {
        ["20260102-030405", "20260102-030405-2"].iter().all(|id| status(id)["why"] == "complete")
    });
    let times = std::fs::read_to_string(sandbox.root().join("times")).unwrap();
    assert_eq!(times, "begins\nends\n".repeat(12), "two at once");
}

#[test]
fn refuses_uncommitted_changes_unless_ignored() {
    let sandbox = repo_with_plan(DIAMOND);
    sandbox.write("a.txt", "changed\n");
    let message = sandbox.proq(&["swarm", "plan.toml", "-q"]).fails(1);
    assert!(message.contains("cannot start the batch: its lanes would lack your uncommitted changes to a.txt; nothing was started"), "{message}");
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q", "--ignore-dirty"]).ok();
    assert_eq!(sandbox.read("a.txt"), "changed\n");
}

#[test]
fn refuses_unusable_plan_before_creating_anything() {
    let sandbox = repo_with_plan(DIAMOND);
    sandbox.write("nobody.toml", &DIAMOND.replace("agent = \"worker\"\n", ""));
    let message = sandbox.proq(&["swarm", "nobody.toml"]).fails(1);
    assert!(message.contains("cannot start task 'top': it has no agent; nothing was started"), "{message}");
    let message = sandbox.proq(&["swarm", "nobody.toml", "--agent", "absent"]).fails(1);
    assert!(message.contains("cannot start 'absent': there is no such program on PATH"), "{message}");
    let message = sandbox.proq(&["swarm", "plan.toml", "--retry", "nothing"]).fails(1);
    assert!(message.contains("this plan has no task 'nothing'"), "{message}");
    let message = sandbox.proq(&["pause"]).fails(1);
    assert!(message.contains("no batch is running"), "{message}");
    sandbox.write("done.yaml", "stories:\n  - id: one\n    title: The first\n    status: done\n");
    let message = sandbox.proq(&["swarm", "done.yaml"]).fails(1);
    assert!(message.contains("cannot run this plan: all of its tasks are done"), "{message}");
    let (_, hint) = message.split_once("list them: git proq ").unwrap();
    let plan = sandbox.proq(&hint.trim().split(' ').collect::<Vec<_>>()).ok();
    assert!(plan.contains("The first"), "{plan}");
    let _ = sandbox.git(&["switch", "-q", "--detach"]);
    let message = sandbox.proq(&["swarm", "plan.toml"]).fails(1);
    assert!(message.contains("name the branch with --base"), "{message}");
    assert!(!sandbox.repo.join(".git/proq/batches").exists());
}

/// Promise: operations/wrapped-up-run, operations/abort-continues
#[test]
fn wrapped_up_task_continues_on_resume() {
    let sandbox = repo_with_plan(DIAMOND);
    sandbox.pipe("up");
    let script = r#"ls > "$ROOT/seen-$name-$PROQ_TASK_ATTEMPT"
        if [ $name$PROQ_TASK_ATTEMPT = top1 ]; then
            echo part > part.txt; git add -A; git commit -qm part; echo up > "$ROOT/up"
            until [ -e "$PROQ_WRAP_UP" ]; do sleep 0.02; done; exit 0
        fi"#;
    install_worker(&sandbox, script);
    let out = sandbox.proq(&["swarm", "plan.toml", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    sandbox.read_pipe("up");
    wait_until("the other task", || task_status(&sandbox, "alone")["state"] == "landed");
    let _ = sandbox.proq(&["abort"]).ok();
    wait_until("its end", || !scheduler_is_running(&sandbox));
    assert_eq!(task_status(&sandbox, "top")["state"], "cut off");
    let files = sandbox.git(&["ls-tree", "--name-only", "proq/batch-20260102-030405"]);
    assert_eq!(files, "a.txt\nalone.txt", "half of a task has landed");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("6 of 6 tasks landed"), "{}", out.stdout);
    let files_of_second_run = std::fs::read_to_string(sandbox.root().join("seen-top-2")).unwrap();
    assert_eq!(files_of_second_run, "a.txt\npart.txt\n", "its commits are gone");
    let files = sandbox.git(&["ls-tree", "--name-only", "proq/batch-20260102-030405"]);
    assert!(files.contains("part.txt") && files.contains("top.txt"), "{files}");
    sandbox.assert_healthy();
}

/// Promise: operations/task-waits
#[test]
fn task_waits_for_other_agent_in_its_lane() {
    let sandbox = start_waiting_batch();
    sandbox.git(&["config", "proq.swarm.maxAttempts", "1"]);
    let _ = sandbox.proq(&["abort", "--hard"]).ok();
    wait_until("its end", || !scheduler_is_running(&sandbox));
    sandbox.pipe("up");
    install_worker(&sandbox, "if [ -z \"$PROQ_TASK\" ]; then echo up > $ROOT/up; cat $ROOT/go; exit 0; fi");
    let out = sandbox.proq(&["run", "top", "worker"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    sandbox.read_pipe("up");
    let out = sandbox.proq(&["resume", "--detach"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    let waits =
        || task_status(&sandbox, "top")["detail"].to_string().contains("an agent is running in lane 'top'");
    wait_until("it to wait or be given up", || waits() || !scheduler_is_running(&sandbox));
    assert!(waits(), "{}", task_status(&sandbox, "top"));
    sandbox.write_pipe("go");
    wait_until("the end", || !scheduler_is_running(&sandbox));
    let status = sandbox.proq(&["status", "--json"]).json();
    assert_eq!(status["why"], "complete", "{status}");
}

/// Creates a batch that is paused because the check of its first task fails.
fn batch_with_failed_check() -> Sandbox {
    let plan = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"evil\"\ntitle = \"Evil\"\n\
                [[task]]\nid = \"dep\"\ntitle = \"Builds on it\"\nneeds = [\"evil\"]\n";
    let sandbox = repo_with_plan(plan);
    sandbox.git(&["config", "--add", "proq.verify.commands", "test ! -e BROKEN"]);
    install_worker(&sandbox, "[ $name != evil ] || touch BROKEN");
    let out = sandbox.proq(&["swarm", "plan.toml", "-q"]);
    assert_eq!(out.code, 4, "{}{}", out.stdout, out.stderr);
    assert_eq!(task_status(&sandbox, "evil")["state"], "check failed");
    let lane = sandbox.lane_path("evil");
    sandbox.git_in(&lane, &["rm", "-q", "BROKEN"]);
    sandbox.git_in(&lane, &["commit", "-qm", "repaired"]);
    sandbox
}

/// Promise: operations/repaired-task
#[test]
fn repaired_task_is_checked_again_and_lands() {
    let sandbox = batch_with_failed_check();
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("2 of 2 tasks landed"), "{}", out.stdout);
    // There was no conflict.
    assert!(out.stderr.contains("evil: it was repaired"), "{}", out.stderr);
    assert!(!out.stderr.contains("conflict"), "{}", out.stderr);
    assert_eq!(recorded_runs(&sandbox), ["evil 1", "dep 1"]);
    sandbox.assert_healthy();
}

/// Promise: operations/repaired-task
#[test]
fn manually_landed_lane_unblocks_dependent_task() {
    let sandbox = batch_with_failed_check();
    let message = sandbox.proq(&["merge", "evil"]).ok();
    assert!(message.contains("landed evil on proq/batch-20260102-030405"), "{message}");
    let out = sandbox.proq(&["resume", "20260102-030405"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("2 of 2 tasks landed"), "{}", out.stdout);
    assert_eq!(task_status(&sandbox, "evil")["state"], "landed");
    assert_eq!(recorded_runs(&sandbox), ["evil 1", "dep 1"]);
    sandbox.assert_healthy();
}

/// Creates a finished batch in which the user stopped the agent of the first task after it had committed a
/// part.
fn batch_with_stopped_task() -> Sandbox {
    let plan = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"one\"\ntitle = \"One\"\n\
                [[task]]\nid = \"two\"\ntitle = \"Two\"\nneeds = [\"one\"]\n";
    let sandbox = repo_with_plan(plan);
    sandbox.pipe("up");
    let waits = r#"if [ $name$PROQ_TASK_ATTEMPT = one1 ]; then
            echo part > part.txt; git add -A; git commit -qm part; echo up > "$ROOT/up"; exec sleep 600
        fi"#;
    install_worker(&sandbox, waits);
    let out = sandbox.proq(&["swarm", "plan.toml", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    sandbox.read_pipe("up");
    let _ = sandbox.proq(&["stop", "one"]).ok();
    wait_until("its end", || !scheduler_is_running(&sandbox));
    assert_eq!(task_status(&sandbox, "one")["state"], "failed");
    sandbox
}

#[test]
fn status_hint_retries_stopped_task() {
    let sandbox = batch_with_stopped_task();
    let command = "git proq batch resume 20260102-030405 --retry one";
    for output in [sandbox.proq(&["batch", "status"]), sandbox.proq(&["resume", "20260102-030405"])] {
        assert!(output.stderr.contains(&format!("hint: retry it: {command}\n")), "{}", output.to_text());
    }
    let out = sandbox.proq(&command.split(' ').skip(2).collect::<Vec<_>>());
    assert_eq!(out.code, 0, "{}", out.to_text());
    assert!(out.stdout.contains("2 of 2 tasks landed"), "{}", out.stdout);
    // The earlier commit is still there.
    assert_eq!(sandbox.git(&["show", "proq/one:part.txt"]), "part");
    sandbox.assert_healthy();
}

/// Resumes a batch by the command that `status` names, and asserts that the second task builds on `files`.
#[track_caller]
fn assert_resumes_with(sandbox: &Sandbox, files: &[&str]) {
    let status = sandbox.proq(&["batch", "status"]).to_text();
    assert!(status.contains("hint: resume it: git proq batch resume 20260102-030405\n"), "{status}");
    assert!(status.contains("repaired since; it is merged when the batch resumes"), "{status}");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}", out.to_text());
    assert!(out.stdout.contains("2 of 2 tasks landed"), "{}", out.to_text());
    assert!(out.stderr.contains("one: finished by hand in its lane\n"), "{}", out.to_text());
    let landed_files = sandbox.git(&["ls-tree", "--name-only", "proq/batch-20260102-030405"]);
    assert!(files.iter().all(|file| landed_files.lines().any(|line| line == *file)), "{landed_files}");
    assert_eq!(recorded_runs(sandbox), ["one 1", "two 1"]);
    sandbox.assert_healthy();
}

/// Promise: operations/manual-work-on-task
#[test]
fn commits_added_to_stopped_task_land() {
    let sandbox = batch_with_stopped_task();
    let lane = sandbox.lane_path("one");
    std::fs::write(lane.join("rest.txt"), "rest\n").unwrap();
    sandbox.git_in(&lane, &["add", "rest.txt"]);
    sandbox.git_in(&lane, &["commit", "-qm", "the rest"]);
    assert_resumes_with(&sandbox, &["part.txt", "rest.txt", "two.txt"]);
}

/// Promise: operations/manual-work-on-task
#[test]
fn stopped_task_finished_by_another_agent_lands() {
    let sandbox = batch_with_stopped_task();
    // A run that fails finishes nothing, whatever it has committed.
    sandbox.program("breaker", "echo 1 > broken.txt; git add -A; git commit -qm broken; exit 1");
    let _ = sandbox.proq(&["run", "one", "breaker", "--wait"]).fails(4);
    let output = sandbox.proq(&["resume", "20260102-030405"]).to_text();
    assert!(output.contains("nothing to resume"), "{output}");
    sandbox.program("finisher", "echo 1 > rest.txt; git rm -q broken.txt; git add -A; git commit -qm rest");
    let _ = sandbox.proq(&["run", "one", "finisher", "--wait"]).ok();
    assert_resumes_with(&sandbox, &["part.txt", "rest.txt", "two.txt"]);
}

/// Promise: operations/manual-work-on-task
#[test]
fn manually_landed_stopped_task_counts_as_landed() {
    let sandbox = batch_with_stopped_task();
    let message = sandbox.proq(&["merge", "one", "--force"]).ok();
    assert!(message.contains("landed one on proq/batch-20260102-030405"), "{message}");
    assert_resumes_with(&sandbox, &["part.txt", "two.txt"]);
}

#[test]
fn undo_before_a_running_batch_hints_at_op_show() {
    let sandbox = repo_with_plan(DIAMOND);
    let _ = sandbox.proq(&["spawn", "-q", "--empty", "-n", "mine"]).ok();
    let _ = sandbox.proq(&["discard", "mine"]).ok();
    let operation = "2";
    sandbox.pipe("go");
    install_worker(&sandbox, "if [ $name = top ]; then cat $ROOT/go; fi");
    let _ = sandbox.proq(&["swarm", "plan.toml", "--detach", "-q"]).ok();
    wait_until("another landing", || task_status(&sandbox, "alone")["state"] == "landed");
    let message = sandbox.proq(&["undo", operation]).fails(1);
    assert!(
        message.contains("error: cannot undo only operation 2: batch 20260102-030405 is running"),
        "{message}"
    );
    let hint = "hint: show what it saved: git proq op show 2\n";
    // Every other command that undoes it is refused while the batch runs.
    assert!(message.ends_with(hint) && message.matches("hint: ").count() == 1, "{message}");
    let _ = sandbox.proq(&["op", "show", operation]).ok();
    let dry_run = sandbox.proq(&["undo", operation, "--dry-run"]).fails(1);
    assert_eq!(dry_run, message);
    let _ = sandbox.proq(&["abort", "--hard"]).ok();
    wait_until("its end", || !scheduler_is_running(&sandbox));
    let message = sandbox.proq(&["undo", operation]).fails(1);
    assert!(
        message.contains("batch 20260102-030405 has not ended and has merged tasks after it"),
        "{message}"
    );
    let restore = "git proq op restore 1 --force";
    assert!(
        message.contains(hint) && message.ends_with(&format!("with the merged tasks: {restore}\n")),
        "{message}"
    );
    let _ = sandbox.proq(&restore.split(' ').skip(2).collect::<Vec<_>>()).ok();
    assert!(sandbox.proq(&["list"]).stdout.contains("mine"));
}
