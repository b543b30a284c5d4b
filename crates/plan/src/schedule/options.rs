//! Options with which a batch runs.

use proq_base::money::NanoDollars;
use serde::{Deserialize, Serialize};

/// Unit in which the tasks of a batch land.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LandingMode {
    /// Each task lands alone as soon as it is done; its dependents start from there.
    #[default]
    Continuous,
    /// All tasks whose dependencies landed with earlier waves land together; then the next wave starts.
    Waves,
    /// Each phase lands together; then the next phase starts. Inside a phase, a dependent runs on top of its
    /// dependency, in the same lane.
    Phases,
    /// The entire plan runs in one lane and lands together.
    OneLane,
}

impl LandingMode {
    /// Returns the mode with this name in the settings; [`LandingMode::Continuous`] for an unknown name.
    pub fn from_setting(value: &str) -> LandingMode {
        match value {
            "waves" => LandingMode::Waves,
            "phases" => LandingMode::Phases,
            "one-lane" => LandingMode::OneLane,
            _ => LandingMode::Continuous,
        }
    }
}

/// Strategy by which a task gets a lane, where its files overlap with no other task's.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LaneAssignment {
    /// A separate lane, shared only with tasks whose files overlap.
    #[default]
    AffinityFirst,
    /// The next of `max_parallel` lanes, in turn.
    RoundRobin,
    /// The one of `max_parallel` lanes with the least work so far. Tasks on the longest path to the end of
    /// the plan start first.
    LoadBalanced,
}

impl LaneAssignment {
    /// Returns the strategy with this name in the settings; [`LaneAssignment::AffinityFirst`] for an unknown
    /// name.
    pub fn from_setting(value: &str) -> LaneAssignment {
        match value {
            "round-robin" => LaneAssignment::RoundRobin,
            "load-balanced" => LaneAssignment::LoadBalanced,
            _ => LaneAssignment::AffinityFirst,
        }
    }
}

/// Effect of a failed task on the other tasks.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskFailurePolicy {
    /// The dependents of the task are skipped.
    #[default]
    SkipDependents,
    /// Nothing new starts; running tasks finish and land.
    StopWave,
    /// Running agents are stopped, and nothing more lands.
    StopAll,
}

impl TaskFailurePolicy {
    /// Returns the policy with this name in the settings; [`TaskFailurePolicy::SkipDependents`] for an unknown
    /// name.
    pub fn from_setting(value: &str) -> TaskFailurePolicy {
        match value {
            "stop-wave" => TaskFailurePolicy::StopWave,
            "stop-all" => TaskFailurePolicy::StopAll,
            _ => TaskFailurePolicy::SkipDependents,
        }
    }
}

/// Effect of a task that cannot land on the batch.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LandingFailurePolicy {
    /// The batch is paused: nothing new starts, and running tasks finish and land.
    #[default]
    Pause,
    /// Running agents are stopped, and nothing more lands.
    Abort,
}

impl LandingFailurePolicy {
    /// Returns the policy with this name in the settings; [`LandingFailurePolicy::Pause`] for an unknown name.
    pub fn from_setting(value: &str) -> LandingFailurePolicy {
        match value {
            "abort" => LandingFailurePolicy::Abort,
            _ => LandingFailurePolicy::Pause,
        }
    }
}

/// Options with which a batch runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BatchOptions {
    /// Unit in which tasks land.
    pub mode: LandingMode,
    /// Strategy by which tasks get their lanes.
    #[serde(rename = "spread")]
    pub lane_assignment: LaneAssignment,
    /// Maximum number of concurrent runs; 0 counts as 1.
    pub max_parallel: usize,
    /// Number of failures, over all batches, with which a task is set aside; 0 counts as 1.
    pub max_attempts: u32,
    /// Effect of a failed task on the other tasks.
    pub on_failure: TaskFailurePolicy,
    /// Effect of a task that cannot land.
    pub on_merge_failure: LandingFailurePolicy,
    /// Whether an agent is started to resolve a conflict. Otherwise the task cannot land.
    #[serde(rename = "resolve")]
    pub resolve_conflicts: bool,
    /// Budget of the batch; none for no limit.
    pub budget: Option<NanoDollars>,
}

impl Default for BatchOptions {
    fn default() -> BatchOptions {
        BatchOptions {
            mode: LandingMode::default(),
            lane_assignment: LaneAssignment::default(),
            max_parallel: 3,
            max_attempts: 3,
            on_failure: TaskFailurePolicy::default(),
            on_merge_failure: LandingFailurePolicy::default(),
            resolve_conflicts: true,
            budget: None,
        }
    }
}
