//! Discard of lanes, which are named.

use proq_store::records::lane::AnyLane;

use super::removal::RemovalPlan;
use crate::lane::removal::remove_lane::RemovalReason;

/// Lanes to discard.
#[derive(Debug, Clone, Default)]
pub struct DiscardRequest {
    /// The lanes, in order.
    pub lanes: Vec<AnyLane>,
    /// Whether work in them is saved and their agents are stopped first, instead of refusing.
    pub force: bool,
}

/// Plans the removal of the lanes.
#[must_use]
pub fn plan(request: &DiscardRequest) -> RemovalPlan {
    RemovalPlan {
        operation: "discard",
        lanes: request.lanes.clone(),
        reason: RemovalReason::Discard,
        force: request.force,
        stop_agents: request.force,
        are_named: true,
    }
}
