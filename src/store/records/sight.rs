//! Owns the form of what other worktrees were like when a run began.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::git::{Oid, RepoPath};
use crate::store::Record;

/// A file that was not as its commit has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileSeen {
    /// Its path.
    pub(crate) path: RepoPath,
    /// What changes when it is written to; nothing for one that was deleted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) state: String,
}

/// One worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PlaceSeen {
    /// Its lane; none is the main checkout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lane: Option<String>,
    /// The number of that lane's last run.
    #[serde(default)]
    pub(crate) attempt: u32,
    /// Its top folder.
    #[serde(with = "crate::store::path_form")]
    pub(crate) dir: PathBuf,
    /// The commit that was checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) head: Option<Oid>,
    /// What differed from that.
    #[serde(default)]
    pub(crate) files: Vec<FileSeen>,
}

/// Another lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LaneSeen {
    /// Its name.
    pub(crate) lane: String,
    /// The number of its last run.
    pub(crate) attempt: u32,
    /// Whether it had a worktree.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) has_tree: bool,
    /// Whether that was under way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) busy: bool,
}

/// The worktrees that are not the run's own, before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SightRecord {
    /// The other lanes.
    #[serde(default)]
    pub(crate) others: Vec<LaneSeen>,
    /// The settings of the repository's own `config` and its hooks, each with a number that changes with what it is.
    #[serde(default)]
    pub(crate) settings: BTreeMap<String, String>,
    /// The number of the last operation.
    pub(crate) operation: u64,
    /// The worktrees in which nothing did.
    #[serde(default)]
    pub(crate) places: Vec<PlaceSeen>,
}

impl Record for SightRecord {
    const FORMAT: u32 = 1;
}
