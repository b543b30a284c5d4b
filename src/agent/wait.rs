//! Owns waiting for runs to end: of one lane or of several, for all of them or the first, without end or for a time.

use std::time::{Duration, Instant};

use super::Error;
use crate::lane::{self, Project};
use crate::store::records::{AnyLane, LaneState};
use crate::store::{LockName, Several};

/// How often agents on screens are looked at. A person waits.
const GLANCE: Duration = Duration::from_millis(250);

/// When enough has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// All runs have.
    All,
    /// One of them has.
    Any,
}

/// A lane that is, or was, waited for.
#[derive(Debug, Clone)]
#[must_use]
pub(crate) struct Waited {
    /// Its record, with what there is to say of its state.
    pub(crate) lane: AnyLane,
    /// Its state.
    pub(crate) state: LaneState,
    /// Whether nothing runs in it any more that is waited for.
    pub(crate) over: bool,
    /// Whether its agent is at work on a screen, where it may end its turn without ending.
    on_screen: bool,
}

/// Waits until a lane's run has ended and returns the state it ended in, and the lane with what there is to say of that.
/// Returns at once when nothing runs.
pub(crate) fn wait(project: &Project, name: &str) -> Result<(AnyLane, LaneState), Error> {
    let asked = project.any_lane(name)?;
    let all = wait_for(project, std::slice::from_ref(&asked), Until::All, None, &mut |_| {})?;
    let gone = || lane::Error::Unknown { name: name.to_owned(), similar: None };
    let waited = all.into_iter().next().ok_or_else(gone)?;
    Ok((waited.lane, waited.state))
}

/// Waits for lanes, asleep, for `limit` at most, and returns all of them as they are then, in the same order. `tell` hears of
/// those that have ended: in that order too, each once all before it have; for [`Until::Any`] of the first to end alone.
///
/// # Errors
/// When nothing is known any more of one of them.
pub(crate) fn wait_for(
    project: &Project,
    asked: &[AnyLane],
    until: Until,
    limit: Option<Duration>,
    tell: &mut dyn FnMut(&Waited),
) -> Result<Vec<Waited>, Error> {
    let end = limit.and_then(|limit| Instant::now().checked_add(limit));
    let (locks, several) = (project.store.locks(), Several::new());
    let (mut all, mut held) = (Vec::new(), Vec::new());
    for lane in asked {
        let (now, lock) = look(project, lane)?;
        all.push(now);
        held.push(lock);
    }
    if until == Until::Any
        && let Some(over) = all.iter().find(|waited| waited.over)
    {
        tell(over);
        return Ok(all);
    }
    for (number, lock) in held.iter().enumerate() {
        lock.iter().try_for_each(|lock| several.add(number, locks, lock))?;
    }
    let mut told = 0;
    loop {
        while until == Until::All && all.get(told).is_some_and(|waited| waited.over) {
            tell(&all[told]);
            told += 1;
        }
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        if all.iter().all(|waited| waited.over) {
            return Ok(all);
        }
        // No lock tells that an agent on a screen has ended its turn.
        let glance = all.iter().any(|waited| waited.on_screen).then_some(GLANCE);
        let Some(number) = several.next(left.into_iter().chain(glance).min())? else {
            if left.is_some_and(|left| glance.is_none_or(|glance| left <= glance)) {
                return Ok(all);
            }
            for (waited, lane) in all.iter_mut().zip(asked).filter(|(waited, _)| waited.on_screen) {
                *waited = look(project, lane)?.0;
                if until == Until::Any && waited.over {
                    tell(waited);
                    return Ok(all);
                }
            }
            continue;
        };
        let (now, lock) = look(project, &asked[number])?;
        all[number] = now;
        match lock {
            // That lock is free, and its agent lives on.
            Some(lock) => several.add(number, locks, &lock)?,
            None if until == Until::Any => {
                tell(&all[number]);
                return Ok(all);
            }
            None => {}
        }
    }
}

/// A lane as it is now, and the lock that is held for as long as its run lasts; none when that is over.
fn look(project: &Project, asked: &AnyLane) -> Result<(Waited, Option<LockName>), Error> {
    // One that lands by itself may be gone right after its run.
    let (_, lane) = lane::became(project, asked)?;
    let (state, detail) = lane::told_state(project, &lane)?;
    let on_screen = state == LaneState::Running && lane::is_on_screen(project, &lane);
    let name = || lane.name.clone();
    let lock = match state {
        LaneState::Starting | LaneState::Running => Some(LockName::Run(name())),
        LaneState::Orphaned if lane.state.is_claimed() => Some(LockName::Alive(name())),
        // The run is over; what it left in the background may go on for ever.
        LaneState::Orphaned => {
            let state = lane.state;
            return Ok((Waited { lane, state, over: true, on_screen }, None));
        }
        _ => None,
    };
    // The record read here may be older than the supervisor's last word.
    let lane = AnyLane { detail, ..lane };
    Ok((Waited { lane, state, over: lock.is_none(), on_screen }, lock))
}
