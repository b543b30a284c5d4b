//! Records of an agent's run: its lock, report, leftovers, costs, and auto-merge.

pub mod auto_merge;
pub mod lane_costs;
pub mod leftovers;
pub mod report;
pub mod rewind;
pub mod run_lock;
