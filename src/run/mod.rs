//! Records of an agent's run: its lock, report, leftovers, costs, and auto-merge.

pub(crate) mod auto_merge;
pub(crate) mod lane_costs;
pub(crate) mod leftovers;
pub(crate) mod report;
pub(crate) mod rewind;
pub(crate) mod run_lock;
