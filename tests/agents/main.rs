//! Agents: profiles, start, messages, terminals, protocols, and how their runs end.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod acp;
mod acp_messages;
mod acp_run_end;
mod agent_exit;
mod agent_start;
mod agents;
mod aider;
mod allowed_commands;
mod context_limit;
mod default_agent;
mod messages;
mod profiles;
#[cfg(target_os = "linux")]
mod real_agents;
mod real_windows;
mod send;
mod send_attachments;
mod tmux;
mod tmux_idle;
mod tmux_questions;
mod tmux_terminal;
mod two_way;
