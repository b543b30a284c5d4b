//! Tests of the planner of a task folder.

use proq_store::base::run_number::RunNumber;
use proq_store::records::run::RunLimits;

use super::*;

const LIMITS: LoopLimits = LoopLimits { max_iterations: 9, max_idle_iterations: 3 };

fn oid(n: u32) -> CommitId {
    CommitId::from_hex(format!("{n:040x}").as_bytes()).unwrap()
}

fn record(level: u8) -> TaskLoopRecord {
    TaskLoopRecord {
        batch: None,
        extra_prompt: String::new(),
        folder: "tasks/a/A-1".into(),
        title: "A".into(),
        agent: "claude".into(),
        agent_command: Vec::new(),
        permission: None,
        model: None,
        max_turns: None,
        allow: Vec::new(),
        review_level: level,
        reviewer: None,
        exclude_folder: false,
        exclude_status: false,
        conversation: None,
        start: oid(1),
        iterations: 0,
        idle_iterations: 0,
        last_counted_run: RunNumber::NONE,
        last_tip: oid(1),
        boxes_ticked: 0,
        boxes_total: 0,
        limits: RunLimits::default(),
        duration_before_loop: std::time::Duration::ZERO,
        cost_before_loop: proq_base::money::NanoDollars::ZERO,
        last_review: None,
        steps: Vec::new(),
    }
}

/// Simulates runs by a script, in which each word is the result of one run. Returns the phase and step of
/// each run, and the action after the last one.
fn simulate_runs(record: &mut TaskLoopRecord, boxes: &mut [(usize, usize)], script: &str) -> String {
    let mut history = Vec::new();
    let mut tip = 1;
    for (word, run) in script.split(' ').zip(record.last_counted_run.next().through(RunNumber::new(u32::MAX)))
    {
        let NextAction::Run { phase, step } = next_action(record, &status(boxes), LIMITS) else { break };
        history.push(format!("{phase:?}{step}"));
        let tip_before = oid(tip);
        match word {
            "tick" => boxes[step as usize - 1].0 += 1,
            "all" => boxes[step as usize - 1].0 = boxes[step as usize - 1].1,
            "commit" => tip += 1,
            _ => {}
        }
        let verdict = match word {
            "yes" => Ok(ReviewVerdict::Approve),
            "no" => Ok(ReviewVerdict::Revise),
            _ => Err("it crashed".to_owned()),
        };
        let iteration = record.iterations + u32::from(!phase.is_review());
        let step_run = StepRun { phase, step, iteration, was_clean: true, fingerprint_before_review: None };
        let result = RunResult {
            run,
            step_run: &step_run,
            tip_before,
            tip_after: oid(tip),
            status_changed: word == "plan",
            verdict,
        };
        apply_run(record, &result, &status(boxes));
    }
    history.push(match next_action(record, &status(boxes), LIMITS) {
        NextAction::Run { phase, step } => format!("{phase:?}{step}?"),
        NextAction::Done => "done".to_owned(),
        NextAction::Fail(reason) => reason,
    });
    history.join(" ")
}

fn status(boxes: &[(usize, usize)]) -> TaskProgress {
    let steps = boxes.iter().zip(1..).map(|((done, of), number)| proq_plan::task_status::TaskStep {
        number,
        title: String::new(),
        boxes_ticked: *done,
        boxes_total: *of,
    });
    TaskProgress { steps: steps.collect() }
}

#[test]
fn works_at_each_step_until_done() {
    let history = simulate_runs(&mut record(0), &mut [(0, 2), (1, 1), (0, 1)], "tick tick all");
    assert_eq!(history, "Work1 Work1 Work3 done");
}

