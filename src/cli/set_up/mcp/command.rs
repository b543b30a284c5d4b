//! Arguments of `git proq mcp`, and the server loop, which runs until the agent closes its end.

use clap::Args;
use proq_base::explain::Exit;
use rmcp::ServiceExt;

use super::server::Server;
use crate::cli::invocation::caller;
use crate::cli::invocation::context::{CommandContext, CommandResult};
use crate::cli::invocation::failure::Failure;
use crate::cli::invocation::program_path::require_program_path;
use crate::cli::invocation::usage_error::UsageError;

/// Serve tools to an agent over MCP (stdin and stdout)
///
/// In a lane, the tools are read_task and update_task. The worktree in which the server was started
/// determines the lane, never an argument. Outside of a lane, the tools return an error.
///
/// With --supervisor, an agent outside of the lanes gets list, show, diff, matrix, spawn, send, stop,
/// preview and merge, which do the same as the commands. A merge lands only what a dry run before it
/// showed.
///
/// Examples:
///     git proq mcp
///     git proq mcp --supervisor
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Mcp {
    /// Serve the tools for an agent that supervises all lanes
    #[arg(long)]
    pub(crate) supervisor: bool,
}

pub(crate) fn run(context: &CommandContext, args: &Mcp) -> CommandResult {
    let program_path = require_program_path()?;
    let server = if args.supervisor {
        let project = context.project()?;
        caller::refuse_in_lane(context, &project)?;
        Server::with_lane_tools(program_path, project.repo.command_dir().to_owned())
    } else {
        // Each call checks whether this is a lane, not the start: an agent may have this server configured
        // everywhere.
        Server::with_task_tools(program_path, context.dir.clone())
    };
    let failed = |reason: String| Failure::from(UsageError::McpServerFailed { reason });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| failed(e.to_string()))?;
    let result = runtime.block_on(async {
        let running = server.serve(rmcp::transport::stdio()).await.map_err(|e| e.to_string())?;
        running.waiting().await.map(drop).map_err(|e| e.to_string())
    });
    // A pending read of standard input cannot be canceled.
    runtime.shutdown_background();
    result.map(|()| Exit::Success).map_err(failed)
}
