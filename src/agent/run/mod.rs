//! A run while it lasts: the agent's process, its output and its limits.

pub(crate) mod agent_process;
pub(crate) mod live_status;
pub(crate) mod retries;
pub(crate) mod stdin_writer;
pub(crate) mod tail;
pub(crate) mod tmux_client;
pub(crate) mod watch;
