//! Records of a captured conflict and of its resolution.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::git::{Oid, RepoPath};
use crate::store::base::clock::Moment;
use crate::store::base::record::Record;

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

/// Conflicted path, with its stages in the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConflictedPath {
    /// Path in the repository.
    pub(crate) path: RepoPath,
    /// Stages: 1 is the common ancestor, 2 the lane, 3 the branch that the lane lands on.
    pub(crate) stages: Vec<u8>,
    /// Whether all stages are regular files.
    #[serde(rename = "plain")]
    pub(crate) all_regular: bool,
}

/// Open resolution of a lane's conflict: its worktree, its resolver and the conflicted paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResolutionRecord {
    /// Name of the lane.
    pub(crate) lane: String,
    /// Branch that the lane lands on.
    pub(crate) onto: String,
    /// Top folder of the worktree.
    #[serde(with = "crate::store::paths::path_form")]
    pub(crate) path: PathBuf,
    /// Name of git's admin folder for the worktree.
    pub(crate) worktree_id: String,
    /// Tip of the lane: the merge's first parent.
    pub(crate) tip: Oid,
    /// Tip of the branch that the lane lands on, which is merged into the lane.
    pub(crate) base: Oid,
    /// Tree of git's automatic merge, with conflict markers.
    #[serde(rename = "merged")]
    pub(crate) merged_tree: Oid,
    /// Start of the resolution.
    pub(crate) at: Moment,
    /// Agent that resolves the conflict; none for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    /// Reasons why former attempts were refused, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) refusals: Vec<String>,
    /// Messages of git about each conflict.
    pub(crate) messages: Vec<String>,
    /// Conflicted paths.
    pub(crate) paths: Vec<ConflictedPath>,
}

impl ResolutionRecord {
    /// Returns the ref that keeps both sides and git's merge result during the resolution.
    pub(crate) fn ref_name(lane: &str) -> String {
        format!("refs/proq/resolve/{lane}")
    }

    /// Returns the conflicted paths.
    pub(crate) fn conflicted_paths(&self) -> Vec<RepoPath> {
        self.paths.iter().map(|p| p.path.clone()).collect()
    }
}

impl Record for ResolutionRecord {
    const FORMAT: u32 = 1;
}
