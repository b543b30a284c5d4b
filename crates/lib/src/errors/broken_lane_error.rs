//! Error about a lane whose worktree is too damaged to work in, with its hints.

use proq_base::explain::Explain;
use proq_base::lane_name::LaneName;

/// A lane whose worktree is too damaged for an agent to work in it.
#[derive(Debug, thiserror::Error, Explain)]
#[error("cannot start an agent in lane '{name}': {reason}")]
#[decision]
#[hint(if let Some(command) = repair_command, "repair it: {command}")]
#[hint("or remove it; everything is saved first: git proq discard --force {name}")]
pub struct BrokenLane {
    /// Name of the lane with the damaged worktree.
    pub name: LaneName,
    /// Damage of the worktree, as a clause.
    pub reason: String,
    /// Shell command that repairs the worktree; none where no command can.
    pub repair_command: Option<String>,
}
