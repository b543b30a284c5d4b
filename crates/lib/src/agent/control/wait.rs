//! Waiting for runs to finish: of one or several lanes, for all of them or the first, with or without a time
//! limit.

use std::time::{Duration, Instant};

use proq_base::interrupt::Interrupted;
use proq_store::locks::lock::LockName;
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::LaneState;

use crate::agent::Error;
use crate::lane::Project;
use crate::lane::context::lane_records;
use crate::lane::inspection::idle_lane;
use crate::watch::watcher::{Watch, WatchOutcome};

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
pub fn wait_for_final_event(project: &Project, lane: &AnyLane) -> Result<(), Error> {
    // The session of an idle interactive agent continues.
    if !idle_lane::is_agent_idle(&project.store, lane) {
        let mut watch = Watch::new(project)?;
        watch.add_lock(&LockName::Run(lane.name.clone()))?;
        let _ = watch.wait(Some(FINAL_EVENT_TIMEOUT))?;
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
/// Fails when a lane has disappeared without a record, and when a signal was received that is deferred or the
/// wait was canceled.
pub fn wait_for_lanes(
    project: &Project,
    requested: &[AnyLane],
    until: WaitUntil,
    limit: Option<Duration>,
    on_finished: &mut dyn FnMut(&WaitedLane),
) -> Result<Vec<WaitedLane>, Error> {
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    let (mut watch, mut all) = (Watch::new(project)?, Vec::new());
    for lane in requested {
        all.push(read_waited_lane(project, &mut watch, lane)?);
    }
    if until == WaitUntil::Any
        && let Some(finished) = all.iter().find(|waited| waited.is_finished)
    {
        on_finished(finished);
        return Ok(all);
    }
    let mut reported = 0;
    loop {
        while until == WaitUntil::All && all.get(reported).is_some_and(|waited| waited.is_finished) {
            on_finished(&all[reported]);
            reported += 1;
        }
        if all.iter().all(|waited| waited.is_finished) {
            return Ok(all);
        }
        let remaining = deadline.map(|deadline_at| deadline_at.saturating_duration_since(Instant::now()));
        let (subjects, free_locks) = match watch.wait_throttled(remaining)? {
            WatchOutcome::Changed { subjects, free_locks } => (subjects, free_locks),
            WatchOutcome::TimedOut => return Ok(all),
            WatchOutcome::Signal => return Err(proq_store::Error::from(Interrupted::current()).into()),
        };
        // In the order in which the locks were released.
        let mut changed: Vec<usize> = Vec::new();
        for lock in &free_locks {
            let (LockName::Run(name) | LockName::AgentAlive(name)) = lock else { continue };
            changed.extend((0..all.len()).filter(|index| requested[*index].name == *name));
        }
        let is_watched = |index: &usize| !subjects.is_empty() && all[*index].is_interactive;
        changed.extend((0..all.len()).filter(is_watched));
        for index in changed {
            all[index] = read_waited_lane(project, &mut watch, &requested[index])?;
            if until == WaitUntil::Any && all[index].is_finished {
                on_finished(&all[index]);
                return Ok(all);
            }
        }
    }
}

/// Reads a lane's current state, and watches for the end of its run unless that is over.
fn read_waited_lane(
    project: &Project,
    watch: &mut Watch<'_>,
    requested: &AnyLane,
) -> Result<WaitedLane, Error> {
    loop {
        // A lane with automatic merge may be gone right after its run.
        let (_, lane) = lane_records::load_present_or_past_lane(project, requested)?;
        let (state, detail) = idle_lane::displayed_state(project, &lane)?;
        let is_interactive = state == LaneState::Running && idle_lane::is_interactive(&project.store, &lane);
        if state == LaneState::Orphaned && !lane.state().is_claimed() {
            // The run has finished. The processes it left in the background may never exit.
            let state = lane.state();
            return Ok(WaitedLane { lane, state, is_finished: true, is_interactive });
        }
        if !watch.add_run_end(&lane, state)? {
            // The record read here may be older than the supervisor's last update.
            let lane = AnyLane { detail, ..lane };
            return Ok(WaitedLane { lane, state, is_finished: !state.is_busy(), is_interactive });
        }
    }
}
