//! Start of the background process that takes automatic snapshots while agents run.

use std::convert::Infallible;
use std::ffi::OsString;
use std::os::fd::AsFd;

use proq_base::process::command_builder::CommandBuilder;
use proq_base::process::strays::{RUN_CONTEXT_VARS, RUN_MARK_VAR};
use proq_store::Store;
use proq_store::locks::lock::LockName;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::lane::Project;
use crate::snapshot::auto_snapshot::is_any_agent_running;

/// Maximum time that a run waits for the first snapshots.
const FIRST_SNAPSHOT_TIMEOUT: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// Starts the snapshot process unless one runs or the setting `snapshot.interval` is 0, and waits until it
/// has taken the first snapshots: an agent may delete files as soon as it starts. Failures are ignored, since
/// they are no reason to disturb a run.
pub(crate) fn ensure_running(project: &Project) {
    if project.settings.snapshot_interval.is_none() || is_running(&project.store) {
        return;
    }
    let Ok(program_path) = project.git_proq_path() else { return };
    let command = CommandBuilder::new(program_path, project.repo.command_dir())
        .args(["_snapshots"])
        .without_vars(RUN_CONTEXT_VARS);
    let Ok(mut child) = command.env(RUN_MARK_VAR, OsString::new()).spawn_detached_piped() else { return };
    let Some(output) = child.stdout.take() else { return };
    // The process writes a line after the first snapshots. If it exits before that, the pipe is closed.
    let _ =
        poll(&mut [PollFd::from_borrowed_fd(output.as_fd(), PollFlags::IN)], Some(&FIRST_SNAPSHOT_TIMEOUT));
}

fn is_running(store: &Store) -> bool {
    store.locks().is_held(&LockName::Snapshots).unwrap_or(true)
}

/// Restarts the snapshot process whenever it was killed, since it does not exit while agents are running. The
/// check runs once per snapshot interval.
pub(crate) async fn keep_running(project: &Project) -> Infallible {
    let Some(interval) = project.settings.snapshot_interval else { return std::future::pending().await };
    loop {
        tokio::time::sleep(interval).await;
        if !is_running(&project.store) && is_any_agent_running(project).unwrap_or(false) {
            ensure_running(project);
        }
    }
}
