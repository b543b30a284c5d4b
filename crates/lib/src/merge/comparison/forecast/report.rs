//! Result of a forecast: the compared lanes, the skipped ones, and the outcome of each merge.

use proq_base::lane_name::LaneName;
use proq_git::merge::forecast::PathConflict;
use proq_git::status::diff::DiffStat;
use proq_git::{CommitId, TreeId};
use serde::Serialize;

/// Forecast outcome of one merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "result", rename_all = "lowercase")]
pub enum PairResult {
    /// The merge needs no manual work.
    Clean,
    /// The merge would conflict.
    Conflict {
        /// Conflicting paths.
        conflicts: Vec<PathConflict>,
    },
    /// The outcome could not be determined.
    Unknown {
        /// Reason why the outcome is unknown.
        #[serde(rename = "why")]
        reason: String,
    },
}

impl PairResult {
    /// Creates the outcome from the conflicting paths; an empty list is a clean merge.
    pub(crate) fn from_conflicts(conflicts: Vec<PathConflict>) -> PairResult {
        if conflicts.is_empty() { PairResult::Clean } else { PairResult::Conflict { conflicts } }
    }

    /// Returns whether the outcome is known.
    pub fn is_known(&self) -> bool {
        !matches!(self, PairResult::Unknown { .. })
    }

    /// Returns whether the merge would conflict.
    pub fn is_conflict(&self) -> bool {
        matches!(self, PairResult::Conflict { .. })
    }
}

/// Lane that was compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComparedLane {
    /// Name of the lane.
    pub lane: LaneName,
    /// Branch that the lane lands on.
    pub base: String,
    /// Tip of the lane's branch.
    pub tip: CommitId,
    /// Compared tree: the tree of the tip, or the tree that a commit of the uncommitted work would have.
    pub tree: TreeId,
    /// Number of commits that the base lacks.
    pub commits: usize,
    /// Number of uncommitted paths that the comparison includes.
    pub uncommitted: usize,
    /// Size of the difference between the common ancestor with the base and the tip; none if it was not
    /// requested, or not counted in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<DiffStat>,
    /// Reason why uncommitted work was not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Lane that was not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedLane {
    /// Name of the lane.
    pub lane: LaneName,
    /// Reason why it was skipped.
    #[serde(rename = "why")]
    pub reason: String,
}

/// Forecast of merging `theirs`, a lane, into `ours`, a base or another lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ForecastPair {
    /// Base of `theirs`, or another lane of the same base.
    pub ours: String,
    /// Name of the lane that would be merged.
    pub theirs: LaneName,
    /// Whether `ours` is the base.
    pub with_base: bool,
    /// Outcome of the merge.
    #[serde(flatten)]
    pub result: PairResult,
}

/// Forecast of all requested merges.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Forecast {
    /// Compared lanes, ordered by base and then by name.
    pub lanes: Vec<ComparedLane>,
    /// Lanes that were not compared.
    #[serde(rename = "left_out")]
    pub skipped: Vec<SkippedLane>,
    /// Forecasts of each lane with its base, and with every other lane of the same base.
    pub pairs: Vec<ForecastPair>,
}

impl Forecast {
    /// Returns the forecast of a lane with its base; none without one.
    #[must_use]
    pub fn base_result(&self, lane: &LaneName) -> Option<&PairResult> {
        let is_pair = |pair: &&ForecastPair| pair.with_base && pair.theirs == *lane;
        self.pairs.iter().find(is_pair).map(|pair| &pair.result)
    }

    /// Returns the lanes that a lane conflicts with. A lane that already conflicts with its base counts for none:
    /// every lane that contains the base has that same conflict, which is resolved with the base.
    #[must_use]
    pub fn conflicting_lanes(&self, lane: &LaneName) -> Vec<LaneName> {
        let conflicts = || self.pairs.iter().filter(|pair| pair.result.is_conflict());
        let conflicts_with_base = |name: &str| conflicts().any(|pair| pair.with_base && pair.theirs == *name);
        conflicts()
            .filter(|pair| !conflicts_with_base(&pair.ours) && !conflicts_with_base(pair.theirs.as_str()))
            .filter_map(|pair| LaneName::parse(pair.other_lane(lane)?).ok())
            .collect()
    }
}

impl ForecastPair {
    /// Returns the name of the lane that `lane` is paired with; none if the pair is with a base, or without `lane`.
    #[must_use]
    pub fn other_lane(&self, lane: &LaneName) -> Option<&str> {
        match (*lane == self.ours.as_str(), self.theirs == *lane) {
            _ if self.with_base => None,
            (true, _) => Some(self.theirs.as_str()),
            (_, true) => Some(&self.ours),
            _ => None,
        }
    }
}
