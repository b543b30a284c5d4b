//! Queries about the current status of a batch and its tasks.

use super::action::{BatchOutcome, PauseReason};
use super::lane::LaneUse;
use super::state::{BatchStatus, State};
use super::task_phase::{TaskOutcome, TaskPhase, UnfinishedPhase};

/// Current status of a task, for reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStatus {
    /// The task waits for other tasks, for capacity, or for another batch.
    Waiting,
    /// The task's lane is being created and set up.
    Preparing,
    /// The start of the task's run has been requested.
    Starting,
    /// A run of the task is active.
    Running,
    /// The task is done and waits to land.
    ReadyToLand,
    /// The task's work is being landed on the batch's branch.
    Landing,
    /// The task has an unresolved conflict.
    Conflict,
    /// The task has this outcome.
    Settled(TaskOutcome),
}

impl State {
    /// Returns the current status of a task.
    pub fn task_status(&self, task: usize) -> TaskStatus {
        if let Some(outcome) = self.task_outcome(task) {
            return TaskStatus::Settled(outcome);
        }
        match self.task_phase(task) {
            TaskPhase::Preparing => TaskStatus::Preparing,
            TaskPhase::Starting => TaskStatus::Starting,
            TaskPhase::Running => TaskStatus::Running,
            TaskPhase::ReadyToLand => TaskStatus::ReadyToLand,
            TaskPhase::Landing(_) => TaskStatus::Landing,
            TaskPhase::Conflict { .. } => TaskStatus::Conflict,
            _ => TaskStatus::Waiting,
        }
    }

    /// Returns the dependencies of a task whose work is not on the batch's branch yet, even if it is done.
    pub fn unlanded_dependencies(&self, task: usize) -> Vec<usize> {
        let dependencies = &self.work.tasks()[task].depends_on;
        dependencies
            .iter()
            .copied()
            .filter(|dependency| !self.task_phase(*dependency).is_on_branch())
            .collect()
    }

    /// Returns the task without a result because of which `task` is skipped.
    pub fn skip_cause(&self, task: usize) -> Option<usize> {
        self.tasks[task].skip_cause
    }

    /// Returns whether a stop of the task's run or of its conflict resolution has been requested.
    pub fn is_stopping(&self, task: usize) -> bool {
        self.tasks[task].stop_request_is_hard.is_some()
    }

    /// Returns the status of the batch in one word: `new`, `running`, `pausing`, `paused`, `stopping`,
    /// `over`.
    pub fn status_word(&self) -> &'static str {
        match self.status {
            BatchStatus::NotStarted => "new",
            BatchStatus::Running => "running",
            BatchStatus::Pausing(_) => "pausing",
            BatchStatus::Paused(_) => "paused",
            BatchStatus::WindingDown | BatchStatus::Stopping { .. } => "stopping",
            BatchStatus::Finished(_) => "over",
        }
    }

    /// Returns the outcome of the batch, if it has finished.
    pub fn final_outcome(&self) -> Option<BatchOutcome> {
        if let BatchStatus::Finished(outcome) = self.status { Some(outcome) } else { None }
    }

    /// Returns the reason of the pause, if the batch is paused and nothing is under way.
    pub fn pause_reason(&self) -> Option<PauseReason> {
        if let BatchStatus::Paused(reason) = self.status { Some(reason) } else { None }
    }

    /// Returns the outcome of a task; none while it is still open.
    pub fn task_outcome(&self, task: usize) -> Option<TaskOutcome> {
        let task_state = &self.tasks[task];
        let unfinished = match task_state.phase {
            TaskPhase::Landed => return Some(TaskOutcome::Landed),
            TaskPhase::AlreadyDone => return Some(TaskOutcome::AlreadyDone),
            TaskPhase::NoChange => return Some(TaskOutcome::NoChange),
            TaskPhase::Failed(reason) => return Some(TaskOutcome::Failed(reason)),
            TaskPhase::SetAside => return Some(TaskOutcome::SetAside),
            TaskPhase::Skipped { .. } => return Some(TaskOutcome::Skipped),
            TaskPhase::ReadyToLand | TaskPhase::Landing(_) | TaskPhase::Conflict { .. } => {
                UnfinishedPhase::NotLanded
            }
            TaskPhase::Waiting | TaskPhase::Preparing | TaskPhase::Starting | TaskPhase::Running => {
                if task_state.attempts > 0 {
                    UnfinishedPhase::Interrupted
                } else {
                    UnfinishedPhase::NotStarted
                }
            }
        };
        self.final_outcome().map(|_| TaskOutcome::Unfinished(unfinished))
    }

    /// Returns the task that a lane is being set up for; none if the lane is not being set up.
    pub fn task_of_lane_set_up(&self, lane: usize) -> Option<usize> {
        match self.lanes.get(lane)?.current_use {
            LaneUse::SettingUp(task) => Some(task),
            _ => None,
        }
    }

    /// Returns the number of runs of a task that were started or whose start has been requested.
    pub fn attempts(&self, task: usize) -> u32 {
        self.tasks[task].attempts
    }

    /// Returns how often a task has failed, over all batches. The next batch gets this number with the task.
    pub fn failures(&self, task: usize) -> u32 {
        self.tasks[task].failures
    }

    /// Returns the runs without a known end, by task and attempt.
    pub fn open_runs(&self) -> Vec<(usize, u32)> {
        let running_task = |lane: &super::lane::ScheduledLane| {
            if let LaneUse::Running(task) = lane.current_use { Some(task) } else { None }
        };
        self.lanes.iter().filter_map(running_task).map(|task| (task, self.tasks[task].attempts)).collect()
    }

    /// Returns the tasks that ran in a lane, in order.
    #[cfg(test)]
    pub(crate) fn lane_tasks(&self, lane: usize) -> &[usize] {
        self.lanes.get(lane).map_or(&[], |it| &it.tasks)
    }
}
