//! Decisions of a task loop: which step is next, whether it is planned, worked on or reviewed, and when the
//! task is finished. This module has no I/O.

use proq_git::CommitId;
use proq_plan::task_status::TaskProgress;
use proq_store::base::run_number::RunNumber;
use proq_store::records::step_run::{StepPhase, StepRun};
use proq_store::records::task_loop::{LastReview, ReviewState, ReviewVerdict, StepRecord, TaskLoopRecord};

/// Maximum number of revisions of one step that reviewers may request.
pub(crate) const MAX_REVISIONS_PER_STEP: u32 = 2;
/// Number of consecutive failures of a reviewer after which the review is skipped.
const MAX_REVIEWER_FAILURES: u32 = 2;

/// Limits on the iterations of a task loop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoopLimits {
    /// Maximum number of runs that plan or do a step; reviews do not count.
    pub max_iterations: u32,
    /// Maximum number of consecutive iterations without progress.
    pub(crate) max_idle_iterations: u32,
}

/// Next action of a task loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NextAction {
    /// Start a run.
    Run {
        /// Phase of the step that the run is for.
        phase: StepPhase,
        /// Number of the step.
        step: u32,
    },
    /// Finish: the task is done.
    Done,
    /// Fail for this reason: no boxes, no progress, or no iterations left.
    Fail(String),
}

/// Result of a finished run of a task loop.
#[derive(Debug)]
pub(crate) struct RunResult<'a> {
    /// Number of the run.
    pub run: RunNumber,
    /// Step and phase that the run was for.
    pub step_run: &'a StepRun,
    /// Tip of the lane before the run.
    pub tip_before: CommitId,
    /// Tip of the lane after the run.
    pub tip_after: CommitId,
    /// Whether the run changed STATUS.md.
    pub(crate) status_changed: bool,
    /// Verdict of a review, or the reason why the review has no verdict. Unused for other runs.
    pub verdict: Result<ReviewVerdict, String>,
}

/// Updates the record of the task loop with the result of a run.
pub(crate) fn apply_run(record: &mut TaskLoopRecord, result: &RunResult<'_>, status: &TaskProgress) {
    record.last_counted_run = result.run;
    if result.step_run.phase.is_review() {
        apply_review(record, result);
    } else {
        apply_worker_run(record, result, status);
    }
    record.boxes_total = status.boxes_total();
}

fn apply_worker_run(record: &mut TaskLoopRecord, result: &RunResult<'_>, status: &TaskProgress) {
    let StepRun { phase, step, iteration, .. } = *result.step_run;
    let has_new_plan = phase == StepPhase::Plan && result.status_changed;
    // Commits alone are no progress: an agent that never ticks a box would continue forever. A revision that
    // a reviewer requested has no box.
    let has_revision = record.step(step).is_some_and(|step| step.code_review == ReviewState::Revise)
        && result.tip_after != record.last_tip;
    if status.boxes_ticked() > record.boxes_ticked || has_revision || has_new_plan {
        record.idle_iterations = 0;
    } else if iteration > record.iterations {
        // A follow-up message to the same run is no iteration.
        record.idle_iterations += 1;
    }
    record.iterations = record.iterations.max(iteration);
    record.last_tip = result.tip_after;
    // A box that is ticked again is no progress.
    record.boxes_ticked = record.boxes_ticked.max(status.boxes_ticked());
    let step = record.step_mut(step);
    step.done_before = false;
    match phase {
        StepPhase::Plan if has_new_plan => step.plan_review = ReviewState::Due,
        StepPhase::Work => {
            step.start_tip.get_or_insert(result.tip_before);
            if step.code_review == ReviewState::Revise {
                step.code_review = ReviewState::Due;
            }
        }
        StepPhase::Plan | StepPhase::PlanReview | StepPhase::CodeReview => {}
    }
}

