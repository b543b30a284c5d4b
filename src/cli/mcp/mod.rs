//! The `git proq mcp` command: tools for agents, each of which runs git-proq's own command line.

mod command;
mod command_line;
mod lane_tools;
mod merge_tool;
mod server;
mod task_tools;
mod tool_call;

pub(crate) use command::Mcp;
pub(super) use command::run;
pub(super) use lane_tools::TOOLS_WITHOUT_CONFIRMATION;
