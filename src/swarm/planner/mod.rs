//! Planning by an agent: requests for a plan or for the missing dependencies of one, their prompts, and the
//! parsing of the answers.

pub(crate) mod agent_query;
pub(crate) mod answer_json;
pub(crate) mod criteria_review;
pub(crate) mod draft_error;
pub(crate) mod draft_session;
pub(crate) mod drafts;
pub(crate) mod json_extract;
pub(crate) mod missing_needs;
pub(crate) mod prompt;
pub(crate) mod proposed_needs;
pub(crate) mod repo_context;
