//! Stop of agents that still run in the lanes of a landing, before the lanes are examined.

use proq_base::explain::Explain;
use proq_base::lane_name::LaneName;

use crate::agent;
use crate::agent::control::stop;
use crate::lane::Project;
use crate::lane::inspection::idle_lane;
use crate::lane::state::lane_state::effective_state;
use crate::merge::Error;
use crate::merge::types::options::Landing;
use crate::merge::types::outcome::LaneOutcome;

/// Result of stopping the agents.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct StoppedAgents {
    /// Lanes whose agents were stopped; in a dry run, would be.
    pub lanes: Vec<LaneName>,
    /// Outcomes of lanes whose agents could not be stopped.
    pub refused: Vec<LaneOutcome>,
}

/// Stops the agents of the requested lanes, if the landing may do that. An agent that finishes concurrently
/// is not counted as stopped.
///
/// # Errors
/// Fails when the lanes cannot be read, or a signal ended it. An agent that cannot be stopped is no error:
/// its lane is refused.
pub(crate) fn stop_agents(project: &Project, landing: &Landing) -> Result<StoppedAgents, Error> {
    let mut out = StoppedAgents::default();
    if landing.stopped_lanes.is_none() && landing.endable_sessions.is_empty() {
        return Ok(out);
    }
    let lanes = if landing.options.all { project.owned_lanes()? } else { landing.lanes.clone() };
    for lane in lanes {
        if !effective_state(project, &lane)?.0.is_busy() || out.lanes.contains(&lane.name) {
            continue;
        }
        // The agent may have received another message since the caller found it idle.
        let is_endable = || landing.endable_sessions.contains(&lane.name);
        if landing.stopped_lanes.is_none() && !(is_endable() && idle_lane::is_idle_with_work(project, &lane)?)
        {
            continue;
        }
        if landing.dry_run {
            out.lanes.push(lane.name);
            continue;
        }
        proq_base::interrupt::require_no_signal()?;
        match stop::stop(project, &lane.name) {
            Ok(_) => {
                project.listener.step_done(format!("stopped the agent of '{}'", lane.name));
                out.lanes.push(lane.name);
            }
            Err(agent::Error::NotRunning { .. }) => {}
            Err(e) => {
                let onto = landing.options.onto.as_ref().unwrap_or(&lane.base);
                let hints = e.hints();
                let outcome = LaneOutcome::refused(&lane.name, onto, e.to_string());
                out.refused.push(LaneOutcome { hints, exit_code: Some(e.exit()), ..outcome });
            }
        }
    }
    Ok(out)
}
