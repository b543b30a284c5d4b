//! Owns lanes that land by themselves: which of them wait for that, what became of a try, and when that is over.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Error, Inbox, Operation, Project, effective_state, messages_wait};
use crate::event;
use crate::explain::Exit;
use crate::store::records::{AnyLane, LaneRecord, LaneState, Refusal, Step};
use crate::store::{LockName, Record, now};

/// The lanes that are to land by themselves on one of these branches and have not, though nobody is at it: they were refused,
/// or the process that was to land them was killed.
pub(crate) fn waiting_to_land(project: &Project, bases: &BTreeSet<&str>) -> Vec<LaneRecord> {
    let locks = project.store.locks();
    let waits = |lane: &LaneRecord| {
        Ok::<_, Error>(
            bases.contains(lane.base.as_str())
                && due(project, lane)? == Due::Now
                && !locks.is_held(&LockName::Landing(lane.name.clone()))?,
        )
    };
    // Its lock is there before a lane can be done, and most repositories have none.
    let names = locks.lanes_that_land().into_iter();
    let lanes = names.filter_map(|name| project.lane(&name).ok());
    // One that cannot be looked at is for the landing after the next.
    lanes.filter(|lane| waits(lane).unwrap_or(false)).collect()
}

/// A lane as it is now, or as it was when it went, with the folder of its records: one that lands by itself may be gone as
/// soon as its run is over.
///
/// # Errors
/// [`Error::Unknown`] when nothing is known of it any more.
pub(crate) fn became<P>(project: &Project, lane: &LaneRecord<P>) -> Result<(PathBuf, AnyLane), Error> {
    let layout = project.store.layout();
    let here = AnyLane::find(&layout.lane_record(&lane.name))?.map(|lane| project.followed(lane));
    if let Some(now) = here.filter(|now| now.is_same_lane(lane)) {
        return Ok((layout.lane(&now.name), now));
    }
    let past = project.every_past_lane().into_iter().rfind(|(_, past)| past.is_same_lane(lane));
    let past = past.map(|(name, past)| (layout.history().join(name), past));
    past.ok_or_else(|| Error::Unknown { name: lane.name.clone(), similar: None })
}

/// Whether a lane lands by itself now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Due {
    /// It does.
    Now,
    /// It is not to, or not at this time: it has landed, or goes on.
    No,
    /// It is to, and this is in the way.
    Kept(String),
}

/// Whether a lane is to land by itself, and can. What was sent to its agent has to be told first.
///
/// # Errors
/// When its locks cannot be looked at.
pub(crate) fn due(project: &Project, lane: &LaneRecord) -> Result<Due, Error> {
    if !lane.auto_merge {
        return Ok(Due::No);
    }
    Ok(match effective_state(project, lane)?.0 {
        LaneState::Done => waits_to_be_told(project, &lane.name).map_or(Due::Now, Due::Kept),
        LaneState::Orphaned if lane.state == LaneState::Done => {
            Due::Kept(format!("a process of its agent lives on; git proq stop {} ends it", lane.name))
        }
        _ => Due::No,
    })
}

/// Why a lane does not land by itself whose agent has not been told all that was sent to it; none when nothing waits.
pub(crate) fn waits_to_be_told(project: &Project, lane: &str) -> Option<String> {
    let count = Inbox::of(project, lane).count();
    (count > 0).then(|| messages_wait(lane, count))
}

/// Writes down that a lane did not land by itself. It stays as it is, and is tried again after the next landing on its base.
pub(crate) fn refuse_landing<P>(project: &Project, lane: &LaneRecord<P>, why: &str, exit: Exit) {
    let refusal = Refusal { at: now(), message: why.to_owned(), exit: exit.code() };
    let noted = project.update_lane(&lane.name, |record| {
        if record.is_same_lane(lane) {
            record.refused = Some(refusal);
        }
    });
    let lane = noted.ok().filter(|record| record.is_same_lane(lane));
    let name = lane.as_ref().map_or("that is gone", |lane| lane.name.as_str());
    let message = format!("lane '{name}' did not land by itself: {why}");
    project.tell(event::Name::MergeRefused, lane.as_ref(), message);
}

/// Takes it off lanes whose landing is being taken back that they land by themselves: the next landing would bring back what
/// somebody has just undone. `steps` are those that were inverted.
pub(super) fn take_off<'s>(op: &Operation<'_>, steps: impl Iterator<Item = &'s Step>) -> Result<(), Error> {
    let layout = op.project.store.layout();
    for step in steps {
        let Step::File { path, new: Some(new), .. } = step else { continue };
        let Some(name) = landed_in(path, new) else { continue };
        let Some(lane) = AnyLane::find(&layout.lane_record(&name))? else { continue };
        if lane.auto_merge {
            op.update_lane(&name, |record| record.auto_merge = false)?;
            op.project.listener.step(format!("lane '{name}' does not land by itself any more"));
        }
    }
    Ok(())
}

/// The lane whose record this is, if it says that the lane has landed.
fn landed_in(path: &Path, text: &str) -> Option<String> {
    if path.file_name()? != "lane.toml" {
        return None;
    }
    let record: LaneRecord = toml::from_str(text).ok()?;
    (record.state == LaneState::Landed).then_some(record.name)
}
