//! Owns waiting for runs to end: of one lane or of several, for all of them or the first, without end or for a time.

use std::time::{Duration, Instant};

use super::Error;
use crate::lane::{self, Project, effective_state};
use crate::store::records::{AnyLane, LaneState};
use crate::store::{LockName, Several};

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
}

/// Waits until a lane's run has ended and returns the state it ended in, and the lane with what there is to say of that.
/// Returns at once when nothing runs.
pub(crate) fn wait(project: &Project, name: &str) -> Result<(AnyLane, LaneState), Error> {
    let asked = project.any_lane(name)?;
    loop {
        let (now, lock) = look(project, &asked)?;
        let Some(lock) = lock else { return Ok((now.lane, now.state)) };
        project.store.locks().wait_until_free(&lock)?;
    }
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
        let Some(number) = several.next(left)? else { return Ok(all) };
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
    let (state, detail) = effective_state(project, &lane)?;
    let name = || lane.name.clone();
    let lock = match state {
        LaneState::Starting | LaneState::Running => Some(LockName::Run(name())),
        LaneState::Orphaned if lane.state.is_claimed() => Some(LockName::Alive(name())),
        // The run is over; what it left in the background may go on for ever.
        LaneState::Orphaned => {
            let state = lane.state;
            return Ok((Waited { lane, state, over: true }, None));
        }
        _ => None,
    };
    // The record read here may be older than the supervisor's last word.
    let lane = AnyLane { detail, ..lane };
    Ok((Waited { lane, state, over: lock.is_none() }, lock))
}
