//! HEAD of a worktree: the branch or commit that it names, and a move of HEAD or of that branch.

use serde::{Deserialize, Serialize};

use crate::CommitId;

/// Prefix of a branch's full ref name.
pub(crate) const BRANCH_PREFIX: &str = "refs/heads/";

/// Branch or commit that HEAD of a worktree names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Head {
    /// A branch, without `refs/heads/`.
    Branch(String),
    /// A commit.
    Detached(CommitId),
}

impl std::fmt::Display for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Head::Branch(name) => f.write_str(name),
            Head::Detached(oid) => f.write_str(&oid.short()),
        }
    }
}

/// Ref that a transition moves, with its values where the transition's commits do not give them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefMove {
    /// No ref: the branch has already moved, and only files and index follow.
    Nothing,
    /// A branch that HEAD is on, from the transition's old commit to its new one.
    Branch(String),
    /// HEAD itself, to another branch or commit.
    Switch {
        /// Branch or commit that HEAD names before the move.
        from: Head,
        /// Branch or commit that HEAD will name.
        to: Head,
    },
}

impl RefMove {
    /// Returns the name of the moved ref for display.
    pub fn display_name(&self) -> String {
        match self {
            RefMove::Branch(name) => name.clone(),
            RefMove::Nothing | RefMove::Switch { .. } => "HEAD".to_owned(),
        }
    }

    /// Returns the move in the opposite direction: a switch of HEAD with its ends swapped, and a move of a
    /// branch unchanged, since it names no ends.
    pub fn inverse(&self) -> RefMove {
        match self {
            RefMove::Switch { from, to } => RefMove::Switch { from: to.clone(), to: from.clone() },
            unchanged => unchanged.clone(),
        }
    }
}
