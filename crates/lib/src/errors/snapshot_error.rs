//! Errors about single snapshots, with their hints.

use std::path::PathBuf;

use proq_base::explain::{Explain, shell_quote_path};
use proq_base::lane_name::LaneName;
use proq_git::base::error::list_paths;
use proq_git::base::local_changes_remedy::LocalChangesRemedy;
use proq_git::{CommitId, RepoPath};

/// Error about a single snapshot.
#[derive(Debug, thiserror::Error, Explain)]
pub enum SnapshotError {
    /// Only the record and the parked files are left: the ref was deleted, and git removed the objects.
    #[error("cannot read snapshot {id}: git has lost its commit {}; nothing was changed", commit.short())]
    #[hint("list the files that are left: ls -R {}", shell_quote_path(folder))]
    CommitLost {
        /// Id of the snapshot.
        id: String,
        /// Commit of the snapshot.
        commit: CommitId,
        /// Folder of the snapshot in the store.
        folder: PathBuf,
    },
    /// The lane of an automatic snapshot has been removed.
    #[error("cannot restore snapshot {id}: lane '{lane}' no longer exists; nothing was changed")]
    #[hint("apply it to the current checkout: git stash apply {}", commit.short_in_command())]
    LaneRemoved {
        /// Id of the snapshot.
        id: String,
        /// Commit of the snapshot.
        commit: CommitId,
        /// Name of the lane.
        lane: LaneName,
    },
    /// The changes that a landing saved to move a branch could not be restored after it.
    #[error(
        "cannot restore your changes in {}: {reason}; they are saved: git stash apply {}",
        dir.display(), commit.short_in_command()
    )]
    NotReturned {
        /// Top folder of the worktree.
        dir: PathBuf,
        /// Commit of the snapshot.
        commit: CommitId,
        /// Message of the error that prevented the restore.
        reason: String,
    },
    /// The changes in a worktree conflict with the commit that an undo would return to.
    #[error(
        "your changes in {} conflict with the commit to return to: {}; nothing was changed",
        dir.display(), list_paths(paths)
    )]
    #[hint(with = LocalChangesRemedy::CommitOrStash.command_hints(dir))]
    CarryConflict {
        /// Top folder of the worktree.
        dir: PathBuf,
        /// Paths with conflicts.
        paths: Vec<RepoPath>,
    },
    /// The restore would replace an index in which other paths are staged.
    #[error("cannot restore snapshot {id}: it would replace other staged changes in {}: {}; nothing was changed", dir.display(), list_paths(paths))]
    #[hint(with = remedy.command_hints(dir))]
    Staged {
        /// Id of the snapshot.
        id: String,
        /// Top folder of the worktree.
        dir: PathBuf,
        /// Paths that are staged, or marked with `git add -N`.
        paths: Vec<RepoPath>,
        /// Commands that move the staged changes out of the way.
        remedy: Box<LocalChangesRemedy>,
    },
}
