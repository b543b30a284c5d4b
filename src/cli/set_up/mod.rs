//! Commands that set up git-proq: agents, config, hooks, completions, manual pages, MCP.

pub(crate) mod agents;
pub(crate) mod approve;
pub(crate) mod command_groups;
pub(crate) mod completion_script;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod help;
pub(crate) mod hooks;
pub(crate) mod man;
pub(crate) mod man_pages;
pub(crate) mod mcp;
pub(crate) mod oversee;
pub(crate) mod schema;
pub(crate) mod setup;
pub(crate) mod shell_init;
pub(crate) mod sync;
pub(crate) mod task;
