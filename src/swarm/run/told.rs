//! Owns telling the repository's event log of what a batch has come to.

use super::known::Known;
use crate::event::{Event, Name};
use crate::lane::Project;
use crate::swarm::batch::{Batch, Proof};
use crate::swarm::schedule::{Action, Outcome, PauseReason};

/// Tells of what somebody may wait for. What it tells of is in the batch's own log.
pub(super) fn told(
    project: &Project,
    batch: &Batch,
    known: &Known,
    (action, proof): (&Action, Option<&Proof>),
) {
    let id = batch.id();
    let (name, text) = match action {
        Action::MarkOver { outcome } => {
            let how = match outcome {
                Outcome::Complete => "all of it is done",
                Outcome::Partly => "it is over, and not all of it landed",
                Outcome::Stopped => "a failure ended it",
                Outcome::Aborted => "it was aborted",
            };
            let criteria = proof.map(|proof| format!("; {}", proof.in_words())).unwrap_or_default();
            (Name::BatchEnded, format!("batch {id}: {how}{criteria}"))
        }
        Action::MarkPaused { why } => {
            let why = match why {
                PauseReason::Asked => "it is paused".to_owned(),
                PauseReason::Merge(task) => format!("it is paused: {} cannot land", batch.name(*task)),
                PauseReason::Budget => "it is paused: it has cost what it may".to_owned(),
            };
            (Name::BatchPaused, format!("batch {id}: {why}"))
        }
        Action::MarkFailed { task, .. } => {
            let why = known.details.get(task).map(|why| format!(": {why}")).unwrap_or_default();
            (Name::TaskFailed, format!("batch {id}: {} failed{why}", batch.name(*task)))
        }
        _ => return,
    };
    project.tell_event(Event::now(name, text));
}
