//! Messages to the main loop of a batch's process, from its threads or from a signal.

use proq_git::CommitId;
use proq_plan::schedule::event::ScheduleEvent;

use crate::swarm::batch::log::{EventFacts, TaskLanding};

/// Message to the main loop, from its threads or from a signal.
pub(super) enum RunnerEvent {
    /// A control request may be pending, or capacity may be free.
    Woken,
    /// The lock of a run is free: task and attempt.
    RunFinished(usize, u32),
    /// A landing has finished.
    LandingFinished(LandingResult),
    /// A landing of these tasks could not be tried for this reason; it is retried.
    LandingDelayed(Vec<usize>, String),
    /// The set-up of a lane has finished; the text is the reason if it failed.
    SetUpFinished(usize, Option<String>),
    /// A task's conflict was resolved or given up.
    ConflictFinished(usize, ScheduleEvent, Box<EventFacts>),
}

/// Result of one attempt to land an order: the tasks that landed, and those that cannot land.
#[derive(Default)]
pub(super) struct LandingResult {
    /// The tasks that are on the branch now, each with its commit.
    pub(super) landed_tasks: Vec<TaskLanding>,
    /// An event with the reason for each task that cannot land.
    pub(super) not_landed_events: Vec<(ScheduleEvent, EventFacts)>,
    /// Current tip of the branch.
    pub(super) tip: Option<CommitId>,
    /// The checks that succeeded before the tasks landed.
    pub(super) passed_checks: Vec<String>,
}
