//! Owns starting the process that takes automatic snapshots while agents run.

use std::path::Path;

use crate::lane::Project;
use crate::process::{OF_A_RUN, Start};
use crate::store::LockName;

/// Starts it unless one runs, or the setting `snapshot.interval` is 0. `exe` is this program. Nothing that goes wrong with this
/// is a reason to disturb a run.
pub(super) fn ensure_running(project: &Project, exe: &Path) {
    let is_held = project.store.locks().is_held(&LockName::Snapshots).unwrap_or(true);
    if project.settings.snapshot_interval.is_none() || is_held {
        return;
    }
    let start = Start::new(exe, project.repo.home()).args(["_snapshots"]);
    drop(start.without(OF_A_RUN).spawn_detached());
}
