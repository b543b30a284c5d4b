//! Turn of a landing in the merge queue, after waiting for the landings before it.

use proq_base::process::identity::is_ancestor_process;
use proq_store::locks::lock::WaitLimit;
use proq_store::locks::merge_queue::{LandingRequest, Ticket};
use proq_store::records::lane::LaneRecord;

use crate::lane::Project;
use crate::lane::recovery;
use crate::merge::Error;
use crate::merge::types::options::LandingOptions;

/// Turn of a landing in the merge queue, with the named lanes that still exist then.
#[derive(Debug)]
#[must_use]
pub(crate) struct QueueTurn {
    /// Names of the named lanes that still exist; for a dry run, the names or branches as the user gave them.
    pub lanes: Vec<String>,
    /// Named lanes that were removed.
    pub removed: Vec<LaneRecord>,
    /// Ticket of the merge queue; dropping it lets the next landing start. None for a dry run, which does not
    /// wait.
    pub ticket: Option<Ticket>,
}

impl QueueTurn {
    /// Enters the merge queue and waits until it is the landing's turn.
    ///
    /// # Errors
    /// Fails at once, before the wait, if a named lane does not exist. Fails if the wait timed out.
    pub fn wait(project: &Project, options: &LandingOptions<'_>) -> Result<QueueTurn, Error> {
        if options.dry_run {
            return Ok(QueueTurn { lanes: options.lanes.to_vec(), removed: Vec::new(), ticket: None });
        }
        let named_lanes = options
            .lanes
            .iter()
            .map(|given_name| project.find_lane(given_name))
            .collect::<Result<Vec<_>, _>>()?;
        let lanes = named_lanes.iter().map(|lane| lane.name.to_string()).collect();
        let ticket = wait_in_queue(project, lanes, options.onto, options.queue_wait)?;
        let (present, removed) =
            named_lanes.into_iter().partition::<Vec<_>, _>(|lane| project.lane(&lane.name).is_ok());
        Ok(QueueTurn {
            lanes: present.into_iter().map(|lane| lane.name.into()).collect(),
            removed,
            ticket: Some(ticket),
        })
    }
}

/// Enters the merge queue, waits for the turn, and then recovers interrupted operations. `lanes` are the
/// names that the queue lists, of lanes or of what else is checked, and `onto` is the branch to land on, if
/// one is given for all of them.
///
/// # Errors
/// Fails if the wait timed out.
pub(crate) fn wait_in_queue(
    project: &Project,
    lanes: Vec<String>,
    onto: Option<&str>,
    wait: WaitLimit,
) -> Result<Ticket, Error> {
    let request = LandingRequest { lanes, onto: onto.map(ToOwned::to_owned) };
    let ticket = Ticket::acquire(project.store.locks(), request, wait, is_ancestor_process)?;
    // A previous process may have crashed in the middle of a landing.
    recovery::recover(project)?;
    Ok(ticket)
}
