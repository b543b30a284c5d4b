//! Owns the tests of reviews of the steps of a task: who judges, what comes of it, and that judging changes nothing.

use super::steps::{FOLDER, with_task};
use super::support::Sandbox;

/// A task of one step, with an agent for it.
fn with_one_step(level: u8, script: &str) -> Sandbox {
    let sandbox = with_task(level, script);
    sandbox.write(
        &format!("{FOLDER}/PROMPT.md"),
        &format!("# Task: PAY-3 - Refunds\n**Review level:** {level}\n### Step 1: Do\n- [ ] it\n"),
    );
    sandbox
}

/// What the lane keeps of a review.
#[track_caller]
fn review(sandbox: &Sandbox, name: &str) -> String {
    std::fs::read_to_string(sandbox.lane("x").join(FOLDER).join(".reviews").join(name)).unwrap()
}

#[test]
fn a_plan_is_made_and_found_good_before_each_step() {
    let sandbox = with_task(
        1,
        "case $what in plan) plan;; review) judge 'APPROVE\\\\nwell planned';; *) work;; esac; well",
    );
    assert_eq!(sandbox.do_task(&[]).ok(), "x: done (4 of 4 boxes in 7 iterations)\n");
    let wanted =
        ["plan 1", "plan-review 1", "work 1", "plan 2", "plan-review 2", "work 2", "work 2", "plan 3"];
    let parts = sandbox.parts();
    assert_eq!(parts[..8], wanted.map(|part| format!("{part} done")), "{parts:?}");
    assert_eq!(review(&sandbox, "step-1-plan-1.md"), "APPROVE\nwell planned\n");
    // Whoever judges may only look.
    assert!(sandbox.note("args.2").contains("--disallowedTools\nEdit"), "{}", sandbox.note("args.2"));
    assert!(!sandbox.note("args.3").contains("--disallowedTools"));
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
fn what_is_not_found_good_is_done_anew_twice_and_then_goes_on_saying_so() {
    let script =
        "case $what in plan) plan;; review) judge 'REVISE\\\\nno tests in it';; *) work;; esac; well";
    let sandbox = with_one_step(2, script);
    let out = sandbox.do_task(&[]).ok();
    assert_eq!(
        out,
        "x: done (1 of 1 boxes in 4 iterations; the plan of step 1 was not approved after 2 revisions; \
         the code of step 1 was not approved after 2 revisions)\n"
    );
    let all = ["plan", "plan-review", "plan", "plan-review", "plan", "plan-review", "work", "code-review"];
    assert_eq!(sandbox.parts(), all.map(|part| format!("{part} 1 done")));
    let again = sandbox.note("prompt.3");
    assert!(
        again.contains("was not found good, see below")
            && again.contains("# What the reviewer said\n\nREVISE\nno tests in it"),
        "{again}"
    );
    assert_eq!(review(&sandbox, "step-1-plan-3.md"), "REVISE\nno tests in it\n");
    assert!(
        sandbox.proq(&["show", "x", "--json"]).json()["detail"].as_str().unwrap().contains("not approved")
    );
}

#[test]
fn what_was_done_is_judged_by_its_commits() {
    let script = "case $what in plan) plan;; review) case $said in
        *'git log '*) [ $n = 4 ] && judge 'REVISE\\\\nit lacks a test' || judge APPROVE;; *) judge APPROVE;; esac;;
        *) [ $n = 5 ] && { echo t > test; git add test; git commit -qm test; } || work;; esac; well";
    let sandbox = with_one_step(2, script);
    assert_eq!(sandbox.do_task(&[]).ok(), "x: done (1 of 1 boxes in 3 iterations)\n");
    let all = ["plan", "plan-review", "work", "code-review", "work", "code-review"];
    assert_eq!(sandbox.parts(), all.map(|part| format!("{part} 1 done")));
    let range = format!("{}..{}", sandbox.git(&["rev-parse", "main"]), sandbox.git(&["rev-parse", "proq/x"]));
    assert!(sandbox.note("prompt.6").contains(&format!("`git log {range}`")), "{}", sandbox.note("prompt.6"));
    let anew = sandbox.note("prompt.5");
    assert!(
        anew.contains("Step 1: Do was done, and was not found good") && anew.contains("it lacks a test"),
        "{anew}"
    );
    assert_eq!(review(&sandbox, "step-1-code-2.md"), "APPROVE\n");
}

#[test]
fn a_reviewer_that_fails_is_asked_once_more_and_then_the_step_counts_as_not_reviewed() {
    let script = "case $what in plan) plan;; review) [ $n = 2 ] && kill -9 $$; judge 'I like it';; *) work;; esac; well";
    let sandbox = with_one_step(1, script);
    assert_eq!(
        sandbox.do_task(&[]).ok(),
        "x: done (1 of 1 boxes in 2 iterations; the plan of step 1 was not reviewed: claude said neither APPROVE nor REVISE)\n"
    );
    assert_eq!(
        sandbox.parts(),
        ["plan 1 done", "plan-review 1 crashed", "plan-review 1 done", "work 1 done"]
    );
}

