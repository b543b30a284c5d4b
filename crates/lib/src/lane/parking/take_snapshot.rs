//! The step that takes a snapshot.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proq_base::fail_points;
use proq_git::RepoPath;
use proq_git::checkout::ref_recovery;
use proq_git::index::index_flags;
use proq_git::snapshots::late_writes;
use proq_git::snapshots::snapshot::Snapshot;
use proq_store::base::record::Record;
use proq_store::paths::layout::Layout;
use proq_store::records::snapshot::SnapshotRecord;
use serde::{Deserialize, Serialize};

use super::restore_snapshot::RestoreSnapshot;
use super::snapshot_store;
use crate::lane::Error;
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::{Step, StepOutcome};

/// Taking of a snapshot.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename = "snap")]
pub struct TakeSnapshot {
    /// Id of the snapshot.
    pub(super) id: String,
    /// Whether the snapshot existed before and was replaced, as older versions did. It still exists after an
    /// undo then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "anew")]
    is_retaken: bool,
    /// Contents of the snapshot; only the process that takes it has them.
    #[serde(skip)]
    contents: Option<Arc<NewSnapshot>>,
}

/// Contents of a snapshot that is about to be taken.
#[derive(Debug)]
pub(crate) struct NewSnapshot {
    /// Record of the snapshot.
    pub(crate) record: SnapshotRecord,
    /// Index of the snapshot, a file that moves into the snapshot's folder.
    pub(crate) raw_index: PathBuf,
    /// Files that are copied into the snapshot's folder. The step covers the copy, because a folder from before
    /// the step began has no owner.
    pub(crate) copied_files: CopiedFiles,
}

/// Files of a worktree that are copied into the folder of a new snapshot.
#[derive(Debug)]
pub(crate) enum CopiedFiles {
    /// No files.
    Nothing,
    /// Files of the worktree `dir` that the snapshot's objects do not hold byte for byte.
    Filtered {
        /// Top folder of the worktree.
        dir: PathBuf,
    },
    /// Untracked files of another snapshot that was restored to the worktree `dir`.
    RestoredUntracked {
        /// Top folder of the worktree.
        dir: PathBuf,
        /// Snapshot that was restored.
        restored: Box<Snapshot>,
        /// Folder to copy to.
        parked_dir: PathBuf,
    },
}

/// Snapshots taken by this process, by id: only the process that took a snapshot knows the index it was taken
/// from.
#[derive(Default)]
pub(super) struct TakenSnapshots(pub(super) HashMap<String, Snapshot>);

impl From<NewSnapshot> for TakeSnapshot {
    fn from(contents: NewSnapshot) -> TakeSnapshot {
        let id = contents.record.id.clone();
        TakeSnapshot { id, is_retaken: false, contents: Some(Arc::new(contents)) }
    }
}

impl NewSnapshot {
    /// Writes the snapshot to the store.
    fn save(&self, op: &Operation<'_>) -> Result<(), Error> {
        let record = &self.record;
        match &self.copied_files {
            CopiedFiles::Nothing => {}
            CopiedFiles::Filtered { dir } => {
                let folder = op.project.store.layout().snapshot(&record.id);
                op.lock_worktree(dir)?.copy_filtered_files(&record.snapshot, &folder)?;
                fail_points::hit("snap.copied");
            }
            CopiedFiles::RestoredUntracked { dir, restored, parked_dir } => {
                op.lock_worktree(dir)?.copy_restored_untracked(restored, parked_dir)?;
            }
        }
        snapshot_store::save_snapshot(op.project, record, &self.raw_index)
    }
}

impl Step for TakeSnapshot {
    fn log_line(&self) -> Option<String> {
        Some(format!("snapshot {}: git proq snap show {}", self.id, self.id))
    }

    fn apply(&self, op: &Operation<'_>, _scratch: &Path) -> Result<StepOutcome, Error> {
        self.contents.as_ref().map_or(Ok(()), |contents| contents.save(op))?;
        Ok(StepOutcome::done())
    }

    fn invert(&self, op: &Operation<'_>) -> Result<(), Error> {
        match (self.is_retaken, op.is_reverting()) {
            (true, _) => Ok(()),
            (false, true) => delete_snapshot(op, &self.id),
            (false, false) => op.mark_restored(&self.id),
        }
    }

    fn prepares_inverse(&self) -> bool {
        true
    }

    /// Recovery after another power cut needs the snapshots to recognize the user's own files.
    fn is_reverted_last(&self) -> bool {
        true
    }

    fn remove_redundant(&self, op: &Operation<'_>, target: &dyn Step, n: usize) -> Result<(), Error> {
        match target.downcast_ref::<RestoreSnapshot>() {
            Some(restore) if is_redundant(op, &self.id, restore)? => op.run_as_inverse_of(n, || {
                remove_saved_files(op, &self.id, restore)?;
                delete_snapshot(op, &self.id)
            }),
            _ => Ok(()),
        }
    }

