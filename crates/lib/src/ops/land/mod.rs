//! Landing of lanes, and resolution of their conflicts.

pub mod auto_merge;
pub mod merge;
pub mod pick;
pub mod resolve;
pub mod waiting_merges;
