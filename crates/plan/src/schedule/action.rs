//! Actions that the scheduler of a batch requests from the process that runs the batch.

use super::task_phase::FailureReason;

/// Starting point of a run in its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunBase {
    /// Tip of the batch's branch after this number of updates, each by a landing or by undone landings.
    BranchTip(u32),
    /// The last commit of this task's work, in the same lane.
    OnTask(usize),
}

/// Reason for which a batch is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseReason {
    /// The user requested the pause.
    Requested,
    /// This task cannot land.
    LandingFailed(usize),
    /// The batch has used up its budget.
    BudgetSpent,
}

/// Final result of a batch. A paused batch has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchOutcome {
    /// All tasks landed, or were done before the batch.
    Complete,
    /// Every task is settled, but some did not land.
    Partial,
    /// A failure ended the batch, as the failure policy requires.
    Stopped,
    /// The user aborted the batch.
    Aborted,
}

/// An action that the scheduler requests. After a crash an action may be requested again: it is then already
/// done, or is due now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Create a lane.
    CreateLane {
        /// Number of the new lane in the batch, from 0.
        lane: usize,
        /// The first task of the lane.
        task: usize,
        /// The lane starts from the tip of the batch's branch after this number of updates.
        branch_updates: u32,
    },
    /// Set up a lane. [`ScheduleEvent::LaneSetUp`](super::event::ScheduleEvent::LaneSetUp) or
    /// [`ScheduleEvent::LaneSetUpFailed`](super::event::ScheduleEvent::LaneSetUpFailed) reports the result.
    SetUpLane {
        /// Number of the lane to set up, from 0.
        lane: usize,
    },
    /// Report that a task is ready and only waits for capacity.
    MarkQueued {
        /// Number of the task that is ready, from 0.
        task: usize,
    },
    /// Move a lane to `base` and start a run there.
    StartRun {
        /// Number of the task to run, from 0.
        task: usize,
        /// The lane in which the task runs.
        lane: usize,
        /// Number of the run among the task's runs; a number is never given twice.
        attempt: u32,
        /// Starting point of the run.
        base: RunBase,
    },
    /// Stop a run.
    StopRun {
        /// The task of the run.
        task: usize,
        /// Number of the run among the task's runs.
        attempt: u32,
        /// Whether the run is stopped at once, without time to wrap up.
        hard: bool,
    },
    /// Remove a run's work from its lane and save it elsewhere.
    ResetLane {
        /// Number of the lane to reset, from 0.
        lane: usize,
        /// The task whose work is removed.
        task: usize,
        /// Starting point to which the lane is reset.
        base: RunBase,
    },
    /// Land tasks together, in this order, each by its own commits. An event reports the result of each task.
    Land {
        /// Number of the landing in the batch, from 0.
        landing: usize,
        /// Numbers of the tasks to land, in the order of their commits on the branch.
        tasks: Vec<usize>,
    },
    /// Start an agent that resolves a task's conflict.
    StartResolution {
        /// Number of the task that has the conflict, from 0.
        task: usize,
    },
    /// Stop the agent that resolves a task's conflict. An event reports the conflict as given up or resolved.
    StopResolution {
        /// Number of the task whose conflict the agent resolves, from 0.
        task: usize,
        /// Whether the agent is stopped at once, without time to wrap up.
        hard: bool,
    },
    /// Release the batch's claim on a task, so that other batches may run it.
    ReleaseTask {
        /// Number of the task that other batches may claim again, from 0.
        task: usize,
    },
    /// Remove a lane that the batch no longer needs.
    DiscardLane {
        /// Number of the lane to remove, from 0.
        lane: usize,
    },
    /// Report that a lane is not removed, since it has work that has not landed.
    RetainLane {
        /// Number of the lane that still has work, from 0.
        lane: usize,
    },
    /// Record that a task waits again after it was skipped or failed.
    MarkWaiting {
        /// Number of the task that waits again, from 0.
        task: usize,
    },
    /// Record that a task is skipped.
    MarkSkipped {
        /// Number of the skipped task, from 0.
        task: usize,
        /// The task without a result that causes the skip.
        cause: usize,
    },
    /// Record that a task has failed.
    MarkFailed {
        /// Number of the failed task, from 0.
        task: usize,
        /// Reason for which the task has failed.
        reason: FailureReason,
    },
    /// Record that a task is not run again until the user retries it.
    MarkSetAside {
        /// Number of the task that has failed too often, from 0.
        task: usize,
    },
    /// Record that the batch is paused.
    MarkPaused {
        /// Reason for which the batch is paused.
        reason: PauseReason,
    },
    /// Record that the batch has finished.
    MarkFinished {
        /// Final result of the batch.
        outcome: BatchOutcome,
    },
}
