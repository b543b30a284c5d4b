//! Record of a removed lane in the trash.

use std::path::PathBuf;

use proq_base::lane_name::LaneName;
use proq_git::{CommitId, RepoPath};
use serde::{Deserialize, Serialize};

use crate::base::clock::Moment;
use crate::base::record::Record;

/// Folder of a removed lane and git's admin folder for it, moved as a pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrashRecord {
    /// Name of the lane.
    pub lane: LaneName,
    /// Time of the removal.
    #[serde(rename = "at")]
    pub removed_at: Moment,
    /// Path of the worktree before the lane was removed.
    #[serde(rename = "path", with = "crate::paths::path_form")]
    pub former_path: PathBuf,
    /// Current path of the moved worktree; none where there was no folder to move.
    #[serde(
        rename = "worktree",
        default,
        with = "crate::paths::path_form::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub current_path: Option<PathBuf>,
    /// Name of git's admin folder, which is next to this record as `admin`.
    pub worktree_id: String,
    /// Branch of the lane, without `refs/heads/`.
    pub branch: String,
    /// Tip of the lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tip: Option<CommitId>,
    /// Ref that keeps the lane's commits and changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "saved")]
    pub saved_ref: Option<String>,
    /// Whether a new lane may reuse the folder, because the lane landed and had no uncommitted changes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reusable: bool,
    /// Paths in the worktree that could not be read and are in no snapshot. The entry is kept as long as they
    /// exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "unread")]
    pub unreadable: Vec<RepoPath>,
}

impl Record for TrashRecord {
    const FORMAT: u32 = 1;
}

/// Record, next to a [`TrashRecord`], of the lane that reused the folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReusedTrashRecord {
    /// Lane that reused the folder.
    #[serde(rename = "lane")]
    pub reusing_lane: LaneName,
    /// Time of the reuse.
    #[serde(rename = "at")]
    pub reused_at: Moment,
    /// Files of the removed lane that the reused folder still contained, as display text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "kept")]
    pub carried_files: Vec<String>,
}

impl Record for ReusedTrashRecord {
    const FORMAT: u32 = 1;
}
