//! Owns the hidden command that follows a run: whom its lane is in the way of by now.

use clap::Args;

use super::{Done, Session};
use crate::explain::Exit;
use crate::lane::Project;
use crate::merge;
use crate::note::Listener;

/// Tells which lanes a lane conflicts with by now. Started by a supervisor when a run has ended.
#[derive(Debug, Args)]
pub(crate) struct Overlaps {
    /// The lane
    #[arg(long)]
    pub(crate) lane: String,
}

/// Nobody waits for it and nothing depends on it, so it puts nothing right and says nothing.
pub(super) fn run(session: &Session, args: &Overlaps) -> Done {
    crate::process::leave_session();
    let project = Project::open(&session.dir, Listener::silent())?;
    merge::look_for_overlaps(&project, &args.lane)?;
    Ok(Exit::Done)
}
