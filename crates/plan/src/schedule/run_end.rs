//! Effects of the end of a run on its task and on other tasks.

use proq_base::run_class::RunClass;

use super::action::{Action, BatchOutcome};
use super::event::TaskRunEnd;
use super::lane::LaneUse;
use super::options::{LandingFailurePolicy, TaskFailurePolicy};
use super::state::{BatchStatus, State};
use super::task_phase::{FailureReason, TaskPhase};

/// Number of consecutive start failures with which a task fails.
const MAX_START_FAILURES: u32 = 3;

impl State {
    /// Marks a task as running, if this run of it was about to start.
    pub(crate) fn on_run_started(&mut self, task: usize, attempt: u32) {
        if self.lane_of_current_run(task, attempt).is_some() && self.task_phase(task) == TaskPhase::Starting {
            (self.tasks[task].was_interrupted, self.tasks[task].start_failures) = (false, 0);
            self.set_phase(task, TaskPhase::Running);
            if let Some(lane) = self.tasks[task].lane {
                self.update_lane(lane, |it| it.failed_task = None);
            }
        }
    }

    /// Handles the end of a task's current run. Any other run is ignored.
    pub(crate) fn on_run_ended(&mut self, task: usize, attempt: u32, end: TaskRunEnd) {
        let Some(lane) = self.lane_of_current_run(task, attempt) else { return };
        let was_stopped = self.tasks[task].stop_request_is_hard.take().is_some();
        if end != TaskRunEnd::NotStarted {
            self.update_lane(lane, |it| it.failed_task = None);
            (self.tasks[task].was_interrupted, self.tasks[task].start_failures) = (false, 0);
        }
        self.update_lane(lane, |it| it.current_use = LaneUse::Idle);
        match end {
            TaskRunEnd::NotStarted => self.on_run_not_started(task, was_stopped),
            TaskRunEnd::Done => {
                self.ready_to_land_count += 1;
                self.tasks[task].ready_to_land_order = self.ready_to_land_count;
                if !self.skip_if_blocked(task, true) {
                    self.set_phase(task, TaskPhase::ReadyToLand);
                }
            }
            TaskRunEnd::AlreadyDone => {
                // The evidence that the task was already done had landed when the run started.
                self.tasks[task].landed_update = self.lanes[lane].base_updates;
                self.settle_task(task, TaskPhase::AlreadyDone);
            }
            TaskRunEnd::NoChange => self.settle_task(task, TaskPhase::NoChange),
            TaskRunEnd::Failed(class) => {
                self.update_lane(lane, |it| it.failed_task = Some(task));
                if was_stopped && matches!(class, RunClass::Stopped | RunClass::Interrupted) {
                    self.tasks[task].was_interrupted = true;
                    self.return_to_waiting(task);
                } else {
                    self.on_run_failed(task, class);
                }
            }
        }
    }

    /// Handles a run for which no agent could be started. It counts neither as an attempt nor as a failure of
    /// the task, and its lane is unchanged.
    fn on_run_not_started(&mut self, task: usize, was_stopped: bool) {
        let task_state = &mut self.tasks[task];
        task_state.attempts -= 1;
        task_state.start_failures += 1;
        if was_stopped || task_state.start_failures < MAX_START_FAILURES {
            self.return_to_waiting(task);
        } else {
            self.settle_task(task, TaskPhase::Failed(FailureReason::NotStarted));
        }
    }

    /// Returns a task to the waiting ones, or skips it where one of its dependencies has ended without a
    /// result.
    pub(crate) fn return_to_waiting(&mut self, task: usize) {
        if !self.skip_if_blocked(task, false) {
            self.set_phase(task, TaskPhase::Waiting);
        }
    }

    /// Counts a failed run of a task, and then runs the task again, sets it aside or fails it.
    fn on_run_failed(&mut self, task: usize, class: RunClass) {
        if class != RunClass::Stopped {
            self.tasks[task].failures += 1;
        }
        if self.tasks[task].failures >= self.options.max_attempts.max(1) {
            self.settle_task(task, TaskPhase::SetAside);
        } else if TaskRunEnd::Failed(class).is_retryable() {
            self.return_to_waiting(task);
        } else {
            self.settle_task(task, TaskPhase::Failed(FailureReason::RunFailed(class)));
        }
    }

    /// Settles a task in a final phase: dependents are skipped or may start, and the failure policies apply.
    pub(crate) fn settle_task(&mut self, task: usize, phase: TaskPhase) {
        self.set_phase(task, phase);
        let is_recheck = std::mem::take(&mut self.tasks[task].is_recheck);
        match phase {
            TaskPhase::Failed(reason) => self.actions.push(Action::MarkFailed { task, reason }),
            TaskPhase::SetAside => self.actions.push(Action::MarkSetAside { task }),
            _ => {}
        }
        self.release_claim(task);
        if phase.blocks_dependents() {
            self.skip_dependents(task);
        }
        if phase.could_not_land() && is_recheck {
            // The user resumed the batch and the checks failed again: the other tasks continue.
        } else if phase.could_not_land() {
            match self.options.on_merge_failure {
                LandingFailurePolicy::Pause => self.pause(super::action::PauseReason::LandingFailed(task)),
                LandingFailurePolicy::Abort => self.abort(BatchOutcome::Stopped, false),
            }
        } else if matches!(phase, TaskPhase::Failed(_) | TaskPhase::SetAside) {
            match self.options.on_failure {
                TaskFailurePolicy::SkipDependents => {}
                TaskFailurePolicy::StopWave => self.wind_down(),
                // Half of the running tasks' work would be discarded anyway, so git-proq does not wait for
                // it.
                TaskFailurePolicy::StopAll => self.abort(BatchOutcome::Stopped, true),
            }
        }
    }

    /// Retries a task as the user requested, and resets its failure counts.
    pub(crate) fn retry_task(&mut self, task: usize) {
        let Some(task_state) = self.tasks.get_mut(task) else { return };
        (task_state.failures, task_state.start_failures) = (0, 0);
        if !task_state.phase.blocks_dependents() {
            return;
        }
        self.abandon_work(task);
        if !self.skip_if_blocked(task, false) {
            self.set_phase(task, TaskPhase::Waiting);
            self.actions.push(Action::MarkWaiting { task });
        }
        self.undo_skips(Some(task));
        self.reopen_batch();
    }

    /// Marks a task's work as not to land, since another run does the task again. The work stays in its lane
    /// like the work of a failed run.
    pub(crate) fn abandon_work(&mut self, task: usize) {
        if let Some(lane) = self.tasks[task].lane.filter(|_| self.task_phase(task).has_unlanded_work()) {
            self.update_lane(lane, |it| it.failed_task = Some(task));
        }
    }

    /// Sets a batch in which every task was settled to running again, now that one task is not.
    pub(crate) fn reopen_batch(&mut self) {
        if matches!(self.status, BatchStatus::Finished(BatchOutcome::Complete | BatchOutcome::Partial)) {
            self.status = BatchStatus::Running;
        }
    }
}
