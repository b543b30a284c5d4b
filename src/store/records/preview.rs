//! Record of the open preview.

use serde::{Deserialize, Serialize};

use crate::git::base::head::Head;
use crate::git::status::local_state::LocalState;
use crate::git::{Oid, RepoPath};
use crate::store::base::clock::Moment;
use crate::store::base::record::Record;

/// Preview that the main checkout shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PreviewRecord {
    /// Lane that is shown.
    pub(crate) lane: String,
    /// Hidden branch of the preview, without `refs/heads/`.
    pub(crate) branch: String,
    /// Commit of the lane that is shown.
    pub(crate) tip: Oid,
    /// Time at which the preview was entered.
    pub(crate) since: Moment,
    /// HEAD before the preview.
    #[serde(rename = "came_from")]
    pub(crate) previous_head: Head,
    /// Commit of HEAD before the preview.
    #[serde(rename = "came_from_commit")]
    pub(crate) previous_commit: Oid,
    /// Whether another worktree also had the branch of the previous HEAD checked out when the preview was
    /// entered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "is_shared")]
    pub(crate) is_branch_shared: bool,
    /// Snapshot of the user's changes from before the preview.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) snapshot: Option<String>,
    /// Paths that git ignored before the preview, and nested repositories. The lane may have other ignore
    /// rules, or a file at such a path; these paths still do not count as edits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ignored: Vec<RepoPath>,
    /// Empty folders of the main checkout before the preview, if it had no changes. Otherwise the snapshot
    /// records them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) empty_dirs: Vec<RepoPath>,
    /// Permission bits of files and folders that the preview rewrites or removes.
    #[serde(default, skip_serializing_if = "LocalState::is_empty")]
    #[serde(rename = "drops")]
    pub(crate) dropped_state: LocalState,
}

impl Record for PreviewRecord {
    const FORMAT: u32 = 1;
}
