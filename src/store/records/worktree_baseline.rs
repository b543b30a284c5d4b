//! Record of the state of other worktrees when a run started.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::git::{Oid, RepoPath};
use crate::store::Record;

/// File that differed from the checked-out commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BaselineFile {
    /// Path of the file in the repository.
    pub(crate) path: RepoPath,
    /// Text that changes when the file is written; empty for a deleted file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[serde(rename = "state")]
    pub(crate) stat_state: String,
}

/// State of one worktree outside of the run's lane, before the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BaselineWorktree {
    /// Lane of the worktree; none for the main checkout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lane: Option<String>,
    /// Number of the lane's last run.
    #[serde(default)]
    pub(crate) attempt: u32,
    /// Top folder of the worktree.
    #[serde(with = "crate::store::path_form")]
    pub(crate) dir: PathBuf,
    /// Commit that was checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) head: Option<Oid>,
    /// Files that differed from the commit that was checked out.
    #[serde(default)]
    pub(crate) files: Vec<BaselineFile>,
}

/// State of a lane other than that of the run, before the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BaselineLane {
    /// Name of the lane.
    pub(crate) lane: String,
    /// Number of the lane's last run.
    pub(crate) attempt: u32,
    /// Whether the lane had a worktree.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "has_tree")]
    pub(crate) has_worktree: bool,
    /// Whether the lane's last run was active.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "busy")]
    pub(crate) is_busy: bool,
}

/// State of all lanes and worktrees other than that of the run, before the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorktreeBaselineRecord {
    /// Lanes other than that of the run.
    #[serde(default)]
    #[serde(rename = "others")]
    pub(crate) other_lanes: Vec<BaselineLane>,
    /// Settings in the repository's `config`, and its hooks, each with a value that changes with its content.
    #[serde(default)]
    pub(crate) settings: BTreeMap<String, String>,
    /// Number of the last operation in the operation log.
    #[serde(rename = "operation")]
    pub(crate) last_operation: u64,
    /// Worktrees in which no run was active.
    #[serde(default)]
    #[serde(rename = "places")]
    pub(crate) idle_worktrees: Vec<BaselineWorktree>,
}

impl Record for WorktreeBaselineRecord {
    const FORMAT: u32 = 1;
}
