//! Owns when a lane is done though its agent's session goes on, on a screen in front of a person: the agent has ended its turn and there
//! is something to show.

use super::{Error, Project, conflict_now, effective_state, look_at};
use crate::git::{Dirt, WorktreeList};
use crate::store::Record;
use crate::store::records::{Activity, ActivityRecord, AnyLane, LaneRecord, LaneState, RunRecord};

/// What there is to say of such a lane.
pub(crate) const RESTS: &str = "its agent is idle in its window";

/// The state of a lane as it is told, and more about it: as [`effective_state`] has it, but that a lane that rests is done,
/// and one whose conflict is over, too. Whoever
/// is about to change the lane goes by the former.
pub(crate) fn told_state(project: &Project, lane: &AnyLane) -> Result<(LaneState, Option<String>), Error> {
    let now = conflict_now::judged_anew(project, lane, effective_state(project, lane)?);
    let rests = match lane.clone().with_tree() {
        Ok(lane) => now.0 == LaneState::Running && rests(project, &lane)?,
        Err(_) => false,
    };
    Ok(if rests { (LaneState::Done, Some(RESTS.to_owned())) } else { now })
}

/// Whether the agent of a lane is idle on its screen and the lane has what a run needs to be done: commits, and nothing
/// uncommitted. The next thing that a person says to it ends that.
pub(crate) fn rests(project: &Project, lane: &LaneRecord) -> Result<bool, Error> {
    Ok(effective_state(project, lane)?.0 == LaneState::Running
        && is_idle(project, lane)
        && has_work(project, lane, None)?)
}

/// Whether the agent of a lane's last run, on its own screen, has said last that it ended its turn. What cannot be read says nothing.
pub(crate) fn is_idle<P>(project: &Project, lane: &LaneRecord<P>) -> bool {
    let layout = project.store.layout();
    let said = ActivityRecord::find(&layout.run_activity(&lane.name, lane.attempt)).ok().flatten();
    said.is_some_and(|said| said.activity == Activity::Idle) && is_on_screen(project, lane)
}

/// Whether a lane's last run is one at its task, on a screen of its own.
pub(crate) fn is_on_screen<P>(project: &Project, lane: &LaneRecord<P>) -> bool {
    let run = RunRecord::find(&project.store.layout().run_record(&lane.name, lane.attempt)).ok().flatten();
    run.is_some_and(|run| run.interactive && !run.resolves)
}

/// Whether there is something to land in a lane, all of it committed on its branch. `dirt` is what differs in its worktree, where
/// that was looked at just now.
pub(crate) fn has_work(project: &Project, lane: &LaneRecord, dirt: Option<Dirt>) -> Result<bool, Error> {
    let found = look_at(project, lane, &WorktreeList::read(&project.repo)?, dirt)?;
    Ok(found.stands()
        && found.tip.is_some_and(|tip| tip != lane.start)
        && found.dirt.is_clean()
        && found.open.is_none()
        && found.elsewhere.is_none())
}
