//! A lane that a use case removes or retains.

use proq_base::lane_name::LaneName;
use proq_store::records::lane::{AnyLane, LanePurpose};
use serde::Serialize;

use crate::lane::removal::remove_lane::RemovedLane;
use crate::ops::error::Error;

/// A lane that was removed, would be removed or is retained, as a row of the JSON output.
#[derive(Debug, Serialize)]
pub struct LaneRemoval {
    /// Name of the lane.
    pub lane: LaneName,
    /// Whether the lane has been removed.
    pub removed: bool,
    /// Name of the removed lane in the history: `name@N`.
    #[serde(rename = "history", skip_serializing_if = "Option::is_none")]
    pub history_name: Option<String>,
    /// Ref that keeps unlanded commits of the lane.
    #[serde(rename = "saved", skip_serializing_if = "Option::is_none")]
    pub saved_ref: Option<String>,
    /// Id of the snapshot of uncommitted changes.
    #[serde(rename = "uncommitted", skip_serializing_if = "Option::is_none")]
    pub uncommitted_snapshot: Option<String>,
    /// Path of the lane's entry in the trash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trash: Option<String>,
    /// Number of messages that never reached the lane's agent.
    #[serde(rename = "untold", skip_serializing_if = "Option::is_none")]
    pub unsent_messages: Option<usize>,
    /// Why the lane was retained; in a forecast, what would be saved before the removal.
    #[serde(rename = "why", skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// What the removal saved; none for a lane without a branch of its own.
    #[serde(skip)]
    pub contents: Option<RemovedLane>,
    /// Purpose of the lane if it has no branch of its own. Its records stay in the history.
    #[serde(skip)]
    pub purpose: Option<LanePurpose>,
    /// Whether the lane's agent would be stopped before the removal.
    #[serde(skip)]
    pub stops_agent: bool,
    /// Why the lane was or would be retained.
    #[serde(skip)]
    pub error: Option<Error>,
    /// Whether the error is a failure of the command, rather than the purpose of it.
    #[serde(skip)]
    pub is_failure: bool,
}

impl LaneRemoval {
    /// Creates the row of a lane of which nothing is known yet.
    pub(super) fn new(lane: &AnyLane) -> LaneRemoval {
        LaneRemoval {
            lane: lane.name.clone(),
            removed: false,
            history_name: None,
            saved_ref: None,
            uncommitted_snapshot: None,
            trash: None,
            unsent_messages: None,
            reasons: Vec::new(),
            contents: None,
            purpose: lane.purpose(),
            stops_agent: false,
            error: None,
            is_failure: false,
        }
    }
}
