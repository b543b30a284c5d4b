//! Tests of undone landings of a batch: their tasks count as not landed, and dependent tasks wait for them.

use std::process::Stdio;

use proq_test_kit::Sandbox;
use proq_test_kit::plans::{install_worker, repo_with_plan};
use proq_test_kit::waiting::wait_until;

use super::swarm::{recorded_runs, task_status};
use super::swarm_control::scheduler_is_running;

const ID: &str = "20260102-030405";
const BRANCH: &str = "proq/batch-20260102-030405";
const TWO_TASK_PLAN: &str = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"one\"\ntitle = \"One\"\n\
                   [[task]]\nid = \"two\"\ntitle = \"Two\"\nneeds = [\"one\"]\n";

/// Creates a batch that was aborted after its first task landed, while the second one ran.
fn aborted_batch() -> Sandbox {
    let sandbox = repo_with_plan(TWO_TASK_PLAN);
    sandbox.pipe("up");
    install_worker(
        &sandbox,
        "[ $name$PROQ_TASK_ATTEMPT != two1 ] || { echo up > $ROOT/up; exec sleep 600; }",
    );
    let _ = sandbox.proq(&["swarm", "plan.toml", "--detach", "-q"]).ok();
    sandbox.read_pipe("up");
    let _ = sandbox.proq(&["abort", "--hard"]).ok();
    wait_until("its end", || !scheduler_is_running(&sandbox));
    sandbox
}

/// Restores the state right after an operation.
fn restore_operation(sandbox: &Sandbox, operation: &str) {
    let hint =
        format!("the tasks are merged again when the batch resumes: git proq op restore {operation} --force");
    let message = sandbox.proq(&["op", "restore", operation]).fails(1);
    assert!(message.contains(&hint), "{message}");
    let _ = sandbox.proq(&["op", "restore", operation, "--force"]).ok();
}

#[track_caller]
fn assert_complete(sandbox: &Sandbox, runs: &[&str]) {
    assert_eq!(
        sandbox.git(&["ls-tree", "--name-only", BRANCH]),
        "a.txt\none.txt\ntwo.txt",
        "what the second task needs is there"
    );
    assert_eq!(recorded_runs(sandbox), runs);
    assert_eq!(
        (&task_status(sandbox, "one")["state"], &task_status(sandbox, "two")["state"]),
        (&"landed".into(), &"landed".into())
    );
    sandbox.assert_healthy();
}

/// Promise: operations/undone-task
#[test]
fn undone_task_lands_again_before_dependent_task() {
    let sandbox = aborted_batch();
    let status = sandbox.proq(&["batch", "status"]).to_text();
    assert!(status.contains("1 of 2 tasks landed"), "{status}");
    restore_operation(&sandbox, "1");
    let status = sandbox.proq(&["batch", "status"]).to_text();
    assert!(status.contains("aborted: 0 of 2 tasks landed, 2 left over"), "{status}");
    assert!(status.contains("its merge was undone"), "{status}");
    assert!(status.contains(&format!("hint: resume it: git proq batch resume {ID}\n")), "{status}");
    let out = sandbox.proq(&["resume", ID]);
    assert_eq!(out.code, 0, "{}", out.to_text());
    assert!(out.stderr.contains("one: its landing was undone; it lands again\n"), "{}", out.to_text());
    assert!(out.stdout.contains("2 of 2 tasks landed"), "{}", out.to_text());
    assert_complete(&sandbox, &["one 1", "two 1", "two 2"]);
    let report = sandbox.proq(&["report", ID]).to_text();
    assert!(report.contains("its merge was undone"), "{report}");
}

/// Promise: operations/undone-task
#[test]
fn task_with_undone_lane_runs_again() {
    let sandbox = aborted_batch();
    restore_operation(&sandbox, "0");
    assert_eq!(task_status(&sandbox, "one")["state"], "cut off");
    let out = sandbox.proq(&["resume", ID]);
    assert_eq!(out.code, 0, "{}", out.to_text());
    assert!(out.stderr.contains("one: its landing was undone; it is done again\n"), "{}", out.to_text());
    assert_complete(&sandbox, &["one 1", "two 1", "one 2", "two 2"]);
}