fn apply_review(record: &mut TaskLoopRecord, result: &RunResult<'_>) {
    let phase = result.step_run.phase;
    let step = record.step_mut(result.step_run.step);
    let may_revise = step.revisions < MAX_REVISIONS_PER_STEP;
    let (state, count) = match phase {
        StepPhase::PlanReview => (&mut step.plan_review, &mut step.plan_review_count),
        _ => (&mut step.code_review, &mut step.code_review_count),
    };
    match &result.verdict {
        Ok(verdict) => {
            *count += 1;
            *state = match verdict {
                ReviewVerdict::Approve => ReviewState::Approved,
                ReviewVerdict::Revise if may_revise => ReviewState::Revise,
                ReviewVerdict::Revise => ReviewState::Overridden,
            };
            step.revisions += u32::from(*state == ReviewState::Revise);
            step.reviewer_failures = 0;
            record.last_review =
                Some(LastReview { phase, step: result.step_run.step, run: result.run, verdict: *verdict });
        }
        Err(reason) => {
            step.reviewer_failures += 1;
            step.reviewer_error = Some(reason.clone());
            if step.reviewer_failures >= MAX_REVIEWER_FAILURES {
                *state = ReviewState::Failed;
                step.reviewer_failures = 0;
            }
        }
    }
}

/// Decides the next action from the record of the task loop and the boxes in STATUS.md.
pub(crate) fn next_action(record: &TaskLoopRecord, status: &TaskProgress, limits: LoopLimits) -> NextAction {
    if status.boxes_total() == 0 {
        return NextAction::Fail("its STATUS.md has no boxes".to_owned());
    }
    let Some((phase, step)) = status.steps.iter().find_map(|step| {
        let step_record = record.step(step.number).cloned().unwrap_or_default();
        Some((remaining_phase(record.review_level, &step_record, step.is_done())?, step.number))
    }) else {
        return NextAction::Done;
    };
    if phase.is_review() {
        return NextAction::Run { phase, step };
    }
    if record.idle_iterations >= limits.max_idle_iterations {
        let count = match limits.max_idle_iterations {
            1 => "an iteration".to_owned(),
            3 => "three iterations".to_owned(),
            n => format!("{n} iterations"),
        };
        return NextAction::Fail(format!("{count} without a new box"));
    }
    if record.iterations >= limits.max_iterations {
        return NextAction::Fail(format!("it has used its {} iterations", limits.max_iterations));
    }
    NextAction::Run { phase, step }
}

/// Returns the phase that a step needs next, or `None` when the step is finished.
fn remaining_phase(review_level: u8, step: &StepRecord, is_done: bool) -> Option<StepPhase> {
    match (is_done, step.plan_review, step.code_review) {
        (true, ..) if review_level < 2 || step.done_before || step.code_review.is_finished() => None,
        (true, _, ReviewState::Revise) => Some(StepPhase::Work),
        (true, ..) => Some(StepPhase::CodeReview),
        (false, ReviewState::Due, _) if review_level > 0 => Some(StepPhase::PlanReview),
        (false, plan, _) if review_level > 0 && !plan.is_finished() => Some(StepPhase::Plan),
        (false, ..) => Some(StepPhase::Work),
    }
}

/// Returns notes about plans and code that no reviewer approved.
pub(crate) fn unapproved_notes(record: &TaskLoopRecord) -> Vec<String> {
    let mut out = Vec::new();
    for step in &record.steps {
        for (subject, state) in [("plan", step.plan_review), ("code", step.code_review)] {
            match state {
                ReviewState::Overridden => out.push(format!(
                    "the {subject} of step {} was not approved after {MAX_REVISIONS_PER_STEP} revisions",
                    step.number
                )),
                ReviewState::Failed => {
                    let reason = step.reviewer_error.as_deref().unwrap_or("its reviewer failed");
                    out.push(format!("the {subject} of step {} was not reviewed: {reason}", step.number));
                }
                ReviewState::Pending | ReviewState::Due | ReviewState::Revise | ReviewState::Approved => {}
            }
        }
    }
    out
}

#[cfg(test)]
mod tests;
