//! Owns the hidden command that the first process of a window is.

use clap::Args;

use super::{Done, Session};
use crate::agent;
use crate::explain::Exit;
use crate::lane::Project;
use crate::note::Listener;

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

pub(super) fn run(session: &Session, args: &Pane) -> Done {
    let project = Project::open(&session.dir, Listener::silent())?;
    agent::inhabit(&project, &args.lane, args.attempt)?;
    Ok(Exit::Done)
}
