//! Record of a captured conflict.

use serde::{Deserialize, Serialize};

use crate::git::{Oid, RepoPath};
use crate::store::{Moment, Record};

/// One index stage of a conflicted path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConflictStage {
    /// Path in the repository.
    pub(crate) path: RepoPath,
    /// Stage: 1 is the common ancestor, 2 the branch that the lane would have landed on, 3 the lane.
    pub(crate) stage: u8,
    /// File mode, in octal as git writes it.
    pub(crate) mode: String,
    /// Blob id.
    pub(crate) oid: Oid,
}

/// Conflict that a landing captured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConflictRecord {
    /// Name of the lane.
    pub(crate) lane: String,
    /// Branch that the lane would have landed on.
    pub(crate) onto: String,
    /// Commit that the lane was merged into: the base, or the stack on top of it.
    pub(crate) ours: Oid,
    /// Tip of the base when the conflict was recorded.
    pub(crate) base_tip: Oid,
    /// Tip of the lane.
    pub(crate) theirs: Oid,
    /// Merged tree, with conflict markers.
    pub(crate) tree: Oid,
    /// Time of the conflict.
    pub(crate) at: Moment,
    /// Number of times that a landing captured a conflict of the lane, this one included.
    pub(crate) attempts: u32,
    /// Conflicted paths.
    pub(crate) paths: Vec<RepoPath>,
    /// Messages of git about the conflicts.
    pub(crate) messages: Vec<String>,
    /// All stages of all conflicted paths.
    pub(crate) stages: Vec<ConflictStage>,
}

impl Record for ConflictRecord {
    const FORMAT: u32 = 1;
}
