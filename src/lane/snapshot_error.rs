//! Owns the errors about single snapshots, in the user's words.

use std::borrow::Cow;
use std::path::PathBuf;

use super::Project;
use crate::explain::{Explain, quoted_path};
use crate::git::{Oid, Remedy, RepoPath, names};
use crate::store::records::SnapRecord;

/// An error about a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Only the record and the files beside it are left: somebody deleted the snapshot's ref, and git removed its objects.
    #[error("cannot read snapshot {id}: git has lost its commit {}, which no ref keeps; nothing was changed", commit.short())]
    Lost {
        /// The snapshot.
        id: String,
        /// Its commit.
        commit: Oid,
        /// Its folder.
        folder: PathBuf,
    },
    /// The lane that it was taken of was removed since.
    #[error("cannot restore snapshot {id}: there is no lane '{lane}' any more; nothing was changed")]
    Lane {
        /// The snapshot.
        id: String,
        /// Its commit.
        commit: Oid,
        /// The lane.
        lane: String,
    },
    /// Something is staged that would be lost with the index.
    #[error("cannot restore snapshot {id}: it replaces the index of {}, where something else is staged: {}; nothing was changed", dir.display(), names(paths))]
    Staged {
        /// The snapshot.
        id: String,
        /// The worktree.
        dir: PathBuf,
        /// What is staged, or announced with `git add -N`.
        paths: Vec<RepoPath>,
        /// What gets it out of the way.
        remedy: Box<Remedy>,
    },
}

impl SnapshotError {
    /// Refuses a snapshot whose commit is gone.
    pub(super) fn refuse_lost(project: &Project, snap: &SnapRecord) -> Result<(), SnapshotError> {
        let (id, commit) = (snap.id.clone(), snap.snapshot.commit);
        if !project.is_lost(snap) {
            return Ok(());
        }
        Err(SnapshotError::Lost { folder: project.store.layout().snapshot(&id), id, commit })
    }
}

impl Explain for SnapshotError {
    fn hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            SnapshotError::Lost { folder, .. } => {
                vec![format!("see which of its files are left: ls -R {}", quoted_path(folder)).into()]
            }
            SnapshotError::Lane { commit, .. } => {
                vec![format!("put it on what is checked out here: git stash apply {}", commit.short()).into()]
            }
            SnapshotError::Staged { dir, remedy, .. } => remedy.hints(dir),
        }
    }
}
