//! Takeover of a batch whose scheduler process crashed: requests the outstanding actions again, given the
//! runs that are still recorded.

use std::collections::BTreeMap;

use proq_base::run_class::RunClass;

use super::action::Action;
use super::event::TaskRunEnd;
use super::lane::LaneUse;
use super::state::{BatchStatus, State};
use super::task_phase::TaskPhase;

impl State {
    /// Requests every action again that was requested and may not have been carried out. `runs` lists the
    /// started runs without a recorded end, by task and attempt.
    pub(crate) fn on_batch_taken_over(&mut self, runs: &[(usize, u32)]) {
        if self.status == BatchStatus::NotStarted {
            return;
        }
        // A lost run may be a failure that ends the batch. So runs are reconciled before any action is
        // requested.
        for task in 0..self.tasks.len() {
            self.reconcile_run(task, runs.contains(&(task, self.tasks[task].attempts)));
        }
        (0..self.tasks.len()).for_each(|task| self.repeat_mark_actions(task));
        (0..self.lanes.len()).for_each(|lane| self.repeat_lane_actions(lane));
        self.repeat_landings();
        (0..self.tasks.len()).for_each(|task| self.repeat_task_actions(task));
        self.unreported_ready = self.ready_by_bundle.values().flatten().copied().collect();
        match self.status {
            BatchStatus::Paused(reason) => self.actions.push(Action::MarkPaused { reason }),
            BatchStatus::Finished(outcome) => self.actions.push(Action::MarkFinished { outcome }),
            BatchStatus::NotStarted
            | BatchStatus::Running
            | BatchStatus::Pausing(_)
            | BatchStatus::WindingDown
            | BatchStatus::Stopping { .. } => {}
        }
    }

    /// Requests again to record a settled task as such, and to release the claim on it.
    fn repeat_mark_actions(&mut self, task: usize) {
        let task_state = &self.tasks[task];
        match (task_state.phase, task_state.skip_cause) {
            (TaskPhase::Skipped { .. }, Some(cause)) => {
                self.actions.push(Action::MarkSkipped { task, cause });
            }
            (TaskPhase::Failed(reason), _) => self.actions.push(Action::MarkFailed { task, reason }),
            (TaskPhase::SetAside, _) => self.actions.push(Action::MarkSetAside { task }),
            _ => {}
        }
        if !task_state.claimed_here && task_state.lane.is_some() {
            self.actions.push(Action::ReleaseTask { task });
        }
    }

    /// Requests again to create, remove or retain a lane, as its use requires.
    fn repeat_lane_actions(&mut self, lane: usize) {
        let lane_entry = &self.lanes[lane];
        match lane_entry.current_use {
            LaneUse::SettingUp(task) => {
                self.actions.push(Action::CreateLane { lane, task, branch_updates: lane_entry.base_updates });
                self.actions.push(Action::SetUpLane { lane });
            }
            LaneUse::Removed => self.actions.push(Action::DiscardLane { lane }),
            LaneUse::Retired | LaneUse::Idle if lane_entry.retain_reported => {
                self.actions.push(Action::RetainLane { lane });
            }
            LaneUse::Retired | LaneUse::Idle | LaneUse::Running(_) => {}
        }
    }

    /// Requests again the landings that have no result yet.
    fn repeat_landings(&mut self) {
        let mut landings: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (task, task_state) in self.tasks.iter().enumerate() {
            if let TaskPhase::Landing(landing) = task_state.phase {
                landings.entry(landing).or_default().push(task);
            }
        }
        for (landing, mut tasks) in landings {
            tasks.sort_unstable_by_key(|task| self.tasks[*task].ready_to_land_order);
            self.actions.push(Action::Land { landing, tasks });
        }
    }

    /// Reconciles the recorded phase of a task with whether its run was found.
    fn reconcile_run(&mut self, task: usize, is_running: bool) {
        let attempt = self.tasks[task].attempts;
        match self.task_phase(task) {
            TaskPhase::Starting if is_running => self.on_run_started(task, attempt),
            TaskPhase::Running if !is_running => {
                self.on_run_ended(task, attempt, TaskRunEnd::Failed(RunClass::Interrupted));
            }
            _ => {}
        }
    }

    /// Requests again the start, the conflict resolution or the stop that is due for a task.
    fn repeat_task_actions(&mut self, task: usize) {
        match self.task_phase(task) {
            TaskPhase::Starting if self.may_start_agents() => {
                if let Some(lane) = self.tasks[task].lane {
                    self.push_start(task, lane);
                }
            }
            TaskPhase::Starting => return self.cancel_start(task),
            TaskPhase::Conflict { is_resolving: true } if self.tasks[task].stop_request_is_hard.is_none() => {
                self.actions.push(Action::StartResolution { task });
            }
            _ => {}
        }
        if let Some(hard) = self.tasks[task].stop_request_is_hard {
            self.push_stop(task, hard);
        }
    }

    /// Cancels a requested start that did not happen and is no longer allowed. The task waits as if the start
    /// had never been requested.
    fn cancel_start(&mut self, task: usize) {
        let task_state = &mut self.tasks[task];
        task_state.attempts -= 1;
        task_state.stop_request_is_hard = None;
        if let Some(lane) = task_state.lane {
            self.set_lane_use(lane, LaneUse::Idle);
        }
        self.return_to_waiting(task);
    }
}
