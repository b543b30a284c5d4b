//! Owns how a batch is to be run.

use serde::{Deserialize, Serialize};

/// What lands together.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    /// Each task by itself, as soon as it is done; those that depend on it start from there.
    #[default]
    Continuous,
    /// All tasks whose dependencies landed with earlier waves; then the next wave starts.
    Waves,
    /// A phase; then the next phase starts. Inside of one, what depends on a task is done on top of it, in the same lane.
    Phases,
    /// The whole plan, which is done in one lane.
    OneLane,
}

impl Mode {
    /// By its name in settings; an unknown one is the usual.
    pub(crate) fn named(word: &str) -> Mode {
        match word {
            "waves" => Mode::Waves,
            "phases" => Mode::Phases,
            "one-lane" => Mode::OneLane,
            _ => Mode::Continuous,
        }
    }
}

/// In which lane a task is done whose files overlap with nobody's.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Spread {
    /// In one of its own, which only tasks with overlapping files use too.
    #[default]
    AffinityFirst,
    /// In the next of `max_parallel` lanes, in turn.
    RoundRobin,
    /// In that of `max_parallel` lanes which had the least work. The longest way to the plan's end goes first.
    LoadBalanced,
}

impl Spread {
    /// By its name in settings; an unknown one is the usual.
    pub(crate) fn named(word: &str) -> Spread {
        match word {
            "round-robin" => Spread::RoundRobin,
            "load-balanced" => Spread::LoadBalanced,
            _ => Spread::AffinityFirst,
        }
    }
}

/// What a failed task means for others.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TaskPolicy {
    /// What depends on it is skipped.
    #[default]
    SkipDependents,
    /// Nothing more is started; what runs ends and lands.
    StopWave,
    /// What runs is stopped, and nothing more lands.
    StopAll,
}

/// What it means that a task cannot land.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MergePolicy {
    /// The batch is paused.
    #[default]
    Pause,
    /// What runs is stopped, and nothing more lands.
    Abort,
}

/// How a batch is to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Options {
    /// What lands together.
    pub(crate) mode: Mode,
    /// Which lane a task is done in.
    pub(crate) spread: Spread,
    /// How many runs at once, at least one.
    pub(crate) max_parallel: usize,
    /// With how many failures, over all batches, a task is set aside.
    pub(crate) max_attempts: u32,
    /// What a failed task means for others.
    pub(crate) on_failure: TaskPolicy,
    /// What it means that a task cannot land.
    pub(crate) on_merge_failure: MergePolicy,
    /// Whether somebody is sent to resolve a conflict. Otherwise the task cannot land.
    pub(crate) resolve: bool,
    /// What the batch may cost, in billionths of a dollar.
    pub(crate) budget: Option<u64>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            mode: Mode::default(),
            spread: Spread::default(),
            max_parallel: 3,
            max_attempts: 3,
            on_failure: TaskPolicy::default(),
            on_merge_failure: MergePolicy::default(),
            resolve: true,
            budget: None,
        }
    }
}
