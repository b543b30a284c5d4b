//! Phase of a task in the scheduler, and its outcome.

use proq_base::run_class::RunClass;

/// Reason for which a task has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureReason {
    /// The task's run failed.
    RunFailed(RunClass),
    /// No agent could be started for the task.
    NotStarted,
    /// The task's lane could not be set up.
    SetUpFailed,
    /// The task has a conflict that was not resolved.
    ConflictUnresolved,
    /// Checks fail with the task's work.
    CheckFailed,
}

/// Phase of a task in the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskPhase {
    /// The task has not started, or waits for its next run.
    Waiting,
    /// The task's lane is being set up.
    Preparing,
    /// The start of the task's run has been requested.
    Starting,
    /// A run of the task is active.
    Running,
    /// The task's work is complete and waits to land.
    ReadyToLand,
    /// The task is part of this landing.
    Landing(usize),
    /// The task has an unresolved conflict.
    Conflict {
        /// Whether the start of an agent that resolves the conflict has been requested.
        is_resolving: bool,
    },
    /// The task's work is on the batch's branch.
    Landed,
    /// The task was done before the batch, or before its run started, as that run found.
    AlreadyDone,
    /// The task's run made no change.
    NoChange,
    /// The task has failed for this reason.
    Failed(FailureReason),
    /// The task failed too often.
    SetAside,
    /// One of the task's dependencies has no result.
    Skipped {
        /// Whether the task has finished work, on top of work that could not land.
        has_work: bool,
    },
}

impl TaskPhase {
    /// Returns whether the task counts as a concurrent run.
    pub fn counts_as_run(self) -> bool {
        matches!(self, TaskPhase::Preparing | TaskPhase::Starting | TaskPhase::Running)
    }

    /// Returns whether the task is settled for this batch, unless the user intervenes.
    pub(crate) fn is_settled(self) -> bool {
        self.is_on_branch() || self.blocks_dependents() || matches!(self, TaskPhase::Skipped { .. })
    }

    /// Returns whether later stages of the task's phase may start. A conflict only blocks the task's
    /// dependents and later phases.
    pub(crate) fn allows_next_stage(self) -> bool {
        self.is_settled() || matches!(self, TaskPhase::Conflict { .. })
    }

    /// Returns whether the task's result is on the batch's branch.
    pub fn is_on_branch(self) -> bool {
        matches!(self, TaskPhase::Landed | TaskPhase::AlreadyDone)
    }

    /// Returns whether the task's dependents are skipped because of it.
    pub(crate) fn blocks_dependents(self) -> bool {
        matches!(self, TaskPhase::NoChange | TaskPhase::Failed(_) | TaskPhase::SetAside)
    }

    /// Returns whether the task has work that could not land.
    pub(crate) fn could_not_land(self) -> bool {
        matches!(self, TaskPhase::Failed(FailureReason::ConflictUnresolved | FailureReason::CheckFailed))
    }

    /// Returns whether the task's lane contains its work, which has not landed.
    pub(crate) fn has_unlanded_work(self) -> bool {
        matches!(
            self,
            TaskPhase::ReadyToLand
                | TaskPhase::Landing(_)
                | TaskPhase::Conflict { .. }
                | TaskPhase::Skipped { has_work: true }
        ) || self.could_not_land()
    }
}

/// Outcome of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskOutcome {
    /// The task's work is on the batch's branch.
    Landed,
    /// The task was done before the batch, or before its run started, as that run found.
    AlreadyDone,
    /// The task's run made no change, and no evidence shows that nothing was to be done.
    NoChange,
    /// The task has failed for this reason.
    Failed(FailureReason),
    /// The task has failed too often, over all batches.
    SetAside,
    /// One of the task's dependencies has no result.
    Skipped,
    /// The batch ended before the task was settled.
    Unfinished(UnfinishedPhase),
}

/// Progress of a task whose batch ended before the task was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnfinishedPhase {
    /// No run of the task was ever started.
    NotStarted,
    /// A run was stopped, or the task was to be tried again.
    Interrupted,
    /// The task is done, and its work is retained in its lane.
    NotLanded,
}
