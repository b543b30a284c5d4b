//! Owns telling a lane's agent more: in the conversation that there is, at once or when its turn has ended.

use std::ffi::OsString;
use std::path::Path;

use super::Error;
use super::activity::session_of;
use super::catalogue::profile_of;
use super::launch;
use super::profile::check_text;
use crate::config::dollars;
use crate::lane::{self, Inbox, Project, effective_state};
use crate::store::records::{AnyLane, LaneState, MessageRecord, RunRecord};
use crate::store::{self, Guard, LockName, Record, now};

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
    /// The session to go on with; an agent that has just begun may not have named it yet.
    pub(crate) session: Option<String>,
    /// The conversation, by the run that began it.
    talk: u32,
    /// Whether it had a screen of its own, which it has no more.
    pub(crate) left_window: bool,
    /// What there is to know of its money before it goes on.
    pub(crate) warning: Option<String>,
}

/// Finds out who a message to a lane would go to; without `text`, the oldest of what waits already.
///
/// # Errors
/// [`Error::NoSession`] when there is no conversation to go on with, [`Error::NothingWaits`] when there is nothing to tell.
pub(crate) fn addressee(project: &Project, lane: &AnyLane, text: Option<&str>) -> Result<Addressee, Error> {
    if let Some(text) = text {
        check_text(text)?;
    }
    let waits = match text {
        Some(_) => None,
        None => Inbox::of(project, &lane.name).read()?.into_iter().next().map(|letter| letter.message),
    };
    if text.is_none() && waits.is_none() {
        return Err(Error::NothingWaits { lane: lane.name.clone() });
    }
    require_at_task(project, lane)?;
    let state = effective_state(project, lane)?.0;
    if state == LaneState::Orphaned {
        return Err(Error::OrphanListens { lane: lane.name.clone() });
    }
    let none = || Error::NoSession { lane: lane.name.clone() };
    let last = last_talk(project, lane, None)?;
    if let (Some(waits), Some(last)) = (&waits, &last)
        && state.is_busy()
        && last.talk() != waits.talk
    {
        return Err(Error::OthersTurn { lane: lane.name.clone(), agent: waits.agent.clone() });
    }
    let run = match &waits {
        Some(waits) => last_talk(project, lane, Some(waits.talk))?,
        None => last,
    };
    let run = run.ok_or_else(none)?;
    if run.interactive && run.ended.is_none() && state.is_busy() {
        return Err(Error::Attended { lane: lane.name.clone() });
    }
    let profile = profile_of(&project.layers, &run.agent)?;
    if !profile.goes_on() {
        return Err(none());
    }
    if let Some(text) = text {
        profile.check_prompt(text)?;
    }
    let warning = run.overspent().zip(run.limits.budget).map(|((cost, allowed), again)| {
        let [cost, allowed, again] = [cost, allowed, again].map(dollars);
        format!("its last run has cost ${cost} of ${allowed}; another may cost ${again} again")
    });
    Ok(Addressee {
        talk: run.talk(),
        warning,
        left_window: run.interactive,
        agent: run.agent,
        session: run.account.session,
    })
}

/// Refuses a lane whose conflict is laid out: whoever works at its task would be in the way of that.
pub(crate) fn require_at_task(project: &Project, lane: &AnyLane) -> Result<(), Error> {
    match project.resolving(&lane.name)? {
        Some(_) => Err(Error::Resolving { lane: lane.name.clone() }),
        None => Ok(()),
    }
}

/// The last run of a lane that worked at its task and can be gone on with: it has told its session, or is about to. Of one
/// conversation, if that is given.
pub(super) fn last_talk(
    project: &Project,
    lane: &AnyLane,
    talk: Option<u32>,
) -> Result<Option<RunRecord>, Error> {
    let layout = project.store.layout();
    for attempt in (1..=lane.attempt).rev() {
        let Some(mut run) = RunRecord::find(&layout.run_record(&lane.name, attempt))? else { continue };
        if run.account.session.is_none() {
            run.account.session = session_of(project, &lane.name, attempt);
        }
        // One that ended before it had started has nobody to go on with, though its session was chosen.
        let is_there = run.ended.is_none() || (run.account.session.is_some() && run.pid.is_some());
        if !run.resolves && !run.is_review() && is_there && talk.is_none_or(|talk| run.talk() == talk) {
            return Ok(Some(run));
        }
    }
    Ok(None)
}

