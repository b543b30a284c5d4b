//! Owns the tests of plans whose tasks are folders: each is worked at step by step in its lane, and survives whoever dies.

use super::runs::with_claude;
use super::support::Sandbox;
use super::support::patience::wait_until;
use super::swarm::{planned, ran, task, worker};
use super::swarm_control::{is_held, kill_scheduler};

/// What the agent can do: `plan` a step, `work` at the first box that is open, `judge`. `$what` says what it was asked for.
const HANDS: &str = r#"begin
    id=${PROQ_TASK#pay/}; s=$(echo tasks/pay/$id-*/STATUS.md); said=$(cat "$notes/prompt.$n"); what=work
    case $said in *'You review '*) what=review;; *'below its heading'*' is to be done'*|*'is to be done, below its heading'*|*'below its heading in STATUS.md was not'*) what=plan;; esac
    echo "$id $PROQ_TASK_ATTEMPT $what" >> $ROOT/ran
    work() { echo $n > $id-$n.txt; sed -i '0,/- \[ \]/s//- [x]/' $s; git add -A; git commit -qm "$id, run $n"; }
    judge() { sed "s|All done.|$1|" "$notes/well"; exit 0; }
"#;

const BRANCH: &str = "proq/batch-20260102-030405";

/// Adds a task that is a folder, with so many boxes in one step each.
fn add(sandbox: &Sandbox, id: &str, needs: &[&str], level: u8, boxes: usize) {
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

/// The files that the batch's branch has besides the first.
fn landed(sandbox: &Sandbox) -> String {
    sandbox.git(&["diff", "--name-only", "main", BRANCH])
}

#[test]
fn a_task_folder_is_there_for_its_agent_and_never_lands() {
    let sandbox = planned("");
    sandbox.write("tasks/auth/AUTH-1-roles/PROMPT.md", "# AUTH-1: Roles\n\n## Dependencies\n\n**None**\n");
    worker(
        &sandbox,
        "cd tasks/auth/AUTH-1-roles; cat PROMPT.md > $ROOT/read; cat $1 > $ROOT/told; sed -i 's/\\[ \\]/[x]/' STATUS.md; cd - >&2",
    );
    let out = sandbox.proq(&["swarm", "auth", "--agent", "worker", "-q"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    let read = std::fs::read_to_string(sandbox.root().join("read")).unwrap();
    assert!(read.starts_with("# AUTH-1: Roles"), "{read}");
    assert_eq!(landed(&sandbox), "auth-AUTH-1.txt");
    assert_eq!(ran(&sandbox), ["auth/AUTH-1 1"]);
}

#[test]
fn folders_are_done_step_by_step_and_reviewed_and_survive_the_scheduler() {
    let sandbox = with_claude(&format!(
        "{HANDS}
        case $what in
            plan) echo \"plan $n\" >> $s;;
            review) if [ -e $ROOT/revised ]; then judge APPROVE; fi; touch $ROOT/revised; judge 'REVISE\\\\nmore of it';;
            *) if [ $id = PAY-3 ] && grep -q '\\[x\\]' $s; then cat $ROOT/go; fi; work;;
        esac; well"
    ));
    sandbox.pipe("go");
    add(&sandbox, "PAY-3", &["PAY-1"], 0, 2);
    sandbox.write("tasks/pay/PAY-3-x/STATUS.md", "### Step 1: a\n- [ ] a\n### Step 2: b\n- [ ] b\n");
    sandbox.commit_all("one that is tracked");
    add(&sandbox, "PAY-1", &[], 0, 2);
    add(&sandbox, "PAY-2", &["PAY-1"], 1, 1);
    add(&sandbox, "PAY-4", &["PAY-2", "PAY-3"], 0, 1);
    let out = sandbox.proq(&["swarm", "pay", "--agent", "claude", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    wait_until("half of the third one", || task(&sandbox, "pay/PAY-3")["boxes"]["done"] == 1);
    assert_eq!(task(&sandbox, "pay/PAY-3")["boxes"]["of"], 2);
    let status = sandbox.proq(&["status"]).ok();
    assert!(status.contains("running 1/2"), "{status}");
    kill_scheduler(&sandbox);
    sandbox.tell("go");
    wait_until("its end without anybody", || sandbox.row("pay-pay-3")["state"] == "done");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert!(out.stdout.contains("4 of 4 tasks landed"), "{}", out.stdout);
    let of = |id: &str| {
        let runs = ran(&sandbox).into_iter();
        runs.filter_map(|run| run.strip_prefix(id).map(ToOwned::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(of("PAY-1"), [" 1 work", " 1 work"]);
    assert_eq!(of("PAY-2"), [" 1 plan", " 1 review", " 1 plan", " 1 review", " 1 work"]);
    assert_eq!(of("PAY-3"), [" 1 work", " 1 work"]);
    assert_eq!(of("PAY-4"), [" 1 work"]);
    let files = landed(&sandbox);
    let tasks: Vec<&str> = files.lines().filter(|file| file.starts_with("tasks/")).collect();
    assert_eq!(tasks, ["tasks/pay/PAY-3-x/STATUS.md"], "only what is tracked");
    assert_eq!(files.lines().filter(|file| file.starts_with("PAY-")).count(), 6, "{files}");
    assert!(!sandbox.git(&["show", &format!("{BRANCH}:{}", tasks[0])]).contains("[ ]"));
    // Each is told of its step, and where the task stands in the plan.
    let told = sandbox.sh("cat ../notes/prompt.*");
    assert!(told.contains("This is task `pay/PAY-4` of a plan."), "{told}");
    assert!(told.contains("What it builds on is done and is here: `pay/PAY-2`, `pay/PAY-3`."), "{told}");
    sandbox.assert_healthy();
}

#[test]
fn what_landed_without_an_approval_is_told_as_that() {
    let script = "case $what in plan) echo \"plan $n\" >> $s;; review) judge 'REVISE\\\\nmore of it';; *) work;; esac; well";
    let sandbox = with_claude(&format!("{HANDS}{script}"));
    add(&sandbox, "PAY-1", &[], 1, 1);
    let out = sandbox.proq(&["swarm", "pay", "--agent", "claude", "-q"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    let landed = task(&sandbox, "pay/PAY-1");
    assert_eq!(landed["state"], "landed");
    let why = "the plan of step 1 was not approved after 2 revisions";
    assert!(landed["detail"].as_str().unwrap().ends_with(why), "{landed:#}");
    for command in ["status", "report"] {
        let said = sandbox.proq(&[command]).ok();
        assert!(said.contains(why), "{command}: {said}");
    }
    // Its lane is known by its task as well, in whatever case that is written.
    let shown = sandbox.proq(&["show", "pay/PAY-1"]).ok();
    assert!(shown.contains("for pay/PAY-1: git proq status"), "{shown}");
    assert!(sandbox.proq(&["logs", "pay/pay-1"]).ok().contains("All done."));
    let said = sandbox.proq(&["show", "pay/PAY-9"]).fails(1);
    assert!(said.contains("there is no lane 'pay/PAY-9'"), "{said}");
}

#[test]
fn steps_go_on_where_they_were_when_their_supervisor_dies() {
    let sandbox = with_claude(&format!(
        "{HANDS}
        if grep -q '\\[x\\]' $s && [ ! -e $ROOT/went ]; then cat $ROOT/go; touch $ROOT/went; echo half > half.txt; exit 0; fi; work; well"
    ));
    sandbox.pipe("go");
    add(&sandbox, "PAY-1", &[], 0, 2);
    let out = sandbox.proq(&["swarm", "pay", "--agent", "claude", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    wait_until("half of it", || {
        sandbox.root().join("notes/2/").exists() && task(&sandbox, "pay/PAY-1")["boxes"]["done"] == 1
    });
    wait_until("its second run", || {
        sandbox.row("pay-pay-1")["state"] == "running" && ran(&sandbox).len() == 2
    });
    sandbox.sh("kill -9 $(sed -n '/^.supervisor/,$s/^pid = //p' .git/proq/lanes/pay-pay-1/runs/2.toml)");
    wait_until("its death", || sandbox.row("pay-pay-1")["state"] == "orphaned");
    sandbox.tell("go");
    wait_until("the end", || !is_held(&sandbox));
    let status = sandbox.proq(&["status", "--json"]).json();
    assert_eq!(status["why"], "complete", "{status}");
    // The first step is not done again, and what the second had begun is not lost.
    assert_eq!(ran(&sandbox), ["PAY-1 1 work"; 3]);
    assert_eq!(landed(&sandbox), "PAY-1-1.txt\nPAY-1-3.txt\nhalf.txt");
}

#[test]
fn a_further_attempt_begins_with_no_box_ticked_and_keeps_what_the_first_had_noted() {
    let sandbox = with_claude(&format!(
        "{HANDS}
        work; echo \"note of $n\" >> $s; if [ $id$PROQ_TASK_ATTEMPT = PAY-11 ] && ! grep -q '\\[ \\]' $s; then kill -9 $$; fi; well"
    ));
    for id in ["PAY-1", "PAY-2"] {
        add(&sandbox, id, &[], 0, 2);
    }
    // One lane for both, in series.
    let out = sandbox.proq(&["swarm", "pay", "--agent", "claude", "--one-lane", "-q"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    let wanted =
        ["PAY-1 1", "PAY-1 1", "PAY-1 2", "PAY-1 2", "PAY-2 1", "PAY-2 1"].map(|run| format!("{run} work"));
    assert_eq!(ran(&sandbox), wanted);
    assert_eq!(landed(&sandbox), "PAY-1-3.txt\nPAY-1-4.txt\nPAY-2-5.txt\nPAY-2-6.txt");
    let left = sandbox.sh("cat .git/proq/history/*/runs/2.d/left/*/STATUS.md");
    assert!(left.matches("[x]").count() == 2 && left.contains("note of 2"), "{left}");
    sandbox.assert_healthy();
}

#[test]
fn an_agent_that_ticks_no_box_has_so_many_runs_in_all_and_no_further_attempt() {
    let sandbox =
        with_claude(&format!("{HANDS} echo $n > more.txt; git add -A; git commit -qm \"more $n\"; well"));
    sandbox.git(&["config", "proq.swarm.maxIdle", "2"]);
    add(&sandbox, "PAY-1", &[], 0, 1);
    add(&sandbox, "PAY-2", &["PAY-1"], 0, 1);
    let out = sandbox.proq(&["swarm", "pay", "--agent", "claude", "-q"]);
    assert_eq!(out.code, 4, "{}{}", out.stdout, out.stderr);
    assert_eq!(ran(&sandbox), ["PAY-1 1 work"; 2]);
    let given_up = task(&sandbox, "pay/PAY-1");
    assert_eq!((&given_up["state"], &given_up["attempts"]), (&"failed".into(), &1.into()), "{given_up:#}");
    assert_eq!(given_up["detail"], "2 iterations without a new box; 0 of 1 boxes in 2 iterations");
    assert_eq!(task(&sandbox, "pay/PAY-2")["state"], "skipped");
    // A person may want it tried all the same.
    let out = sandbox.proq(&["resume", "20260102-030405", "--retry", "pay/PAY-1"]);
    assert_eq!((out.code, ran(&sandbox).len()), (4, 4), "{}{}", out.stdout, out.stderr);
}

#[test]
fn a_task_that_cannot_be_brought_or_reviewed_is_refused_before_anything_begins() {
    let sandbox = planned("");
    add(&sandbox, "PAY-1", &[], 0, 1);
    sandbox.sh("ln -s /etc/passwd tasks/pay/PAY-1-x/link");
    let said = sandbox.proq(&["swarm", "pay", "--agent", "worker", "-q"]).fails(1);
    assert!(said.contains("link is a link, and is not followed"), "{said}");
    sandbox.sh("rm tasks/pay/PAY-1-x/link");
    add(&sandbox, "PAY-1", &[], 2, 1);
    let said = sandbox.proq(&["swarm", "pay", "--agent", "worker", "-q"]).fails(1);
    assert!(said.contains("worker"), "{said}");
    assert!(!sandbox.repo.join(".git/proq/batches").exists());
}

#[cfg(debug_assertions)]
#[test]
fn wherever_the_scheduler_dies_over_the_start_each_step_is_done_once() {
    for point in ["batch.launch", "packet.noted", "packet.cleared", "launch.prepared", "launch.heard"] {
        let sandbox = with_claude(&format!("{HANDS} work; well"));
        add(&sandbox, "PAY-1", &[], 0, 2);
        sandbox.write("tasks/pay/PAY-1-x/notes.txt", "for whoever does it\n");
        let mut command =
            sandbox.proq_command(&sandbox.repo, &["swarm", "pay", "--agent", "claude", "--detach", "-q"]);
        command.env("PROQ_TEST_DIE_AT", point);
        let out = sandbox.output(command);
        assert_eq!(out.code, 0, "{}", out.stderr);
        wait_until("its death", || !is_held(&sandbox));
        let out = sandbox.proq(&["resume"]);
        assert_eq!(out.code, 0, "{point}: {}{}", out.stdout, out.stderr);
        assert_eq!(ran(&sandbox), ["PAY-1 1 work", "PAY-1 1 work"], "{point}");
        assert_eq!(landed(&sandbox), "PAY-1-1.txt\nPAY-1-2.txt", "{point}");
    }
}

#[test]
fn steps_go_on_where_they_were_after_an_abort() {
    let sandbox = with_claude(&format!(
        "{HANDS}
        if grep -q '\\[x\\]' $s && [ ! -e $ROOT/went ]; then
            touch $ROOT/went; echo up > $ROOT/up; until [ -e \"$PROQ_WRAP_UP\" ]; do sleep 0.02; done; well; exit 0
        fi; work; well"
    ));
    sandbox.pipe("up");
    add(&sandbox, "PAY-1", &[], 0, 3);
    let out = sandbox.proq(&["swarm", "pay", "--agent", "claude", "--detach", "-q"]);
    assert_eq!(out.code, 0, "{}", out.stderr);
    sandbox.hear("up");
    let _ = sandbox.proq(&["abort"]).ok();
    wait_until("its end", || !is_held(&sandbox));
    assert_eq!(task(&sandbox, "pay/PAY-1")["state"], "cut off");
    let out = sandbox.proq(&["resume"]);
    assert_eq!(out.code, 0, "{}{}", out.stdout, out.stderr);
    assert_eq!(
        ran(&sandbox),
        ["PAY-1 1 work", "PAY-1 1 work", "PAY-1 2 work", "PAY-1 2 work"],
        "a step that was done is done again"
    );
    assert_eq!(landed(&sandbox), "PAY-1-1.txt\nPAY-1-3.txt\nPAY-1-4.txt");
    sandbox.assert_healthy();
}
