//! Owns the server: who it serves, which tools that one gets, and what it says about itself.

use std::hash::RandomState;
use std::path::PathBuf;
use std::sync::Arc;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::{ServerHandler, tool_handler};

/// Serves one agent. Each call starts this program once more, so that whatever holds for the command line holds here.
#[derive(Debug, Clone)]
pub(super) struct Server {
    /// This program.
    pub(super) exe: PathBuf,
    /// Where it acts.
    pub(super) dir: PathBuf,
    /// What tokens of dry runs are made with: those of another server are none here.
    pub(super) secret: Arc<RandomState>,
    tools: ToolRouter<Server>,
}

impl Server {
    /// For the agent of the lane that `dir` is the worktree of.
    pub(super) fn of_one_lane(exe: PathBuf, dir: PathBuf) -> Server {
        Server { exe, dir, secret: Arc::default(), tools: Server::task_tools() }
    }

    /// For the agent that supervises all lanes of the repository at `dir`.
    pub(super) fn of_all_lanes(exe: PathBuf, dir: PathBuf) -> Server {
        Server { exe, dir, secret: Arc::default(), tools: Server::lane_tools() }
    }
}

#[tool_handler(
    router = self.tools,
    name = "git-proq",
    instructions = "Lanes are branches with a worktree of their own, one for each coding agent. In a lane: read_task first, \
                    update_task when you found something, when only a person can go on, and at the end. As supervisor: look \
                    with list, show, diff and matrix; never edit files in a lane; land with merge, whose first answer is a \
                    plan."
)]
impl ServerHandler for Server {}
