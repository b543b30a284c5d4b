//! Planning by an agent: requests for a plan or for the missing dependencies of one, their prompts, and the
//! parsing of the answers.

mod agent_choice;
mod agent_query;
mod answer_json;
mod criteria_review;
mod draft_session;
mod json_extract;
mod missing_needs;
mod prompt;
mod repo_context;

pub(crate) use agent_choice::choose_agent;
pub(crate) use agent_query::{AgentQuery, failed_to_resume};
pub(crate) use answer_json::RawNeed;
pub(crate) use criteria_review::{CriteriaReview, CriterionVerdict, ReviewOutcome, remove_review_lane};
pub(crate) use draft_session::{AnswerOutcome, DraftRequest, DraftSession, is_agent_busy, refresh_draft};
pub(crate) use missing_needs::{MissingNeedsSearch, forget_proposals};
pub(crate) use prompt::SourceFile;

use crate::store::Moment;
use crate::store::records::AnyLane;

/// Returns whether a lane is the detached conversation lane that was created at `created`.
fn is_conversation_lane(lane: &AnyLane, created: Moment) -> bool {
    lane.created == created && lane.is_detached()
}
