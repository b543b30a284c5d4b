//! Errors of lanes, as plain data, and their hints.

pub mod broken_lane_error;
pub mod error;
pub mod lane_lookup_error;
pub mod location_error;
pub mod removed_lane;
pub mod rename_error;
pub mod set_up_error;
pub mod snapshot_error;
pub mod symbolic_branch_error;
pub mod undo_error;

pub use crate::errors::error::Error;
