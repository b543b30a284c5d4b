//! Rows of lanes: what a list has of each, and everything about one of them.

pub mod auto_merge_outlook;
pub mod lane_conflicts;
pub mod lane_details;
pub mod lane_list;
pub mod list_output;
pub mod load_list;
pub mod run_prompt;
pub mod show_output;
