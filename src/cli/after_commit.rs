//! The hidden `_moved` command, which runs after commits in a lane: it updates the lane's preview and reports
//! new overlaps.

use clap::Args;

use super::{CommandContext, CommandResult};
use crate::explain::Exit;
use crate::{agent, merge, preview};

/// Looks at the commits that a lane got. Started by the hook that runs after a commit.
#[derive(Debug, Args)]
pub(crate) struct Moved {
    /// The lane
    #[arg(long)]
    pub(crate) lane: String,
}

/// Updates the preview of a lane after new commits, and reports new overlaps of the lane. No process waits
/// for it and nothing depends on it. Only one such process runs per lane; it also handles commits that arrive
/// while it works.
pub(super) fn run(session: &CommandContext, args: &Moved) -> CommandResult {
    crate::process::start_session();
    let project = session.project_for_write()?;
    while let Some(lock) = agent::claim_new_commits(&project, &args.lane) {
        crate::fail_points::hit("moved.taken");
        // If an edit is in the way, the preview stays where it is. The user sees that in `list`.
        drop(preview::refresh_if_lane_advanced(&project, &args.lane));
        drop(merge::report_overlaps_of_lane(&project, &args.lane));
        drop(lock);
        if !agent::has_new_commits(&project, &args.lane) {
            break;
        }
    }
    Ok(Exit::Success)
}
