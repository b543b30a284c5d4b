//! Plans of tasks: file formats, sources, dependencies and done marks.

pub mod dependency_graph;
pub mod done_marks;
pub mod lane_sharing;
pub mod plan;
pub mod plan_diff;
pub mod plan_error;
pub mod plan_format;
pub mod plan_source;
pub mod roadmap;
pub mod schedule;
pub mod source_file;
pub mod source_node;
pub mod stories;
pub mod table_schema;
pub mod task_folders;
pub mod task_status;
pub mod toml_plan;
pub mod yaml;
