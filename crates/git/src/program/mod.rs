//! The git program: found, started with a safe environment, watched and read.

pub mod command;
pub mod command_environment;
pub mod exit_status;
pub mod hook_output;
pub mod injected_config;
pub mod version;
pub mod watchdog;
