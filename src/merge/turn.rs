//! Owns a landing's turn: its place in the queue, and what became of its lanes while it waited there.

use super::Error;
use super::attempts::refuse_second_pick;
use super::outcome::{Outcome, Verdict};
use super::request::Request;
use crate::lane::{self, Project};
use crate::process::is_ancestor;
use crate::store::records::{LaneRecord, LaneState};
use crate::store::{Ticket, Wanted};

/// A landing whose turn has come.
#[derive(Debug)]
#[must_use]
pub(super) struct Turn {
    /// The lanes that were named and are still there.
    pub(super) lanes: Vec<String>,
    /// What became of the others.
    pub(super) gone: Vec<Outcome>,
    /// Dropping it lets the next one go on. None for one that changes nothing, and so waits for nobody.
    pub(super) ticket: Option<Ticket>,
}

impl Turn {
    /// Queues up and waits.
    ///
    /// # Errors
    /// When there is no lane of a name that was given: at once, rather than after the wait. When the wait was given up.
    pub(super) fn wait(project: &Project, request: &Request<'_>) -> Result<Turn, Error> {
        if request.dry_run {
            return Ok(Turn { lanes: request.lanes.to_vec(), gone: Vec::new(), ticket: None });
        }
        let named = request.lanes.iter().map(|asked| project.lane(asked)).collect::<Result<Vec<_>, _>>()?;
        let lanes = named.iter().map(|lane| lane.name.clone()).collect();
        let wanted = Wanted { lanes, onto: request.onto.map(ToOwned::to_owned) };
        let ticket = Ticket::take(project.store.locks(), wanted, request.patience, is_ancestor)?;
        // Whoever was before may have died in the middle of it.
        lane::recover(project)?;
        let (there, gone) = named.into_iter().partition::<Vec<_>, _>(|lane| project.lane(&lane.name).is_ok());
        Ok(Turn {
            lanes: there.into_iter().map(|lane| lane.name).collect(),
            gone: gone.iter().map(|lane| became(project, lane, request)).collect(),
            ticket: Some(ticket),
        })
    }
}

/// Whether a lane has its branch and its worktree.
pub(super) fn is_whole(project: &Project, lane: &LaneRecord) -> bool {
    lane.path.join(".git").exists()
        && project.repo.branch_tip(&lane.place.branch).is_ok_and(|tip| tip.is_some())
}

/// What became of a lane that was there when this landing came.
pub(super) fn became(project: &Project, lane: &LaneRecord, request: &Request<'_>) -> Outcome {
    let wanted = request.onto.unwrap_or(&lane.base);
    let past = project.past_lanes().into_iter().map(|(_, past)| past);
    let landed = past.filter(|past| past.name == lane.name && past.start == lane.start);
    let landed = landed.filter(|past| past.state == LaneState::Landed).find_map(|past| past.landed);
    if landed.is_some_and(|landed| landed.onto == wanted) {
        let message = Some("another landing was faster".to_owned());
        return Outcome {
            message,
            cleaned_up: true,
            ..Outcome::new(&lane.name, wanted, Verdict::AlreadyLanded)
        };
    }
    if request.pick
        && let Ok(Some(refused)) = refuse_second_pick(project, lane, wanted)
    {
        return refused;
    }
    Outcome::refused(&lane.name, wanted, "it was removed before it could land")
}
