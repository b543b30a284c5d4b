//! Wait for a landing's turn in the merge queue, and the records of its lanes then.

use proq_base::process::identity::is_ancestor_process;
use proq_store::locks::lock::WaitLimit;
use proq_store::locks::merge_queue::{LandingRequest, Ticket};
use proq_store::records::lane::LaneRecord;

use crate::event::log::{Event, EventName};
use crate::lane::Project;
use crate::lane::recovery;
use crate::merge::Error;
use crate::merge::types::options::Landing;

/// Enters the merge queue and waits until it is the landing's turn. Dropping the ticket lets the next landing
/// start; a dry run has none and does not wait.
///
/// # Errors
/// Fails if the wait timed out.
pub(crate) fn wait_for_turn(project: &Project, landing: &Landing) -> Result<Option<Ticket>, Error> {
    if landing.dry_run {
        return Ok(None);
    }
    let options = &landing.options;
    let names = landing.lanes.iter().map(|lane| lane.name.to_string()).collect();
    wait_to_land(project, names, options.onto.as_deref(), options.queue_wait).map(Some)
}

/// Reads the records of lanes again. Returns those that still exist, and the old records of the others.
pub(crate) fn reload_lanes(project: &Project, lanes: &[LaneRecord]) -> (Vec<LaneRecord>, Vec<LaneRecord>) {
    let (mut present, mut removed) = (Vec::new(), Vec::new());
    for lane in lanes {
        match project.lane(&lane.name) {
            Ok(current) => present.push(current),
            Err(_) => removed.push(lane.clone()),
        }
    }
    (present, removed)
}

/// Enters the merge queue, waits for the turn of a landing, and then recovers interrupted operations. `lanes`
/// are the names that the queue lists, none for all that are done, and `onto` is the branch to land on, if one is
/// given for all of them. Emits an event if there are landings ahead.
///
/// # Errors
/// Fails if the wait timed out.
pub(crate) fn wait_to_land(
    project: &Project,
    lanes: Vec<String>,
    onto: Option<&str>,
    wait: WaitLimit,
) -> Result<Ticket, Error> {
    let request = LandingRequest { lanes, onto: onto.map(ToOwned::to_owned) };
    let (message, lanes) = (format!("waiting to land: {}", request.describe()), request.lanes.clone());
    wait_for_ticket(project, request, wait, &|| {
        let event = Event::new(EventName::MergeQueued, message.as_str());
        project.emit_event(event.with_lanes(&lanes));
    })
}

/// Enters the merge queue for checks that land nothing, waits for the turn however long that takes, and then
/// recovers interrupted operations. `checked` are the names that the queue lists.
pub(crate) fn wait_to_check(project: &Project, checked: Vec<String>) -> Result<Ticket, Error> {
    let request = LandingRequest { lanes: checked, onto: None };
    wait_for_ticket(project, request, WaitLimit::Forever, &|| {})
}

fn wait_for_ticket(
    project: &Project,
    request: LandingRequest,
    wait: WaitLimit,
    on_wait: &dyn Fn(),
) -> Result<Ticket, Error> {
    let ticket = Ticket::acquire(project.store.locks(), request, wait, is_ancestor_process, on_wait)?;
    // A previous process may have crashed in the middle of a landing.
    recovery::recover(project)?;
    Ok(ticket)
}
