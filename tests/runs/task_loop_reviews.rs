//! Reviews of the steps of a task: the reviewer, the effect of its verdict, and that a review changes
//! nothing.

use proq_test_kit::Sandbox;

use super::task_loop::{FOLDER, lane_files, run_parts, sandbox_with_task, spawn_task};

/// Returns a sandbox with a task of one step, and an agent for it.
fn sandbox_with_one_step(level: u8, script: &str) -> Sandbox {
    let sandbox = sandbox_with_task(level, script);
    sandbox.write(
        &format!("{FOLDER}/PROMPT.md"),
        &format!("# Task: PAY-3 - Refunds\n**Review level:** {level}\n### Step 1: Do\n- [ ] it\n"),
    );
    sandbox
}

/// Returns a review that the lane keeps.
#[track_caller]
fn review_text(sandbox: &Sandbox, name: &str) -> String {
    std::fs::read_to_string(sandbox.lane_path("x").join(FOLDER).join(".reviews").join(name)).unwrap()
}

#[test]
fn plan_is_approved_before_each_step() {
    let sandbox = sandbox_with_task(
        1,
        "case $what in plan) plan;; review) judge 'APPROVE\\\\nwell planned';; *) work;; esac; well",
    );
    assert_eq!(spawn_task(&sandbox, &[]).ok(), "x: done (4 of 4 boxes in 7 iterations)\n");
    let expected =
        ["plan 1", "plan-review 1", "work 1", "plan 2", "plan-review 2", "work 2", "work 2", "plan 3"];
    let parts = run_parts(&sandbox);
    assert_eq!(parts[..8], expected.map(|part| format!("{part} done")), "{parts:?}");
    assert_eq!(review_text(&sandbox, "step-1-plan-1.md"), "APPROVE\nwell planned\n");
    // The reviewer is read-only.
    assert!(
        sandbox.agent_record("args.2").contains("--disallowedTools\nEdit"),
        "{}",
        sandbox.agent_record("args.2")
    );
    assert!(!sandbox.agent_record("args.3").contains("--disallowedTools"));
    let shown = sandbox.proq(&["show", "x"]).ok();
    for text in [
        "; claude reviews plans\n",
        "the plan of step 3: approve, in run 9",
        "a review of the plan of step 2: done",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
}

#[test]
fn rejected_step_is_revised_twice_then_continues() {
    let script =
        "case $what in plan) plan;; review) judge 'REVISE\\\\nno tests in it';; *) work;; esac; well";
    let sandbox = sandbox_with_one_step(2, script);
    let out = spawn_task(&sandbox, &[]).ok();
    assert_eq!(
        out,
        "x: done (1 of 1 boxes in 4 iterations; the plan of step 1 was not approved after 2 revisions; \
         the code of step 1 was not approved after 2 revisions)\n"
    );
    let all = ["plan", "plan-review", "plan", "plan-review", "plan", "plan-review", "work", "code-review"];
    assert_eq!(run_parts(&sandbox), all.map(|part| format!("{part} 1 done")));
    let revision_prompt = sandbox.agent_record("prompt.3");
    assert!(
        revision_prompt.contains("rejected the plan for step 1")
            && revision_prompt.contains("# Requested changes from the reviewer\n\nREVISE\nno tests in it"),
        "{revision_prompt}"
    );
    assert_eq!(review_text(&sandbox, "step-1-plan-3.md"), "REVISE\nno tests in it\n");
    assert!(
        sandbox.proq(&["show", "x", "--json"]).json()["detail"].as_str().unwrap().contains("not approved")
    );
}

#[test]
fn code_review_covers_commits_of_step() {
    let script = "case $what in plan) plan;; review) case $prompt in
        *'git log '*) [ $n = 4 ] && judge 'REVISE\\\\nit lacks a test' || judge APPROVE;; *) judge APPROVE;; esac;;
        *) [ $n = 5 ] && { echo t > test; git add test; git commit -qm test; } || work;; esac; well";
    let sandbox = sandbox_with_one_step(2, script);
    assert_eq!(spawn_task(&sandbox, &[]).ok(), "x: done (1 of 1 boxes in 3 iterations)\n");
    let all = ["plan", "plan-review", "work", "code-review", "work", "code-review"];
    assert_eq!(run_parts(&sandbox), all.map(|part| format!("{part} 1 done")));
    let range = format!("{}..{}", sandbox.git(&["rev-parse", "main"]), sandbox.git(&["rev-parse", "proq/x"]));
    assert!(
        sandbox.agent_record("prompt.6").contains(&format!("`git log {range}`")),
        "{}",
        sandbox.agent_record("prompt.6")
    );
    let revision_prompt = sandbox.agent_record("prompt.5");
    assert!(
        revision_prompt.contains("rejected the work on step 1: Do")
            && revision_prompt.contains("it lacks a test"),
        "{revision_prompt}"
    );
    assert_eq!(review_text(&sandbox, "step-1-code-2.md"), "APPROVE\n");
}

#[test]
fn failed_review_is_retried_once_then_skipped() {
    let script = "case $what in plan) plan;; review) [ $n = 2 ] && kill -9 $$; judge 'I like it';; *) work;; esac; well";
    let sandbox = sandbox_with_one_step(1, script);
    assert_eq!(
        spawn_task(&sandbox, &[]).ok(),
        "x: done (1 of 1 boxes in 2 iterations; the plan of step 1 was not reviewed: claude answered neither APPROVE nor REVISE)\n"
    );
    assert_eq!(
        run_parts(&sandbox),
        ["plan 1 done", "plan-review 1 crashed", "plan-review 1 done", "work 1 done"]
    );
}

