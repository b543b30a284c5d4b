//! Owns the hidden command that a supervisor is.

use std::ffi::OsString;

use clap::Args;

use super::{Done, Session};
use crate::agent;
use crate::explain::Exit;

/// Watches one run. Started by `spawn`, with the lane's run lock on standard input.
#[derive(Debug, Args)]
pub(crate) struct Supervise {
    /// The lane
    #[arg(long)]
    pub(crate) lane: String,
    /// The run
    #[arg(long)]
    pub(crate) attempt: u32,
    /// The agent's command line
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
}

pub(super) fn run(session: &Session, args: Supervise) -> Done {
    // Whoever has started it listens until its agent runs, and is not to guess why it does not.
    supervise(session, args).inspect_err(|e| agent::answer_not_begun(&*e.0))
}

fn supervise(session: &Session, args: Supervise) -> Done {
    let mut project = session.project()?;
    project.lasting = true;
    let exe = super::resolve::this_program()?;
    agent::supervise(&project, &args.lane, args.attempt, args.command, &exe)?;
    Ok(Exit::Done)
}
