//! Turn of a landing in the merge queue, after waiting for the landings before it.

use super::Error;
use super::lane_refusal::removed_lane_outcome;
use super::options::LandingOptions;
use super::outcome::LaneOutcome;
use crate::lane::{self, Project};
use crate::process::is_ancestor_process;
use crate::store::{LandingRequest, Ticket};

/// Turn of a landing in the merge queue, with the named lanes that still exist then.
#[derive(Debug)]
#[must_use]
pub(super) struct QueueTurn {
    /// Named lanes that still exist.
    pub(super) lanes: Vec<String>,
    /// Outcomes of named lanes that were removed.
    pub(super) removed: Vec<LaneOutcome>,
    /// Ticket of the merge queue; dropping it lets the next landing start. None for a dry run, which does not
    /// wait.
    pub(super) ticket: Option<Ticket>,
}

impl QueueTurn {
    /// Enters the merge queue and waits until it is the landing's turn.
    ///
    /// # Errors
    /// Fails at once, before the wait, if a named lane does not exist. Fails if the wait timed out.
    pub(super) fn wait(project: &Project, options: &LandingOptions<'_>) -> Result<QueueTurn, Error> {
        if options.dry_run {
            return Ok(QueueTurn { lanes: options.lanes.to_vec(), removed: Vec::new(), ticket: None });
        }
        let named_lanes =
            options.lanes.iter().map(|given_name| project.lane(given_name)).collect::<Result<Vec<_>, _>>()?;
        let lanes = named_lanes.iter().map(|lane| lane.name.clone()).collect();
        let landing_request = LandingRequest { lanes, onto: options.onto.map(ToOwned::to_owned) };
        let ticket =
            Ticket::acquire(project.store.locks(), landing_request, options.queue_wait, is_ancestor_process)?;
        // A previous process may have crashed in the middle of a landing.
        lane::recover(project)?;
        let (present, gone) =
            named_lanes.into_iter().partition::<Vec<_>, _>(|lane| project.lane(&lane.name).is_ok());
        Ok(QueueTurn {
            lanes: present.into_iter().map(|lane| lane.name).collect(),
            removed: gone.iter().map(|lane| removed_lane_outcome(project, lane, options)).collect(),
            ticket: Some(ticket),
        })
    }
}
