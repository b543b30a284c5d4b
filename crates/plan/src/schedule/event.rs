//! Events of a batch. Each event is written to the batch's log before it takes effect.

use proq_base::money::NanoDollars;
use proq_base::run_class::RunClass;
use serde::{Deserialize, Serialize};

/// Result of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskRunEnd {
    /// The run succeeded, with work to land.
    Done,
    /// The run succeeded without a change.
    NoChange,
    /// The run succeeded without a change, and evidence from what had landed when it started shows that the
    /// task was done before.
    #[serde(rename = "already")]
    AlreadyDone,
    /// No agent could be started.
    NotStarted,
    /// The run failed, with its exit class.
    Failed(RunClass),
}

/// An event of a batch. Tasks and lanes are identified by number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum ScheduleEvent {
    /// The batch begins to run its tasks, for the first time.
    #[serde(rename = "begun")]
    BatchStarted,
    /// Another process continues the batch.
    #[serde(rename = "taken-up")]
    BatchTakenOver {
        /// The started runs without a recorded end, by task and attempt. Some are still running. Others ended
        /// since, and events that follow report their ends.
        runs: Vec<(usize, u32)>,
    },
    /// A lane exists and is set up.
    #[serde(rename = "set-up")]
    LaneSetUp {
        /// Number of the lane that is set up, from 0.
        lane: usize,
    },
    /// A lane could not be created or set up.
    #[serde(rename = "set-up-failed")]
    LaneSetUpFailed {
        /// Number of the lane that cannot be used, from 0.
        lane: usize,
    },
    /// A run has started.
    #[serde(rename = "started")]
    RunStarted {
        /// Number of the task that the run works on, from 0.
        task: usize,
        /// Number of the run among the task's runs, from 1.
        attempt: u32,
    },
    /// A run has ended, or could not be started.
    #[serde(rename = "ended")]
    RunEnded {
        /// Number of the task that the run worked on, from 0.
        task: usize,
        /// Number of the run among the task's runs, from 1.
        attempt: u32,
        /// Result of the run, with the exit class of a failed one.
        end: TaskRunEnd,
    },
    /// Tasks have landed on the batch's branch, in one update of the branch.
    Landed {
        /// Numbers of the landed tasks, from 0.
        tasks: Vec<usize>,
    },
    /// The landing of a task was undone: its work is no longer on the batch's branch.
    #[serde(rename = "taken-back")]
    LandingUndone {
        /// Number of the task whose landing was undone, from 0.
        task: usize,
        /// Whether the task's work is still in its lane and lands again. Otherwise the task runs again.
        #[serde(rename = "kept")]
        work_kept: bool,
    },
    /// A task conflicts when landing. Tasks of the same landing that depend on it do not land either; no
    /// event reports those.
    ConflictCaptured {
        /// Number of the task that has the conflict, from 0.
        task: usize,
    },
    /// An agent or a user resolved a task's conflict, or repaired the cause of its failed checks.
    ConflictResolved {
        /// Number of the task that can land now, from 0.
        task: usize,
    },
    /// The user finished a task in its lane after its run failed, or landed that lane.
    #[serde(rename = "finished")]
    FinishedByHand {
        /// Number of the task that the user finished, from 0.
        task: usize,
    },
    /// The user resumes the batch, and a task whose checks failed has not changed. Its checks run again,
    /// since the cause may have been repaired elsewhere.
    #[serde(rename = "check-again")]
    RecheckRequested {
        /// Number of the task whose checks run again, from 0.
        task: usize,
    },
    /// A task's conflict could not be resolved, or its resolution was stopped.
    ConflictGivenUp {
        /// Number of the task whose conflict is still unresolved, from 0.
        task: usize,
    },
    /// Checks fail with a task. Its dependents do not land either, as with a conflict.
    CheckFailed {
        /// Number of the task with which checks fail, from 0.
        task: usize,
    },
    /// The user pauses the batch: nothing new starts.
    Pause,
    /// The user resumes the batch after a pause or an abort.
    Resume,
    /// The user aborts the batch: all running agents are stopped.
    Abort {
        /// Whether runs are stopped at once, without time to wrap up.
        hard: bool,
    },
    /// The number of runs that other batches leave to this batch has changed.
    #[serde(rename = "slots")]
    CapacityChanged {
        /// Maximum number of concurrent runs of this batch, running ones included. None when no limit applies
        /// over all batches.
        #[serde(rename = "room")]
        capacity: Option<usize>,
    },
    /// The total cost of the batch so far.
    #[serde(rename = "spent")]
    CostReported {
        /// Total cost.
        total: NanoDollars,
    },
    /// The user changed the budget of the batch.
    BudgetSet {
        /// Budget of the entire batch; none for no limit.
        #[serde(rename = "most")]
        limit: Option<NanoDollars>,
    },
    /// Another batch has claimed a task.
    #[serde(rename = "claimed")]
    ClaimedElsewhere {
        /// Number of the task that this batch cannot run for now, from 0.
        task: usize,
    },
    /// Another batch has released its claim on a task.
    #[serde(rename = "unclaimed")]
    ClaimEnded {
        /// Number of the task that this batch may claim again, from 0.
        task: usize,
    },
    /// The user retries a task that failed or made no change.
    Retry {
        /// Number of the task to run again, from 0.
        task: usize,
    },
}

impl TaskRunEnd {
    /// Returns whether another run may end differently. Other causes would persist, or another run would cost
    /// as much again.
    pub fn is_retryable(self) -> bool {
        match self {
            TaskRunEnd::Failed(class) => match class {
                RunClass::Failed
                | RunClass::RateLimited
                | RunClass::Unavailable
                | RunClass::MaxTurns
                | RunClass::ContextFull
                | RunClass::Crashed
                | RunClass::Interrupted
                | RunClass::Stalled
                | RunClass::Timeout
                | RunClass::Runaway => true,
                RunClass::Done
                | RunClass::TokenLimit
                | RunClass::Auth
                | RunClass::Budget
                | RunClass::Refused
                | RunClass::GivenUp
                | RunClass::Stopped => false,
            },
            TaskRunEnd::Done | TaskRunEnd::NoChange | TaskRunEnd::AlreadyDone | TaskRunEnd::NotStarted => {
                false
            }
        }
    }
}
