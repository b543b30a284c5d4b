//! Resolution of conflicts, by the user or by an agent.

pub mod conflict_regions;
pub mod resolution_check;
pub mod resolve;
pub mod resolve_agent;
pub mod resolve_prompt;
