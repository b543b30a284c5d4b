//! The `git proq mcp` command: tools for agents, which read in process and act by git-proq's own command
//! line.

pub(crate) mod command;
pub(crate) mod command_line;
pub(crate) mod in_process;
pub(crate) mod lane_tools;
pub(crate) mod merge_tool;
pub(crate) mod server;
pub(crate) mod task_tools;
pub(crate) mod tool_call;
