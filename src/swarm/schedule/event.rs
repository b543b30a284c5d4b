//! Owns what can happen to a batch. Each is written down before it counts.

use serde::{Deserialize, Serialize};

use crate::store::records::RunClass;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum End {
    /// Well, with work to land.
    Done,
    /// Well, with nothing to show for it.
    NoChange,
    /// Well, and by evidence from what had landed when it began the task had been done before.
    Already,
    /// Never: no agent could be started.
    NotStarted,
    /// Otherwise.
    Failed(RunClass),
}

/// Something that happened to a batch. Tasks and lanes go by number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum Event {
    /// The batch begins.
    Begun,
    /// Another process goes on with the batch.
    TakenUp {
        /// The runs that were ever started of those that no end was written of, by task and attempt: those at work, and those
        /// that ended meanwhile, whose ends are told next.
        runs: Vec<(usize, u32)>,
    },
    /// A lane is there and set up.
    SetUp {
        /// The lane.
        lane: usize,
    },
    /// It is not, and cannot be.
    SetUpFailed {
        /// The lane.
        lane: usize,
    },
    /// A run is at work.
    Started {
        /// Its task.
        task: usize,
        /// Which of the task's runs it is, from 1.
        attempt: u32,
    },
    /// A run has ended, or could not be started.
    Ended {
        /// Its task.
        task: usize,
        /// Which of the task's runs it was.
        attempt: u32,
        /// How.
        end: End,
    },
    /// Tasks are on the batch's branch, by one move of it.
    Landed {
        /// Which.
        tasks: Vec<usize>,
    },
    /// A task that had landed is on the batch's branch no longer: its landing was taken back.
    TakenBack {
        /// The task.
        task: usize,
        /// Whether its work is in its lane and lands again. Otherwise the task is done anew.
        kept: bool,
    },
    /// A task does not land as it is. Nor do those of the same landing that depend on it, of which nothing more is told.
    ConflictCaptured {
        /// The task.
        task: usize,
    },
    /// Its conflict is resolved, or what its checks failed by is repaired, by whomever.
    ConflictResolved {
        /// The task.
        task: usize,
    },
    /// A person has finished a task in its lane whose run came to nothing, or has landed that lane.
    Finished {
        /// The task.
        task: usize,
    },
    /// A person goes on with the batch, and a task whose checks failed is as it was: what they depend on may have been repaired.
    CheckAgain {
        /// The task.
        task: usize,
    },
    /// It could not be resolved, or nobody is to try it any longer.
    ConflictGivenUp {
        /// The task.
        task: usize,
    },
    /// Checks fail with the task. What depends on it does not land either, as with a conflict.
    CheckFailed {
        /// The task.
        task: usize,
    },
    /// Nothing new is to start.
    Pause,
    /// The batch is to go on, after a pause or an abort.
    Resume,
    /// What runs is to be stopped.
    Abort {
        /// At once.
        hard: bool,
    },
    /// So many runs of this batch leave room for those of others. None when there is no limit over all batches.
    Slots {
        /// How many, those at work included.
        room: Option<usize>,
    },
    /// What the batch has cost so far.
    Spent {
        /// In billionths of a dollar.
        total: u64,
    },
    /// What the batch may cost has been changed.
    BudgetSet {
        /// In billionths of a dollar, in all.
        most: Option<u64>,
    },
    /// Another batch is at a task.
    Claimed {
        /// The task.
        task: usize,
    },
    /// It is not any more.
    Unclaimed {
        /// The task.
        task: usize,
    },
    /// A person wants a task tried again, that failed or brought nothing.
    Retry {
        /// The task.
        task: usize,
    },
}

impl End {
    /// Whether a further run may end otherwise. Whatever is wrong with the others would be wrong again, or cost as much again.
    pub(super) fn is_worth_another_try(self) -> bool {
        match self {
            End::Failed(class) => match class {
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
            End::Done | End::NoChange | End::Already | End::NotStarted => false,
        }
    }
}
