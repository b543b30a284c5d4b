//! Tests of plans whose tasks are folders: each is done step by step in its lane, and continues after a
//! crash.

use proq_test_kit::Sandbox;
use proq_test_kit::claude::sandbox_with_claude;
use proq_test_kit::plans::{install_worker, repo_with_plan};
use proq_test_kit::waiting::wait_until;

use super::swarm::{recorded_runs, task_status};
use super::swarm_control::{kill_scheduler, scheduler_is_running};

/// Prologue of the agent's script: it can plan a step, `work` at the first open box, and `judge`. `$what` is
/// the kind of step that was requested.
const AGENT_STEPS: &str = r#"begin
    id=${PROQ_TASK#pay/}; s=$(echo tasks/pay/$id-*/STATUS.md); prompt=$(cat "$notes/prompt.$n"); what=work
    case $prompt in *'Review the '*) what=review;; *'- Write a plan for '*|*'rejected the plan for '*) what=plan;; esac
    echo "$id $PROQ_TASK_ATTEMPT $what" >> $ROOT/ran
    work() { echo $n > $id-$n.txt; sed -i '0,/- \[ \]/s//- [x]/' $s; git add -A; git commit -qm "$id, run $n"; }
    judge() { sed "s|All done.|$1|" "$notes/well"; exit 0; }
"#;

const BRANCH: &str = "proq/batch-20260102-030405";

/// Adds a task folder with `boxes` steps of one box each.
fn add_task_folder(sandbox: &Sandbox, id: &str, needs: &[&str], level: u8, boxes: usize) {
    let needs = match needs {
        [] => "- **None**\n".to_owned(),
        needs => needs.iter().map(|need| format!("- **Task:** {need}\n")).collect::<Vec<_>>().concat(),
    };
    let steps: Vec<String> =
        (1..=boxes).map(|n| format!("### Step {n}: Part {n}\n- [ ] part {n}\n")).collect();
    let text = format!(
        "# Task: {id} - About {id}\n\n**Review level:** {level}\n\n## Dependencies\n{needs}\n{}",
        steps.concat()
    );
    sandbox.write(&format!("tasks/pay/{id}-x/PROMPT.md"), &text);
}

/// Returns the files that the batch's branch adds to the base.
fn landed_files(sandbox: &Sandbox) -> String {
    sandbox.git(&["diff", "--name-only", "main", BRANCH])
}

