//! Record of the main checkout's state before an in-place run.

use serde::{Deserialize, Serialize};

use crate::git::RepoPath;
use crate::store::Record;

/// File that differed from HEAD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DirtyFile {
    /// Path of the file in the repository.
    pub(crate) path: RepoPath,
    /// Ids that identify the content, also under another name; empty for a deleted file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "ids")]
    pub(crate) content_ids: Vec<String>,
    /// Text that changes when the file is written; empty for a folder.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[serde(rename = "state")]
    pub(crate) stat_state: String,
    /// Whether the file could not be read, so that no snapshot contains it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "unread")]
    pub(crate) is_unreadable: bool,
}

/// State of the main checkout before a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CheckoutBaseline {
    /// Ref that keeps the commit that was checked out.
    #[serde(rename = "keeper")]
    pub(crate) kept_ref: String,
    /// Snapshot of the uncommitted changes; none when there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "snap")]
    pub(crate) snapshot_id: Option<String>,
    /// Files and folders that git ignored.
    #[serde(default)]
    #[serde(rename = "ignored")]
    pub(crate) ignored_paths: Vec<RepoPath>,
    /// Ids of the contents of the ignored files and folders. Incomplete when there were too many.
    #[serde(default)]
    #[serde(rename = "ignored_ids")]
    pub(crate) ignored_content_ids: Vec<String>,
    /// Files that were modified, deleted or untracked.
    #[serde(default)]
    #[serde(rename = "files")]
    pub(crate) dirty_files: Vec<DirtyFile>,
}

impl Record for CheckoutBaseline {
    const FORMAT: u32 = 1;
}
