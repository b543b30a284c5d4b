//! Status of a batch as a whole: starting, pausing, stopping and finishing it.

use super::action::{Action, BatchOutcome, PauseReason};
use super::state::{BatchStatus, State};
use super::task_phase::TaskPhase;

impl State {
    /// Starts a new batch and settles tasks that are done, have no attempts left, or depend on the latter.
    pub fn start_batch(&mut self) {
        if self.status != BatchStatus::NotStarted {
            return;
        }
        self.status = BatchStatus::Running;
        for task in 0..self.tasks.len() {
            if self.work.tasks()[task].done {
                self.set_phase(task, TaskPhase::AlreadyDone);
            } else if self.tasks[task].failures >= self.options.max_attempts.max(1) {
                // The attempts were used up before this batch. Nothing has failed now, so no failure policy
                // applies.
                self.set_phase(task, TaskPhase::SetAside);
                self.actions.push(Action::MarkSetAside { task });
            }
        }
        for task in 0..self.tasks.len() {
            if self.task_phase(task).blocks_dependents() {
                self.skip_dependents(task);
            }
        }
    }

    /// Returns whether the batch has cost less than its budget.
    pub(crate) fn is_within_budget(&self) -> bool {
        self.options.budget.is_none_or(|limit| self.spent < limit)
    }

    /// Returns whether the scheduler may start agents.
    pub(crate) fn may_start_agents(&self) -> bool {
        self.status == BatchStatus::Running && self.is_within_budget()
    }

    /// Begins to pause the batch; during an earlier pause, only a failed landing replaces its reason.
    pub fn pause(&mut self, reason: PauseReason) {
        match (self.status, reason) {
            (BatchStatus::Running, _)
            | (BatchStatus::Pausing(_) | BatchStatus::Paused(_), PauseReason::LandingFailed(_)) => {
                self.status = BatchStatus::Pausing(reason);
            }
            _ => {}
        }
    }

    /// Lets running tasks finish and land, and starts nothing more; the batch finishes after that.
    pub(crate) fn wind_down(&mut self) {
        if matches!(self.status, BatchStatus::Running | BatchStatus::Pausing(_) | BatchStatus::Paused(_)) {
            self.status = BatchStatus::WindingDown;
        }
    }

    /// Sets a batch that was started to running again, even after it has been stopped or has finished.
    pub fn resume(&mut self) {
        if self.status != BatchStatus::NotStarted {
            self.status = BatchStatus::Running;
        }
    }

    /// Begins to end the batch with `outcome` and stops its agents, without time to wrap up if `hard`.
    pub fn abort(&mut self, outcome: BatchOutcome, hard: bool) {
        self.status = match self.status {
            BatchStatus::NotStarted | BatchStatus::Finished(_) => return,
            BatchStatus::Stopping { hard: was_hard, .. } => {
                BatchStatus::Stopping { outcome, hard: hard || was_hard }
            }
            BatchStatus::Running
            | BatchStatus::Pausing(_)
            | BatchStatus::Paused(_)
            | BatchStatus::WindingDown => BatchStatus::Stopping { outcome, hard },
        };
        for task in 0..self.tasks.len() {
            let has_run = matches!(self.task_phase(task), TaskPhase::Starting | TaskPhase::Running);
            let pending_stop = self.tasks[task].stop_request_is_hard;
            if (has_run || self.counters.resolving.contains(&task))
                && pending_stop.is_none_or(|was_hard| hard && !was_hard)
            {
                self.tasks[task].stop_request_is_hard = Some(hard);
                self.push_stop(task, hard);
            }
        }
    }

    /// Requests that a task's run stops, or the agent that resolves its conflict.
    pub(crate) fn push_stop(&mut self, task: usize, hard: bool) {
        if matches!(self.task_phase(task), TaskPhase::Conflict { .. }) {
            self.actions.push(Action::StopResolution { task, hard });
        } else {
            let attempt = self.tasks[task].attempts;
            self.actions.push(Action::StopRun { task, attempt, hard });
        }
    }

    /// Requests every action that is possible in the current state.
    pub fn request_due_actions(&mut self) {
        if matches!(self.status, BatchStatus::NotStarted | BatchStatus::Finished(_)) {
            return;
        }
        loop {
            self.land_due();
            self.start_resolutions();
            let lacks_capacity = self.start_due();
            let is_stuck = self.counters.is_idle()
                && !lacks_capacity
                && (self.may_start_agents() || self.status == BatchStatus::WindingDown);
            // Ready work may wait for a task of its stage that itself cannot start before that work has
            // landed.
            if !(is_stuck && self.land_early()) {
                break;
            }
        }
        self.tidy_touched_lanes();
        if self.counters.is_idle() {
            self.finish_or_pause();
        }
    }

    /// Finishes or pauses the batch. The caller has checked that nothing is under way.
    fn finish_or_pause(&mut self) {
        let all_settled = self.counters.unsettled_count == 0;
        match self.status {
            BatchStatus::Running if all_settled => self.finish(self.settled_outcome()),
            BatchStatus::Running if !self.is_within_budget() => self.mark_paused(PauseReason::BudgetSpent),
            // The batch waits for capacity, or for a task that another batch has claimed.
            BatchStatus::Running | BatchStatus::NotStarted | BatchStatus::Finished(_) => {}
            BatchStatus::Pausing(reason) | BatchStatus::Paused(reason) => {
                let still_blocked = matches!(reason, PauseReason::LandingFailed(task) if self.task_phase(task).could_not_land());
                if all_settled && !still_blocked {
                    self.finish(self.settled_outcome());
                } else if self.status == BatchStatus::Pausing(reason) {
                    self.mark_paused(reason);
                }
            }
            BatchStatus::WindingDown => self.finish(self.complete_or(BatchOutcome::Stopped)),
            BatchStatus::Stopping { outcome, .. } => self.finish(self.complete_or(outcome)),
        }
    }

    /// Returns the outcome of a batch of settled tasks: complete if all are on the branch, else partial.
    fn settled_outcome(&self) -> BatchOutcome {
        if self.counters.on_branch_count == self.tasks.len() {
            BatchOutcome::Complete
        } else {
            BatchOutcome::Partial
        }
    }

    /// Returns [`BatchOutcome::Complete`] where every task has landed, else `otherwise`. A batch that was to
    /// be stopped but had nothing left to do is complete.
    fn complete_or(&self, otherwise: BatchOutcome) -> BatchOutcome {
        if self.settled_outcome() == BatchOutcome::Complete { BatchOutcome::Complete } else { otherwise }
    }

    /// Sets the batch to paused, and requests that this is recorded.
    fn mark_paused(&mut self, reason: PauseReason) {
        self.status = BatchStatus::Paused(reason);
        self.actions.push(Action::MarkPaused { reason });
    }

    /// Finishes the batch: releases its claims, and removes or retains its lanes.
    fn finish(&mut self, outcome: BatchOutcome) {
        self.status = BatchStatus::Finished(outcome);
        for task in 0..self.tasks.len() {
            self.release_claim(task);
        }
        for lane in self.open_lanes.clone() {
            // A resumed batch may continue in a lane that has work.
            if self.lane_has_unlanded_work(lane) {
                self.report_retained_lane(lane);
            } else {
                self.release_lane(lane);
            }
        }
        self.touched_lanes.clear();
        self.actions.push(Action::MarkFinished { outcome });
    }
}
