//! Steps of an operation: each names the old and the new state, so that it can be completed or undone.

use std::path::{Path, PathBuf};

use proq_base::lane_name::LaneName;
use proq_git::base::head::RefMove;
use proq_git::status::local_state::LocalState;
use proq_git::{CommitId, RepoPath};
use serde::{Deserialize, Serialize};

/// One change of an operation. It is small enough that recovery can detect whether it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "an operation has a handful of steps")]
pub enum Step {
    /// Move a ref; none stands for "does not exist".
    #[serde(rename = "ref")]
    MoveRef {
        /// Full name of the ref.
        name: String,
        /// Old value.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        old: Option<CommitId>,
        /// New value.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        new: Option<CommitId>,
    },
    /// Create a ref that keeps an object. The ref stays, whatever happens to the other steps.
    #[serde(rename = "anchor")]
    KeepRef {
        /// Full name of the ref.
        name: String,
        /// Commit that the ref keeps.
        new: CommitId,
    },
    /// Check out another commit in a worktree.
    #[serde(rename = "tree")]
    Checkout {
        /// Top folder of the worktree.
        #[serde(with = "crate::paths::path_form")]
        dir: PathBuf,
        /// Old commit.
        from: CommitId,
        /// New commit.
        to: CommitId,
        /// Ref that moves together with the worktree.
        #[serde(rename = "move")]
        ref_move: RefMove,
        /// Empty folders, index flags and permission bits that git drops during the checkout. Undoing the
        /// step restores them.
        #[serde(default, skip_serializing_if = "LocalState::is_empty")]
        #[serde(rename = "drops")]
        dropped_state: LocalState,
        /// Empty folders, index flags and permission bits that are restored in addition to the files of `to`,
        /// when this step undoes another one.
        #[serde(default, skip_serializing_if = "LocalState::is_empty")]
        #[serde(rename = "brings")]
        restored_state: LocalState,
    },
    /// Record that an agent moved the branch of a worktree. This step changes nothing.
    #[serde(rename = "worked")]
    RecordAgentCommits {
        /// Top folder of the worktree.
        #[serde(with = "crate::paths::path_form")]
        dir: PathBuf,
        /// Branch, without `refs/heads/`.
        branch: String,
        /// Old tip.
        from: CommitId,
        /// New tip.
        to: CommitId,
    },
    /// Take a snapshot.
    #[serde(rename = "snap")]
    TakeSnapshot {
        /// Id of the snapshot.
        id: String,
        /// Whether the snapshot existed before and was replaced, as older versions did. It still exists after
        /// an undo then.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[serde(rename = "anew")]
        is_retaken: bool,
    },
    /// Move the content of a snapshot out of a worktree, which is clean afterwards.
    #[serde(rename = "clear")]
    ClearWorktree {
        /// Top folder of the worktree.
        #[serde(with = "crate::paths::path_form")]
        dir: PathBuf,
        /// Id of the snapshot.
        #[serde(rename = "snap")]
        snapshot_id: String,
    },
    /// Restore the content of a snapshot to a worktree.
    #[serde(rename = "restore")]
    RestoreSnapshot {
        /// Top folder of the worktree.
        #[serde(with = "crate::paths::path_form")]
        dir: PathBuf,
        /// Id of the snapshot.
        #[serde(rename = "snap")]
        snapshot_id: String,
        /// Commit that the worktree has checked out.
        head: CommitId,
        /// State of the worktree before the restore, where it was not certainly clean.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(rename = "before")]
        state_before: Option<PreRestoreState>,
    },
    /// Write a record; none stands for "does not exist".
    #[serde(rename = "file")]
    WriteRecord {
        /// Path of the record, relative to `proq/`.
        #[serde(with = "crate::paths::path_form")]
        path: PathBuf,
        /// Old contents.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        old: Option<String>,
        /// New contents.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        new: Option<String>,
    },
    /// Rename a folder or file.
    #[serde(rename = "move")]
    MovePath {
        /// Old path.
        #[serde(with = "crate::paths::path_form")]
        from: PathBuf,
        /// New path.
        #[serde(with = "crate::paths::path_form")]
        to: PathBuf,
    },
    /// Create the worktree of a lane.
    #[serde(rename = "worktree")]
    CreateWorktree {
        /// Top folder of the worktree.
        #[serde(with = "crate::paths::path_form")]
        dir: PathBuf,
        /// Name of the lane.
        lane: LaneName,
        /// Commit that is checked out in the worktree.
        start: CommitId,
    },
    /// Use the folder of a trash entry for a new lane.
    #[serde(rename = "reuse")]
    ReuseTrash {
        /// Path of the trash entry.
        #[serde(rename = "entry", with = "crate::paths::path_form")]
        trash_entry: PathBuf,
        /// Folder of the new lane, which git has registered.
        #[serde(with = "crate::paths::path_form")]
        dir: PathBuf,
    },
    /// Recreate the folder of a trash entry that another lane has reused.
    #[serde(rename = "regrow")]
    RecreateTrash {
        /// Path of the trash entry.
        #[serde(rename = "entry", with = "crate::paths::path_form")]
        trash_entry: PathBuf,
        /// Commit whose files the folder had.
        tip: CommitId,
    },
    /// Create a worktree for resolving the conflict of a lane.
    #[serde(rename = "resolve")]
    CreateResolveWorktree {
        /// Top folder of the worktree.
        #[serde(with = "crate::paths::path_form")]
        dir: PathBuf,
        /// Name of the lane.
        lane: LaneName,
        /// Commit that is checked out in the worktree.
        start: CommitId,
    },
}

