//! Report about uncommitted changes that a landing saved and restored (`--autostash`).

use std::path::PathBuf;

use proq_base::hint::Hint;
use proq_git::{CommitId, RepoPath};
use proq_store::paths::path_form;
use serde::Serialize;

/// What became of uncommitted changes that a landing saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AutostashResult {
    /// They would be saved and restored: this is a dry run.
    Planned,
    /// They are back, merged with what landed.
    Restored,
    /// They conflict with what landed, and stay in their snapshot.
    Conflict,
    /// They could not be restored, and stay in their snapshot.
    Failed,
}

/// Uncommitted changes in a checkout of a base, which were in the way of a landing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AutostashReport {
    /// Top folder of the checkout.
    #[serde(rename = "worktree", with = "path_form")]
    pub dir: PathBuf,
    /// Branch that the checkout is on.
    pub onto: String,
    /// What became of the changes.
    pub result: AutostashResult,
    /// Id of the snapshot; none in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// Commit of the snapshot, which `git stash apply` reads; none in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// Files with changes that were saved.
    #[serde(rename = "files")]
    pub paths: Vec<RepoPath>,
    /// Files in which the changes conflict.
    #[serde(rename = "conflicts", skip_serializing_if = "Vec::is_empty")]
    pub conflicted_paths: Vec<RepoPath>,
    /// Hints for the user with commands to run next.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<Hint>,
}

impl AutostashReport {
    /// Returns whether the changes are in their snapshot only.
    pub fn is_kept(&self) -> bool {
        matches!(self.result, AutostashResult::Conflict | AutostashResult::Failed)
    }
}
