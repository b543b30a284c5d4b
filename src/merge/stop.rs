//! Owns ending the agents that still run in the lanes of a landing, before it looks at them.

use super::Error;
use super::outcome::Outcome;
use super::request::Request;
use crate::agent;
use crate::explain::Explain;
use crate::lane::{self, Project, effective_state};
use crate::store::records::LaneRecord;

/// What became of the agents.
#[derive(Debug, Default)]
#[must_use]
pub(super) struct Stopped {
    /// The lanes whose agents were ended; in a dry run, would be.
    pub(super) lanes: Vec<String>,
    /// The lanes whose agents could not be ended, and why.
    pub(super) refused: Vec<Outcome>,
}

/// Ends the agents of the lanes that are asked for, if that is asked for too. One that ends by itself meanwhile counts for
/// what it did.
///
/// # Errors
/// When the lanes cannot be read, or a signal ended it. An agent that cannot be ended is no error: its lane is refused.
pub(super) fn stop_agents(project: &Project, request: &Request<'_>) -> Result<Stopped, Error> {
    let mut out = Stopped::default();
    if request.stop.is_none() && request.ends.is_empty() {
        return Ok(out);
    }
    let lanes: Vec<LaneRecord> = if request.all {
        project.lanes()?
    } else {
        request.lanes.iter().map(|name| project.lane(name)).collect::<Result<_, _>>()?
    };
    for lane in lanes {
        if !effective_state(project, &lane)?.0.is_busy() || out.lanes.contains(&lane.name) {
            continue;
        }
        // It may have been told more since it was asked about.
        let may_end = || request.ends.contains(&lane.name);
        if request.stop.is_none() && !(may_end() && lane::rests(project, &lane)?) {
            continue;
        }
        if request.dry_run {
            out.lanes.push(lane.name);
            continue;
        }
        crate::interrupt::check()?;
        match agent::stop(project, &lane.name) {
            Ok(_) => {
                project.listener.step(format!("stopped the agent of '{}'", lane.name));
                out.lanes.push(lane.name);
            }
            Err(agent::Error::NotRunning { .. }) => {}
            Err(e) => {
                let onto = request.onto.unwrap_or(&lane.base);
                let hints = e.hints().iter().map(ToString::to_string).collect();
                let refused = Outcome::refused(&lane.name, onto, e.to_string());
                out.refused.push(Outcome { hints, exit: Some(e.exit()), ..refused });
            }
        }
    }
    Ok(out)
}
