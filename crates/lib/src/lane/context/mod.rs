//! A project and the records of its lanes: names, locations, branches and settings.

pub mod broken_lane;
pub mod commit_graph;
pub mod expiry_item;
pub mod head_ownership;
pub mod lane_events;
pub mod lane_records;
pub mod location;
pub mod misplaced;
pub mod shared_state;
pub mod symbolic_branch;
pub mod veto_hooks;
