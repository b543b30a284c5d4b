//! Lane of a batch, as the scheduler tracks it: its use, its tasks and its unlanded work.

/// Current use of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaneUse {
    /// The lane is being created and set up for this task.
    SettingUp(usize),
    /// Nothing runs in the lane.
    Idle,
    /// A run of this task is active.
    Running(usize),
    /// No more runs start in the lane: its work could not land, or it still has work although the batch no
    /// longer needs it.
    Retired,
    /// The lane has been removed.
    Removed,
}

/// A lane of the batch, as the scheduler tracks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledLane {
    /// Use of the lane at present: set-up, a run, none, retired or removed.
    pub(crate) current_use: LaneUse,
    /// The tasks that ran in the lane, in order.
    pub tasks: Vec<usize>,
    /// Total weight of the tasks that ran in the lane.
    pub load: u64,
    /// Overlap family of the lane's first task.
    pub family: usize,
    /// Number of updates of the batch's branch that the lane's work is based on.
    pub(crate) base_updates: u32,
    /// Number of the lane's tasks whose work has not landed.
    pub(crate) unlanded_task_count: usize,
    /// Number of the lane's tasks that are landing.
    pub(crate) landing_count: usize,
    /// The task of a failed run whose work is at the top of the lane.
    pub(crate) failed_task: Option<usize>,
    /// Whether [`Action::RetainLane`](super::action::Action::RetainLane) has been requested for the lane.
    pub(crate) retain_reported: bool,
}

impl ScheduledLane {
    /// Returns whether a run could start in the lane.
    pub fn is_free(&self) -> bool {
        self.current_use == LaneUse::Idle && self.landing_count == 0
    }

    /// Returns whether the lane can get runs, now or once its set-up or current run has ended.
    pub fn is_open(&self) -> bool {
        matches!(self.current_use, LaneUse::SettingUp(_) | LaneUse::Idle | LaneUse::Running(_))
            && self.landing_count == 0
    }
}
