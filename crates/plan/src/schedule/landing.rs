//! Landings of a batch: when tasks land, and what happens to tasks that cannot, or whose landing was undone.

use std::collections::BTreeSet;

use super::action::Action;
use super::lane::LaneUse;
use super::options::LandingMode;
use super::state::{BatchStatus, State};
use super::task_phase::{FailureReason, TaskPhase};

impl State {
    /// Requests the landings that are due: of each task as soon as it is ready, or of a stage once none of
    /// its tasks is waiting or running.
    pub(crate) fn land_due(&mut self) {
        if matches!(
            self.status,
            BatchStatus::NotStarted | BatchStatus::Stopping { .. } | BatchStatus::Finished(_)
        ) {
            return;
        }
        for task in std::mem::take(&mut self.single_landings) {
            if self.task_phase(task) == TaskPhase::ReadyToLand && !self.push_landing(&[task]) {
                self.single_landings.insert(task);
            }
        }
        let stages: Vec<usize> = self.counters.ready_to_land.keys().copied().collect();
        for stage in stages {
            let tasks: Vec<usize> = self.counters.ready_to_land[&stage].iter().copied().collect();
            let busy = self.counters.stage_loads[stage];
            let is_stage_finished = match self.status {
                BatchStatus::WindingDown => busy.active == 0,
                _ => busy.active == 0 && busy.waiting == 0,
            };
            if self.options.mode == LandingMode::Continuous {
                for task in tasks {
                    self.push_landing(&[task]);
                }
            } else if is_stage_finished {
                self.push_landing(&tasks);
            }
        }
    }

    /// Lands the ready tasks of unfinished stages, since nothing else can continue. Returns whether there was
    /// a task to land.
    pub(crate) fn land_early(&mut self) -> bool {
        let done: Vec<Vec<usize>> =
            self.counters.ready_to_land.values().map(|d| d.iter().copied().collect()).collect();
        let mut has_landing = false;
        for tasks in done {
            has_landing |= self.push_landing(&tasks);
        }
        has_landing
    }

    /// Requests one landing of those `tasks` whose dependencies have landed or land with them. Returns
    /// whether there are any.
    fn push_landing(&mut self, tasks: &[usize]) -> bool {
        let mut order = tasks.to_vec();
        // Ordered by when their runs ended: the lower tasks of a lane come first, and each task comes after
        // its dependencies.
        order.sort_unstable_by_key(|task| self.tasks[*task].ready_to_land_order);
        let mut landing_together = BTreeSet::new();
        order.retain(|task| {
            let dependencies = &self.work.tasks()[*task].depends_on;
            let can_land = dependencies.iter().all(|dependency| {
                self.task_phase(*dependency).is_on_branch() || landing_together.contains(dependency)
            });
            if can_land {
                landing_together.insert(*task);
            }
            can_land
        });
        if order.is_empty() {
            return false;
        }
        let landing = self.next_landing;
        self.next_landing += 1;
        for task in &order {
            self.set_phase(*task, TaskPhase::Landing(landing));
        }
        self.actions.push(Action::Land { landing, tasks: order });
        true
    }

    /// Settles tasks whose landing has succeeded. Tasks that were not landing are ignored.
    pub(crate) fn on_landed(&mut self, tasks: &[usize]) {
        let is_landing = |task: &usize| {
            self.tasks.get(*task).is_some_and(|task_state| matches!(task_state.phase, TaskPhase::Landing(_)))
        };
        let tasks: Vec<usize> = tasks.iter().copied().filter(is_landing).collect();
        if tasks.is_empty() {
            return;
        }
        self.branch_updates += 1;
        for task in tasks {
            self.tasks[task].landed_update = self.branch_updates;
            self.settle_task(task, TaskPhase::Landed);
        }
    }

    /// Handles a task that cannot land: because of a conflict where `reason` is none, otherwise for `reason`,
    /// which fails the task. Tasks of the same landing that depend on it land later.
    pub(crate) fn on_not_landed(&mut self, task: usize, reason: Option<FailureReason>) {
        let Some(TaskPhase::Landing(landing)) = self.tasks.get(task).map(|task_state| task_state.phase)
        else {
            return;
        };
        let mut unchecked = vec![task];
        while let Some(blocked) = unchecked.pop() {
            for dependent in self.work.graph().dependents(blocked).to_vec() {
                if self.task_phase(dependent) == TaskPhase::Landing(landing) {
                    self.set_phase(dependent, TaskPhase::ReadyToLand);
                    unchecked.push(dependent);
                }
            }
        }
        if let Some(lane) = self.tasks[task].lane {
            self.set_lane_use(lane, LaneUse::Retired);
        }
        self.tasks[task].is_recheck &= reason == Some(FailureReason::CheckFailed);
        match reason {
            Some(reason) => self.settle_task(task, TaskPhase::Failed(reason)),
            None if self.options.resolve_conflicts => {
                self.set_phase(task, TaskPhase::Conflict { is_resolving: false });
            }
            None => self.settle_task(task, TaskPhase::Failed(FailureReason::ConflictUnresolved)),
        }
    }

