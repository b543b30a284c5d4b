//! Turn of a landing in the merge queue, after waiting for the landings before it.

use super::Error;
use super::options::LandingOptions;
use crate::lane::{self, Project};
use crate::process::is_ancestor_process;
use crate::store::records::LaneRecord;
use crate::store::{LandingRequest, Ticket, WaitLimit};

/// Turn of a landing in the merge queue, with the named lanes that still exist then.
#[derive(Debug)]
#[must_use]
pub(super) struct QueueTurn {
    /// Named lanes that still exist.
    pub(super) lanes: Vec<String>,
    /// Named lanes that were removed.
    pub(super) removed: Vec<LaneRecord>,
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
        let ticket = wait_in_queue(project, lanes, options.onto, options.queue_wait)?;
        let (present, removed) =
            named_lanes.into_iter().partition::<Vec<_>, _>(|lane| project.lane(&lane.name).is_ok());
        Ok(QueueTurn {
            lanes: present.into_iter().map(|lane| lane.name).collect(),
            removed,
            ticket: Some(ticket),
        })
    }
}

/// Enters the merge queue and waits for the turn. `lanes` are the names that the queue lists, and `onto` is
/// the branch to land on, if one is given for all of them.
///
/// # Errors
/// Fails if the wait timed out.
pub(super) fn wait_in_queue(
    project: &Project,
    lanes: Vec<String>,
    onto: Option<&str>,
    wait: WaitLimit,
) -> Result<Ticket, Error> {
    let request = LandingRequest { lanes, onto: onto.map(ToOwned::to_owned) };
    let ticket = Ticket::acquire(project.store.locks(), request, wait, is_ancestor_process)?;
    // A previous process may have crashed in the middle of a landing.
    lane::recover(project)?;
    Ok(ticket)
}