/// Promise: task-loop/reviewer-changes
#[test]
fn reviewer_changes_are_undone_and_void_the_review() {
    let script = "case $what in plan) plan;;
        review) tick; echo bad > bad; git add bad; git commit -qm bad; echo worse > a.txt; judge APPROVE;; *) work;; esac; well";
    let sandbox = sandbox_with_one_step(1, script);
    let out = spawn_task(&sandbox, &[]).ok();
    assert!(
        out.contains("the plan of step 1 was not reviewed: the lane was changed while claude reviewed it"),
        "{out}"
    );
    assert_eq!(run_parts(&sandbox).len(), 4);
    assert_eq!(lane_files(&sandbox), "src/pay/4");
    assert_eq!(sandbox.git(&["show", "proq/x:a.txt"]), "a");
    let events = sandbox.proq(&["events", "--json"]).ok();
    assert_eq!(events.matches("lane.escape").count(), 2, "{events}");
    // The reviewer's commits do not land, but nothing that it wrote is lost.
    let saved = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/snap/"]);
    assert_eq!(sandbox.git(&["show", &format!("{}:bad", saved.lines().next().unwrap())]), "bad");
    // The box that the reviewer ticked did not count.
    assert!(sandbox.agent_record("prompt.4").contains("Work on step 1"));
}

/// Promise: task-loop/reviewer-changes
#[test]
fn reviewer_change_to_status_voids_the_review() {
    let sandbox = sandbox_with_one_step(
        1,
        "case $what in plan) plan;; review) tick; judge APPROVE;; *) work;; esac; well",
    );
    let out = spawn_task(&sandbox, &[]).ok();
    assert!(out.contains("was not reviewed: the lane was changed while claude reviewed it"), "{out}");
    assert_eq!(lane_files(&sandbox), "src/pay/4");
}

/// Promise: task-loop/reviewer-changes
#[test]
fn lane_fails_when_reviewer_changes_cannot_be_undone() {
    let script = "case $what in plan) plan; echo mine > mine;; review) echo bad >> mine; judge APPROVE;; *) work;; esac; well";
    let sandbox = sandbox_with_one_step(1, script);
    sandbox.git(&["config", "proq.agent.autocommit", "never"]);
    let out = spawn_task(&sandbox, &[]).fails(4);
    assert!(
        out.contains(
            "x: failed (while claude reviewed step 1, the lane was changed: there was uncommitted work before"
        ),
        "{out}"
    );
    assert_eq!(std::fs::read_to_string(sandbox.lane_path("x").join("mine")).unwrap(), "mine\nbad\n");
}

#[test]
fn message_during_review_goes_to_working_agent() {
    let script = "case $what in plan) plan;; review) [ $n = 2 ] && { echo up > $ROOT/up; cat $ROOT/go >/dev/null; }; judge APPROVE;;
        *) work;; esac; well";
    let sandbox = sandbox_with_one_step(1, script);
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = sandbox.proq(&["spawn", "claude", "--folder", FOLDER, "-n", "x"]).ok();
    sandbox.read_pipe("up");
    assert_eq!(
        sandbox.proq(&["list", "--json"]).json()["lanes"][0]["detail"],
        "claude reviews the plan of step 1"
    );
    let _ = sandbox.proq(&["send", "x", "mind the gap"]).ok();
    sandbox.write_pipe("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(sandbox.agent_record("prompt.3").trim(), "mind the gap");
    assert!(!sandbox.agent_record("args.3").contains("--disallowedTools"));
    assert_eq!(sandbox.row("x")["state"], "done");
}

#[test]
fn configured_reviewer_reviews() {
    let sandbox =
        sandbox_with_one_step(1, "case $what in plan) plan;; review) judge REVISE;; *) work;; esac; well");
    sandbox.program(
        "critic",
        &format!(
            "exec sh -c 'cat > $ROOT/heard; echo $PROQ_LANE; sed s/All.done./APPROVE/ {}/notes/well'",
            "$ROOT"
        ),
    );
    sandbox.write_in(
        &sandbox.root(),
        "home/.config/git-proq/config.toml",
        "[agents.critic]\nlike = 'claude'\nprogram = 'critic'\n",
    );
    assert_eq!(
        spawn_task(&sandbox, &["--reviewer", "critic"]).ok(),
        "x: done (1 of 1 boxes in 2 iterations)\n"
    );
    assert!(
        std::fs::read_to_string(sandbox.root().join("heard")).unwrap().contains("Review the plan for step 1")
    );
    let shown = sandbox.proq(&["show", "x", "--json"]).json();
    let agents: Vec<&str> =
        shown["runs"].as_array().unwrap().iter().map(|run| run["agent"].as_str().unwrap()).collect();
    assert_eq!((agents, &shown["agent"]), (vec!["claude", "critic", "claude"], &"claude".into()));
    // A reviewer that is missing, or that cannot be kept read-only, is refused before anything is created.
    for (agent, reason) in [("nobody-has-this", "no such program"), ("plainone", "permission read")] {
        sandbox.program("plainone", "true");
        let args = ["spawn", "claude", "--folder", FOLDER, "-n", "z", "--reviewer", agent];
        let out = sandbox.proq(&args);
        assert!(out.code != 0 && out.stderr.contains(reason), "{}", out.to_text());
        assert_eq!(sandbox.row("z"), serde_json::Value::Null);
    }
    sandbox.git(&["config", "proq.swarm.reviewer", "critic"]);
    let plan = sandbox.proq(&["spawn", "claude", "--folder", FOLDER, "-n", "z", "--dry-run"]).ok();
    assert!(plan.contains("critic reviews the plan of each step"), "{plan}");
}
