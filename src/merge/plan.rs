//! Plan of a landing, shown to the user before anything moves.

use serde::Serialize;

use super::eligibility::SortedLanes;
use crate::store::records::MergeStrategy;

/// Plan of a landing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LandingPlan {
    /// Strategy by which lanes land.
    pub(crate) strategy: MergeStrategy,
    /// Requested lanes and what is planned for each.
    pub(crate) lanes: Vec<PlanLine>,
}

/// One lane of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct PlanLine {
    pub(crate) lane: String,
    /// Branch that the lane lands on.
    pub(crate) onto: String,
    /// Number of commits that the base lacks, and number of files that they change; none if the lane is not
    /// to land.
    pub(crate) size: Option<(usize, usize)>,
    /// Reason why it is not to land.
    #[serde(rename = "why")]
    pub(crate) reason: Option<String>,
}

impl LandingPlan {
    pub(super) fn from_lanes(strategy: MergeStrategy, sorted_lanes: &SortedLanes) -> LandingPlan {
        let to_land = sorted_lanes.eligible.iter().map(|c| PlanLine {
            lane: c.lane.name.clone(),
            onto: c.onto.clone(),
            size: Some((c.commits, c.files)),
            reason: None,
        });
        let refused = sorted_lanes.refused.iter().map(|o| PlanLine {
            lane: o.lane.clone(),
            onto: o.onto.clone(),
            size: None,
            reason: Some(o.message.clone().unwrap_or_else(|| format!("all of it is on {} already", o.onto))),
        });
        LandingPlan { strategy, lanes: to_land.chain(refused).collect() }
    }
}
