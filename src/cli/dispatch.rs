//! Owns the hidden command that hands out events: to hooks and to notifiers.

use clap::Args;

use super::{Done, Session};
use crate::event::{self, Current};
use crate::explain::Exit;
use crate::lane::{self, Project};
use crate::note::Listener;

/// Hands out events until none is due. Started by whoever wrote one.
#[derive(Debug, Args)]
pub(crate) struct Dispatch {}

/// Nobody waits for it, so it puts nothing right and says nothing.
pub(super) fn run(session: &Session, _args: &Dispatch) -> Done {
    crate::process::leave_session();
    let project = Project::open(&session.dir, Listener::silent())?;
    let done = event::dispatch(project.repo.common_dir(), &|| {
        let Project { repo, layers, settings, .. } = Project::open(&session.dir, Listener::silent())?;
        Ok::<_, lane::Error>(Current { repo, layers, settings })
    });
    if let Err(e) = &done {
        event::log_hook(&project.store, "-", "events were not handed out", &e.to_string(), "");
    }
    Ok(done.map(|()| Exit::Done)?)
}