/// State of a worktree before a snapshot was restored to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreRestoreState {
    /// Snapshot of the differences from HEAD; none when there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "snap")]
    pub snapshot_id: Option<String>,
    /// Empty folders of the worktree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub empty_dirs: Vec<RepoPath>,
    /// Ignored files that already existed and that the restored snapshot also contains.
    #[serde(rename = "ignored", default, skip_serializing_if = "Vec::is_empty")]
    pub colliding_ignored: Vec<RepoPath>,
}

/// Prefix of the refs that keep an operation's objects while the operation is active.
const PENDING_REF_PREFIX: &str = "refs/proq/pending/";

impl Step {
    /// Updates the paths of the step after the repository was moved from `old_root` to `new_root`.
    pub fn relocate(&mut self, old_root: &Path, new_root: &Path) {
        let paths: [Option<&mut PathBuf>; 2] = match self {
            Step::Checkout { dir, .. }
            | Step::RecordAgentCommits { dir, .. }
            | Step::ClearWorktree { dir, .. }
            | Step::RestoreSnapshot { dir, .. }
            | Step::CreateWorktree { dir, .. }
            | Step::CreateResolveWorktree { dir, .. } => [Some(dir), None],
            Step::MovePath { from, to } => [Some(from), Some(to)],
            Step::ReuseTrash { trash_entry: entry, dir } => [Some(entry), Some(dir)],
            Step::RecreateTrash { trash_entry: entry, .. } => [Some(entry), None],
            // The path of a record is relative to `proq/`.
            Step::MoveRef { .. }
            | Step::KeepRef { .. }
            | Step::TakeSnapshot { .. }
            | Step::WriteRecord { .. } => [None, None],
        };
        for path in paths.into_iter().flatten() {
            if let Ok(relative) = path.strip_prefix(old_root) {
                *path = if relative.as_os_str().is_empty() {
                    new_root.to_owned()
                } else {
                    new_root.join(relative)
                };
            }
        }
    }

    /// Returns the worktree whose files the step changes.
    pub fn changed_worktree(&self) -> Option<&Path> {
        match self {
            Step::Checkout { dir, .. }
            | Step::ClearWorktree { dir, .. }
            | Step::RestoreSnapshot { dir, .. } => Some(dir),
            _ => None,
        }
    }

    /// Returns the name of the ref that keeps an operation's objects while it is active.
    pub fn pending_ref(id: &str) -> String {
        format!("{PENDING_REF_PREFIX}{id}")
    }

    /// Returns whether the step moves the pending ref of an operation. Such a step leaves no change once the
    /// operation has finished.
    pub fn moves_pending_ref(&self) -> bool {
        matches!(self, Step::MoveRef { name, .. } if name.starts_with(PENDING_REF_PREFIX))
    }
}
