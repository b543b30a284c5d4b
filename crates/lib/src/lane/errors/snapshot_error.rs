//! Errors about single snapshots, with their hints.

use std::borrow::Cow;
use std::path::PathBuf;

use proq_base::explain::{Explain, shell_quote_path};
use proq_base::lane_name::LaneName;
use proq_git::base::error::list_paths;
use proq_git::base::local_changes_hint::LocalChangesHint;
use proq_git::{CommitId, RepoPath};

/// Error about a single snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Only the record and the parked files are left: the ref was deleted, and git removed the objects.
    #[error("cannot read snapshot {id}: git has lost its commit {}, which no ref keeps; nothing was changed", commit.short())]
    CommitLost {
        /// Id of the snapshot.
        id: String,
        /// Commit of the snapshot.
        commit: CommitId,
        /// Folder of the snapshot in the store.
        folder: PathBuf,
    },
    /// The lane of an automatic snapshot has been removed.
    #[error("cannot restore snapshot {id}: there is no lane '{lane}' any more; nothing was changed")]
    LaneRemoved {
        /// Id of the snapshot.
        id: String,
        /// Commit of the snapshot.
        commit: CommitId,
        /// Name of the lane.
        lane: LaneName,
    },
    /// The restore would replace an index in which other paths are staged.
    #[error("cannot restore snapshot {id}: it replaces the index of {}, where something else is staged: {}; nothing was changed", dir.display(), list_paths(paths))]
    Staged {
        /// Id of the snapshot.
        id: String,
        /// Top folder of the worktree.
        dir: PathBuf,
        /// Paths that are staged, or marked with `git add -N`.
        paths: Vec<RepoPath>,
        /// Commands that move the staged changes out of the way.
        remedy: Box<LocalChangesHint>,
    },
}

impl Explain for SnapshotError {
    fn hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            SnapshotError::CommitLost { folder, .. } => {
                vec![format!("see which of its files are left: ls -R {}", shell_quote_path(folder)).into()]
            }
            SnapshotError::LaneRemoved { commit, .. } => {
                vec![format!("put it on what is checked out here: git stash apply {}", commit.short()).into()]
            }
            SnapshotError::Staged { dir, remedy, .. } => remedy.hints(dir),
        }
    }
}
