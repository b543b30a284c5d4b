//! Events about a batch for the repository's event log.

use proq_plan::schedule::action::{Action, BatchOutcome, PauseReason};

use crate::event::log::{Event, EventName};
use crate::lane::Project;
use crate::swarm::batch::criteria_report::CriteriaReport;
use crate::swarm::batch::log_summary::LogSummary;
use crate::swarm::batch::record::Batch;

/// Adds an event to the repository's event log for an action that users may wait for. The batch's own log has
/// it already.
pub(super) fn emit_batch_event(
    project: &Project,
    batch: &Batch,
    known: &LogSummary,
    (action, report): (&Action, Option<&CriteriaReport>),
) {
    let id = batch.id();
    let (name, text) = match action {
        Action::MarkFinished { outcome } => {
            let outcome_text = match outcome {
                BatchOutcome::Complete => "all of it is done",
                BatchOutcome::Partial => "it ended, and not all of it was merged",
                BatchOutcome::Stopped => "a failure stopped it",
                BatchOutcome::Aborted => "it was aborted",
            };
            let criteria = report.map(|report| format!("; {}", report.describe())).unwrap_or_default();
            (EventName::BatchEnded, format!("batch {id}: {outcome_text}{criteria}"))
        }
        Action::MarkPaused { reason } => {
            let reason_text = match reason {
                PauseReason::Requested => "it is paused".to_owned(),
                PauseReason::LandingFailed(task) => {
                    format!("it is paused: {} cannot land", batch.task_name(*task))
                }
                PauseReason::BudgetSpent => "it is paused: it has used up its budget".to_owned(),
            };
            (EventName::BatchPaused, format!("batch {id}: {reason_text}"))
        }
        Action::MarkFailed { task, .. } => {
            let reason_suffix =
                known.last_details.get(task).map(|detail| format!(": {detail}")).unwrap_or_default();
            (EventName::TaskFailed, format!("batch {id}: {} failed{reason_suffix}", batch.task_name(*task)))
        }
        _ => return,
    };
    project.emit_event(Event::new(name, text));
}
