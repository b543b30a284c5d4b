//! The hidden `_supervise` command: the supervisor process of one run.

use std::ffi::OsString;

use clap::Args;

use super::{CommandContext, CommandResult};
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

pub(super) fn run(session: &CommandContext, args: Supervise) -> CommandResult {
    // The starting process waits until the agent runs: send it the error, so that it need not guess.
    supervise(session, args).inspect_err(|e| agent::report_start_failure(&*e.0))
}

fn supervise(session: &CommandContext, args: Supervise) -> CommandResult {
    let mut project = session.project()?;
    project.is_long_lived = true;
    let program_path = super::resolve::current_program_path()?;
    agent::supervise(&project, &args.lane, args.attempt, args.command, &program_path)?;
    Ok(Exit::Success)
}
