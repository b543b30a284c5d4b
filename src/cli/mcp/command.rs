//! Owns the arguments of `git proq mcp`, and serving until the agent closes its end.

use clap::Args;
use rmcp::ServiceExt;

use super::server::Server;
use crate::cli::{Done, Failure, Mistake, Session, identity, resolve};
use crate::explain::Exit;

/// Serve an agent tools over MCP, on standard input and output
///
/// In a lane they are read_task and update_task. Which lane it is goes by the worktree that the server was started in, never
/// by what an agent says. Outside of a lane they answer with an error.
///
/// With --supervisor, an agent outside of the lanes gets list, show, diff, matrix, spawn, send, stop, preview and merge, each
/// of them what the command of that name does. A merge lands only what a dry run before it has shown.
///
/// Examples:
///     git proq mcp
///     git proq mcp --supervisor
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Mcp {
    /// Tools for the agent that supervises all lanes
    #[arg(long)]
    pub(crate) supervisor: bool,
}

pub(crate) fn run(session: &Session, args: &Mcp) -> Done {
    let exe = resolve::this_program()?;
    let server = if args.supervisor {
        let project = session.project()?;
        identity::refuse_in_lane(session, &project)?;
        Server::of_all_lanes(exe, project.repo.home().to_owned())
    } else {
        // Whether this is a lane is looked at when something is asked: an agent may have this server configured everywhere.
        Server::of_one_lane(exe, session.dir.clone())
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| failed(&e))?;
    let served = runtime.block_on(async {
        let running = server.serve(rmcp::transport::stdio()).await.map_err(|e| e.to_string())?;
        running.waiting().await.map(drop).map_err(|e| e.to_string())
    });
    // A read of standard input that is under way cannot be called off.
    runtime.shutdown_background();
    match served {
        Ok(()) => Ok(Exit::Done),
        Err(why) => Err(Mistake::Mcp { why }.into()),
    }
}

fn failed(e: &std::io::Error) -> Failure {
    Mistake::Mcp { why: e.to_string() }.into()
}