/// The exit code, the sentence and the criteria are about the lines that were shown.
#[test]
fn end_of_followed_batch_matches_its_lines() {
    let sandbox = repo_with_plan(&TWO_TASK_PLAN.replace("needs = [\"one\"]\n", ""));
    sandbox.pipe("up");
    sandbox.pipe("go");
    install_worker(
        &sandbox,
        "[ $name != two ] || { [ $PROQ_TASK_ATTEMPT != 1 ] || { echo up > $ROOT/up; read l < $ROOT/go; }; exit 1; }",
    );
    let mut command = sandbox.proq_command(&sandbox.repo, &["swarm", "plan.toml"]);
    let follower = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    sandbox.read_pipe("up");
    wait_until("the first landing", || task_status(&sandbox, "one")["state"] == "landed");
    sandbox.git(&["update-ref", &format!("refs/heads/{BRANCH}"), "main"]);
    sandbox.write_pipe("go");
    let out = follower.wait_with_output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains(&format!("batch {ID} is over: 1 of 2 tasks landed\n")), "{text}");
    assert_eq!(out.status.code(), Some(4), "{text}");
}

/// Promise: operations/undone-task
#[test]
fn complete_batch_resumes_after_undone_landings() {
    let sandbox = repo_with_plan(TWO_TASK_PLAN);
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).ok();
    let _ = sandbox.proq(&["op", "restore", "1", "--force"]).ok();
    let status = sandbox.proq(&["batch", "status"]).to_text();
    assert!(status.contains("interrupted: 0 of 2 tasks landed"), "{status}");
    assert!(status.contains(&format!("hint: resume it: git proq batch resume {ID}\n")), "{status}");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}", out.to_text());
    assert!(out.stdout.contains("2 of 2 tasks landed"), "{}", out.to_text());
    assert_complete(&sandbox, &["one 1", "two 1", "two 2"]);
    // A redo of the landings instead leaves nothing to do.
    let _ = sandbox.proq(&["op", "restore", "1", "--force"]).ok();
    let _ = sandbox.proq(&["op", "redo"]).ok();
    let message = sandbox.proq(&["resume", ID]).to_text();
    assert!(message.contains("nothing to resume"), "{message}");
}

/// Promise: operations/undone-task
#[test]
fn killed_batch_does_not_build_on_undone_landing() {
    let sandbox = repo_with_plan(TWO_TASK_PLAN);
    sandbox.pipe("up");
    install_worker(
        &sandbox,
        "[ $name$PROQ_TASK_ATTEMPT != two1 ] || { echo up > $ROOT/up; exec sleep 600; }",
    );
    let _ = sandbox.proq(&["swarm", "plan.toml", "--detach", "-q"]).ok();
    sandbox.read_pipe("up");
    // A run that is not in the log is no attempt: the scheduler would repeat the same attempt, which blocks
    // because nothing reads its pipe.
    let log = format!(".git/proq/batches/{ID}/log.jsonl");
    wait_until("the note of its start", || sandbox.read(&log).contains(r#""event":"started","task":1"#));
    super::swarm_control::kill_scheduler(&sandbox);
    let _ = sandbox.proq(&["stop", "two"]).ok();
    restore_operation(&sandbox, "1");
    let status = sandbox.proq(&["batch", "status"]).to_text();
    assert!(status.contains("interrupted: 0 of 2 tasks landed"), "{status}");
    let out = sandbox.proq(&["resume"]);
    assert!(out.stderr.contains("one: its landing was undone; it lands again\n"), "{}", out.to_text());
    let _ = sandbox.proq(&["resume", "--retry", "two"]);
    assert_complete(&sandbox, &["one 1", "two 1", "two 2"]);
}

/// Promise: operations/undone-task
#[test]
fn task_stays_landed_after_base_history_is_rewritten() {
    let sandbox = repo_with_plan(TWO_TASK_PLAN);
    sandbox.pipe("up");
    install_worker(
        &sandbox,
        "[ $name$PROQ_TASK_ATTEMPT != two1 ] || { echo up > $ROOT/up; exec sleep 600; }",
    );
    let _ = sandbox.proq(&["swarm", "plan.toml", "--auto-merge", "--detach", "-q"]).ok();
    sandbox.read_pipe("up");
    let _ = sandbox.proq(&["abort", "--hard"]).ok();
    wait_until("its end", || !scheduler_is_running(&sandbox));
    sandbox.write("one.txt", "work of one, and more\n");
    sandbox.git(&["commit", "-aq", "--amend", "-m", "in other words"]);
    assert_eq!(task_status(&sandbox, "one")["state"], "landed");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}", out.to_text());
    assert_eq!(recorded_runs(&sandbox), ["one 1", "two 1", "two 2"]);
}
