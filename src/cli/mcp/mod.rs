//! Owns `git proq mcp`: the tools that agents get, each of them a run of this program's own command line.

mod call;
mod command;
mod landing;
mod lane_tools;
mod server;
mod task_tools;
mod words;

pub(crate) use command::Mcp;
pub(super) use command::run;
pub(super) use lane_tools::UNASKED;
