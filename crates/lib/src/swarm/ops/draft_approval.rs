//! Approval of a draft by the user.

use proq_plan::schedule::options::BatchOptions;

use super::draft_view::{DraftView, read_idle_draft, resolve_draft};
use super::named_plan::NamedPlan;
use crate::lane::Project;
use crate::ops::error::Error;
use crate::ops::refusal::{Refusal, refuse_in_lane};
use crate::ops::reporter::{Question, Reporter};
use crate::swarm::planner::draft_error::DraftError;
use crate::swarm::planner::drafts;
use crate::swarm::planner::drafts::Draft;

/// Request to approve a draft.
#[derive(Debug, Clone, Default)]
pub struct ApproveDraftRequest {
    /// The draft; no source for the only one.
    pub plan: NamedPlan,
    /// Whether the caller has read the draft, so that no question is needed.
    pub is_confirmed: bool,
    /// Options with which the plan is simulated.
    pub options: BatchOptions,
    /// Lane in which the caller works, if any.
    pub calling_lane: Option<String>,
}

/// A draft that would be approved.
pub struct ApproveDraftPlan {
    /// The draft as it is shown before the approval.
    pub view: DraftView,
    draft: Draft,
    request: ApproveDraftRequest,
}

/// Finds the draft and checks that it has a plan.
///
/// # Errors
/// Fails in a lane, while the draft's agent runs, and without a plan.
pub fn plan(project: &Project, request: &ApproveDraftRequest) -> Result<ApproveDraftPlan, Error> {
    refuse_in_lane(request.calling_lane.as_deref())?;
    let draft = read_idle_draft(project, &resolve_draft(project, &request.plan)?)?;
    let view = DraftView::compute(project, &draft, &request.options)?;
    Ok(ApproveDraftPlan { view, draft, request: request.clone() })
}

impl ApproveDraftPlan {
    /// Approves the draft if the reporter's person agrees, or has agreed before.
    ///
    /// # Errors
    /// [`DraftError::ApprovalRequired`] without a person, [`DraftError::ChangedSinceShown`].
    pub fn execute(self, project: &Project, reporter: &dyn Reporter) -> Result<DraftView, Error> {
        let name = &self.draft.record.name;
        if !self.view.is_approved && !self.request.is_confirmed {
            if !reporter.can_prompt_user() {
                return Err(DraftError::ApprovalRequired {
                    question: format!("draft '{name}' may be run"),
                    approve_command: format!("git proq plan --approve --yes {name}"),
                }
                .into());
            }
            if !reporter.confirm(Question::ApproveDraft { name }) {
                return Err(Refusal::Declined.into());
            }
        }
        let record = drafts::approve(project, &self.draft)?;
        DraftView::compute(project, &Draft { record, plan: self.draft.plan }, &self.request.options)
    }
}
