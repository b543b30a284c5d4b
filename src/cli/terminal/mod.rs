//! Output to the terminal: lines, tables, usage figures and logs, free of control characters.

pub(crate) mod conflict_grid;
pub(crate) mod log_renderer;
pub(crate) mod log_sanitizer;
pub(crate) mod page;
pub(crate) mod prose;
pub(crate) mod reader;
pub(crate) mod table;
pub(crate) mod trace_output;
pub(crate) mod ui;
pub(crate) mod usage;
