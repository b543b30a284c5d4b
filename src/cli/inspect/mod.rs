//! Commands that show lanes: list, show, diff, logs, preview, matrix, compare, events.

pub(crate) mod agent_report;
pub(crate) mod compare;
pub(crate) mod comparison_table;
pub(crate) mod diff;
pub(crate) mod events;
pub(crate) mod first_steps;
pub(crate) mod lane_diff;
pub(crate) mod lane_list;
pub(crate) mod list;
pub(crate) mod list_everywhere;
pub(crate) mod logs;
pub(crate) mod matrix;
pub(crate) mod preview;
pub(crate) mod repository_status;
pub(crate) mod show;
pub(crate) mod show_prompt;
pub(crate) mod statusline;
