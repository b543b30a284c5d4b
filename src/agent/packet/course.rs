//! Owns what comes next of a task that is a folder: which step, whether that is planned, done or judged, and when it is over. No input
//! and no output.

use super::status::Status;
use crate::git::Oid;
use crate::store::records::{Judgement, LastReview, PacketRecord, Part, Review, StepRecord, Stint};

/// How often something of one step has to be done anew at most.
pub(crate) const REVISIONS: u32 = 2;
/// How often a reviewer may fail in a row.
const FAILURES: u32 = 2;

/// How long it may go on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// How many iterations there are at most.
    pub(crate) iterations: u32,
    /// How many of them in a row nothing may come of.
    pub(crate) idle: u32,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// A run.
    Run {
        /// For this.
        part: Part,
        /// Of this step.
        step: u32,
    },
    /// Nothing: it is done.
    Done,
    /// Nothing: it does not get on.
    Fail(String),
}

/// What came of a run that has ended.
#[derive(Debug)]
pub(crate) struct Came<'a> {
    /// Its number.
    pub(crate) run: u32,
    /// What it was for.
    pub(crate) stint: &'a Stint,
    /// The lane's tip before it.
    pub(crate) before: Oid,
    /// And after it.
    pub(crate) tip: Oid,
    /// Whether it changed STATUS.md.
    pub(crate) wrote: bool,
    /// Of a review: what it came to, or why it came to nothing.
    pub(crate) judged: Result<Judgement, String>,
}

/// Takes into account what came of a run.
pub(crate) fn take(record: &mut PacketRecord, came: &Came<'_>, status: &Status) {
    record.taken = came.run;
    if came.stint.part.is_review() {
        judged(record, came);
    } else {
        worked(record, came, status);
    }
    record.of = status.of();
}

fn worked(record: &mut PacketRecord, came: &Came<'_>, status: &Status) {
    let Stint { part, step, iteration, .. } = *came.stint;
    let planned = part == Part::Plan && came.wrote;
    // Commits alone are no progress: an agent that never ticks a box would go on for ever. What a reviewer wants anew has no box.
    let revised = record.step(step).is_some_and(|step| step.code == Review::Revise) && came.tip != record.tip;
    if status.done() > record.done || revised || planned {
        record.idle = 0;
    } else if iteration > record.iterations {
        // What it was told afterwards is no iteration of its own.
        record.idle += 1;
    }
    record.iterations = record.iterations.max(iteration);
    record.tip = came.tip;
    // A box that is ticked once more is nothing new.
    record.done = record.done.max(status.done());
    let step = record.step_mut(step);
    step.done_before = false;
    match part {
        Part::Plan if planned => step.plan = Review::Due,
        Part::Work => {
            step.from.get_or_insert(came.before);
            if step.code == Review::Revise {
                step.code = Review::Due;
            }
        }
        Part::Plan | Part::PlanReview | Part::CodeReview => {}
    }
}

fn judged(record: &mut PacketRecord, came: &Came<'_>) {
    let part = came.stint.part;
    let step = record.step_mut(came.stint.step);
    let may_revise = step.revisions < REVISIONS;
    let (state, count) = match part {
        Part::PlanReview => (&mut step.plan, &mut step.plan_reviews),
        _ => (&mut step.code, &mut step.code_reviews),
    };
    match &came.judged {
        Ok(judgement) => {
            *count += 1;
            *state = match judgement {
                Judgement::Approve => Review::Approved,
                Judgement::Revise if may_revise => Review::Revise,
                Judgement::Revise => Review::WentOn,
            };
            step.revisions += u32::from(*state == Review::Revise);
            step.failures = 0;
            record.last_review =
                Some(LastReview { part, step: came.stint.step, run: came.run, judgement: *judgement });
        }
        Err(why) => {
            step.failures += 1;
            step.failed = Some(why.clone());
            if step.failures >= FAILURES {
                *state = Review::Failed;
                step.failures = 0;
            }
        }
    }
}

/// Says what comes next.
pub(crate) fn next(record: &PacketRecord, status: &Status, bounds: Bounds) -> Next {
    if status.of() == 0 {
        return Next::Fail("its STATUS.md has no boxes".to_owned());
    }
    let Some((part, step)) = status.steps.iter().find_map(|step| {
        let known = record.step(step.number).cloned().unwrap_or_default();
        Some((part_of(record.level, &known, step.is_done())?, step.number))
    }) else {
        return Next::Done;
    };
    if part.is_review() {
        return Next::Run { part, step };
    }
    if record.idle >= bounds.idle {
        let count = match bounds.idle {
            1 => "an iteration".to_owned(),
            3 => "three iterations".to_owned(),
            n => format!("{n} iterations"),
        };
        return Next::Fail(format!("{count} without a new box"));
    }
    if record.iterations >= bounds.iterations {
        return Next::Fail(format!("it has had its {} iterations", bounds.iterations));
    }
    Next::Run { part, step }
}

/// What is left of a step; none when it is over.
fn part_of(level: u8, known: &StepRecord, is_done: bool) -> Option<Part> {
    match (is_done, known.plan, known.code) {
        (true, ..) if level < 2 || known.done_before || known.code.is_over() => None,
        (true, _, Review::Revise) => Some(Part::Work),
        (true, ..) => Some(Part::CodeReview),
        (false, Review::Due, _) if level > 0 => Some(Part::PlanReview),
        (false, plan, _) if level > 0 && !plan.is_over() => Some(Part::Plan),
        (false, ..) => Some(Part::Work),
    }
}

/// What of it nobody found good, in words.
pub(crate) fn remarks(record: &PacketRecord) -> Vec<String> {
    let mut out = Vec::new();
    for step in &record.steps {
        for (what, state) in [("plan", step.plan), ("code", step.code)] {
            match state {
                Review::WentOn => out.push(format!(
                    "the {what} of step {} was not approved after {REVISIONS} revisions",
                    step.number
                )),
                Review::Failed => {
                    let why = step.failed.as_deref().unwrap_or("its reviewer failed");
                    out.push(format!("the {what} of step {} was not reviewed: {why}", step.number));
                }
                Review::Open | Review::Due | Review::Revise | Review::Approved => {}
            }
        }
    }
    out
}

#[cfg(test)]
mod tests;
