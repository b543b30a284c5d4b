//! Records of a captured conflict and of its resolution.

use std::path::PathBuf;

use proq_base::lane_name::LaneName;
use proq_git::{CommitId, Oid, RepoPath, TreeId};
use serde::{Deserialize, Serialize};

use crate::base::clock::Moment;
use crate::base::record::Record;

/// One index stage of a conflicted path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConflictStage {
    /// Path in the repository.
    pub path: RepoPath,
    /// Stage: 1 is the common ancestor, 2 the branch that the lane would have landed on, 3 the lane.
    pub stage: u8,
    /// File mode, in octal as git writes it.
    pub mode: String,
    /// Blob id.
    pub oid: Oid,
}

/// Conflict that a landing captured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConflictRecord {
    /// Name of the lane.
    pub lane: LaneName,
    /// Branch that the lane would have landed on.
    pub onto: String,
    /// Commit that the lane was merged into: the base, or the stack on top of it.
    pub ours: CommitId,
    /// Tip of the base after the landing that captured the conflict.
    #[serde(rename = "base_tip")]
    pub base_tip_after_landing: CommitId,
    /// Tip of the lane.
    pub theirs: CommitId,
    /// Merged tree, with conflict markers.
    #[serde(rename = "tree")]
    pub merged_tree: TreeId,
    /// Time of the conflict.
    #[serde(rename = "at")]
    pub captured_at: Moment,
    /// Number of times that a landing has captured a conflict of the lane, this one included.
    #[serde(rename = "attempts")]
    pub capture_count: u32,
    /// Conflicted paths.
    pub paths: Vec<RepoPath>,
    /// Messages of git about the conflicts.
    #[serde(rename = "messages")]
    pub git_messages: Vec<String>,
    /// All stages of all conflicted paths.
    pub stages: Vec<ConflictStage>,
}

impl Record for ConflictRecord {
    const FORMAT: u32 = 1;
}

/// Conflicted path, with its stages in the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConflictedPath {
    /// Path in the repository.
    pub path: RepoPath,
    /// Stages: 1 is the common ancestor, 2 the lane, 3 the branch that the lane lands on.
    pub stages: Vec<u8>,
    /// Whether all stages are regular files.
    #[serde(rename = "plain")]
    pub all_regular: bool,
}

/// Open resolution of a lane's conflict: its worktree, its resolver and the conflicted paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolutionRecord {
    /// Name of the lane.
    pub lane: LaneName,
    /// Branch that the lane lands on.
    pub onto: String,
    /// Top folder of the worktree in which the conflict is resolved.
    #[serde(rename = "path", with = "crate::paths::path_form")]
    pub worktree_path: PathBuf,
    /// Name of git's admin folder for the worktree.
    pub worktree_id: String,
    /// Tip of the lane: the merge's first parent.
    #[serde(rename = "tip")]
    pub lane_tip: CommitId,
    /// Tip of the branch that the lane lands on, which is merged into the lane.
    #[serde(rename = "base")]
    pub onto_tip: CommitId,
    /// Tree of git's automatic merge, with conflict markers.
    #[serde(rename = "merged")]
    pub merged_tree: TreeId,
    /// Start of the resolution.
    #[serde(rename = "at")]
    pub started_at: Moment,
    /// Agent that resolves the conflict; none for the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Reasons why former attempts were refused, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<String>,
    /// Messages of git about each conflict.
    #[serde(rename = "messages")]
    pub git_messages: Vec<String>,
    /// Conflicted paths.
    pub paths: Vec<ConflictedPath>,
}

impl ResolutionRecord {
    /// Returns the ref that keeps both sides and git's merge result during the resolution.
    pub fn ref_name(lane: &LaneName) -> String {
        format!("refs/proq/resolve/{lane}")
    }

    /// Returns the conflicted paths.
    pub fn conflicted_paths(&self) -> Vec<RepoPath> {
        self.paths.iter().map(|p| p.path.clone()).collect()
    }
}

impl Record for ResolutionRecord {
    const FORMAT: u32 = 1;
}
