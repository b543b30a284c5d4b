//! A project and the records of its lanes: names, locations, branches and settings.

pub(crate) mod broken_lane;
pub(crate) mod commit_graph;
pub(crate) mod expiry_item;
pub(crate) mod head_ownership;
pub(crate) mod lane_records;
pub(crate) mod location;
pub(crate) mod misplaced;
pub(crate) mod project;
pub(crate) mod shared_state;
pub(crate) mod symbolic_branch;
pub(crate) mod veto_hooks;
