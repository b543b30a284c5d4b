//! Owns the hidden command that follows a commit in a lane: a preview of it keeps up, and whom it is in the way of is told.

use clap::Args;

use super::{Done, Session};
use crate::explain::Exit;
use crate::{agent, merge, preview};

/// Looks at the commits that a lane got. Started by the hook that runs after a commit.
#[derive(Debug, Args)]
pub(crate) struct Moved {
    /// The lane
    #[arg(long)]
    pub(crate) lane: String,
}

/// Nobody waits for it and nothing depends on it. One at a time; what comes meanwhile is looked at before it ends.
pub(super) fn run(session: &Session, args: &Moved) -> Done {
    crate::process::leave_session();
    let project = session.project_to_change()?;
    while let Some(lock) = agent::take_up(&project, &args.lane) {
        crate::fault::point("moved.taken");
        // An edit in the way leaves the preview where it is; the user sees that in `list`.
        drop(preview::keep_up(&project, &args.lane));
        drop(merge::look_for_overlaps(&project, &args.lane));
        drop(lock);
        if !agent::has_moved(&project, &args.lane) {
            break;
        }
    }
    Ok(Exit::Done)
}
