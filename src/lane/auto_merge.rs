//! Owns lanes that land by themselves: which of them wait for that, what became of a try, and when that is over.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Error, Inbox, Operation, Project, effective_state, messages_wait};
use crate::event;
use crate::explain::Exit;
use crate::git::Oid;
use crate::store::records::{AnyLane, LaneRecord, LaneState, Refusal, RunRecord, Step};
use crate::store::{LockName, Record, now};

/// The lanes that are to land by themselves on one of these branches and have not, though nobody is at it: they were refused,
/// or the process that was to land them was killed.
pub(crate) fn waiting_to_land(project: &Project, bases: &BTreeSet<&str>) -> Vec<LaneRecord> {
    let all = left_to_land(project, bases);
    all.filter(|(_, due)| *due == Due::Now).map(|(lane, _)| lane).collect()
}

/// Refuses the lanes that were to land by themselves on one of these branches and whose own branches have moved since. Returns
/// what there is to say of each; nothing of those that were refused for it before. It leaves out those that this landing has `tried`:
/// nobody would hear of one whose branch has moved since then.
pub(crate) fn refuse_moved(project: &Project, bases: &BTreeSet<&str>, tried: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    for (lane, due) in left_to_land(project, bases) {
        let Due::Moved(why) = due else { continue };
        // A landing may have committed what the run left meanwhile, and have said so since.
        if tried.contains(&lane.name) || !matches!(self::due(project, &lane), Ok(Due::Moved(_))) {
            continue;
        }
        if lane.refused.as_ref().is_none_or(|before| before.message != why) {
            refuse_landing(project, &lane, &why, Exit::Refused);
            out.push(not_landed(&lane.name, &why));
        }
    }
    out
}

/// The lanes of these bases that nobody is landing just now, and whether each is to land by itself.
fn left_to_land(project: &Project, bases: &BTreeSet<&str>) -> impl Iterator<Item = (LaneRecord, Due)> {
    let locks = project.store.locks();
    let is_free = |lane: &LaneRecord| !locks.is_held(&LockName::Landing(lane.name.clone())).unwrap_or(true);
    // Its lock is there before a lane can be done, and most repositories have none.
    let names = locks.lanes_that_land().into_iter();
    let lanes = names.filter_map(|name| project.lane(&name).ok());
    let lanes = lanes.filter(|lane| bases.contains(lane.base.as_str()));
    // One that cannot be looked at is for the landing after the next.
    lanes
        .filter(move |lane| is_free(lane))
        .filter_map(move |lane| Some((due(project, &lane).ok()?, lane)))
        .map(|(due, lane)| (lane, due))
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
    /// It was to, and for this reason it is left to the user.
    Moved(String),
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
        LaneState::Done => {
            if let Some(refused) = lane.refused.as_ref().filter(|refused| refused.lasting) {
                return Ok(Due::Kept(refused.message.clone()));
            }
            // What has to follow from what its run changed could not be written.
            if project.store.layout().fence(&lane.name, lane.attempt).is_dir() {
                let name = &lane.name;
                let why =
                    format!("what its run changed beside it is not known; git proq merge {name} lands it");
                return Ok(Due::Kept(why));
            }
            let tip = project.repo.branch_tip(&lane.place.branch)?;
            let moved = moved_since_run(project, lane, tip)?.map(Due::Moved);
            moved.or_else(|| waits_to_be_told(project, &lane.name).map(Due::Kept)).unwrap_or(Due::Now)
        }
        LaneState::Orphaned if lane.state == LaneState::Done => {
            Due::Kept(format!("a process of its agent lives on; git proq stop {} ends it", lane.name))
        }
        _ => Due::No,
    })
}

/// Why a lane does not land by itself whose branch is at `tip` and not where its last run ended: what was committed since may not
/// be ready. None when it is there, or is gone.
///
/// # Errors
/// When the run's record cannot be read.
pub(crate) fn moved_since_run(
    project: &Project,
    lane: &LaneRecord,
    tip: Option<Oid>,
) -> Result<Option<String>, Error> {
    let run = RunRecord::find(&project.store.layout().run_record(&lane.name, lane.attempt))?;
    let end = run.and_then(|run| run.tip_after);
    let why = || format!("its branch has moved since its run ended; git proq merge {} lands it", lane.name);
    Ok((tip.is_some() && tip != end).then(why))
}

/// Notes that the work of a lane's last run, which ended at `from`, ends at `to` now: a landing has committed what the run left,
/// or an agent has resolved a conflict.
///
/// # Errors
/// When the run's record cannot be read or written.
pub(crate) fn extend_run(project: &Project, lane: &LaneRecord, from: Oid, to: Oid) -> Result<(), Error> {
    let path = project.store.layout().run_record(&lane.name, lane.attempt);
    if let Some(mut run) = RunRecord::find(&path)?
        && run.tip_after == Some(from)
    {
        run.tip_after = Some(to);
        run.save(&path)?;
    }
    Ok(())
}

/// Why a lane does not land by itself whose agent has not been told all that was sent to it; none when nothing waits.
pub(crate) fn waits_to_be_told(project: &Project, lane: &str) -> Option<String> {
    let count = Inbox::of(project, lane).count();
    (count > 0).then(|| messages_wait(lane, count))
}

/// Keeps a lane from landing by itself from now on: its landing waits for a person.
///
/// # Errors
/// When that cannot be written.
pub(crate) fn hold_landing(project: &Project, lane: &LaneRecord, why: &str) -> Result<(), Error> {
    let exit = Exit::Refused.code();
    let refusal = Refusal { at: now(), message: why.to_owned(), exit, lasting: true };
    project.update_lane(&lane.name, |record| record.refused = Some(refusal)).map(drop)
}

/// Writes down that a lane did not land by itself. It stays as it is, and is tried again after the next landing on its base, unless
/// it is kept from that.
pub(crate) fn refuse_landing<P>(project: &Project, lane: &LaneRecord<P>, why: &str, exit: Exit) {
    let (at, message, exit) = (now(), why.to_owned(), exit.code());
    let noted = project.update_lane(&lane.name, |record| {
        if record.is_same_lane(lane) {
            let lasting = record.refused.as_ref().is_some_and(|before| before.lasting);
            record.refused = Some(Refusal { at, message, exit, lasting });
        }
    });
    let lane = noted.ok().filter(|record| record.is_same_lane(lane));
    let name = lane.as_ref().map_or("that is gone", |lane| lane.name.as_str());
    project.tell(event::Name::MergeRefused, lane.as_ref(), not_landed(name, why));
}

/// That a lane did not land by itself, and why.
fn not_landed(name: &str, why: &str) -> String {
    format!("lane '{name}' did not land by itself: {why}")
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
