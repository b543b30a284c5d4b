//! The hidden `_pane` command: the first process of a tmux window.

use clap::Args;

use super::{CommandContext, CommandResult};
use crate::agent;
use crate::diagnostics::Listener;
use crate::explain::Exit;
use crate::lane::Project;

/// Starts an agent on its terminal. Started by tmux for a supervisor, which says what to start.
#[derive(Debug, Args)]
pub(crate) struct Pane {
    /// The lane
    #[arg(long)]
    pub(crate) lane: String,
    /// The run
    #[arg(long)]
    pub(crate) attempt: u32,
}

pub(super) fn run(session: &CommandContext, args: &Pane) -> CommandResult {
    let project = Project::open(&session.dir, Listener::silent())?;
    agent::run_pane_process(&project, &args.lane, args.attempt)?;
    Ok(Exit::Success)
}
