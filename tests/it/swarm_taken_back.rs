//! Owns landings of a batch that are taken back: their tasks count as not landed, and what needs them waits for them.

use super::support::Sandbox;
use super::support::patience::wait_until;
use super::swarm::{planned, ran, task, worker};
use super::swarm_control::is_held;

const ID: &str = "20260102-030405";
const BRANCH: &str = "proq/batch-20260102-030405";
const TWO: &str = "format = 1\nagent = \"worker\"\n[[task]]\nid = \"one\"\ntitle = \"One\"\n\
                   [[task]]\nid = \"two\"\ntitle = \"Two\"\nneeds = [\"one\"]\n";

/// A batch that was aborted after its first task landed, while the second one ran.
fn aborted() -> Sandbox {
    let sandbox = planned(TWO);
    sandbox.pipe("up");
    worker(&sandbox, "[ $name$PROQ_TASK_ATTEMPT != two1 ] || { echo up > $ROOT/up; exec sleep 600; }");
    let _ = sandbox.proq(&["swarm", "plan.toml", "--detach", "-q"]).ok();
    sandbox.hear("up");
    let _ = sandbox.proq(&["abort", "--hard"]).ok();
    wait_until("its end", || !is_held(&sandbox));
    sandbox
}

/// Takes everything back that came after an operation.
fn restore(sandbox: &Sandbox, operation: &str) {
    let hint = format!("the tasks land again when it goes on: git proq op restore {operation} --force");
    let said = sandbox.proq(&["op", "restore", operation]).fails(1);
    assert!(said.contains(&hint), "{said}");
    let _ = sandbox.proq(&["op", "restore", operation, "--force"]).ok();
}

#[track_caller]
fn assert_complete(sandbox: &Sandbox, runs: &[&str]) {
    assert_eq!(
        sandbox.git(&["ls-tree", "--name-only", BRANCH]),
        "a.txt\none.txt\ntwo.txt",
        "what the second task needs is there"
    );
    assert_eq!(ran(sandbox), runs);
    assert_eq!(
        (&task(sandbox, "one")["state"], &task(sandbox, "two")["state"]),
        (&"landed".into(), &"landed".into())
    );
    sandbox.assert_healthy();
}

#[test]
fn a_task_whose_landing_was_taken_back_lands_again_before_what_needs_it_runs() {
    let sandbox = aborted();
    let told = sandbox.proq(&["status"]).shown();
    assert!(told.contains("1 of 2 tasks landed"), "{told}");
    restore(&sandbox, "1");
    let told = sandbox.proq(&["status"]).shown();
    assert!(told.contains("aborted: 0 of 2 tasks landed, 2 left over"), "{told}");
    assert!(told.contains("its landing was taken back"), "{told}");
    assert!(told.contains(&format!("hint: go on with it: git proq resume {ID}\n")), "{told}");
    let out = sandbox.proq(&["resume", ID]);
    assert_eq!(out.code, 0, "{}", out.shown());
    assert!(out.stderr.contains("one: its landing was taken back; it lands again\n"), "{}", out.shown());
    assert!(out.stdout.contains("2 of 2 tasks landed"), "{}", out.shown());
    assert_complete(&sandbox, &["one 1", "two 1", "two 2"]);
    let report = sandbox.proq(&["report", ID]).shown();
    assert!(report.contains("its landing was taken back"), "{report}");
}

#[test]
fn a_task_whose_lane_was_taken_back_too_is_done_anew() {
    let sandbox = aborted();
    restore(&sandbox, "0");
    assert_eq!(task(&sandbox, "one")["state"], "cut off");
    let out = sandbox.proq(&["resume", ID]);
    assert_eq!(out.code, 0, "{}", out.shown());
    assert!(out.stderr.contains("one: its landing was taken back; it is done anew\n"), "{}", out.shown());
    assert_complete(&sandbox, &["one 1", "two 1", "one 2", "two 2"]);
}

#[test]
fn a_batch_that_was_complete_goes_on_when_landings_of_it_were_taken_back() {
    let sandbox = planned(TWO);
    let _ = sandbox.proq(&["swarm", "plan.toml", "-q"]).ok();
    let _ = sandbox.proq(&["op", "restore", "1", "--force"]).ok();
    let told = sandbox.proq(&["status"]).shown();
    assert!(told.contains("interrupted: 0 of 2 tasks landed"), "{told}");
    assert!(told.contains(&format!("hint: go on with it: git proq resume {ID}\n")), "{told}");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}", out.shown());
    assert!(out.stdout.contains("2 of 2 tasks landed"), "{}", out.shown());
    assert_complete(&sandbox, &["one 1", "two 1", "two 2"]);
    // Going forward again instead leaves nothing to do.
    let _ = sandbox.proq(&["op", "restore", "1", "--force"]).ok();
    let _ = sandbox.proq(&["op", "redo"]).ok();
    let told = sandbox.proq(&["resume", ID]).shown();
    assert!(told.contains("there is nothing to go on with"), "{told}");
}

#[test]
fn a_batch_of_which_a_scheduler_died_does_not_build_on_what_was_taken_back() {
    let sandbox = planned(TWO);
    sandbox.pipe("up");
    worker(&sandbox, "[ $name$PROQ_TASK_ATTEMPT != two1 ] || { echo up > $ROOT/up; exec sleep 600; }");
    let _ = sandbox.proq(&["swarm", "plan.toml", "--detach", "-q"]).ok();
    sandbox.hear("up");
    // A run that it has not noted is none of its attempts: it would begin the same one again, which waits for an ear.
    let log = format!(".git/proq/batches/{ID}/log.jsonl");
    wait_until("the note of its start", || sandbox.read(&log).contains(r#""event":"started","task":1"#));
    super::swarm_control::kill_scheduler(&sandbox);
    let _ = sandbox.proq(&["stop", "two"]).ok();
    restore(&sandbox, "1");
    let told = sandbox.proq(&["status"]).shown();
    assert!(told.contains("interrupted: 0 of 2 tasks landed"), "{told}");
    let out = sandbox.proq(&["resume"]);
    assert!(out.stderr.contains("one: its landing was taken back; it lands again\n"), "{}", out.shown());
    let _ = sandbox.proq(&["resume", "--retry", "two"]);
    assert_complete(&sandbox, &["one 1", "two 1", "two 2"]);
}

#[test]
fn a_users_branch_whose_commits_were_rewritten_has_landed_what_it_had() {
    let sandbox = planned(TWO);
    sandbox.pipe("up");
    worker(&sandbox, "[ $name$PROQ_TASK_ATTEMPT != two1 ] || { echo up > $ROOT/up; exec sleep 600; }");
    let _ = sandbox.proq(&["swarm", "plan.toml", "--auto-merge", "--detach", "-q"]).ok();
    sandbox.hear("up");
    let _ = sandbox.proq(&["abort", "--hard"]).ok();
    wait_until("its end", || !is_held(&sandbox));
    sandbox.write("one.txt", "work of one, and more\n");
    sandbox.git(&["commit", "-aq", "--amend", "-m", "in other words"]);
    assert_eq!(task(&sandbox, "one")["state"], "landed");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}", out.shown());
    assert_eq!(ran(&sandbox), ["one 1", "two 1", "two 2"]);
}
