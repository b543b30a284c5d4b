//! Starting of runs: in the order of their ranks, as many as capacity allows.

use super::action::{Action, RunBase};
use super::lane::{LaneUse, ScheduledLane};
use super::lane_choice::LaneChoice;
use super::state::{BatchStatus, State};
use super::task_phase::{FailureReason, TaskPhase};

impl State {
    /// Returns the maximum number of concurrent runs.
    fn run_limit(&self) -> usize {
        self.options.max_parallel.max(1).min(self.capacity.unwrap_or(usize::MAX))
    }

    /// Starts the runs that are due. Returns whether more runs could start, given more capacity.
    pub(crate) fn start_due(&mut self) -> bool {
        let Some(last_stage) = self.last_stage_to_start().filter(|_| self.may_start_agents()) else {
            return false;
        };
        let mut next_head = (0, 0);
        while let Some((rank, bundle)) = self.bundle_heads.range(next_head..).next().copied() {
            if self.order.stage[self.order.tasks_by_rank[rank]] > last_stage {
                break;
            }
            if self.counters.active_count >= self.run_limit() {
                self.push_queued(last_stage);
                return true;
            }
            next_head = (rank, bundle + 1);
            if self.is_bundle_busy(bundle) {
                continue;
            }
            let choose = |rank: &usize| {
                let task = self.order.tasks_by_rank[*rank];
                self.choose_lane(task).map(|choice| (task, choice))
            };
            match self.ready_by_bundle[&bundle].iter().find_map(choose) {
                Some((task, LaneChoice::Existing(lane))) => self.start_run(task, lane),
                Some((task, LaneChoice::New)) => self.request_lane(task),
                None => {}
            }
        }
        false
    }

    /// Returns the last stage whose tasks may start: the first unfinished stage, or the end of the first
    /// phase with a conflict. None when all stages are finished.
    fn last_stage_to_start(&self) -> Option<usize> {
        let first_open = self.counters.first_open_stage()?;
        let conflicts = self.counters.conflicts_without_agent.iter().chain(&self.counters.resolving);
        let conflict_limit = conflicts.map(|task| self.order.last_stage_of_phase[*task]).min();
        Some(conflict_limit.map_or(first_open, |limit| first_open.min(limit)))
    }

    /// Reports, once, each task that is ready and only waits for capacity.
    fn push_queued(&mut self, last_stage: usize) {
        while let Some(rank) = self.unreported_ready.first().copied() {
            let task = self.order.tasks_by_rank[rank];
            if self.order.stage[task] > last_stage {
                break;
            }
            self.unreported_ready.remove(&rank);
            self.actions.push(Action::MarkQueued { task });
        }
    }

    /// Requests the creation and set-up of a new lane for a task. The task counts as a concurrent run from
    /// now on.
    fn request_lane(&mut self, task: usize) {
        let lane = self.lanes.len();
        self.lanes.push(ScheduledLane {
            current_use: LaneUse::SettingUp(task),
            tasks: vec![task],
            load: u64::from(self.work.tasks()[task].weight),
            family: self.order.family[task],
            base_updates: self.branch_updates,
            unlanded_task_count: 0,
            landing_count: 0,
            failed_task: None,
            retain_reported: false,
        });
        self.open_lanes.insert(lane);
        self.assign_lane(task, lane);
        self.set_phase(task, TaskPhase::Preparing);
        self.actions.push(Action::CreateLane { lane, task, branch_updates: self.branch_updates });
        self.actions.push(Action::SetUpLane { lane });
    }

    /// Assigns a lane to a task and its bundle, and claims the task.
    fn assign_lane(&mut self, task: usize, lane: usize) {
        self.lane_by_bundle.insert(self.order.bundle[task], lane);
        self.last_lane = lane;
        let task_state = &mut self.tasks[task];
        task_state.claimed_here = true;
        if let Some(previous_lane) = task_state.lane.replace(lane).filter(|previous| *previous != lane) {
            self.touched_lanes.insert(previous_lane);
        }
    }

    /// Starts the next run of a task in a lane.
    fn start_run(&mut self, task: usize, lane: usize) {
        let weight = u64::from(self.work.tasks()[task].weight);
        let branch_updates = self.branch_updates;
        let continues = self.continues_in_lane(task, lane)
            && matches!(self.tasks[task].base, Some(RunBase::BranchTip(_)));
        self.assign_lane(task, lane);
        self.update_lane(lane, |it| {
            (it.current_use, it.retain_reported) = (LaneUse::Running(task), false);
            if it.unlanded_task_count == 0 && !continues {
                it.base_updates = branch_updates;
            }
            if it.tasks.last() != Some(&task) {
                it.tasks.push(task);
                it.load += weight;
            }
        });
        self.tasks[task].attempts += 1;
        self.set_phase(task, TaskPhase::Starting);
        self.push_start(task, lane);
    }

    /// Returns whether a task was interrupted in this lane and nothing else has run there since.
    fn continues_in_lane(&self, task: usize, lane: usize) -> bool {
        self.tasks[task].was_interrupted && self.lanes[lane].failed_task == Some(task)
    }

    /// Requests the run that is to start in a lane. The work of a failed run there is removed first, unless
    /// that run was interrupted and this task continues from it.
    pub(crate) fn push_start(&mut self, task: usize, lane: usize) {
        let continues = self.continues_in_lane(task, lane);
        let it = &self.lanes[lane];
        let top_task =
            it.tasks.iter().rev().find(|other| **other != task && self.has_unlanded_work_in(**other, lane));
        let base =
            top_task.map_or(RunBase::BranchTip(it.base_updates), |top_task| RunBase::OnTask(*top_task));
        if let Some(failed_task) = it.failed_task.filter(|_| !continues) {
            self.actions.push(Action::ResetLane { lane, task: failed_task, base });
        }
        self.tasks[task].base = Some(base);
        let attempt = self.tasks[task].attempts;
        self.actions.push(Action::StartRun { task, lane, attempt, base });
    }

    /// Starts the run that a lane was set up for, or returns its task to the waiting ones.
    pub(crate) fn on_lane_set_up(&mut self, lane: usize) {
        let Some(LaneUse::SettingUp(task)) = self.lanes.get(lane).map(|it| it.current_use) else { return };
        self.set_lane_use(lane, LaneUse::Idle);
        if self.task_phase(task) != TaskPhase::Preparing {
            return;
        }
        // Capacity may have decreased since, or the batch may no longer be allowed to start agents.
        let can_start = self.counters.active_count <= self.run_limit() && self.may_start_agents();
        if can_start && self.tasks[task].unmet_dependency_count == 0 && !self.tasks[task].claimed_elsewhere {
            self.start_run(task, lane);
        } else {
            self.return_to_waiting(task);
        }
    }

    /// Removes a lane that could not be set up, and fails its task unless the batch is stopping.
    pub(crate) fn on_lane_set_up_failed(&mut self, lane: usize) {
        let Some(LaneUse::SettingUp(task)) = self.lanes.get(lane).map(|it| it.current_use) else { return };
        self.set_lane_use(lane, LaneUse::Removed);
        self.actions.push(Action::DiscardLane { lane });
        if self.task_phase(task) != TaskPhase::Preparing {
            return;
        }
        match self.status {
            // The set-up was stopped with the batch; another lane serves when the batch continues.
            BatchStatus::Stopping { .. } => self.return_to_waiting(task),
            _ => self.settle_task(task, TaskPhase::Failed(FailureReason::SetUpFailed)),
        }
    }
}
