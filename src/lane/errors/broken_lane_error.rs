//! Error about a lane whose worktree is too damaged to work in, with its hints.

use std::borrow::Cow;

use crate::explain::{Exit, Explain};

/// A lane whose worktree is too damaged for an agent to work in it.
#[derive(Debug, thiserror::Error)]
#[error("cannot start an agent in lane '{name}': {reason}")]
pub struct BrokenLane {
    pub(crate) name: String,
    pub(crate) reason: String,
    pub(crate) repair_command: Option<String>,
}

impl Explain for BrokenLane {
    fn is_decision(&self) -> bool {
        true
    }

    fn hints(&self) -> Vec<Cow<'static, str>> {
        let repair = self.repair_command.as_ref().map(|command| format!("make it whole: {command}"));
        let remove = format!("or remove it, saving everything first: git proq discard --force {}", self.name);
        repair.into_iter().chain([remove]).map(Cow::from).collect()
    }

    fn exit(&self) -> Exit {
        Exit::Refused
    }
}
