//! Owns the server: who it serves, which tools that one gets, and what it says about itself.

use std::hash::RandomState;
use std::path::PathBuf;
use std::sync::Arc;

use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};
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
    about: &'static str,
}

/// What an agent in a lane is told of the tools.
const IN_LANE: &str = "You work in a lane: a branch and a worktree of your own. Read its task with read_task. Report with \
                       update_task when you find something that others should know, when only a person can go on, and at \
                       the end.";

/// What the agent that supervises is told of them.
const OF_ALL: &str = "Lanes are branches with a worktree of their own, one for each coding agent. Look at them with list, \
                      show, diff and matrix. Never edit files in a lane. Land with merge, whose first answer is a plan.";

impl Server {
    /// For the agent of the lane that `dir` is the worktree of.
    pub(super) fn of_one_lane(exe: PathBuf, dir: PathBuf) -> Server {
        Server { exe, dir, secret: Arc::default(), tools: Server::task_tools(), about: IN_LANE }
    }

    /// For the agent that supervises all lanes of the repository at `dir`.
    pub(super) fn of_all_lanes(exe: PathBuf, dir: PathBuf) -> Server {
        Server { exe, dir, secret: Arc::default(), tools: Server::lane_tools(), about: OF_ALL }
    }
}

#[tool_handler(router = self.tools)]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("git-proq", env!("CARGO_PKG_VERSION")))
            .with_instructions(self.about)
    }
}
