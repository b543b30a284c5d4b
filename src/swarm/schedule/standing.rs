//! Owns how far a task is, and what became of it.

use crate::store::records::RunClass;

/// Why a task has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// Its run did.
    Run(RunClass),
    /// No agent could be started for it.
    Start,
    /// Its lane could not be set up.
    SetUp,
    /// It has a conflict that nobody resolved.
    Conflict,
    /// Checks fail with it.
    Check,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// To be run.
    Waiting,
    /// Its lane is being set up for it.
    Preparing,
    /// Its run is to be started.
    Starting,
    /// Its run is at work.
    Running,
    /// Its work is to land.
    Done,
    /// It is on its way there, by this landing.
    Landing(usize),
    /// It has a conflict.
    Conflict {
        /// Somebody was sent.
        asked: bool,
    },
    /// It is on the batch's branch.
    Landed,
    /// It had been done before.
    Already,
    /// Its run brought nothing.
    NoChange,
    /// It has no result.
    Failed(Why),
    /// It failed too often.
    SetAside,
    /// What it depends on has no result.
    Skipped {
        /// It has work of its own, on top of what could not land.
        done: bool,
    },
}

impl Standing {
    /// Whether it takes one of the places for runs.
    pub(super) fn is_under_way(self) -> bool {
        matches!(self, Standing::Preparing | Standing::Starting | Standing::Running)
    }

    /// Whether it is over for this batch, unless a person wants it otherwise.
    pub(super) fn is_settled(self) -> bool {
        self.is_there() || self.is_in_the_way() || matches!(self, Standing::Skipped { .. })
    }

    /// Whether later stages of its phase do not wait for it. A conflict holds up those who need the task, and later phases.
    pub(super) fn is_past(self) -> bool {
        self.is_settled() || matches!(self, Standing::Conflict { .. })
    }

    /// Whether its result is on the batch's branch.
    pub(super) fn is_there(self) -> bool {
        matches!(self, Standing::Landed | Standing::Already)
    }

    /// Whether those who depend on it are skipped on its account.
    pub(super) fn is_in_the_way(self) -> bool {
        matches!(self, Standing::NoChange | Standing::Failed(_) | Standing::SetAside)
    }

    /// Whether it could not land.
    pub(super) fn is_stuck(self) -> bool {
        matches!(self, Standing::Failed(Why::Conflict | Why::Check))
    }

    /// Whether its lane has work of it that has not landed.
    pub(super) fn has_work(self) -> bool {
        matches!(
            self,
            Standing::Done
                | Standing::Landing(_)
                | Standing::Conflict { .. }
                | Standing::Skipped { done: true }
        ) || self.is_stuck()
    }
}

/// What became of a task when its batch was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is on the batch's branch.
    Landed,
    /// It had been done before.
    Already,
    /// Its run brought nothing, and nothing says that there was nothing to do.
    NoChange,
    /// It has no result.
    Failed(Why),
    /// It has failed too often, over all batches.
    SetAside,
    /// What it depends on has no result.
    Skipped,
    /// The batch ended before it did.
    Left(Left),
}

/// How far a task had come when its batch ended before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// No run of it was ever started.
    NotStarted,
    /// A run was cut off, or is to be tried again.
    CutOff,
    /// It is done and kept in its lane.
    NotLanded,
}
