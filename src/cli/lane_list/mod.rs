//! The lanes of a repository as a list: its data, and their output as a table and as JSON.

mod conflicts;
mod data;
mod json_output;
mod load;
mod painter;
mod summary;
mod table;

pub(super) use conflicts::LaneConflicts;
pub(super) use data::{LaneList, missing_parts};
pub(super) use json_output::to_output;
pub(super) use load::load_list;
pub(super) use painter::ListPainter;
pub(super) use summary::{lane_briefs, list_json, list_table};
pub(super) use table::render_table;
