//! The hidden `_dispatch` command, which delivers events to hooks and notifiers.

use clap::Args;

use super::{CommandContext, CommandResult};
use crate::diagnostics::Listener;
use crate::event::{self, OpenedRepo};
use crate::explain::Exit;
use crate::lane::{self, Project};

/// Hands out events until none is due. Started by whoever wrote one.
#[derive(Debug, Args)]
pub(crate) struct Dispatch {}

/// Delivers all due events in a background process. The process recovers nothing and prints no messages,
/// because no user waits for it.
pub(super) fn run(session: &CommandContext, _args: &Dispatch) -> CommandResult {
    crate::process::start_session();
    let project = Project::open(&session.dir, Listener::silent())?;
    let result = event::dispatch(project.repo.common_dir(), &|| {
        let Project { repo, layers, settings, .. } = Project::open(&session.dir, Listener::silent())?;
        Ok::<_, lane::Error>(OpenedRepo { repo, layers, settings })
    });
    if let Err(e) = &result {
        event::log_hook(&project.store, "-", "events were not handed out", &e.to_string(), "");
    }
    Ok(result.map(|()| Exit::Success)?)
}
