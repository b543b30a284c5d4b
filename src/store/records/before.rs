//! Owns the form of what is known of the main checkout from before a run worked there.

use serde::{Deserialize, Serialize};

use crate::git::RepoPath;
use crate::store::Record;

/// A file that was not as HEAD has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileBefore {
    /// Its path.
    pub(crate) path: RepoPath,
    /// What it is known by, each, also under another name; nothing for one that was deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ids: Vec<String>,
    /// What changes when it is written to; nothing for a folder.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) state: String,
    /// Whether it could not be read, so that no snapshot has it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) unread: bool,
}

/// The main checkout before a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BeforeRecord {
    /// The ref that keeps the commit it was at.
    pub(crate) keeper: String,
    /// The snapshot of what was uncommitted; none when nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) snap: Option<String>,
    /// Files and folders that git ignored.
    #[serde(default)]
    pub(crate) ignored: Vec<RepoPath>,
    /// What those files and folders are known by, as far as there were not too many.
    #[serde(default)]
    pub(crate) ignored_ids: Vec<String>,
    /// What had changes, was deleted, or was unknown to git.
    #[serde(default)]
    pub(crate) files: Vec<FileBefore>,
}

impl Record for BeforeRecord {
    const FORMAT: u32 = 1;
}
