//! Expected task outcomes of a batch without interventions, computed task by task without any scheduling.

use std::collections::BTreeMap;

use proq_base::run_class::RunClass;

use super::batch_case::BatchCase;
use super::batch_simulation::{LandingVerdict, planned_run_end, planned_verdict, resolves_conflict};
use super::plan_stages::{expected_stages, transitive_dependencies};
use crate::schedule::event::TaskRunEnd;
use crate::schedule::options::LandingMode;
use crate::schedule::task_phase::{FailureReason, TaskOutcome};
use crate::schedule::workload::Workload;

/// Returns the possible outcomes of each task. There is one outcome, or two where the task builds on work in
/// its lane that did not land in the end: skipped, or the outcome of its own run. None where it is therefore
/// undecided whether the task could land.
pub(crate) fn expected_outcomes(case: &BatchCase, workload: &Workload) -> Vec<Option<Vec<TaskOutcome>>> {
    let ancestors = transitive_dependencies(workload);
    let stages = expected_stages(workload, case.options.mode);
    let is_stacking_mode = matches!(case.options.mode, LandingMode::Phases | LandingMode::OneLane);
    let mut order: Vec<usize> = (0..ancestors.len()).collect();
    order.sort_by_key(|task| (ancestors[*task].len(), *task));
    // The outcome of each run, None for a run with work to land, and the outcomes of each task.
    let mut run_outcomes: BTreeMap<usize, Option<TaskOutcome>> = BTreeMap::new();
    let mut outcomes: BTreeMap<usize, Option<Vec<TaskOutcome>>> = BTreeMap::new();
    for task in order {
        let dependencies = &workload.tasks()[task].depends_on;
        let is_on_branch =
            |outcome: &TaskOutcome| matches!(outcome, TaskOutcome::Landed | TaskOutcome::AlreadyDone);
        let is_surely_on_branch =
            |t: &usize| outcomes[t].as_ref().is_some_and(|possible| possible.iter().all(is_on_branch));
        let is_undecided = |t: &usize| {
            outcomes[t].as_ref().is_none_or(|f| f.iter().any(is_on_branch) && !f.iter().all(is_on_branch))
        };
        let is_same_stage = |t: &usize| is_stacking_mode && stages[*t] == stages[task];
        let ready = dependencies
            .iter()
            .all(|t| if is_same_stage(t) { can_build_on(run_outcomes[t]) } else { is_surely_on_branch(t) });
        let run_outcome = if past_outcome(case, workload, task).is_some() {
            past_outcome(case, workload, task)
        } else if ready {
            expected_run_outcome(case, task, workload.tasks()[task].failures)
        } else {
            Some(TaskOutcome::Skipped)
        };
        run_outcomes.insert(task, run_outcome);
        let all_on_branch = dependencies.iter().all(is_surely_on_branch);
        let has_undecided =
            dependencies.iter().any(is_undecided) && past_outcome(case, workload, task).is_none();
        let possible = match run_outcome {
            _ if has_undecided => None,
            Some(outcome) if past_outcome(case, workload, task).is_some() || all_on_branch => {
                Some(vec![outcome])
            }
            Some(outcome) => Some(vec![outcome, TaskOutcome::Skipped]),
            None if all_on_branch => Some(vec![expected_landing(case, task)]),
            None => Some(vec![TaskOutcome::Skipped]),
        };
        outcomes.insert(task, possible);
    }
    outcomes.into_values().collect()
}

fn can_build_on(run_outcome: Option<TaskOutcome>) -> bool {
    matches!(run_outcome, None | Some(TaskOutcome::AlreadyDone))
}

fn past_outcome(case: &BatchCase, workload: &Workload, task: usize) -> Option<TaskOutcome> {
    let scheduled_task = &workload.tasks()[task];
    let is_set_aside = scheduled_task.failures >= case.options.max_attempts;
    if scheduled_task.done {
        Some(TaskOutcome::AlreadyDone)
    } else {
        is_set_aside.then_some(TaskOutcome::SetAside)
    }
}

fn expected_run_outcome(case: &BatchCase, task: usize, mut failures: u32) -> Option<TaskOutcome> {
    for attempt in 1.. {
        match planned_run_end(case, task, attempt) {
            TaskRunEnd::Done => return None,
            TaskRunEnd::NoChange => return Some(TaskOutcome::NoChange),
            TaskRunEnd::AlreadyDone => return Some(TaskOutcome::AlreadyDone),
            TaskRunEnd::NotStarted => unreachable!("every run of a trial begins"),
            TaskRunEnd::Failed(class) => {
                failures += u32::from(class != RunClass::Stopped);
                if failures >= case.options.max_attempts {
                    return Some(TaskOutcome::SetAside);
                }
                if matches!(class, RunClass::Stopped | RunClass::Budget) {
                    return Some(TaskOutcome::Failed(FailureReason::RunFailed(class)));
                }
            }
        }
    }
    None
}

fn expected_landing(case: &BatchCase, task: usize) -> TaskOutcome {
    for attempt in 1.. {
        match planned_verdict(case, task, attempt) {
            LandingVerdict::Lands => return TaskOutcome::Landed,
            LandingVerdict::FailsChecks => return TaskOutcome::Failed(FailureReason::CheckFailed),
            LandingVerdict::Conflicts
                if case.options.resolve_conflicts && resolves_conflict(case, task, attempt) => {}
            LandingVerdict::Conflicts => return TaskOutcome::Failed(FailureReason::ConflictUnresolved),
        }
    }
    unreachable!()
}
