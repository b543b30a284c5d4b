//! Owns what follows a run: other processes of this program, which this one does not wait for. They look whom the lane is in
//! the way of now, and land it if it lands by itself.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

use super::Error;
use crate::explain::Exit;
use crate::fault;
use crate::lane::{self, Project};
use crate::process::{OF_A_RUN, Start};
use crate::store::records::{AnyLane, LaneState};
use crate::store::{self, Guard, Limit, LockName};

/// Who only asks whether the lock is held, or waits for it, holds it for a moment.
const MOMENT: Duration = Duration::from_millis(250);

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
    /// Why the lane cannot land by itself.
    failed: Option<String>,
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
        match take_landing(project, &lane.name) {
            Ok(landing) => FollowUp { again: landing.is_none(), landing, failed: None, moved },
            // The run has its result all the same.
            Err(e) => FollowUp { failed: Some(e.to_string()), moved, ..FollowUp::default() },
        }
    }

    /// Starts it. The run lock is free by now, or the lane would look busy.
    pub(super) fn begin(self, project: &Project, lane: &AnyLane, exe: &Path) {
        if lane.works_in_place() {
            return land_what_waited(project, &lane.base, exe);
        }
        if let Some(why) = self.failed {
            return lane::refuse_landing(project, lane, &why, Exit::Refused);
        }
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

/// Starts the landings of lanes that land by themselves, and could not while an agent worked where their base is checked out.
fn land_what_waited(project: &Project, base: &str, exe: &Path) {
    let waiting = lane::waiting_to_land(project, &BTreeSet::from([base]));
    let names: Vec<String> = waiting.into_iter().map(|lane| lane.name).collect();
    // What cannot be started comes after the next landing.
    if !names.is_empty() {
        drop(land_by_itself(project, exe, Because::Landing, &names));
    }
}

/// Takes the lock that says that a lane is being landed; none when somebody else is landing it.
///
/// # Errors
/// When it cannot be taken.
pub(crate) fn take_landing(project: &Project, lane: &str) -> Result<Option<Guard>, Error> {
    let lock = LockName::Landing(lane.to_owned());
    match project.store.locks().take_within(&lock, Limit::For(MOMENT)) {
        Ok(lock) => Ok(Some(lock)),
        Err(store::Error::Locked { .. }) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Waits until the landing is over that was going on when the run ended. Its lock, if the lane is to land still.
fn wait_for_landing(project: &Project, lane: &AnyLane) -> Option<Guard> {
    project.store.locks().wait_until_free(&LockName::Landing(lane.name.clone())).ok()?;
    fault::point("landing.free");
    let now = project.any_lane(&lane.name).ok().filter(|now| now.is_same_lane(lane))?;
    let (state, _) = lane::effective_state(project, &now).ok()?;
    // Who has taken it meanwhile has seen all of the lane.
    if state == LaneState::Done { take_landing(project, &lane.name).ok().flatten() } else { None }
}

/// Starts a process of its own that looks whom a lane is in the way of, if there is anybody. Nothing depends on it.
fn look_for_overlaps(project: &Project, lane: &AnyLane, exe: &Path) {
    if project.lanes().is_ok_and(|lanes| lanes.iter().any(|other| lane.is_beside(other))) {
        let start = Start::new(exe, project.repo.home()).args(["_overlaps", "--lane", lane.name.as_str()]);
        drop(start.without(OF_A_RUN).spawn_detached());
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
    let start = start.without(OF_A_RUN);
    let start = match stdin {
        Some(lock) => start.stdin(lock),
        None => start,
    };
    Ok(start.spawn_detached()?)
}
