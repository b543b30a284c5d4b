//! Agent profiles: data that describes how each kind of agent is started.

pub(crate) mod agent_env;
pub(crate) mod installed_programs;
pub(crate) mod profile;
pub(crate) mod profile_catalog;
pub(crate) mod template;
