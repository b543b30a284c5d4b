//! The MCP server: its tools and its instructions, for the agent of a lane or for the supervising agent.

use std::hash::RandomState;
use std::path::PathBuf;
use std::sync::Arc;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};
use rmcp::{ServerHandler, tool_handler};

/// MCP server for one agent. A call that changes something starts git-proq as a new process, so the command
/// line and the tools obey the same rules, and an agent that exits cuts nothing off half-way.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    /// Path of the git-proq program.
    pub(crate) program_path: PathBuf,
    /// Folder that the calls run in.
    pub(crate) dir: PathBuf,
    /// Hasher for plan tokens, keyed at random. A token of another server is not valid here.
    pub(crate) token_hasher: Arc<RandomState>,
    tools: ToolRouter<Server>,
    instructions: &'static str,
}

/// Instructions for the agent of a lane.
const LANE_INSTRUCTIONS: &str = "You work in a lane: a branch and a worktree of your own. Read its task with read_task. Report with \
                       update_task when you find something that others should know, when only a person can go on, and at \
                       the end.";

/// Instructions for the supervising agent.
const SUPERVISOR_INSTRUCTIONS: &str = "Lanes are branches with a worktree of their own, one for each coding agent. Inspect them with list, \
                      show, diff and matrix. Never edit files in a lane. Land with merge, whose first result is a plan.";

impl Server {
    /// Creates the server for the agent of the lane whose worktree is `dir`.
    pub(crate) fn with_task_tools(program_path: PathBuf, dir: PathBuf) -> Server {
        let (tools, instructions) = (Server::task_tools(), LANE_INSTRUCTIONS);
        Server { program_path, dir, token_hasher: Arc::default(), tools, instructions }
    }

    /// Creates the server for the agent that supervises all lanes of the repository at `dir`.
    pub(crate) fn with_lane_tools(program_path: PathBuf, dir: PathBuf) -> Server {
        let (tools, instructions) = (Server::lane_tools(), SUPERVISOR_INSTRUCTIONS);
        Server { program_path, dir, token_hasher: Arc::default(), tools, instructions }
    }
}

#[tool_handler(router = self.tools)]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("git-proq", env!("CARGO_PKG_VERSION")))
            .with_instructions(self.instructions)
    }
}
