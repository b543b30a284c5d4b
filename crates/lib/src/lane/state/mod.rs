//! State of a lane, from its records and from what runs.

pub mod conflict_validity;
pub mod crash_reason;
pub mod in_place_guard;
pub mod lane_state;
pub mod run_lock;
pub mod state_records;
