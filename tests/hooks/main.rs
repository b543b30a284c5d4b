//! Hooks of agents, of git and of the user, events, and notifications.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agent_hooks;
mod events;
mod git_guard_hooks;
mod hook_managers;
mod hook_scripts;
mod hooks;
mod hooks_command;
mod notify;
mod real_hooks;
mod user_hooks;
mod withheld_hooks;
