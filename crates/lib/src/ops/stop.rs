//! Stop of lanes' agents.

use std::collections::BTreeMap;

use proq_base::lane_name::LaneName;
use proq_store::records::lane::AnyLane;
use serde::Serialize;

use super::error::Error;
use super::reporter::{Progress, Reporter};
use super::wait::running_lanes;
use crate::agent::control::stop;
use crate::lane::Project;
use crate::lane::messages::inbox::Inbox;

/// Lanes whose agents are to stop.
#[derive(Debug, Clone, Default)]
pub struct StopRequest {
    /// The lanes; none for every lane whose agent runs.
    pub lanes: Option<Vec<AnyLane>>,
    /// Whether agents are first requested to finish by themselves, within `agent.abort_grace`.
    pub wrap_up: bool,
}

/// Lanes whose agents will be stopped.
#[derive(Debug, Clone)]
pub struct StopPlan {
    /// The lanes, in order.
    pub lanes: Vec<AnyLane>,
    /// Whether agents are first requested to finish.
    wrap_up: bool,
}

/// Agents that were or would be stopped.
#[derive(Debug, Serialize)]
pub struct StopOutcome {
    /// Lanes whose agents were stopped, in order.
    pub stopped: Vec<LaneName>,
    /// Number of pending messages by lane name, for those of these lanes that have any.
    #[serde(rename = "waiting", skip_serializing_if = "BTreeMap::is_empty")]
    pub pending_message_counts: BTreeMap<LaneName, usize>,
    /// Whether nothing was changed.
    pub dry_run: bool,
}

/// Selects the lanes whose agents will be stopped.
///
/// # Errors
/// Fails if the lanes cannot be read.
pub fn plan(project: &Project, request: &StopRequest) -> Result<StopPlan, Error> {
    let lanes = match &request.lanes {
        Some(lanes) => lanes.clone(),
        None => running_lanes(project)?,
    };
    Ok(StopPlan { lanes, wrap_up: request.wrap_up })
}

impl StopPlan {
    /// Returns what [`StopPlan::execute`] would do if every agent stops.
    #[must_use]
    pub fn forecast(&self, project: &Project) -> StopOutcome {
        let stopped = self.lanes.iter().map(|lane| lane.name.clone()).collect();
        StopOutcome { dry_run: true, ..StopOutcome::new(project, stopped) }
    }

    /// Stops the agents one after the other, and reports each. One that cannot be stopped is left out of the
    /// outcome.
    #[must_use]
    pub fn execute(self, project: &Project, reporter: &dyn Reporter) -> StopOutcome {
        let _scope = reporter.enter_cancellation();
        let mut stopped = Vec::new();
        for AnyLane { name, .. } in self.lanes {
            let result = match self.wrap_up {
                true => stop::stop_after_wrap_up(project, &name, project.settings.abort_grace),
                false => stop::stop(project, &name),
            };
            match result {
                Ok(lane) => {
                    reporter.progress(Progress::AgentStopped(&lane));
                    stopped.push(name);
                }
                Err(e) => reporter.progress(Progress::StopFailed(&e.into())),
            }
        }
        StopOutcome::new(project, stopped)
    }
}

impl StopOutcome {
    fn new(project: &Project, stopped: Vec<LaneName>) -> StopOutcome {
        let count = |name: &LaneName| (name.clone(), Inbox::new(&project.store, name).count());
        let pending = stopped.iter().map(count).filter(|(_, count)| *count > 0).collect();
        StopOutcome { stopped, pending_message_counts: pending, dry_run: false }
    }
}