#[test]
fn task_folder_is_in_the_lane_and_never_lands() {
    let sandbox = repo_with_plan("");
    sandbox.write("tasks/auth/AUTH-1-roles/PROMPT.md", "# AUTH-1: Roles\n\n## Dependencies\n\n**None**\n");
    install_worker(
        &sandbox,
        "cd tasks/auth/AUTH-1-roles; cat PROMPT.md > $ROOT/read; cat $1 > $ROOT/told; sed -i 's/\\[ \\]/[x]/' STATUS.md; cd - >&2",
    );
    let out = sandbox.proq(&["swarm", "auth", "--agent", "worker", "-q"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    let read = std::fs::read_to_string(sandbox.root().join("read")).unwrap();
    assert!(read.starts_with("# AUTH-1: Roles"), "{read}");
    assert_eq!(landed_files(&sandbox), "auth-AUTH-1.txt");
    assert_eq!(recorded_runs(&sandbox), ["auth/AUTH-1 1"]);
}

#[test]
fn task_folders_continue_after_scheduler_is_killed() {
    let sandbox = sandbox_with_claude(&format!(
        "{AGENT_STEPS}
        case $what in
            plan) echo \"plan $n\" >> $s;;
            review) if [ -e $ROOT/revised ]; then judge APPROVE; fi; touch $ROOT/revised; judge 'REVISE\\\\nmore of it';;
            *) if [ $id = PAY-3 ] && grep -q '\\[x\\]' $s; then cat $ROOT/go; fi; work;;
        esac; well"
    ));
    sandbox.pipe("go");
    add_task_folder(&sandbox, "PAY-3", &["PAY-1"], 0, 2);
    sandbox.write("tasks/pay/PAY-3-x/STATUS.md", "### Step 1: a\n- [ ] a\n### Step 2: b\n- [ ] b\n");
    sandbox.commit_all("one that is tracked");
    add_task_folder(&sandbox, "PAY-1", &[], 0, 2);
    add_task_folder(&sandbox, "PAY-2", &["PAY-1"], 1, 1);
    add_task_folder(&sandbox, "PAY-4", &["PAY-2", "PAY-3"], 0, 1);
    let out = sandbox.proq(&["swarm", "pay", "--agent", "claude", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    wait_until("half of the third one", || task_status(&sandbox, "pay/PAY-3")["boxes"]["done"] == 1);
    assert_eq!(task_status(&sandbox, "pay/PAY-3")["boxes"]["of"], 2);
    let status = sandbox.proq(&["batch", "status"]).ok();
    assert!(status.contains("running 1/2"), "{status}");
    kill_scheduler(&sandbox);
    sandbox.write_pipe("go");
    wait_until("its end without anybody", || sandbox.row("pay-pay-3")["state"] == "done");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("4 of 4 tasks landed"), "{}", out.stdout);
    let runs_of = |id: &str| {
        let runs = recorded_runs(&sandbox).into_iter();
        runs.filter_map(|run| run.strip_prefix(id).map(ToOwned::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(runs_of("PAY-1"), [" 1 work", " 1 work"]);
    assert_eq!(runs_of("PAY-2"), [" 1 plan", " 1 review", " 1 plan", " 1 review", " 1 work"]);
    assert_eq!(runs_of("PAY-3"), [" 1 work", " 1 work"]);
    assert_eq!(runs_of("PAY-4"), [" 1 work"]);
    let files = landed_files(&sandbox);
    let tasks: Vec<&str> = files.lines().filter(|file| file.starts_with("tasks/")).collect();
    assert_eq!(tasks, ["tasks/pay/PAY-3-x/STATUS.md"], "only what is tracked");
    assert_eq!(files.lines().filter(|file| file.starts_with("PAY-")).count(), 6, "{files}");
    assert!(!sandbox.git(&["show", &format!("{BRANCH}:{}", tasks[0])]).contains("[ ]"));
    // Each prompt names its step, and the place of the task in the plan.
    let prompts = sandbox.sh("cat ../notes/prompt.*");
    assert!(prompts.contains("This is task `pay/PAY-4` of a plan."), "{prompts}");
    assert!(
        prompts
            .contains("The tasks that it depends on are done and included here: `pay/PAY-2`, `pay/PAY-3`."),
        "{prompts}"
    );
    sandbox.assert_healthy();
}

#[test]
fn reports_task_that_landed_without_approved_plan() {
    let script = "case $what in plan) echo \"plan $n\" >> $s;; review) judge 'REVISE\\\\nmore of it';; *) work;; esac; well";
    let sandbox = sandbox_with_claude(&format!("{AGENT_STEPS}{script}"));
    add_task_folder(&sandbox, "PAY-1", &[], 1, 1);
    let out = sandbox.proq(&["swarm", "pay", "--agent", "claude", "-q"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    let landed = task_status(&sandbox, "pay/PAY-1");
    assert_eq!(landed["state"], "landed");
    let reason = "the plan of step 1 was not approved after 2 revisions";
    assert!(landed["detail"].as_str().unwrap().ends_with(reason), "{landed:#}");
    for command in ["status", "report"] {
        let output = sandbox.proq(&["batch", command]).ok();
        assert!(output.contains(reason), "{command}: {output}");
    }
    // A lane is found by the name of its task as well, in any case.
    let shown = sandbox.proq(&["show", "pay/PAY-1"]).ok();
    assert!(shown.contains("for pay/PAY-1: git proq batch status"), "{shown}");
    assert!(sandbox.proq(&["logs", "pay/pay-1"]).ok().contains("All done."));
    let message = sandbox.proq(&["show", "pay/PAY-9"]).fails(1);
    assert!(message.contains("there is no lane 'pay/PAY-9'"), "{message}");
}

#[test]
fn steps_continue_after_supervisor_is_killed() {
    let sandbox = sandbox_with_claude(&format!(
        "{AGENT_STEPS}
        if grep -q '\\[x\\]' $s && [ ! -e $ROOT/went ]; then cat $ROOT/go; touch $ROOT/went; echo half > half.txt; exit 0; fi; work; well"
    ));
    sandbox.pipe("go");
    add_task_folder(&sandbox, "PAY-1", &[], 0, 2);
    let out = sandbox.proq(&["swarm", "pay", "--agent", "claude", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    wait_until("half of it", || {
        sandbox.root().join("notes/2/").exists() && task_status(&sandbox, "pay/PAY-1")["boxes"]["done"] == 1
    });
    wait_until("its second run", || {
        sandbox.row("pay-pay-1")["state"] == "running" && recorded_runs(&sandbox).len() == 2
    });
    sandbox.sh("kill -9 $(sed -n '/^.supervisor/,$s/^pid = //p' .git/proq/lanes/pay-pay-1/runs/2.toml)");
    wait_until("its death", || sandbox.row("pay-pay-1")["state"] == "orphaned");
    sandbox.write_pipe("go");
    wait_until("the end", || !scheduler_is_running(&sandbox));
    let status = sandbox.proq(&["status", "--json"]).json();
    assert_eq!(status["why"], "complete", "{status}");
    // The first step is not repeated, and the partial work of the second is kept.
    assert_eq!(recorded_runs(&sandbox), ["PAY-1 1 work"; 3]);
    assert_eq!(landed_files(&sandbox), "PAY-1-1.txt\nPAY-1-3.txt\nhalf.txt");
}

#[test]
fn new_attempt_clears_boxes_and_saves_old_notes() {
    let sandbox = sandbox_with_claude(&format!(
        "{AGENT_STEPS}
        work; echo \"note of $n\" >> $s; if [ $id$PROQ_TASK_ATTEMPT = PAY-11 ] && ! grep -q '\\[ \\]' $s; then kill -9 $$; fi; well"
    ));
    for id in ["PAY-1", "PAY-2"] {
        add_task_folder(&sandbox, id, &[], 0, 2);
    }
    // One lane for both, in series.
    let out = sandbox.proq(&["swarm", "pay", "--agent", "claude", "--one-lane", "-q"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    let expected =
        ["PAY-1 1", "PAY-1 1", "PAY-1 2", "PAY-1 2", "PAY-2 1", "PAY-2 1"].map(|run| format!("{run} work"));
    assert_eq!(recorded_runs(&sandbox), expected);
    assert_eq!(landed_files(&sandbox), "PAY-1-3.txt\nPAY-1-4.txt\nPAY-2-5.txt\nPAY-2-6.txt");
    let saved = sandbox.sh("cat .git/proq/history/*/runs/2.d/left/*/STATUS.md");
    assert!(saved.matches("[x]").count() == 2 && saved.contains("note of 2"), "{saved}");
    sandbox.assert_healthy();
}

#[test]
fn idle_agent_is_given_up_without_new_attempt() {
    let sandbox = sandbox_with_claude(&format!(
        "{AGENT_STEPS} echo $n > more.txt; git add -A; git commit -qm \"more $n\"; well"
    ));
    sandbox.git(&["config", "proq.swarm.maxIdle", "2"]);
    add_task_folder(&sandbox, "PAY-1", &[], 0, 1);
    add_task_folder(&sandbox, "PAY-2", &["PAY-1"], 0, 1);
    let out = sandbox.proq(&["swarm", "pay", "--agent", "claude", "-q"]);
    assert_eq!(out.code, 4, "{}{}", out.stdout, out.stderr);
    assert_eq!(recorded_runs(&sandbox), ["PAY-1 1 work"; 2]);
    let given_up = task_status(&sandbox, "pay/PAY-1");
    assert_eq!((&given_up["state"], &given_up["attempts"]), (&"failed".into(), &1.into()), "{given_up:#}");
    assert_eq!(given_up["detail"], "2 iterations without a new box; 0 of 1 boxes in 2 iterations");
    assert_eq!(task_status(&sandbox, "pay/PAY-2")["state"], "skipped");
    // The user can still retry it.
    let out = sandbox.proq(&["resume", "20260102-030405", "--retry", "pay/PAY-1"]);
    assert_eq!((out.code, recorded_runs(&sandbox).len()), (4, 4), "{}{}", out.stdout, out.stderr);
}

#[test]
fn refuses_folder_with_link_or_agent_without_review() {
    let sandbox = repo_with_plan("");
    add_task_folder(&sandbox, "PAY-1", &[], 0, 1);
    sandbox.sh("ln -s /etc/passwd tasks/pay/PAY-1-x/link");
    let message = sandbox.proq(&["swarm", "pay", "--agent", "worker", "-q"]).fails(1);
    assert!(message.contains("link is a link, which is not followed"), "{message}");
    sandbox.sh("rm tasks/pay/PAY-1-x/link");
    add_task_folder(&sandbox, "PAY-1", &[], 2, 1);
    let message = sandbox.proq(&["swarm", "pay", "--agent", "worker", "-q"]).fails(1);
    assert!(message.contains("worker"), "{message}");
    assert!(!sandbox.repo.join(".git/proq/batches").exists());
}

#[cfg(debug_assertions)]
#[test]
fn step_runs_once_when_scheduler_is_killed_at_start() {
    for point in ["batch.launch", "packet.noted", "packet.cleared", "launch.prepared", "launch.heard"] {
        let sandbox = sandbox_with_claude(&format!("{AGENT_STEPS} work; well"));
        add_task_folder(&sandbox, "PAY-1", &[], 0, 2);
        sandbox.write("tasks/pay/PAY-1-x/notes.txt", "for whoever does it\n");
        let mut command =
            sandbox.proq_command(&sandbox.repo, &["swarm", "pay", "--agent", "claude", "--detach", "-q"]);
        command.env("PROQ_TEST_DIE_AT", point);
        let out = sandbox.output(command);
        assert_eq!(out.code, 0, "{}", out.stderr);
        wait_until("its death", || !scheduler_is_running(&sandbox));
        let out = sandbox.proq(&["resume"]);
        assert_eq!(out.code, 0, "{point}: {}{}", out.stdout, out.stderr);
        assert_eq!(recorded_runs(&sandbox), ["PAY-1 1 work", "PAY-1 1 work"], "{point}");
        assert_eq!(landed_files(&sandbox), "PAY-1-1.txt\nPAY-1-2.txt", "{point}");
    }
}

/// Promise: operations/abort-continues
#[test]
fn steps_continue_after_an_abort() {
    let sandbox = sandbox_with_claude(&format!(
        "{AGENT_STEPS}
        if grep -q '\\[x\\]' $s && [ ! -e $ROOT/went ]; then
            touch $ROOT/went; echo up > $ROOT/up; until [ -e \"$PROQ_WRAP_UP\" ]; do sleep 0.02; done; well; exit 0
        fi; work; well"
    ));
    sandbox.pipe("up");
    add_task_folder(&sandbox, "PAY-1", &[], 0, 3);
    let out = sandbox.proq(&["swarm", "pay", "--agent", "claude", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    sandbox.read_pipe("up");
    let _ = sandbox.proq(&["abort"]).ok();
    wait_until("its end", || !scheduler_is_running(&sandbox));
    assert_eq!(task_status(&sandbox, "pay/PAY-1")["state"], "cut off");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert_eq!(
        recorded_runs(&sandbox),
        ["PAY-1 1 work", "PAY-1 1 work", "PAY-1 2 work", "PAY-1 2 work"],
        "a step that was done is done again"
    );
    assert_eq!(landed_files(&sandbox), "PAY-1-1.txt\nPAY-1-3.txt\nPAY-1-4.txt");
    sandbox.assert_healthy();
}
