//! Owns telling a lane's agent more: in the session that it had, at once or when its turn has ended.

use std::path::Path;

use super::Error;
use super::inbox::Inbox;
use super::launch;
use super::profile::check_text;
use crate::lane::{Project, effective_state};
use crate::store::records::{AnyLane, LaneState, RunRecord};
use crate::store::{LockName, Record};

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The agent goes on with it.
    Started,
    /// It waits for the end of the agent's turn.
    Waits,
}

impl Sent {
    /// What would become of one now.
    pub(crate) fn would(project: &Project, lane: &AnyLane) -> Result<Sent, Error> {
        Ok(if effective_state(project, lane)?.0.is_busy() { Sent::Waits } else { Sent::Started })
    }
}

/// Whom a message goes to.
#[derive(Debug, Clone)]
pub(crate) struct Addressee {
    /// The agent.
    pub(crate) agent: String,
    /// The conversation to go on with.
    pub(crate) session: String,
}

/// Finds out who a message to a lane would go to; without `text`, what waits already.
///
/// # Errors
/// [`Error::NoSession`] when there is no conversation to go on with, [`Error::NothingWaits`] when there is nothing to tell.
pub(crate) fn addressee(project: &Project, lane: &AnyLane, text: Option<&str>) -> Result<Addressee, Error> {
    match text {
        Some(text) => check_text(text)?,
        None if !Inbox::of(project, &lane.name).is_waiting() => {
            return Err(Error::NothingWaits { lane: lane.name.clone() });
        }
        None => {}
    }
    require_at_task(project, lane)?;
    if effective_state(project, lane)?.0 == LaneState::Orphaned {
        return Err(Error::OrphanListens { lane: lane.name.clone() });
    }
    let run = last_talk(project, lane)?.ok_or_else(|| Error::NoSession { lane: lane.name.clone() })?;
    if run.interactive && run.ended.is_none() && effective_state(project, lane)?.0.is_busy() {
        return Err(Error::Attended { lane: lane.name.clone() });
    }
    let session = run.account.session.ok_or_else(|| Error::NoSession { lane: lane.name.clone() })?;
    Ok(Addressee { agent: run.agent, session })
}

/// Refuses a lane whose conflict is laid out: whoever works at its task would be in the way of that.
pub(crate) fn require_at_task(project: &Project, lane: &AnyLane) -> Result<(), Error> {
    match project.resolving(&lane.name)? {
        Some(_) => Err(Error::Resolving { lane: lane.name.clone() }),
        None => Ok(()),
    }
}

/// The last run of a lane that worked at its task and has told its session. One that has just started may not have yet.
pub(super) fn last_talk(project: &Project, lane: &AnyLane) -> Result<Option<RunRecord>, Error> {
    let layout = project.store.layout();
    for attempt in (1..=lane.attempt).rev() {
        let Some(run) = RunRecord::find(&layout.run_record(&lane.name, attempt))? else { continue };
        if !run.resolves && (run.account.session.is_some() || run.ended.is_none()) {
            return Ok(Some(run));
        }
    }
    Ok(None)
}

/// Sends `text` to a lane's agent, or only what waits.
///
/// # Errors
/// As [`addressee`], which is to be asked first, and [`Error::NotStarted`].
pub(crate) fn send(project: &Project, lane: &AnyLane, text: Option<&str>, exe: &Path) -> Result<Sent, Error> {
    if let Some(text) = text {
        Inbox::of(project, &lane.name).put(text)?;
    }
    // Whoever holds the lock looks into the inbox again after having let go of it: what was put there before is told.
    let locks = project.store.locks();
    let name = LockName::Run(lane.name.clone());
    let lock = match locks.try_take(&name)? {
        Some(lock) => lock,
        None if effective_state(project, lane)?.0.is_busy() => return Ok(Sent::Waits),
        // A landing or a removal, which knows nothing of messages.
        None => locks.take(&name)?,
    };
    if locks.is_held(&LockName::Alive(lane.name.clone()))? {
        return Err(Error::OrphanListens { lane: lane.name.clone() });
    }
    let lane = project.any_lane(&lane.name)?;
    if !Inbox::of(project, &lane.name).is_waiting() {
        // The supervisor that held the lock a moment ago has taken it.
        return Ok(Sent::Waits);
    }
    launch::launch_message(project, &lane, lock, exe)?;
    Ok(Sent::Started)
}
