//! Owns what follows a run: other processes of this program, which this one does not wait for. They look whom the lane is in
//! the way of now, and land it if it lands by itself.

use std::fs::File;
use std::path::Path;

use super::Error;
use crate::explain::Exit;
use crate::lane::{self, Project};
use crate::process::Start;
use crate::store::records::{AnyLane, LaneState};
use crate::store::{Guard, LockName};

/// What a landing that nobody asks for just now follows from.
#[derive(Debug)]
pub(crate) enum Because {
    /// The lane's run has ended. The lock says that it is being landed.
    RunEnded(Guard),
    /// Another landing has ended.
    Landing,
}

/// What is to follow a run.
#[derive(Debug, Default)]
#[must_use]
pub(super) struct FollowUp {
    landing: Option<Guard>,
    /// Whether somebody was landing the lane when its run ended, who may not have seen what came of that.
    again: bool,
    /// Whether the lane has new commits, with which it may be in the way of others.
    moved: bool,
}

impl FollowUp {
    /// Finds out what is to follow a run that ended in `state`, before anybody can know that it has ended: from the moment
    /// in which the lane is done, its lock says that it is being landed.
    pub(super) fn prepare(project: &Project, lane: &AnyLane, state: LaneState, moved: bool) -> FollowUp {
        if !lane.auto_merge || state != LaneState::Done {
            return FollowUp { moved, ..FollowUp::default() };
        }
        // Where it is held already, somebody is landing it. Where it cannot be taken, the run has its result all the same.
        let landing = project.store.locks().try_take(&LockName::Landing(lane.name.clone()));
        let again = matches!(landing, Ok(None));
        FollowUp { landing: landing.ok().flatten(), again, moved }
    }

    /// Starts it. The run lock is free by now, or the lane would look busy.
    pub(super) fn begin(self, project: &Project, lane: &AnyLane, exe: &Path) {
        let landing = if self.again { wait_for_landing(project, lane) } else { self.landing };
        let Some(lock) = landing else {
            if self.moved {
                look_for_overlaps(project, lane, exe);
            }
            return;
        };
        if let Some(why) = lane::waits_to_be_told(project, &lane.name) {
            drop(lock);
            return lane::refuse_landing(project, lane, &why, Exit::Refused);
        }
        let names = std::slice::from_ref(&lane.name);
        if let Err(e) = land_by_itself(project, exe, Because::RunEnded(lock), names) {
            lane::refuse_landing(project, lane, &e.to_string(), Exit::Refused);
        }
    }
}

/// Waits until the landing is over that was going on when the run ended. Its lock, if the lane is to land still.
fn wait_for_landing(project: &Project, lane: &AnyLane) -> Option<Guard> {
    let lock = LockName::Landing(lane.name.clone());
    project.store.locks().wait_until_free(&lock).ok()?;
    let now = project.any_lane(&lane.name).ok().filter(|now| now.is_same_lane(lane))?;
    let (state, _) = lane::effective_state(project, &now).ok()?;
    // Who has taken it meanwhile has seen all of the lane.
    if state == LaneState::Done { project.store.locks().try_take(&lock).ok().flatten() } else { None }
}

/// Starts a process of its own that looks whom a lane is in the way of, if there is anybody. Nothing depends on it.
fn look_for_overlaps(project: &Project, lane: &AnyLane, exe: &Path) {
    if project.lanes().is_ok_and(|lanes| lanes.iter().any(|other| lane.is_beside(other))) {
        let start = Start::new(exe, project.repo.home()).args(["_overlaps", "--lane", lane.name.as_str()]);
        drop(start.without(crate::process::OF_A_RUN).spawn_detached());
    }
}

/// Starts a process of its own that lands lanes, each by itself, and returns at once. `exe` is this program.
///
/// # Errors
/// When it cannot be started.
pub(crate) fn land_by_itself(
    project: &Project,
    exe: &Path,
    because: Because,
    lanes: &[String],
) -> Result<(), Error> {
    let (why, stdin): (_, Option<File>) = match because {
        Because::RunEnded(lock) => ("run-ended", Some(lock.into_file())),
        Because::Landing => ("retry", None),
    };
    let start = Start::new(exe, project.repo.home()).args(["merge", "--auto", why]).args(lanes);
    let start = start.without(crate::process::OF_A_RUN);
    let start = match stdin {
        Some(lock) => start.stdin(lock),
        None => start,
    };
    Ok(start.spawn_detached()?)
}
