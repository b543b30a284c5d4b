//! Owns starting the process that takes automatic snapshots while agents run.

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::lane::Project;
use crate::process::{MARK, OF_A_RUN, Start};
use crate::store::LockName;

/// How long a run waits for the first snapshots at most.
const PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// Starts it unless one runs, or the setting `snapshot.interval` is 0, and waits until the first snapshots are taken: an agent
/// may delete something as soon as it starts. `exe` is this program. Nothing that goes wrong with this is a reason to disturb a run.
pub(super) fn ensure_running(project: &Project, exe: &Path) {
    let is_held = project.store.locks().is_held(&LockName::Snapshots).unwrap_or(true);
    if project.settings.snapshot_interval.is_none() || is_held {
        return;
    }
    let start = Start::new(exe, project.repo.home()).args(["_snapshots"]).without(OF_A_RUN);
    let Ok(mut child) = start.env(MARK, OsString::new()).spawn_talking() else { return };
    let Some(output) = child.stdout.take() else { return };
    // It writes a line after the first snapshots; when it ends before that, the pipe is closed.
    let _ = poll(&mut [PollFd::from_borrowed_fd(output.as_fd(), PollFlags::IN)], Some(&PATIENCE));
}