    /// Starts an agent for each conflict without one. Such an agent does not count as a run.
    pub(crate) fn start_resolutions(&mut self) {
        if !(self.may_start_agents() || self.status == BatchStatus::WindingDown && self.is_within_budget()) {
            return;
        }
        for task in std::mem::take(&mut self.counters.conflicts_without_agent) {
            self.set_phase(task, TaskPhase::Conflict { is_resolving: true });
            self.actions.push(Action::StartResolution { task });
        }
    }

    /// Queues a task to land alone, now that its conflict is resolved or the cause of its failed checks is
    /// repaired.
    pub(crate) fn on_conflict_resolved(&mut self, task: usize) {
        let Some(task_state) = self.tasks.get_mut(task) else { return };
        let was_given_up = matches!(
            task_state.phase,
            TaskPhase::Failed(FailureReason::ConflictUnresolved | FailureReason::CheckFailed)
        );
        if !was_given_up && !matches!(task_state.phase, TaskPhase::Conflict { .. }) {
            return;
        }
        task_state.stop_request_is_hard = None;
        self.queue_single_landing(task);
        if was_given_up {
            self.reactivate_settled_task(task);
        }
    }

    /// Queues a task to land alone, unless one of its dependencies has no result.
    fn queue_single_landing(&mut self, task: usize) {
        self.single_landings.insert(task);
        if !self.skip_if_blocked(task, true) {
            self.set_phase(task, TaskPhase::ReadyToLand);
        }
    }

    /// Reactivates a task that was settled, and the tasks that were skipped because of it.
    fn reactivate_settled_task(&mut self, task: usize) {
        self.actions.push(Action::MarkWaiting { task });
        self.undo_skips(None);
        self.reopen_batch();
    }

    /// Lands the work in the lane of a task whose run failed, unless another task has used that lane since.
    pub(crate) fn on_finished_by_hand(&mut self, task: usize) {
        let Some(lane) = self.tasks.get(task).and_then(|task_state| task_state.lane) else { return };
        let run_failed = matches!(
            self.task_phase(task),
            TaskPhase::Failed(FailureReason::RunFailed(_)) | TaskPhase::SetAside
        );
        if !run_failed || self.lanes[lane].failed_task != Some(task) {
            return;
        }
        self.update_lane(lane, |it| it.failed_task = None);
        self.set_lane_use(lane, LaneUse::Retired);
        self.ready_to_land_count += 1;
        (self.tasks[task].ready_to_land_order, self.tasks[task].failures) = (self.ready_to_land_count, 0);
        self.queue_single_landing(task);
        self.reactivate_settled_task(task);
    }

    /// Lands a task whose checks failed once more, with the same work.
    pub(crate) fn recheck(&mut self, task: usize) {
        let Some(task_state) = self.tasks.get_mut(task) else { return };
        if task_state.phase == TaskPhase::Failed(FailureReason::CheckFailed) {
            task_state.is_recheck = true;
            self.on_conflict_resolved(task);
        }
    }

    /// Fails a task whose conflict stays unresolved. If only its agent was stopped, another one may start.
    pub(crate) fn on_conflict_given_up(&mut self, task: usize) {
        let Some(task_state) = self.tasks.get_mut(task) else { return };
        if !matches!(task_state.phase, TaskPhase::Conflict { .. }) {
            return;
        }
        if task_state.stop_request_is_hard.take().is_some() {
            // The agent that resolved the conflict was stopped. Another one starts if the batch continues.
            self.set_phase(task, TaskPhase::Conflict { is_resolving: false });
        } else {
            self.settle_task(task, TaskPhase::Failed(FailureReason::ConflictUnresolved));
        }
    }
}

impl State {
    /// Marks a landed task as not landed. With `work_kept` its work is still in its lane and lands again.
    /// Otherwise the task runs again, and so do the tasks whose work is based on it.
    pub(crate) fn on_landing_undone(&mut self, task: usize, work_kept: bool) {
        if self.tasks.get(task).is_none_or(|task_state| task_state.phase != TaskPhase::Landed) {
            return;
        }
        // The branch has moved since the last landing.
        self.branch_updates += 1;
        if work_kept {
            if let Some(lane) =
                self.tasks[task].lane.filter(|lane| self.lanes[*lane].current_use == LaneUse::Removed)
            {
                self.set_lane_use(lane, LaneUse::Retired);
            }
            self.single_landings.insert(task);
            self.set_phase(task, TaskPhase::ReadyToLand);
        } else {
            self.set_phase(task, TaskPhase::Waiting);
            self.abandon_work_based_on(task);
        }
        self.actions.push(Action::MarkWaiting { task });
        self.reopen_batch();
    }

    /// Abandons the unlanded work of all tasks that depend on a task, so that they run again.
    fn abandon_work_based_on(&mut self, task: usize) {
        for dependent in 0..self.tasks.len() {
            if !self.work.graph().waits_for(dependent, task) {
                continue;
            }
            self.tasks[dependent].was_interrupted = false;
            let new_phase = match self.task_phase(dependent) {
                TaskPhase::ReadyToLand => TaskPhase::Waiting,
                TaskPhase::Skipped { has_work: true } => TaskPhase::Skipped { has_work: false },
                _ => continue,
            };
            self.abandon_work(dependent);
            self.set_phase(dependent, new_phase);
        }
    }
}
