//! Errors of lanes, as plain data, and their hints.

pub(crate) mod broken_lane_error;
pub(crate) mod error;
pub(crate) mod error_hints;
pub(crate) mod location_error;
pub(crate) mod set_up_error;
pub(crate) mod snapshot_error;
pub(crate) mod symbolic_branch_error;
pub(crate) mod undo_error;
