//! Record of the open preview.

use std::collections::HashSet;
use std::path::Path;

use proq_base::lane_name::LaneName;
use proq_git::base::head::Head;
use proq_git::status::local_state::LocalState;
use proq_git::{CommitId, RepoPath};
use serde::{Deserialize, Serialize};

use crate::base::clock::Moment;
use crate::base::record::Record;

/// Preview that the main checkout shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviewRecord {
    /// Lane that is shown.
    pub lane: LaneName,
    /// Hidden branch of the preview, without `refs/heads/`.
    pub branch: String,
    /// Commit of the lane that is shown.
    pub tip: CommitId,
    /// Time at which the preview was entered.
    pub since: Moment,
    /// HEAD before the preview.
    #[serde(rename = "came_from")]
    pub previous_head: Head,
    /// Commit of HEAD before the preview.
    #[serde(rename = "came_from_commit")]
    pub previous_commit: CommitId,
    /// Whether another worktree also had the branch of the previous HEAD checked out when the preview was
    /// entered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "is_shared")]
    pub is_branch_shared: bool,
    /// Id of the snapshot of the user's parked changes; none when there were none.
    #[serde(rename = "snapshot", default, skip_serializing_if = "Option::is_none")]
    pub parked_snapshot: Option<String>,
    /// Paths that git ignored before the preview, and nested repositories. The lane may have other ignore
    /// rules, or a file at such a path; these paths still do not count as edits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<RepoPath>,
    /// Empty folders of the main checkout before the preview, if it had no changes. Otherwise the snapshot
    /// records them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub empty_dirs: Vec<RepoPath>,
    /// Permission bits of files and folders that the preview rewrites or removes.
    #[serde(default, skip_serializing_if = "LocalState::is_empty")]
    #[serde(rename = "drops")]
    pub dropped_state: LocalState,
}

impl PreviewRecord {
    /// Returns the paths of the checkout at `dir` that do not count as edits made in the preview: those that
    /// were ignored before, except a folder in whose place there is a file now.
    pub fn excluded_paths(&self, dir: &Path) -> Vec<RepoPath> {
        let folders: HashSet<RepoPath> = self.ignored.iter().flat_map(RepoPath::parents).collect();
        let is_folder = |path: &RepoPath| path.to_fs_path(dir).symlink_metadata().is_ok_and(|m| m.is_dir());
        self.ignored.iter().filter(|path| !folders.contains(path) || is_folder(path)).cloned().collect()
    }

    /// Prefix of the refs that keep the commits that previews were entered from.
    pub const ORIGIN_REF_PREFIX: &str = "refs/proq/preview/";

    /// Returns the commit to return to if no branch names it, and the ref that keeps it for as long as the
    /// preview is open; none if the preview was entered from a branch.
    pub fn detached_origin(&self) -> Option<(CommitId, String)> {
        let Head::Detached(commit) = self.previous_head else { return None };
        Some((commit, format!("{}{commit}", PreviewRecord::ORIGIN_REF_PREFIX)))
    }
}

impl Record for PreviewRecord {
    const FORMAT: u32 = 1;
}
