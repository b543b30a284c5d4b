//! Owns the hidden command that takes automatic snapshots.

use std::io::Write;

use clap::Args;

use super::{Done, Session};
use crate::explain::Exit;
use crate::lane::{self, Project};
use crate::note::Listener;

/// Takes automatic snapshots while agents run. Started by a supervisor.
#[derive(Debug, Args)]
pub(crate) struct Snapshots {}

/// Nobody waits for it, so it recovers nothing and prints nothing.
pub(super) fn run(session: &Session, _args: &Snapshots) -> Done {
    crate::process::leave_session();
    let mut project = Project::open(&session.dir, Listener::silent())?;
    project.lasting = true;
    let mut waiting = true;
    lane::take_automatically(&project, || {
        // Whoever waited may be gone by now.
        if std::mem::take(&mut waiting) {
            let _ = writeln!(std::io::stdout());
        }
    })?;
    Ok(Exit::Done)
}
