//! Records of an agent's run: its report, leftovers, costs, and auto-merge.

pub mod auto_merge;
pub mod lane_costs;
pub mod leftovers;
pub mod report;
pub mod rewind;
