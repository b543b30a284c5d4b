//! Lanes that a landing will land or refuse, shown to the user before anything moves.

use serde::Serialize;

use super::eligibility::ClassifiedLanes;
use crate::store::records::MergeStrategy;

/// Lanes that a landing will land or refuse, shown to the user before anything moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LandingPlan {
    /// Strategy by which lanes land.
    pub(crate) strategy: MergeStrategy,
    /// Requested lanes: first those that will land, then the refused ones.
    pub(crate) lanes: Vec<PlannedLane>,
}

/// Entry of one lane in the plan of a landing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct PlannedLane {
    pub(crate) lane: String,
    /// Branch that the lane lands on.
    pub(crate) onto: String,
    /// Number of commits that the base lacks, and number of files that they change; none if the lane will not
    /// land.
    pub(crate) size: Option<(usize, usize)>,
    /// Reason why the lane will not land.
    #[serde(rename = "why")]
    pub(crate) reason: Option<String>,
}

impl LandingPlan {
    pub(super) fn from_lanes(strategy: MergeStrategy, sorted_lanes: &ClassifiedLanes) -> LandingPlan {
        let to_land = sorted_lanes.eligible.iter().map(|c| PlannedLane {
            lane: c.lane.name.clone(),
            onto: c.onto.clone(),
            size: Some((c.commits, c.files)),
            reason: None,
        });
        let refused = sorted_lanes.refused.iter().map(|o| PlannedLane {
            lane: o.lane.clone(),
            onto: o.onto.clone(),
            size: None,
            reason: Some(o.message.clone().unwrap_or_else(|| format!("all of it is on {} already", o.onto))),
        });
        LandingPlan { strategy, lanes: to_land.chain(refused).collect() }
    }
}