    fn recover(&self, op: &Operation<'_>, scratch: &Path) -> Result<bool, Error> {
        let name = SnapshotRecord::ref_name(&self.id);
        ref_recovery::recover_private_ref_lock(&op.project.repo, &name, scratch)?;
        snapshot_store::recover_unfinished(op.project, &self.id)
    }
}

/// Returns whether snapshot `id`, which was taken while `restore` was reverted, is redundant. It is redundant if
/// it holds no file and no flag beyond the restored snapshot and the state before the restore, or beyond what
/// merging that snapshot makes of its files, and nothing waits for it.
fn is_redundant(op: &Operation<'_>, id: &str, restore: &RestoreSnapshot) -> Result<bool, Error> {
    let RestoreSnapshot { dir, snapshot_id, state_before, .. } = restore;
    let project = op.project;
    let (Some(new), Some(old)) = (project.find_any_snap(id)?, project.find_any_snap(snapshot_id)?) else {
        return Ok(false);
    };
    if new.id == old.id || !new.snapshot.ignored.is_empty() || op.awaited_restore_command(id)?.is_some() {
        return Ok(false);
    }
    let is_merge_result = op.is_merged_restore(&old.snapshot, new.snapshot.head_commit, &new.snapshot)?;
    let mut known = vec![old];
    if let Some(before) = state_before.as_ref().and_then(|before| before.snapshot_id.as_deref()) {
        known.extend(project.find_any_snap(before)?);
    }
    let index = |snap: &SnapshotRecord| project.saved_index_path(dir, &snap.id);
    let indexes: Vec<PathBuf> = known.iter().map(index).collect();
    let known: Vec<Snapshot> = known.into_iter().map(|snap| snap.snapshot).collect();
    let is_known_intent = |path| known.iter().any(|snapshot| snapshot.intent_to_add.contains(path));
    // If a folder was removed together with its parents, the upper ones may have stayed.
    let is_same_or_above =
        |folder: &RepoPath, path: &RepoPath| folder == path || folder.parents().any(|up| up == *path);
    let is_known_empty_dir =
        |path| known.iter().any(|s| s.empty_dirs.iter().any(|folder| is_same_or_above(folder, path)));
    let snapshot = &new.snapshot;
    let repo = &project.repo;
    Ok(snapshot.stages.is_none()
        && snapshot.empty_dirs.iter().all(is_known_empty_dir)
        && snapshot.intent_to_add.iter().all(is_known_intent)
        && (is_merge_result || snapshot.paths_not_in_others(repo, &known)?.is_empty())
        // Flags that cannot be read prove nothing.
        && index_flags::has_only_flags_of(repo, dir, &index(&new), &indexes).unwrap_or(false))
}

/// Removes the parked files of snapshot `id` if git's objects have all of their bytes. What the reverted `restore`
/// had restored has returned to the worktree instead.
fn remove_saved_files(op: &Operation<'_>, id: &str, restore: &RestoreSnapshot) -> Result<(), Error> {
    let snapshot = op.load_snapshot(id)?;
    let folder = op.project.store.layout().snapshot(id);
    let files = Layout::parked_files_in(&folder);
    if files.exists() && op.lock_worktree(&restore.dir)?.has_only_saved_bytes(&snapshot, &folder)? {
        std::fs::remove_dir_all(&files).map_err(Error::io("remove", &files))?;
    }
    Ok(())
}

/// Deletes a snapshot whose files never left their places, or were restored to them. A snapshot that still
/// holds parked files, or copies that a warning has named, is only marked as restored.
fn delete_snapshot(op: &Operation<'_>, id: &str) -> Result<(), Error> {
    let name = SnapshotRecord::ref_name(id);
    snapshot_store::prune_parked_folders(&op.project.store, id);
    let dir = op.project.store.layout().snapshot(id);
    // Copied files never left their places, or are restored by now. An unreadable record does not show that
    // they are copies.
    let is_copy = || {
        SnapshotRecord::load_if_exists(&Layout::snapshot_record_in(&dir))
            .is_ok_and(|s| s.is_some_and(|snap| snap.is_copy))
    };
    if late_writes::has_named_copies(&dir) {
        return op.mark_restored(id);
    }
    let files = Layout::parked_files_in(&dir);
    if files.exists() {
        if !is_copy() {
            // The snapshot still holds parked files.
            return op.mark_restored(id);
        }
        // The files are deleted before the record: after a kill, recovery reads from the record that they are
        // copies.
        std::fs::remove_dir_all(&files).map_err(Error::io("remove", &files))?;
        fail_points::hit("snap.emptied");
    }
    if dir.exists() {
        std::fs::remove_dir_all(&dir).map_err(Error::io("remove", &dir))?;
    }
    match op.project.repo.ref_tip(&name)? {
        Some(tip) => op.delete_ref(&name, tip),
        None => Ok(()),
    }
}
