//! Waiting for runs to finish: of one or several lanes, for all of them or the first, with or without a time
//! limit.

use std::time::{Duration, Instant};

use proq_store::Store;
use proq_store::locks::lock::LockName;
use proq_store::locks::wait_many::LockWaitSet;
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::LaneState;

use crate::agent::Error;
use crate::lane::Project;
use crate::lane::context::lane_records;
use crate::lane::inspection::idle_lane;

/// Interval at which the states of interactive agents are read. It is short because the user is waiting.
const INTERACTIVE_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum time that a supervisor may need between writing the final state and writing the event.
const FINAL_EVENT_TIMEOUT: Duration = Duration::from_secs(1);

/// Condition that ends the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WaitUntil {
    /// All runs have finished.
    #[default]
    All,
    /// One run has finished.
    Any,
}

/// A lane whose run is or was waited for.
#[derive(Debug, Clone)]
#[must_use]
pub struct WaitedLane {
    /// Record of the lane, with the detail of its displayed state.
    pub lane: AnyLane,
    /// State of the lane.
    pub state: LaneState,
    /// Whether the run that was waited for has finished.
    pub is_finished: bool,
    /// Whether the lane's agent works on a screen, where its turn may end while its process continues.
    is_interactive: bool,
}

/// Waits until the supervisor has written its event, which follows the state, so that the event log has it
/// when a wait returns.
///
/// # Errors
/// Fails if the lock of the run cannot be examined.
pub fn wait_for_final_event(store: &Store, lane: &AnyLane) -> Result<(), Error> {
    let started = Instant::now();
    let lock = LockName::Run(lane.name.clone());
    // The session of an idle interactive agent continues.
    while started.elapsed() < FINAL_EVENT_TIMEOUT
        && !idle_lane::is_agent_idle(store, lane)
        && store.locks().is_held(&lock)?
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Waits until the runs of lanes have finished, for at most `limit`, and returns the current state of all
/// lanes in the given order.
///
/// With [`WaitUntil::All`], `on_finished` is called for each finished lane in the given order, once all lanes
/// before it have finished. With [`WaitUntil::Any`] it is called only for the first lane to finish.
///
/// # Errors
/// Fails when a lane has disappeared without a record.
pub fn wait_for_lanes(
    project: &Project,
    requested: &[AnyLane],
    until: WaitUntil,
    limit: Option<Duration>,
    on_finished: &mut dyn FnMut(&WaitedLane),
) -> Result<Vec<WaitedLane>, Error> {
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    let (locks, lock_waits) = (project.store.locks(), LockWaitSet::new());
    let (mut all, mut held_locks) = (Vec::new(), Vec::new());
    for lane in requested {
        let (current, lock) = read_waited_lane(project, lane)?;
        all.push(current);
        held_locks.push(lock);
    }
    if until == WaitUntil::Any
        && let Some(finished) = all.iter().find(|waited| waited.is_finished)
    {
        on_finished(finished);
        return Ok(all);
    }
    for (index, lock) in held_locks.iter().enumerate() {
        lock.iter().try_for_each(|lock| lock_waits.add_lock(index, locks, lock))?;
    }
    let mut reported = 0;
    loop {
        while until == WaitUntil::All && all.get(reported).is_some_and(|waited| waited.is_finished) {
            on_finished(&all[reported]);
            reported += 1;
        }
        let remaining = deadline.map(|deadline_at| deadline_at.saturating_duration_since(Instant::now()));
        if all.iter().all(|waited| waited.is_finished) {
            return Ok(all);
        }
        // No lock signals that an interactive agent has ended its turn.
        let poll_interval =
            all.iter().any(|waited| waited.is_interactive).then_some(INTERACTIVE_POLL_INTERVAL);
        let Some(index) = lock_waits.next_free(remaining.into_iter().chain(poll_interval).min())? else {
            if remaining.is_some_and(|remaining| poll_interval.is_none_or(|interval| remaining <= interval)) {
                return Ok(all);
            }
            for (waited, lane) in all.iter_mut().zip(requested).filter(|(waited, _)| waited.is_interactive) {
                *waited = read_waited_lane(project, lane)?.0;
                if until == WaitUntil::Any && waited.is_finished {
                    on_finished(waited);
                    return Ok(all);
                }
            }
            continue;
        };
        let (current, lock) = read_waited_lane(project, &requested[index])?;
        all[index] = current;
        match lock {
            // The run lock is free, but the agent is still alive.
            Some(lock) => lock_waits.add_lock(index, locks, &lock)?,
            None if until == WaitUntil::Any => {
                on_finished(&all[index]);
                return Ok(all);
            }
            None => {}
        }
    }
}

/// Reads a lane's current state, and the lock that is held while its run lasts. Returns no lock when the run
/// has finished.
fn read_waited_lane(project: &Project, requested: &AnyLane) -> Result<(WaitedLane, Option<LockName>), Error> {
    // A lane with automatic merge may be gone right after its run.
    let (_, lane) = lane_records::load_present_or_past_lane(project, requested)?;
    let (state, detail) = idle_lane::displayed_state(project, &lane)?;
    let is_interactive = state == LaneState::Running && idle_lane::is_interactive(&project.store, &lane);
    let name = || lane.name.clone();
    let lock = match state {
        LaneState::Starting | LaneState::Running => Some(LockName::Run(name())),
        LaneState::Orphaned if lane.state().is_claimed() => Some(LockName::AgentAlive(name())),
        // The run has finished. The processes it left in the background may never exit.
        LaneState::Orphaned => {
            let state = lane.state();
            return Ok((WaitedLane { lane, state, is_finished: true, is_interactive }, None));
        }
        _ => None,
    };
    // The record read here may be older than the supervisor's last update.
    let lane = AnyLane { detail, ..lane };
    Ok((WaitedLane { lane, state, is_finished: lock.is_none(), is_interactive }, lock))
}
