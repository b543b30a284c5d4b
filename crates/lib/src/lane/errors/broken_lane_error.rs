//! Error about a lane whose worktree is too damaged to work in, with its hints.

use std::borrow::Cow;

use proq_base::explain::{Exit, Explain};
use proq_base::lane_name::LaneName;

/// A lane whose worktree is too damaged for an agent to work in it.
#[derive(Debug, thiserror::Error)]
#[error("cannot start an agent in lane '{name}': {reason}")]
pub struct BrokenLane {
    /// Name of the lane with the damaged worktree.
    pub name: LaneName,
    /// Damage of the worktree, as a clause.
    pub reason: String,
    /// Shell command that repairs the worktree; none where no command can.
    pub repair_command: Option<String>,
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
