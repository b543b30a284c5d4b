//! Owns the tests of what comes next of a task that is a folder.

use super::*;
use crate::store::records::RunLimits;

const BOUNDS: Bounds = Bounds { iterations: 9, idle: 3 };

fn oid(n: u32) -> Oid {
    Oid::from_hex(format!("{n:040x}").as_bytes()).unwrap()
}

fn record(level: u8) -> PacketRecord {
    PacketRecord {
        batch: None,
        more: String::new(),
        folder: "tasks/a/A-1".into(),
        title: "A".into(),
        agent: "claude".into(),
        own: Vec::new(),
        permission: None,
        model: None,
        max_turns: None,
        level,
        reviewer: None,
        copied: false,
        hidden: false,
        talk: None,
        start: oid(1),
        iterations: 0,
        idle: 0,
        taken: 0,
        tip: oid(1),
        done: 0,
        of: 0,
        limits: RunLimits::default(),
        seconds_before: 0,
        cost_before: 0,
        last_review: None,
        steps: Vec::new(),
    }
}

/// A task that is worked at by script: each word is what the next run comes to, and what it was for is what is told.
fn play(record: &mut PacketRecord, boxes: &mut [(usize, usize)], script: &str) -> String {
    let mut told = Vec::new();
    let mut tip = 1;
    for (word, run) in script.split(' ').zip(record.taken + 1..) {
        let Next::Run { part, step } = next(record, &status(boxes), BOUNDS) else { break };
        told.push(format!("{part:?}{step}"));
        let before = oid(tip);
        match word {
            "tick" => boxes[step as usize - 1].0 += 1,
            "all" => boxes[step as usize - 1].0 = boxes[step as usize - 1].1,
            "commit" => tip += 1,
            _ => {}
        }
        let judged = match word {
            "yes" => Ok(Judgement::Approve),
            "no" => Ok(Judgement::Revise),
            _ => Err("it crashed".to_owned()),
        };
        let iteration = record.iterations + u32::from(!part.is_review());
        let stint = Stint { part, step, iteration, clean: true, traces: None };
        let came = Came { run, stint: &stint, before, tip: oid(tip), wrote: word == "plan", judged };
        take(record, &came, &status(boxes));
    }
    told.push(match next(record, &status(boxes), BOUNDS) {
        Next::Run { part, step } => format!("{part:?}{step}?"),
        Next::Done => "done".to_owned(),
        Next::Fail(why) => why,
    });
    told.join(" ")
}

fn status(boxes: &[(usize, usize)]) -> Status {
    let steps = boxes.iter().zip(1..).map(|((done, of), number)| super::super::status::Step {
        number,
        title: String::new(),
        done: *done,
        of: *of,
    });
    Status { steps: steps.collect() }
}

#[test]
fn without_reviews_each_step_is_worked_at_until_it_is_done() {
    let told = play(&mut record(0), &mut [(0, 2), (1, 1), (0, 1)], "tick tick all");
    assert_eq!(told, "Work1 Work1 Work3 done");
}

#[test]
fn three_iterations_of_which_nothing_comes_are_the_end() {
    let mut task = record(0);
    assert_eq!(
        play(&mut task, &mut [(0, 2)], "- commit -"),
        "Work1 Work1 Work1 three iterations without a new box"
    );
    assert_eq!((task.iterations, task.idle), (3, 3));
    let told = play(&mut record(0), &mut [(0, 20)], "tick tick tick tick tick tick tick tick tick");
    assert!(told.ends_with("it has had its 9 iterations"), "{told}");
}

#[test]
fn a_box_that_is_ticked_again_is_nothing_new() {
    let mut task = record(0);
    let mut boxes = [(0, 9)];
    assert_eq!(play(&mut task, &mut boxes, "tick"), "Work1 Work1?");
    for _ in 0..3 {
        boxes[0].0 = 0;
        play(&mut task, &mut boxes, "tick");
    }
    assert_eq!(task.idle, 3);
}

#[test]
fn a_plan_is_made_and_judged_before_the_work() {
    let told = play(&mut record(1), &mut [(0, 1), (0, 1)], "plan yes all plan yes all");
    assert_eq!(told, "Plan1 PlanReview1 Work1 Plan2 PlanReview2 Work2 done");
    assert_eq!(
        play(&mut record(1), &mut [(0, 1)], "- plan no plan yes all"),
        "Plan1 Plan1 PlanReview1 Plan1 PlanReview1 Work1 done"
    );
    // Nobody writes one.
    let told = play(&mut record(1), &mut [(0, 1)], "- - -");
    assert_eq!(told, "Plan1 Plan1 Plan1 three iterations without a new box");
}

#[test]
fn after_two_revisions_of_a_step_it_goes_on_and_says_so() {
    let mut task = record(2);
    let told = play(&mut task, &mut [(0, 1)], "plan no plan no plan no all no");
    assert_eq!(told, "Plan1 PlanReview1 Plan1 PlanReview1 Plan1 PlanReview1 Work1 CodeReview1 done");
    assert_eq!(
        remarks(&task),
        [
            "the plan of step 1 was not approved after 2 revisions",
            "the code of step 1 was not approved after 2 revisions"
        ]
    );
    assert_eq!((task.steps[0].plan_reviews, task.steps[0].code_reviews), (3, 1));
}

#[test]
fn what_was_done_is_judged_and_done_anew() {
    let mut task = record(2);
    let told = play(&mut task, &mut [(0, 1), (0, 1)], "plan yes all no commit yes plan yes all yes");
    assert_eq!(
        told,
        "Plan1 PlanReview1 Work1 CodeReview1 Work1 CodeReview1 Plan2 PlanReview2 Work2 CodeReview2 done"
    );
    assert_eq!(task.steps[0].from, Some(oid(1)));
    assert_eq!(remarks(&task), [""; 0]);
}

#[test]
fn a_reviewer_that_fails_has_one_more_try() {
    let mut task = record(1);
    assert_eq!(play(&mut task, &mut [(0, 1)], "plan - yes all"), "Plan1 PlanReview1 PlanReview1 Work1 done");
    assert_eq!(remarks(&task), [""; 0]);
    let mut task = record(1);
    assert_eq!(play(&mut task, &mut [(0, 1)], "plan - - all"), "Plan1 PlanReview1 PlanReview1 Work1 done");
    assert_eq!(remarks(&task), ["the plan of step 1 was not reviewed: it crashed"]);
}

#[test]
fn a_step_that_was_done_before_is_not_judged_and_one_done_by_the_way_is() {
    let mut task = record(2);
    task.step_mut(1).done_before = true;
    let told = play(&mut task, &mut [(1, 1), (1, 1)], "yes");
    assert_eq!(told, "CodeReview2 done");
}

#[test]
fn a_task_without_boxes_does_not_pass_for_done() {
    assert_eq!(next(&record(0), &Status::default(), BOUNDS), Next::Fail("its STATUS.md has no boxes".into()));
}
