//! The git program: found, started with a safe environment, watched and read.

pub(crate) mod command;
pub(crate) mod command_environment;
pub(crate) mod hook_output;
pub(crate) mod injected_config;
pub(crate) mod version;
pub(crate) mod watchdog;
