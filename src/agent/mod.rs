//! Agents: how each kind is started, supervised and stopped.

pub(crate) mod acp;
pub(crate) mod base;
pub(crate) mod command;
pub(crate) mod control;
pub(crate) mod git_guard;
pub(crate) mod hook_events;
pub(crate) mod launch;
pub(crate) mod profiles;
pub(crate) mod run;
pub(crate) mod stream;
pub(crate) mod supervise;
pub(crate) mod task_loop;
pub(crate) mod tmux;

pub(crate) use crate::agent::base::error::Error;
