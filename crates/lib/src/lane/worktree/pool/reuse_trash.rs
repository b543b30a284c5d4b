//! The step that gives the folder of a trash entry to a new lane.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proq_base::fail_points;
use proq_git::RepoPath;
use proq_store::base::atomic::{rename_no_replace, sync_dir};
use proq_store::base::record::Record;
use proq_store::paths::layout::Layout;
use proq_store::records::trash::ReusedTrashRecord;
use serde::{Deserialize, Serialize};

use super::{allow_already_exists, copy_gitlink, restore_parked_files};
use crate::lane::Error;
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::{Step, StepOutcome};

/// Reuse of the folder of a trash entry for a new lane. A reused folder belongs to the new lane and is removed
/// with it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename = "reuse")]
pub struct ReuseTrash {
    /// Path of the trash entry.
    #[serde(rename = "entry", with = "proq_store::paths::path_form")]
    pub trash_entry: PathBuf,
    /// Folder of the new lane, which git has registered.
    #[serde(with = "proq_store::paths::path_form")]
    pub dir: PathBuf,
    /// Files of the reuse; only the process that reuses the folder has them.
    #[serde(skip)]
    pub(super) reused: Option<Arc<ReusedFiles>>,
}

/// Files of a folder that is about to be reused.
#[derive(Debug)]
pub(super) struct ReusedFiles {
    /// Record of the reuse.
    pub(super) record: ReusedTrashRecord,
    /// Paths that stay in the trash entry.
    pub(super) removed_paths: Vec<RepoPath>,
}

impl Step for ReuseTrash {
    fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        vec![&mut self.trash_entry, &mut self.dir]
    }

    fn log_line(&self) -> Option<String> {
        Some(format!("{}/worktree -> {}", self.trash_entry.display(), self.dir.display()))
    }

    fn apply(&self, _op: &Operation<'_>, _scratch: &Path) -> Result<StepOutcome, Error> {
        if let Some(reused) = &self.reused {
            move_folder_to_lane(&self.trash_entry, &self.dir, &reused.record, &reused.removed_paths)?;
        }
        Ok(StepOutcome::done())
    }

    fn recover(&self, _op: &Operation<'_>, _scratch: &Path) -> Result<bool, Error> {
        recover_reuse(&self.trash_entry, &self.dir)
    }
}

/// Moves the folder of an entry over the new lane's folder at `dir`. If this is interrupted anywhere,
/// [`recover_reuse`] decides the result.
fn move_folder_to_lane(
    entry: &Path,
    dir: &Path,
    record: &ReusedTrashRecord,
    removed_paths: &[RepoPath],
) -> Result<(), Error> {
    let (folder, parked) = (Layout::trash_worktree_in(entry), Layout::trash_parked_files_in(entry));
    record.save(&Layout::reused_trash_record_in(entry))?;
    fail_points::hit("pool.claimed");
    std::fs::create_dir(&parked).or_else(allow_already_exists).map_err(Error::io("create", &parked))?;
    for path in removed_paths {
        let (from, to) = (path.to_fs_path(&folder), path.to_fs_path(&parked));
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
        }
        rename_no_replace(&from, &to).map_err(Error::io("move aside", &from))?;
        fail_points::hit("pool.aside");
    }
    let (gitlink, saved_gitlink) = (folder.join(".git"), Layout::trash_gitlink_in(entry));
    rename_no_replace(&gitlink, &saved_gitlink).map_err(Error::io("move aside", &gitlink))?;
    fail_points::hit("pool.unlinked");
    let lane_gitlink = dir.join(".git");
    copy_gitlink(&lane_gitlink, &gitlink)?;
    sync_dir(&folder)?;
    sync_dir(entry)?;
    fail_points::hit("pool.linked");
    std::fs::remove_file(&lane_gitlink).map_err(Error::io("remove", &lane_gitlink))?;
    fail_points::hit("pool.emptied");
    // The rename replaces only an empty folder.
    std::fs::rename(&folder, dir).map_err(Error::io("move", &folder))?;
    fail_points::hit("pool.moved");
    for folder in [entry, dir, dir.parent().unwrap_or(dir)] {
        // The folder has changed hands even if syncing fails: after a power cut the entry shows which lane
        // has it.
        drop(sync_dir(folder));
    }
    Ok(())
}

/// Recovers an interrupted reuse of a folder. Returns whether the folder has changed hands; otherwise
/// everything is moved back. Can be interrupted and repeated.
fn recover_reuse(entry: &Path, dir: &Path) -> Result<bool, Error> {
    let (folder, saved_gitlink) = (Layout::trash_worktree_in(entry), Layout::trash_gitlink_in(entry));
    if folder.symlink_metadata().is_err() {
        return Ok(true);
    }
    let gitlink = folder.join(".git");
    if saved_gitlink.symlink_metadata().is_ok() {
        let lane_gitlink = dir.join(".git");
        if lane_gitlink.symlink_metadata().is_err() && dir.is_dir() && gitlink.symlink_metadata().is_ok() {
            std::fs::rename(&gitlink, &lane_gitlink).map_err(Error::io("move", &gitlink))?;
        }
        std::fs::rename(&saved_gitlink, &gitlink).map_err(Error::io("move", &saved_gitlink))?;
    }
    restore_parked_files(entry)?;
    Ok(false)
}
