//! Agents: how each kind is started, supervised and stopped.

pub mod acp;
pub mod base;
pub mod command;
pub mod control;
pub mod git_guard;
pub mod hook_events;
pub mod launch;
pub mod profiles;
pub mod run;
pub mod supervise;
pub mod task_loop;
pub mod tmux;

pub use crate::agent::base::error::Error;