/// Promise: task-loop/no-progress-ends
#[test]
fn fails_after_three_iterations_without_progress() {
    let mut task = record(0);
    assert_eq!(
        simulate_runs(&mut task, &mut [(0, 2)], "- commit -"),
        "Work1 Work1 Work1 three iterations without a new box"
    );
    assert_eq!((task.iterations, task.idle_iterations), (3, 3));
    let history =
        simulate_runs(&mut record(0), &mut [(0, 20)], "tick tick tick tick tick tick tick tick tick");
    assert!(history.ends_with("it has used its 9 iterations"), "{history}");
}

#[test]
fn ignores_boxes_that_are_ticked_again() {
    let mut task = record(0);
    let mut boxes = [(0, 9)];
    assert_eq!(simulate_runs(&mut task, &mut boxes, "tick"), "Work1 Work1?");
    for _ in 0..3 {
        boxes[0].0 = 0;
        simulate_runs(&mut task, &mut boxes, "tick");
    }
    assert_eq!(task.idle_iterations, 3);
}

#[test]
fn plans_and_reviews_before_work() {
    let history = simulate_runs(&mut record(1), &mut [(0, 1), (0, 1)], "plan yes all plan yes all");
    assert_eq!(history, "Plan1 PlanReview1 Work1 Plan2 PlanReview2 Work2 done");
    assert_eq!(
        simulate_runs(&mut record(1), &mut [(0, 1)], "- plan no plan yes all"),
        "Plan1 Plan1 PlanReview1 Plan1 PlanReview1 Work1 done"
    );
    // No run writes a plan.
    let history = simulate_runs(&mut record(1), &mut [(0, 1)], "- - -");
    assert_eq!(history, "Plan1 Plan1 Plan1 three iterations without a new box");
}

#[test]
fn continues_unapproved_after_two_revisions() {
    let mut task = record(2);
    let history = simulate_runs(&mut task, &mut [(0, 1)], "plan no plan no plan no all no");
    assert_eq!(history, "Plan1 PlanReview1 Plan1 PlanReview1 Plan1 PlanReview1 Work1 CodeReview1 done");
    assert_eq!(
        unapproved_notes(&task),
        [
            "the plan of step 1 was not approved after 2 revisions",
            "the code of step 1 was not approved after 2 revisions"
        ]
    );
    assert_eq!((task.steps[0].plan_review_count, task.steps[0].code_review_count), (3, 1));
}

#[test]
fn revises_work_until_its_review_approves() {
    let mut task = record(2);
    let history =
        simulate_runs(&mut task, &mut [(0, 1), (0, 1)], "plan yes all no commit yes plan yes all yes");
    assert_eq!(
        history,
        "Plan1 PlanReview1 Work1 CodeReview1 Work1 CodeReview1 Plan2 PlanReview2 Work2 CodeReview2 done"
    );
    assert_eq!(task.steps[0].start_tip, Some(oid(1)));
    assert_eq!(unapproved_notes(&task), [""; 0]);
}

#[test]
fn retries_a_failed_reviewer_once() {
    let mut task = record(1);
    assert_eq!(
        simulate_runs(&mut task, &mut [(0, 1)], "plan - yes all"),
        "Plan1 PlanReview1 PlanReview1 Work1 done"
    );
    assert_eq!(unapproved_notes(&task), [""; 0]);
    let mut task = record(1);
    assert_eq!(
        simulate_runs(&mut task, &mut [(0, 1)], "plan - - all"),
        "Plan1 PlanReview1 PlanReview1 Work1 done"
    );
    assert_eq!(unapproved_notes(&task), ["the plan of step 1 was not reviewed: it crashed"]);
}

#[test]
fn reviews_only_steps_done_in_the_loop() {
    let mut task = record(2);
    task.step_mut(1).done_before = true;
    let history = simulate_runs(&mut task, &mut [(1, 1), (1, 1)], "yes");
    assert_eq!(history, "CodeReview2 done");
}

#[test]
fn fails_for_a_status_without_boxes() {
    assert_eq!(
        next_action(&record(0), &TaskProgress::default(), LIMITS),
        NextAction::Fail("its STATUS.md has no boxes".into())
    );
}