/// The command that the user named for a lane's agent, if that has none of its own.
pub(crate) fn named_command(project: &Project, lane: &AnyLane) -> Result<Vec<OsString>, Error> {
    let layout = project.store.layout();
    for attempt in (1..=lane.attempt).rev() {
        let run = RunRecord::find(&layout.run_record(&lane.name, attempt))?;
        if let Some(run) = run.filter(|run| !run.resolves && lane.agent.as_ref() == Some(&run.agent)) {
            return Ok(run.own.iter().map(OsString::from).collect());
        }
    }
    Ok(Vec::new())
}

/// Sends `text` to a lane's agent, or only what waits. Nothing is kept of what is refused.
///
/// # Errors
/// As [`addressee`], and when the agent cannot be started.
pub(crate) fn send(project: &Project, lane: &AnyLane, text: Option<&str>, exe: &Path) -> Result<Sent, Error> {
    let locks = project.store.locks();
    let name = LockName::Run(lane.name.clone());
    if leave(project, &lane.name, text)? {
        return Ok(Sent::Waits);
    }
    // Held by a supervisor that has looked for the last time, or by a landing or a removal, none of which tells anything.
    let lock = match locks.take(&name) {
        // Another run was faster.
        Err(store::Error::Locked { .. }) if leave(project, &lane.name, text)? => return Ok(Sent::Waits),
        lock => lock?,
    };
    if locks.is_held(&LockName::Alive(lane.name.clone()))? {
        return Err(Error::OrphanListens { lane: lane.name.clone() });
    }
    let lane = project.settle_dead(project.any_lane(&lane.name)?)?;
    let to = addressee(project, &lane, text)?;
    let mut taken = Inbox::of(project, &lane.name).take(to.talk)?;
    let texts: Vec<&str> = taken.texts().chain(text).collect();
    let (job, fit) = launch::job_for_messages(project, &lane, to.talk, &texts)?;
    let all = fit == texts.len();
    // Only now nothing can refuse it any more but the agent's own start.
    let put = match text {
        Some(text) => Some(put(project, &lane, &to, text)?),
        None => None,
    };
    let id = put.as_ref().map(|letter| letter.id.clone());
    taken.letters.extend(put);
    taken.letters.truncate(fit);
    if let Err(e) = launch::launch_message(project, &lane, lock, (job, &taken), exe) {
        if let Some(id) = id {
            Inbox::of(project, &lane.name).take_back(&id)?;
        }
        return Err(e);
    }
    Ok(if all { Sent::Started } else { Sent::Waits })
}

/// Leaves a message to the supervisor of a lane's run, if there is one that will look for it. A supervisor looks for the last
/// time under the store's lock, and with what it finds there it writes that the run is over: as long as the lane's record has
/// a run in it while that lock is held here, it has not looked for the last time.
fn leave(project: &Project, name: &str, text: Option<&str>) -> Result<bool, Error> {
    let locks = project.store.locks();
    let store = locks.take(&LockName::Store)?;
    let lane = project.any_lane(name)?;
    if !lane.state.is_claimed() || !locks.is_held(&LockName::Run(lane.name.clone()))? {
        return Ok(false);
    }
    let to = addressee(project, &lane, text)?;
    if let Some(text) = text {
        Inbox::of(project, &lane.name).put(message(&lane, &to, text), &store)?;
    }
    Ok(true)
}

fn put(project: &Project, lane: &AnyLane, to: &Addressee, text: &str) -> Result<lane::Letter, Error> {
    let store: Guard = project.store.locks().take(&LockName::Store)?;
    // Under this lock, once more: see `Inbox::put`.
    let lane = project.any_lane(&lane.name)?;
    Ok(Inbox::of(project, &lane.name).put(message(&lane, to, text), &store)?)
}

fn message(lane: &AnyLane, to: &Addressee, text: &str) -> MessageRecord {
    MessageRecord {
        at: now(),
        agent: to.agent.clone(),
        run: lane.attempt,
        talk: to.talk,
        session: to.session.clone(),
        text: text.to_owned(),
    }
}
