//! Plans of tasks: file formats, sources, dependencies and done marks.

pub(crate) mod dependency_graph;
pub(crate) mod done_marks;
pub(crate) mod lane_sharing;
pub(crate) mod plan;
pub(crate) mod plan_diff;
pub(crate) mod plan_error;
pub(crate) mod plan_format;
pub(crate) mod plan_source;
pub(crate) mod roadmap;
pub(crate) mod source_file;
pub(crate) mod source_node;
pub(crate) mod stories;
pub(crate) mod table_schema;
pub(crate) mod task_folders;
pub(crate) mod toml_plan;
pub(crate) mod yaml;
