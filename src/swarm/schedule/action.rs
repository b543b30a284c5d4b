//! Owns what is to be done for a batch.

use super::standing::Why;

/// What a run starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// The batch's branch, after so many landings.
    Landed(u32),
    /// The end of this task's work, in the same lane.
    Task(usize),
}

/// Why a batch is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PauseReason {
    /// A person asked for it.
    Asked,
    /// A task cannot land.
    Merge(usize),
    /// The batch has cost what it may cost.
    Budget,
}

/// How a batch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All tasks landed, or were done before.
    Complete,
    /// Each has come to an end, but not all landed.
    Partly,
    /// A failure ended it, as the policy has it.
    Stopped,
    /// A person ended it.
    Aborted,
}

/// Something that is to be done. What comes once more, after a death, is done already or is to be done now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Make a lane.
    MakeLane {
        /// The lane.
        lane: usize,
        /// The first task in it.
        task: usize,
        /// After so many landings.
        from: u32,
    },
    /// Set it up; told by [`Event::SetUp`](super::Event::SetUp) or its failure.
    SetUpLane {
        /// The lane.
        lane: usize,
    },
    /// A task could start, were there room.
    Queue {
        /// The task.
        task: usize,
    },
    /// Bring a lane to `from` and start a run there.
    StartRun {
        /// The task.
        task: usize,
        /// Where.
        lane: usize,
        /// Which of its runs this is; never given twice.
        attempt: u32,
        /// On top of what.
        from: Base,
    },
    /// Stop a run.
    StopRun {
        /// Its task.
        task: usize,
        /// Which of its runs.
        attempt: u32,
        /// At once.
        hard: bool,
    },
    /// Take a run's work off its lane, and keep it elsewhere.
    TakeBack {
        /// The lane.
        lane: usize,
        /// Whose work.
        task: usize,
        /// What is left.
        to: Base,
    },
    /// Land these, each by its own commits, in this order, together. Told of each by what became of it.
    Land {
        /// Which landing it is, from 0.
        landing: usize,
        /// The tasks.
        tasks: Vec<usize>,
    },
    /// Send somebody to resolve a task's conflict.
    Resolve {
        /// The task.
        task: usize,
    },
    /// Stop whoever resolves it; told by the conflict having been given up, or resolved.
    StopResolve {
        /// The task.
        task: usize,
        /// At once.
        hard: bool,
    },
    /// Other batches may have the task.
    Release {
        /// The task.
        task: usize,
    },
    /// Nothing in this lane is needed any more.
    DiscardLane {
        /// The lane.
        lane: usize,
    },
    /// There is work in this lane that has not landed. It stays.
    KeepLane {
        /// The lane.
        lane: usize,
    },
    /// Write that a task waits again that had been skipped or had failed.
    MarkWaiting {
        /// The task.
        task: usize,
    },
    /// Write that a task is skipped.
    MarkSkipped {
        /// The task.
        task: usize,
        /// On whose account.
        because: usize,
    },
    /// Write that a task has failed.
    MarkFailed {
        /// The task.
        task: usize,
        /// Why.
        why: Why,
    },
    /// Write that a task is left alone until a person asks for it.
    MarkSetAside {
        /// The task.
        task: usize,
    },
    /// Write that the batch is paused.
    MarkPaused {
        /// Why.
        why: PauseReason,
    },
    /// Write that the batch is over.
    MarkOver {
        /// How it ended.
        outcome: Outcome,
    },
}
