//! Planning by an agent: requests for a plan or for the missing dependencies of one, their prompts, and the
//! parsing of the answers.

pub mod agent_query;
pub mod answer_json;
pub mod criteria_review;
pub mod draft_error;
pub mod draft_session;
pub mod drafts;
pub mod json_extract;
pub mod missing_needs;
pub mod prompt;
pub mod proposed_needs;
pub mod repo_context;
