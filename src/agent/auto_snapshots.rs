//! Owns starting the process that takes automatic snapshots while agents run.

use std::convert::Infallible;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::lane::{Project, agents_are_at_work};
use crate::process::{MARK, OF_A_RUN, Start};
use crate::store::LockName;

/// How long a run waits for the first snapshots at most.
const PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// Starts it unless one runs, or the setting `snapshot.interval` is 0, and waits until the first snapshots are taken: an agent
/// may delete something as soon as it starts. `exe` is this program. Nothing that goes wrong with this is a reason to disturb a run.
pub(super) fn ensure_running(project: &Project, exe: &Path) {
    if project.settings.snapshot_interval.is_none() || is_running(project) {
        return;
    }
    let start = Start::new(exe, project.repo.home()).args(["_snapshots"]).without(OF_A_RUN);
    let Ok(mut child) = start.env(MARK, OsString::new()).spawn_talking() else { return };
    let Some(output) = child.stdout.take() else { return };
    // It writes a line after the first snapshots; when it ends before that, the pipe is closed.
    let _ = poll(&mut [PollFd::from_borrowed_fd(output.as_fd(), PollFlags::IN)], Some(&PATIENCE));
}

fn is_running(project: &Project) -> bool {
    project.store.locks().is_held(&LockName::Snapshots).unwrap_or(true)
}

/// Starts it again whenever it was killed: while agents are at work it does not end. It is looked for as often as snapshots are taken.
pub(super) async fn keep_running(project: &Project, exe: &Path) -> Infallible {
    let Some(interval) = project.settings.snapshot_interval else { return std::future::pending().await };
    loop {
        tokio::time::sleep(interval).await;
        if !is_running(project) && agents_are_at_work(project).unwrap_or(false) {
            ensure_running(project, exe);
        }
    }
}
