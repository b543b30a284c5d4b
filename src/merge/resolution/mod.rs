//! Resolution of conflicts, by the user or by an agent.

pub(crate) mod conflict_regions;
pub(crate) mod resolution_check;
pub(crate) mod resolve;
pub(crate) mod resolve_agent;
pub(crate) mod resolve_prompt;