#[test]
fn what_a_reviewer_changes_is_taken_back_and_told_and_its_word_does_not_count() {
    let script = "case $what in plan) plan;;
        review) tick; echo bad > bad; git add bad; git commit -qm bad; echo worse > a.txt; judge APPROVE;; *) work;; esac; well";
    let sandbox = with_one_step(1, script);
    let out = sandbox.do_task(&[]).ok();
    assert!(
        out.contains(
            "the plan of step 1 was not reviewed: something changed in the lane while claude looked"
        ),
        "{out}"
    );
    assert_eq!(sandbox.parts().len(), 4);
    assert_eq!(sandbox.new_files(), "src/pay/4");
    assert_eq!(sandbox.git(&["show", "proq/x:a.txt"]), "a");
    let events = sandbox.proq(&["events", "--json"]).ok();
    assert_eq!(events.matches("lane.escape").count(), 2, "{events}");
    // It may not commit. Nothing of what it wrote is lost.
    let saved = sandbox.git(&["for-each-ref", "--format=%(objectname)", "refs/proq/snap/"]);
    assert_eq!(sandbox.git(&["show", &format!("{}:bad", saved.lines().next().unwrap())]), "bad");
    // Its box did not count.
    assert!(sandbox.note("prompt.4").contains("Work at step 1"));
}

#[test]
fn a_reviewer_that_changes_nothing_but_status_is_noticed_too() {
    let sandbox =
        with_one_step(1, "case $what in plan) plan;; review) tick; judge APPROVE;; *) work;; esac; well");
    let out = sandbox.do_task(&[]).ok();
    assert!(out.contains("was not reviewed: something changed in the lane while claude looked"), "{out}");
    assert_eq!(sandbox.new_files(), "src/pay/4");
}

#[test]
fn where_it_cannot_be_taken_back_the_lane_stops_and_says_why() {
    let script = "case $what in plan) plan; echo mine > mine;; review) echo bad >> mine; judge APPROVE;; *) work;; esac; well";
    let sandbox = with_one_step(1, script);
    sandbox.git(&["config", "proq.agent.autocommit", "never"]);
    let out = sandbox.do_task(&[]).fails(4);
    assert!(
        out.contains("x: failed (while claude reviewed step 1, something changed in the lane: there was uncommitted work before"),
        "{out}"
    );
    assert_eq!(std::fs::read_to_string(sandbox.lane("x").join("mine")).unwrap(), "mine\nbad\n");
}

#[test]
fn what_is_sent_while_a_reviewer_looks_is_told_to_who_does_the_work() {
    let script = "case $what in plan) plan;; review) [ $n = 2 ] && { echo up > $ROOT/up; cat $ROOT/go >/dev/null; }; judge APPROVE;;
        *) work;; esac; well";
    let sandbox = with_one_step(1, script);
    sandbox.pipe("up");
    sandbox.pipe("go");
    let _ = sandbox.proq(&["spawn", "claude", "--folder", FOLDER, "-n", "x"]).ok();
    sandbox.hear("up");
    assert_eq!(
        sandbox.proq(&["list", "--json"]).json()["lanes"][0]["detail"],
        "claude reviews the plan of step 1"
    );
    let _ = sandbox.proq(&["send", "x", "mind the gap"]).ok();
    sandbox.tell("go");
    let _ = sandbox.proq(&["wait", "x"]).ok();
    assert_eq!(sandbox.note("prompt.3").trim(), "mind the gap");
    assert!(!sandbox.note("args.3").contains("--disallowedTools"));
    assert_eq!(sandbox.row("x")["state"], "done");
}

#[test]
fn another_agent_reviews_where_one_is_named() {
    let sandbox = with_one_step(1, "case $what in plan) plan;; review) judge REVISE;; *) work;; esac; well");
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
    assert_eq!(sandbox.do_task(&["--reviewer", "critic"]).ok(), "x: done (1 of 1 boxes in 2 iterations)\n");
    assert!(
        std::fs::read_to_string(sandbox.root().join("heard"))
            .unwrap()
            .contains("You review the plan for step 1")
    );
    let shown = sandbox.proq(&["show", "x", "--json"]).json();
    let agents: Vec<&str> =
        shown["runs"].as_array().unwrap().iter().map(|run| run["agent"].as_str().unwrap()).collect();
    assert_eq!((agents, &shown["agent"]), (vec!["claude", "critic", "claude"], &"claude".into()));
    // One that is not there, or cannot be kept from changing things, is refused before anything is made.
    for (agent, why) in [("nobody-has-this", "no program"), ("plainone", "permission read")] {
        sandbox.program("plainone", "true");
        let args = ["spawn", "claude", "--folder", FOLDER, "-n", "z", "--reviewer", agent];
        let out = sandbox.proq(&args);
        assert!(out.code != 0 && out.stderr.contains(why), "{}", out.shown());
        assert_eq!(sandbox.row("z"), serde_json::Value::Null);
    }
    sandbox.git(&["config", "proq.swarm.reviewer", "critic"]);
    let plan = sandbox.proq(&["spawn", "claude", "--folder", FOLDER, "-n", "z", "--dry-run"]).ok();
    assert!(plan.contains("critic reviews the plan of each step"), "{plan}");
}
