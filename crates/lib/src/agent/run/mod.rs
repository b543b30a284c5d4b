//! A run while it lasts: the agent's process, its output and its limits.

pub mod agent_process;
pub mod live_status;
pub mod retries;
pub mod stdin_writer;
pub mod tail;
pub mod tmux_client;
pub mod watch;
