//! Wait for the agents of lanes to finish.

use std::time::Duration;

use proq_base::lane_name::LaneName;
use proq_store::records::lane::AnyLane;
use proq_store::records::lane_state::LaneState;
use serde::Serialize;

use super::error::Error;
use super::reporter::{Progress, Reporter};
use crate::agent::control::wait::{WaitUntil, WaitedLane, wait_for_final_event, wait_for_lanes};
use crate::lane::Project;
use crate::lane::state::lane_state::effective_state;

/// Lanes to wait for.
#[derive(Debug, Clone, Default)]
pub struct WaitRequest {
    /// The lanes; if empty, every lane whose agent runs.
    pub lanes: Vec<AnyLane>,
    /// Condition that ends the wait.
    pub until: WaitUntil,
    /// Time after which the wait ends in any case; none for no limit.
    pub timeout: Option<Duration>,
}

/// Lanes that will be waited for.
#[derive(Debug, Clone)]
pub struct WaitPlan(WaitRequest);

/// JSON object of a lane that was waited for.
#[derive(Debug, Serialize)]
pub struct WaitedLaneRow {
    lane: LaneName,
    state: LaneState,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

/// Result of a wait.
#[derive(Debug, Serialize)]
pub struct WaitOutcome {
    /// The lanes as they are now, in order.
    pub lanes: Vec<WaitedLaneRow>,
    /// With [`WaitUntil::Any`], the lane that finished first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<LaneName>,
    /// Whether the time was up first.
    pub timed_out: bool,
    /// The lanes with their records, in order.
    #[serde(skip)]
    pub waited: Vec<WaitedLane>,
    /// States of the lanes that were reported as finished, in the order of the reports.
    #[serde(skip)]
    pub finished: Vec<LaneState>,
}

/// Returns the lanes whose agents start or run now.
pub(super) fn running_lanes(project: &Project) -> Result<Vec<AnyLane>, Error> {
    let mut lanes = Vec::new();
    for lane in project.all_lanes()? {
        if effective_state(project, &lane)?.0.is_busy() {
            lanes.push(lane);
        }
    }
    Ok(lanes)
}

/// Selects the lanes to wait for.
///
/// # Errors
/// Fails if the lanes cannot be read.
pub fn plan(project: &Project, request: &WaitRequest) -> Result<WaitPlan, Error> {
    let lanes = match request.lanes.as_slice() {
        [] => running_lanes(project)?,
        lanes => lanes.to_vec(),
    };
    Ok(WaitPlan(WaitRequest { lanes, ..request.clone() }))
}

impl WaitPlan {
    /// Returns the names of the lanes, in order.
    #[must_use]
    pub fn lane_names(&self) -> Vec<LaneName> {
        self.0.lanes.iter().map(|lane| lane.name.clone()).collect()
    }

    /// Returns whether there is no lane to wait for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.lanes.is_empty()
    }

    /// Waits, and reports each lane once its run and the event about it have ended.
    ///
    /// # Errors
    /// Fails if a lane has disappeared without a record, or the wait was canceled.
    pub fn execute(self, project: &Project, reporter: &dyn Reporter) -> Result<WaitOutcome, Error> {
        let _scope = reporter.enter_cancellation();
        let WaitRequest { lanes, until, timeout } = self.0;
        let (mut first, mut finished) = (None, Vec::new());
        let waited = wait_for_lanes(project, &lanes, until, timeout, &mut |waited| {
            // If waiting fails, the event is only notified later.
            drop(wait_for_final_event(project, &waited.lane));
            reporter.progress(Progress::RunEnded(waited));
            first.get_or_insert_with(|| waited.lane.name.clone());
            finished.push(waited.state);
        })?;
        let lanes = waited.iter().map(WaitedLaneRow::new).collect();
        let first = first.filter(|_| until == WaitUntil::Any);
        let timed_out = waited.iter().any(|waited| !waited.is_finished)
            && (until == WaitUntil::All || finished.is_empty());
        Ok(WaitOutcome { lanes, first, timed_out, waited, finished })
    }
}

impl WaitOutcome {
    /// Returns how many of the runs still go on.
    #[must_use]
    pub fn running_count(&self) -> usize {
        self.waited.iter().filter(|waited| !waited.is_finished).count()
    }
}

impl WaitedLaneRow {
    fn new(WaitedLane { lane, state, .. }: &WaitedLane) -> WaitedLaneRow {
        WaitedLaneRow { lane: lane.name.clone(), state: *state, detail: lane.detail.clone() }
    }
}
