//! Merges of trees in memory, conflict forecasts, picks and patch ids.

mod changed_lines;
pub mod equivalent_changes;
pub mod exact_merge;
pub mod forecast;
pub mod git_forecast;
pub mod merge_drivers;
pub mod merge_rules;
pub mod patch_id;
pub mod pick;
pub mod resolve;
pub mod text_merge;
pub mod tree_merge;
pub mod uncommitted;
