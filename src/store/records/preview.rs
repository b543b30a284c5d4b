//! Owns the form of the open preview.

use serde::{Deserialize, Serialize};

use crate::git::{Head, LocalState, Oid, RepoPath};
use crate::store::{Moment, Record};

/// The preview that the main checkout shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PreviewRecord {
    /// The lane that is shown.
    pub(crate) lane: String,
    /// The hidden branch that shows it, without `refs/heads/`.
    pub(crate) branch: String,
    /// The commit of the lane that is shown.
    pub(crate) tip: Oid,
    /// When it was entered.
    pub(crate) since: Moment,
    /// What HEAD named before.
    pub(crate) came_from: Head,
    /// The commit HEAD was at before.
    pub(crate) came_from_commit: Oid,
    /// Whether another worktree was on that branch by then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_shared: bool,
    /// The user's own changes from before, kept in this snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) snapshot: Option<String>,
    /// What git ignored before, and repositories of their own. The lane may have other rules, or a file there; these are still
    /// nobody's edits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ignored: Vec<RepoPath>,
    /// Empty folders of a checkout without changes; a snapshot notes its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) empty_dirs: Vec<RepoPath>,
    /// Permission bits of files and folders that showing the lane writes anew or removes.
    #[serde(default, skip_serializing_if = "LocalState::is_empty")]
    pub(crate) drops: LocalState,
}

impl Record for PreviewRecord {
    const FORMAT: u32 = 1;
}
