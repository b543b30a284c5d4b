//! Owns what follows a commit in a lane: an event, and another process of this program that looks what it means for others.

use std::path::Path;

use super::hook::Hook;
use crate::event::Name;
use crate::lane::Project;
use crate::note::Listener;
use crate::process::{OF_A_RUN, Start};
use crate::store::records::{LaneRecord, PreviewRecord};
use crate::store::{Guard, LockName, Record, write_cache};

/// How much of a commit's subject is told.
const SUBJECT: usize = 72;

/// A commit that an agent made. Nothing that goes wrong with this is a reason to disturb the commit.
pub(super) fn by_agent(dir: &Path, hook: &Hook<'_>) {
    // In the middle of a rebase, which makes many commits, HEAD is at none of the lane's.
    let detached = hook.place.head().is_some_and(|head| !head.starts_with("ref: "));
    if detached || hook.place.git_dir != hook.record.git_dir {
        return;
    }
    let Ok(project) = Project::open(dir, Listener::silent()) else { return };
    if let Ok(lane) = project.lane(&hook.record.lane) {
        follow(&project, &lane);
    }
}

/// A commit that a person made, where the hooks of `git proq hooks install` are. Outside of lanes nothing happens.
pub(crate) fn commit_by_hand(project: &Project) {
    let Some(top) = project.repo.here() else { return };
    if let Ok(Some(lane)) = project.lane_at(top) {
        follow(project, &lane);
    }
}

fn follow(project: &Project, lane: &LaneRecord) {
    // In the middle of a rebase HEAD is not on the branch, which has not moved then.
    let Ok(Some(head)) = project.repo.head_name() else { return };
    let Ok(Some(tip)) = project.repo.branch_tip(&lane.place.branch) else { return };
    if head != lane.place.branch {
        return;
    }
    let subject = project.repo.subject_of(tip).unwrap_or_default();
    let subject: String = subject.chars().take(SUBJECT).collect();
    let message = format!("lane '{}': {} {subject}", lane.name, tip.short());
    project.tell(Name::LaneCommitted, Some(lane), message.trim_end());
    if concerns_somebody(project, lane) {
        start_look(project, lane);
    }
}

/// Whether the main checkout shows the lane, or another one could be in its way.
fn concerns_somebody(project: &Project, lane: &LaneRecord) -> bool {
    let shown = PreviewRecord::find(&project.store.layout().preview()).ok().flatten();
    shown.is_some_and(|open| open.lane == lane.name)
        || project.lanes().is_ok_and(|lanes| lanes.iter().any(|other| lane.is_beside(other)))
}

/// Starts a process that looks at it, unless one is at work, which then looks once more.
fn start_look(project: &Project, lane: &LaneRecord) {
    let store = &project.store;
    if write_cache(&store.layout().moved(&lane.name), b"").is_err() {
        return;
    }
    if store.locks().is_held(&LockName::Moved(lane.name.clone())).unwrap_or(true) {
        return;
    }
    let Ok(exe) = std::env::current_exe() else { return };
    let start = Start::new(&exe, project.repo.home()).args(["_moved", "--lane", lane.name.as_str()]);
    drop(start.without(OF_A_RUN).spawn_detached());
}

/// Takes up looking at the commits that a lane got; none when somebody is at it. What comes from now on is seen by
/// [`has_moved`], which has to be asked after the lock was let go: who came a moment before that counts on it.
pub(crate) fn take_up(project: &Project, lane: &str) -> Option<Guard> {
    let lock = project.store.locks().try_take(&LockName::Moved(lane.to_owned())).ok().flatten()?;
    drop(std::fs::remove_file(project.store.layout().moved(lane)));
    Some(lock)
}

/// Whether a lane got commits that nobody has taken up.
pub(crate) fn has_moved(project: &Project, lane: &str) -> bool {
    project.store.layout().moved(lane).exists()
}
