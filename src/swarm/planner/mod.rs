//! Planning by an agent: requests for a plan or for the missing dependencies of one, their prompts, and the
//! parsing of the answers.

mod agent_query;
mod answer_json;
mod criteria_review;
mod draft_session;
mod json_extract;
mod missing_needs;
mod prompt;
mod repo_context;

pub(crate) use agent_query::{AgentQuery, choose_agent, failed_to_resume};
pub(crate) use answer_json::RawNeed;
pub(crate) use criteria_review::{CriteriaReview, CriterionVerdict, ReviewOutcome, remove_review_lane};
pub(crate) use draft_session::{AnswerOutcome, DraftRequest, DraftSession, is_agent_busy, refresh_draft};
pub(crate) use missing_needs::{MissingNeedsSearch, forget_proposals};
pub(crate) use prompt::SourceFile;
