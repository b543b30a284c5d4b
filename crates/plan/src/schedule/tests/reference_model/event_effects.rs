//! Effects of the scheduler's events on the reference model.

use proq_base::run_class::RunClass;

use super::{ReferenceModel, blocks_dependents};
use crate::schedule::event::{ScheduleEvent, TaskRunEnd};
use crate::schedule::options::{LandingFailurePolicy, TaskFailurePolicy};
use crate::schedule::task_phase::{FailureReason, TaskOutcome};

impl ReferenceModel {
    /// Records the tasks for which later stages and phases do not have to wait.
    pub(crate) fn note_exemptions(&mut self, event: &ScheduleEvent) {
        if let ScheduleEvent::ConflictCaptured { task } | ScheduleEvent::Retry { task } = event {
            self.exempt_from_stage.insert(*task);
            self.exempt_from_stage
                .extend((0..self.ancestors.len()).filter(|other| self.ancestors[*other].contains(task)));
        }
        if let ScheduleEvent::Retry { task }
        | ScheduleEvent::RecheckRequested { task }
        | ScheduleEvent::ConflictResolved { task } = event
            && self.outcomes.contains_key(task)
        {
            self.reopened.insert(*task);
            self.reopened
                .extend((0..self.ancestors.len()).filter(|other| self.ancestors[*other].contains(task)));
        }
    }

    pub(crate) fn on_lane_set_up(&mut self, lane: usize) {
        let lane_entry = self.lanes.get_mut(&lane).unwrap();
        if !std::mem::replace(&mut lane_entry.is_set_up, true) {
            lane_entry.stacked_tasks.clear();
        }
    }

    pub(crate) fn on_lane_set_up_failed(&mut self, lane: usize) {
        let lane_entry = self.lanes.get_mut(&lane).unwrap();
        if !lane_entry.is_set_up && !std::mem::replace(&mut lane_entry.is_removed, true) {
            let task = lane_entry.stacked_tasks.pop().unwrap();
            // A task whose set-up was stopped can start again later.
            if !self.stops_all_runs {
                self.record_failure(task, TaskOutcome::Failed(FailureReason::SetUpFailed));
            }
        }
    }

    pub(crate) fn on_run_ended(&mut self, task: usize, end: TaskRunEnd) {
        let (_, lane) = self.running.remove(&task).expect("an end without a run");
        let lane_entry = self.lanes.get_mut(&lane).unwrap();
        lane_entry.running_task = None;
        let was_stopped = self.stop_requested.remove(&task);
        match end {
            TaskRunEnd::Done => {
                lane_entry.stacked_tasks.push(task);
                self.ready_to_land.insert(task);
            }
            TaskRunEnd::NoChange => drop(self.outcomes.insert(task, TaskOutcome::NoChange)),
            TaskRunEnd::AlreadyDone => drop(self.outcomes.insert(task, TaskOutcome::AlreadyDone)),
            TaskRunEnd::NotStarted => unreachable!("every run of a trial begins"),
            TaskRunEnd::Failed(class) => {
                lane_entry.was_interrupted =
                    was_stopped && matches!(class, RunClass::Stopped | RunClass::Interrupted);
                lane_entry.failed_task = Some(task);
                if was_stopped && matches!(class, RunClass::Stopped | RunClass::Interrupted) {
                    return;
                }
                self.failures[task] += u32::from(class != RunClass::Stopped);
                if self.failures[task] >= self.options.max_attempts {
                    self.record_failure(task, TaskOutcome::SetAside);
                } else if matches!(class, RunClass::Budget | RunClass::Stopped) {
                    self.record_failure(task, TaskOutcome::Failed(FailureReason::RunFailed(class)));
                }
            }
        }
    }

    fn record_failure(&mut self, task: usize, outcome: TaskOutcome) {
        self.outcomes.insert(task, outcome);
        self.is_stopped_by_policy |= self.options.on_failure != TaskFailurePolicy::SkipDependents;
        self.stops_all_runs |= self.options.on_failure == TaskFailurePolicy::StopAll;
    }

    pub(crate) fn on_not_landed(&mut self, task: usize, reason: FailureReason) {
        self.conflicts.remove(&task);
        self.ready_to_land.remove(&task);
        self.outcomes.insert(task, TaskOutcome::Failed(reason));
        if self.rechecked.remove(&task) {
            return;
        }
        self.is_stopped_by_policy |= self.options.on_merge_failure == LandingFailurePolicy::Abort;
        self.stops_all_runs |= self.options.on_merge_failure == LandingFailurePolicy::Abort;
    }

    pub(crate) fn on_landed(&mut self, tasks: &[usize]) {
        self.branch_updates += 1;
        for task in tasks {
            self.rechecked.remove(task);
            assert!(self.ready_to_land.remove(task), "task {task} lands and was not to");
            self.landed_at.insert(*task, self.branch_updates);
            self.outcomes.insert(*task, TaskOutcome::Landed);
            let missing = self.workload.tasks()[*task]
                .depends_on
                .iter()
                .find(|dependency| !self.is_on_branch(**dependency))
                .copied();
            // Tasks of the same landing count as landed before it.
            assert!(
                missing.is_none_or(|dependency| tasks.contains(&dependency)),
                "{task} lands without {missing:?}"
            );
        }
    }

    pub(crate) fn on_conflict_resolved(&mut self, task: usize) {
        let given_up = matches!(
            self.outcomes.get(&task),
            Some(TaskOutcome::Failed(FailureReason::ConflictUnresolved | FailureReason::CheckFailed))
        );
        if self.conflicts.remove(&task) || given_up {
            self.outcomes.remove(&task);
            self.stop_requested.remove(&task);
            self.ready_to_land.insert(task);
        }
    }

    pub(crate) fn on_recheck_requested(&mut self, task: usize) {
        if self.outcomes.get(&task) == Some(&TaskOutcome::Failed(FailureReason::CheckFailed)) {
            self.outcomes.remove(&task);
            self.ready_to_land.insert(task);
            self.rechecked.insert(task);
        }
    }

    pub(crate) fn on_retry(&mut self, task: usize) {
        self.failures[task] = 0;
        if self.outcomes.get(&task).is_some_and(|outcome| blocks_dependents(*outcome)) {
            self.outcomes.remove(&task);
            // Work that is based on the work of the retried task runs again too.
            let mut redone = vec![task];
            while let Some(task) = redone.pop() {
                for dependent in 0..self.ancestors.len() {
                    if self.workload.tasks()[dependent].depends_on.contains(&task)
                        && !self.outcomes.contains_key(&dependent)
                    {
                        self.ready_to_land.remove(&dependent);
                        redone.push(dependent);
                    }
                }
            }
        }
    }

    pub(crate) fn on_taken_over(&mut self, runs: &[(usize, u32)]) {
        let lost_run = |(task, (attempt, _)): (&usize, &(u32, usize))| {
            (!runs.contains(&(*task, *attempt)) && self.reported_starts.contains(&(*task, *attempt)))
                .then_some(*task)
        };
        let lost_tasks: Vec<usize> = self.running.iter().filter_map(lost_run).collect();
        for task in lost_tasks {
            self.on_run_ended(task, TaskRunEnd::Failed(RunClass::Interrupted));
        }
    }

    fn is_on_branch(&self, task: usize) -> bool {
        matches!(self.outcomes.get(&task), Some(TaskOutcome::Landed | TaskOutcome::AlreadyDone))
    }
}
