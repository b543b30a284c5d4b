//! Merges of trees in memory, conflict forecasts, picks and patch ids.

pub(crate) mod equivalent_changes;
pub(crate) mod exact_merge;
pub(crate) mod forecast;
pub(crate) mod git_forecast;
pub(crate) mod merge_drivers;
pub(crate) mod merge_rules;
pub(crate) mod patch_id;
pub(crate) mod pick;
pub(crate) mod resolve;
pub(crate) mod text_merge;
pub(crate) mod tree_merge;
pub(crate) mod uncommitted;
