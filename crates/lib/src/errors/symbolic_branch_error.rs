//! Error about a branch that is a symbolic ref, with the command that repairs it.

use proq_base::explain::{Explain, shell_quote};

/// A branch that is a symbolic ref to another ref.
#[derive(Debug, Clone, thiserror::Error, Explain)]
#[error("cannot use branch {branch}: it is a symbolic ref to {target}")]
#[decision]
#[hint("make it a regular branch: {}", self.repair_command())]
pub struct SymbolicBranch {
    /// Short name of the branch that is a symbolic ref.
    pub branch: String,
    /// Full name of the ref that the branch points at.
    pub target: String,
    /// The commit or ref that the branch should point at once it is a direct ref.
    pub(crate) reset_to: String,
}

impl SymbolicBranch {
    /// Describes the problem for a message about the lane that has this branch.
    pub fn describe(&self) -> String {
        format!("its branch {} is a symbolic ref to {}", self.branch, self.target)
    }

    /// Returns the command that turns the branch into a direct ref and leaves the target ref where it is.
    pub fn repair_command(&self) -> String {
        let name = shell_quote(&format!("refs/heads/{}", self.branch));
        format!("git update-ref --no-deref {name} {}", shell_quote(&self.reset_to))
    }
}
