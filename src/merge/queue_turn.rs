//! Turn of a landing in the merge queue, and the outcomes of lanes that were removed while it waited.

use super::Error;
use super::outcome::{LaneOutcome, Verdict};
use super::pick_refusal::refuse_second_pick;
use super::request::LandingOptions;
use crate::lane::{self, Project};
use crate::process::is_ancestor_process;
use crate::store::records::{LaneRecord, LaneState};
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

/// Returns whether a lane has its branch and its worktree.
pub(super) fn has_branch_and_worktree(project: &Project, lane: &LaneRecord) -> bool {
    lane.path.join(".git").exists()
        && project.repo.branch_tip(&lane.kind.branch).is_ok_and(|tip| tip.is_some())
}

/// Returns the outcome of a lane that was removed while this landing waited or ran.
pub(super) fn removed_lane_outcome(
    project: &Project,
    lane: &LaneRecord,
    options: &LandingOptions<'_>,
) -> LaneOutcome {
    let onto = options.onto.unwrap_or(&lane.base);
    let removed_lanes = project.past_lanes().into_iter().map(|(_, past)| past);
    let landed = removed_lanes.filter(|past| past.name == lane.name && past.start == lane.start);
    let landed = landed.filter(|past| past.state == LaneState::Landed).find_map(|past| past.landed);
    if landed.is_some_and(|landed| landed.onto == onto) {
        let message = Some("another landing was faster".to_owned());
        return LaneOutcome {
            message,
            cleaned_up: true,
            ..LaneOutcome::new(&lane.name, onto, Verdict::AlreadyLanded)
        };
    }
    if options.pick
        && let Ok(Some(refused)) = refuse_second_pick(project, lane, onto)
    {
        return refused;
    }
    LaneOutcome::refused(&lane.name, onto, "it was removed before it could land")
}
