//! The hidden `_overlaps` command, which runs after a run: it reports which lanes the lane conflicts with.

use clap::Args;

use super::{CommandContext, CommandResult};
use crate::diagnostics::Listener;
use crate::explain::Exit;
use crate::lane::Project;
use crate::merge;

/// Tells which lanes a lane conflicts with by now. Started by a supervisor when a run has ended.
#[derive(Debug, Args)]
pub(crate) struct Overlaps {
    /// The lane
    #[arg(long)]
    pub(crate) lane: String,
}

/// Reports the overlaps of a lane. No process waits for it and nothing depends on it, so it recovers nothing
/// and prints nothing.
pub(super) fn run(session: &CommandContext, args: &Overlaps) -> CommandResult {
    crate::process::start_session();
    let project = Project::open(&session.dir, Listener::silent())?;
    merge::report_overlaps_of_lane(&project, &args.lane)?;
    Ok(Exit::Success)
}
