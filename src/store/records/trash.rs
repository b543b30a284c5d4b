//! Owns the form of what was removed and is kept for a time.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::git::{Oid, RepoPath};
use crate::store::{Moment, Record};

/// A removed lane's folder and git's admin folder for it, moved as a pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrashRecord {
    /// The lane.
    pub(crate) lane: String,
    /// When it was removed.
    pub(crate) at: Moment,
    /// Where its worktree lay.
    #[serde(with = "crate::store::path_form")]
    pub(crate) path: PathBuf,
    /// Where its worktree lies now.
    #[serde(default, with = "crate::store::path_form::option", skip_serializing_if = "Option::is_none")]
    pub(crate) worktree: Option<PathBuf>,
    /// The name of git's admin folder; it lies beside this record as `admin`.
    pub(crate) worktree_id: String,
    /// Its branch, without `refs/heads/`.
    pub(crate) branch: String,
    /// Its tip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tip: Option<Oid>,
    /// The ref that keeps its commits and changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) saved: Option<String>,
    /// It landed and had nothing uncommitted, so its folder may become that of another lane.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) reusable: bool,
    /// What could not be read in its worktree and is in no snapshot: the entry stays for as long as it is there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unread: Vec<RepoPath>,
}

impl Record for TrashRecord {
    const FORMAT: u32 = 1;
}

/// Beside the former: to which lane the folder went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GivenRecord {
    /// The lane that got it.
    pub(crate) lane: String,
    /// When.
    pub(crate) at: Moment,
    /// What was in it and went along, as a person reads it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) kept: Vec<String>,
}

impl Record for GivenRecord {
    const FORMAT: u32 = 1;
}
