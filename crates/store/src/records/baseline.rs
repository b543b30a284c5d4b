//! Records of the main checkout and of other worktrees before a run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use proq_base::lane_name::LaneName;
use proq_git::{CommitId, RepoPath};
use serde::{Deserialize, Serialize};

use crate::base::operation_number::OperationNumber;
use crate::base::record::Record;
use crate::base::run_number::RunNumber;

/// File that differed from HEAD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirtyFile {
    /// Path of the file in the repository.
    pub path: RepoPath,
    /// Ids that identify the content, also under another name; empty for a deleted file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "ids")]
    pub content_ids: Vec<String>,
    /// Text that changes when the file is written; empty for a folder.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[serde(rename = "state")]
    pub stat_state: String,
    /// Whether the file could not be read, so that no snapshot contains it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "unread")]
    pub is_unreadable: bool,
}

/// State of the main checkout before a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckoutBaseline {
    /// Ref that keeps the commit that was checked out.
    #[serde(rename = "keeper")]
    pub head_keep_ref: String,
    /// Snapshot of the uncommitted changes; none when there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "snap")]
    pub snapshot_id: Option<String>,
    /// Files and folders that git ignored.
    #[serde(default)]
    #[serde(rename = "ignored")]
    pub ignored_paths: Vec<RepoPath>,
    /// Ids of the contents of the ignored files and folders. Incomplete when there were too many.
    #[serde(default)]
    #[serde(rename = "ignored_ids")]
    pub ignored_content_ids: Vec<String>,
    /// Files that were modified, deleted or untracked.
    #[serde(default)]
    #[serde(rename = "files")]
    pub dirty_files: Vec<DirtyFile>,
}

impl Record for CheckoutBaseline {
    const FORMAT: u32 = 1;
}

/// File that differed from the checked-out commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaselineFile {
    /// Path of the file in the repository.
    pub path: RepoPath,
    /// Text that changes when the file is written; empty for a deleted file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[serde(rename = "state")]
    pub stat_state: String,
}

/// State of one worktree outside of the run's lane, before the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaselineWorktree {
    /// Lane of the worktree; none for the main checkout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<LaneName>,
    /// Number of the lane's last run.
    #[serde(default)]
    #[serde(rename = "attempt")]
    pub last_run: RunNumber,
    /// Top folder of the worktree.
    #[serde(with = "crate::paths::path_form")]
    pub dir: PathBuf,
    /// Commit that was checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<CommitId>,
    /// Files that differed from the commit that was checked out.
    #[serde(default)]
    pub files: Vec<BaselineFile>,
}

/// State of a lane other than that of the run, before the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaselineLane {
    /// Name of the lane.
    pub lane: LaneName,
    /// Number of the lane's last run.
    #[serde(rename = "attempt")]
    pub last_run: RunNumber,
    /// Whether the lane had a worktree.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "has_tree")]
    pub has_worktree: bool,
    /// Whether the lane's last run was active.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "busy")]
    pub is_busy: bool,
}

/// State of all lanes and worktrees other than that of the run, before the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeBaselineRecord {
    /// Lanes other than that of the run.
    #[serde(default)]
    #[serde(rename = "others")]
    pub other_lanes: Vec<BaselineLane>,
    /// Settings in the repository's `config`, and its hooks, each with a value that changes with its content.
    #[serde(rename = "settings", default)]
    pub config_fingerprints: BTreeMap<String, String>,
    /// Number of the last operation in the operation log.
    #[serde(rename = "operation")]
    pub last_operation: OperationNumber,
    /// Worktrees in which no run was active.
    #[serde(default)]
    #[serde(rename = "places")]
    pub idle_worktrees: Vec<BaselineWorktree>,
}

impl Record for WorktreeBaselineRecord {
    const FORMAT: u32 = 1;
}
