//! State of a lane, from its records and from what runs.

pub(crate) mod conflict_validity;
pub(crate) mod crash_reason;
pub(crate) mod in_place_guard;
pub(crate) mod lane_state;
