//! The step that recreates the folder of a trash entry.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use proq_base::fail_points;
use proq_git::base::fsync;
use proq_git::{CommitId, Repo};
use proq_store::base::atomic::rename_no_replace;
use proq_store::paths::layout::Layout;
use serde::{Deserialize, Serialize};

use super::{copy_gitlink, restore_parked_files};
use crate::lane::Error;
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::{Step, StepOutcome};

/// Recreation of the folder of a trash entry that another lane has reused. The folder is complete in its trash
/// entry and stays when the step is reverted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename = "regrow")]
pub struct RecreateTrash {
    /// Path of the trash entry.
    #[serde(rename = "entry", with = "proq_store::paths::path_form")]
    pub trash_entry: PathBuf,
    /// Commit whose files the folder had.
    pub tip: CommitId,
}

impl Step for RecreateTrash {
    fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        vec![&mut self.trash_entry]
    }

    fn log_line(&self) -> Option<String> {
        Some(format!("{}/worktree: created again", self.trash_entry.display()))
    }

    fn apply(&self, op: &Operation<'_>, scratch: &Path) -> Result<StepOutcome, Error> {
        recreate_folder(&op.project.repo, &self.trash_entry, self.tip, scratch)?;
        Ok(StepOutcome::done())
    }

    /// An incomplete worktree is completed before it is moved back.
    fn prepares_inverse(&self) -> bool {
        true
    }

    fn recover(&self, _op: &Operation<'_>, _scratch: &Path) -> Result<bool, Error> {
        recover_recreate(&self.trash_entry)
    }
}

/// Recreates the folder of an entry: the files of its commit and the parked files.
fn recreate_folder(repo: &Repo, entry: &Path, tip: CommitId, scratch: &Path) -> Result<(), Error> {
    let new_folder = Layout::scratch_worktree(scratch);
    std::fs::create_dir(&new_folder).map_err(Error::io("create", &new_folder))?;
    repo.write_commit_files(&new_folder, tip, &Layout::scratch_index(scratch))?;
    let (gitlink, saved_gitlink) = (new_folder.join(".git"), Layout::trash_gitlink_in(entry));
    copy_gitlink(&saved_gitlink, &gitlink)?;
    fsync::sync_file_system(&new_folder)?;
    fail_points::hit("regrow.built");
    let folder = Layout::trash_worktree_in(entry);
    rename_no_replace(&new_folder, &folder).map_err(Error::io("move", &new_folder))?;
    fail_points::hit("regrow.moved");
    recover_recreate(entry).map(drop)
}

/// Recovers an interrupted recreation of a folder, and completes it if the folder is in its final path.
/// Returns whether it is.
fn recover_recreate(entry: &Path) -> Result<bool, Error> {
    if Layout::trash_worktree_in(entry).symlink_metadata().is_err() {
        return Ok(false);
    }
    let saved_gitlink = Layout::trash_gitlink_in(entry);
    match std::fs::remove_file(&saved_gitlink) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::io("remove", &saved_gitlink)(e)),
        _ => {}
    }
    restore_parked_files(entry).map(|()| true)
}
