//! Owns the flags that say what an agent's run is to be like.

use clap::{Args, ValueEnum};

use super::Session;
use crate::agent::{Asked, Job, Permission};

/// What a run is to be like. What is left open is as in the settings.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Wishes {
    /// What the agent may do: look only, change its lane and use git there, or anything without being asked
    #[arg(long, value_name = "LEVEL")]
    pub(crate) permission: Option<Level>,
    /// The model that it is asked to use
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// End its run after N turns, if it can be told to
    #[arg(long, value_name = "N")]
    pub(crate) max_turns: Option<u32>,
}

/// A permission level, as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Level {
    /// Look, and change nothing.
    #[value(help = None)]
    Read,
    /// Change files in its lane, use git there, run approved checks.
    #[value(help = None)]
    Edit,
    /// Anything.
    #[value(help = None)]
    Full,
}

impl Wishes {
    /// As the domain takes them.
    pub(super) fn asked(&self) -> Asked {
        Asked {
            permission: self.permission.map(|level| match level {
                Level::Read => Permission::Read,
                Level::Edit => Permission::Edit,
                Level::Full => Permission::Full,
            }),
            model: self.model.clone(),
            max_turns: self.max_turns,
            ..Asked::default()
        }
    }
}

/// Says it when nothing keeps the agent from anything.
pub(super) fn warn_of_power(session: &Session, job: Option<&Job>) {
    if let Some(warning) = job.and_then(Job::warning) {
        session.ui.warn(warning);
    }
}
