//! State of a worktree before a snapshot was restored to it.

use proq_git::RepoPath;
use serde::{Deserialize, Serialize};

/// State of a worktree before a snapshot was restored to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreRestoreState {
    /// Snapshot of the differences from HEAD; none when there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "snap")]
    pub snapshot_id: Option<String>,
    /// Empty folders of the worktree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub empty_dirs: Vec<RepoPath>,
    /// Ignored files that already existed and that the restored snapshot also contains.
    #[serde(rename = "ignored", default, skip_serializing_if = "Vec::is_empty")]
    pub colliding_ignored: Vec<RepoPath>,
}
