//! Agent profiles: data that describes how each kind of agent is started.

pub mod agent_env;
pub mod allow_pattern;
pub mod default_agent;
pub mod installed_programs;
pub mod profile;
pub mod profile_catalog;
pub mod template;
