//! The hidden `_snapshots` command, which takes automatic snapshots.

use std::io::Write;

use clap::Args;

use super::{CommandContext, CommandResult};
use crate::diagnostics::Listener;
use crate::explain::Exit;
use crate::lane::{self, Project};

/// Takes automatic snapshots while agents run. Started by a supervisor.
#[derive(Debug, Args)]
pub(crate) struct Snapshots {}

/// Takes automatic snapshots in a background process. The process recovers nothing and prints no messages,
/// because no user waits for it.
pub(super) fn run(session: &CommandContext, _args: &Snapshots) -> CommandResult {
    crate::process::start_session();
    let mut project = Project::open(&session.dir, Listener::silent())?;
    project.is_long_lived = true;
    let mut is_parent_waiting = true;
    lane::run_auto_snapshots(&project, || {
        // The parent that waited for this line may have exited already.
        if std::mem::take(&mut is_parent_waiting) {
            let _ = writeln!(std::io::stdout());
        }
    })?;
    Ok(Exit::Success)
}
