//! Storage of snapshots: objects under a ref, and a folder with the raw index and the parked files.

use std::path::{Path, PathBuf};

use proq_base::explain::{shell_quote, shell_quote_path};
use proq_base::fail_points;
use proq_git::CommitId;
use proq_git::base::folders;
use proq_git::history::tree_diff;
use proq_git::snapshots::recovery::RecoveredStep;
use proq_git::snapshots::snapshot::Snapshot;
use proq_store::Store;
use proq_store::base::atomic::{create_private_dir, sync_dir};
use proq_store::base::id::{id_created_at, new_id};
use proq_store::base::record::Record;
use proq_store::locks::lock::LockName;
use proq_store::paths::layout::Layout;
use proq_store::records::snapshot::SnapshotRecord;

use crate::errors::snapshot_error::SnapshotError;
use crate::lane::context::expiry_item::{ExpiredItem, ExpiryScan, ItemSource, RetainedItem};
use crate::lane::state::in_place_guard::is_snap_needed_in_place;
use crate::lane::{Error, Project};

/// Saves a snapshot under a new id. The contents of a saved snapshot never change.
pub(crate) fn save_snapshot(
    project: &Project,
    record: &SnapshotRecord,
    raw_index: &Path,
) -> Result<(), Error> {
    let dir = project.store.layout().snapshot(&record.id);
    create_private_dir(&dir)?;
    let index_path = Layout::snapshot_index_in(&dir);
    std::fs::rename(raw_index, &index_path).map_err(Error::io("move a file to", &index_path))?;
    std::fs::File::open(&index_path).and_then(|f| f.sync_all()).map_err(Error::io("sync", &index_path))?;
    sync_dir(&dir)?;
    record.save(&Layout::snapshot_record_in(&dir))?;
    fail_points::hit("snap.put");
    // The ref comes last: a snapshot with a ref is complete.
    let (name, commit) = (SnapshotRecord::ref_name(&record.id), record.snapshot.commit);
    Ok(project.repo.create_ref(&name, commit, &format!("git-proq: {}", record.reason))?)
}

/// Returns the folder that holds the files parked with a snapshot, in its subfolder `files`.
pub fn parked_dir(store: &Store, id: &str) -> Result<PathBuf, Error> {
    let layout = store.layout();
    let record = SnapshotRecord::load_if_exists(&layout.snapshot_record(id))?;
    Ok(layout.snapshot(record.and_then(|snap| snap.parked_files_snapshot).as_deref().unwrap_or(id)))
}

/// Recovers a snapshot whose creation was interrupted, and returns whether it is complete. It is complete if
/// its ref exists. An incomplete one is deleted, since no file had been moved yet.
pub(crate) fn recover_unfinished(project: &Project, id: &str) -> Result<bool, Error> {
    if project.repo.ref_tip(&SnapshotRecord::ref_name(id))?.is_some() {
        return Ok(true);
    }
    let dir = project.store.layout().snapshot(id);
    if dir.exists() {
        std::fs::remove_dir_all(&dir).map_err(Error::io("remove", &dir))?;
    }
    Ok(false)
}

/// Removes the empty folders that restored files left in the snapshot's folder.
pub(crate) fn prune_parked_folders(store: &Store, id: &str) {
    if let Ok(dir) = parked_dir(store, id) {
        folders::remove_parked_dir_without_files(&Layout::parked_files_in(&dir));
    }
}

/// Creates refs for the files that other programs wrote between a crash and the recovery of a step, and returns
/// whether the step has happened.
pub(crate) fn anchor_recovered_files(
    project: &Project,
    recovered: RecoveredStep,
) -> Result<bool, proq_git::Error> {
    for saved in recovered.saved_commits {
        anchor_saved_files(project, saved, "written after the crash")?;
    }
    Ok(recovered.is_done)
}

/// Creates a ref that keeps a commit of saved files, and returns its name.
fn create_saved_ref(project: &Project, saved: CommitId) -> Result<String, proq_git::Error> {
    let name = format!("refs/proq/saved/crash-{}", new_id());
    project.repo.create_ref(&name, saved, "git-proq: saved")?;
    Ok(name)
}

/// Creates a ref for a commit of files that would be overwritten, and warns about it.
pub(crate) fn anchor_saved_files(
    project: &Project,
    saved: CommitId,
    origin: &str,
) -> Result<(), proq_git::Error> {
    let name = create_saved_ref(project, saved)?;
    project
        .listener
        .warn(format!("files that were {origin} are saved; restore them here: git checkout {name} -- ."));
    Ok(())
}

/// Creates a ref for `renewed`, which is `snapshot` of the worktree at `dir` with what was written to its parked
/// files, and warns about each of those files.
pub(crate) fn anchor_late_writes(
    project: &Project,
    dir: &Path,
    snapshot: &Snapshot,
    renewed: &Snapshot,
) -> Result<(), Error> {
    let name = create_saved_ref(project, renewed.commit)?;
    let mut sources = vec![("", snapshot.work_tree, renewed.work_tree)];
    if let (Some(old), Some(new)) = (snapshot.untracked_tree, renewed.untracked_tree) {
        sources.push(("^3", old, new));
    }
    for (parent, old, new) in sources {
        for change in tree_diff::tree_changes(&project.repo, old, new)? {
            let path = change.path;
            let object = shell_quote(&format!("{name}{parent}:{path}"));
            project.listener.warn(format!(
                "{path} was written to while it was saved; see what was written: git -C {} show {object}",
                shell_quote_path(dir)
            ));
        }
    }
    Ok(())
}

impl Project {
    /// Returns the ids of all snapshots that have a folder, oldest first.
    pub fn snap_ids(&self) -> Result<Vec<String>, Error> {
        let dir = self.store.layout().snapshots();
        let entries = match std::fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::io("read", &dir)(e)),
        };
        let mut ids: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// Loads the record of a snapshot by its id.
    pub fn load_snap(&self, id: &str) -> Result<SnapshotRecord, Error> {
        Ok(SnapshotRecord::load(&self.store.layout().snapshot_record(id))?)
    }

    /// Returns the record of a snapshot that has not been restored; `None` if it has been, or if there is no
    /// record. An unreadable record is an error, since it holds changes of the user.
    pub(crate) fn find_unrestored_snap(&self, id: &str) -> Result<Option<SnapshotRecord>, Error> {
        Ok(self.find_any_snap(id)?.filter(|snap| snap.restored.is_none()))
    }

    /// Returns the record of a snapshot, restored or not; `None` if there is no record.
    pub(crate) fn find_any_snap(&self, id: &str) -> Result<Option<SnapshotRecord>, Error> {
        Ok(SnapshotRecord::load_if_exists(&self.store.layout().snapshot_record(id))?)
    }

    /// Returns the path of the index saved with a snapshot of the worktree at `dir`. An index broken by a
    /// power cut is renamed, so that the snapshot is restored as without an index.
    pub(crate) fn saved_index_path(&self, dir: &Path, id: &str) -> PathBuf {
        let index_path = self.store.layout().snapshot_index(id);
        if self.repo.is_broken_index(dir, &index_path) {
            // If the rename fails, the index is just as broken as before.
            drop(std::fs::rename(&index_path, self.store.layout().broken_snapshot_index(id)));
        }
        index_path
    }

    /// Returns whether git has lost the commit of a snapshot, because no ref kept it.
    pub(crate) fn is_snap_lost(&self, snap: &SnapshotRecord) -> bool {
        !self.repo.has_object(snap.snapshot.commit)
    }

    /// Fails if git has lost the commit of a snapshot.
    pub(crate) fn require_snap_commit(&self, snap: &SnapshotRecord) -> Result<(), SnapshotError> {
        let (id, commit) = (snap.id.clone(), snap.snapshot.commit);
        if !self.is_snap_lost(snap) {
            return Ok(());
        }
        Err(SnapshotError::CommitLost { folder: self.store.layout().snapshot(&id), id, commit })
    }

    /// Returns the commit of a snapshot without a record, for example because its folder was deleted. Only
    /// `git stash apply` can restore it. Returns `None` if there is a record, or no ref.
    ///
    /// # Errors
    /// Fails if the record or the ref cannot be read.
    pub(crate) fn orphaned_snap_commit(&self, id: &str) -> Result<Option<CommitId>, Error> {
        match SnapshotRecord::load_if_exists(&self.store.layout().snapshot_record(id))? {
            Some(_) => Ok(None),
            None => Ok(self.repo.ref_tip(&SnapshotRecord::ref_name(id))?),
        }
    }
}

/// Finds the snapshots that were restored longer ago than the setting `op.keep`. A snapshot that was never
/// restored does not expire.
pub fn find_expired(project: &Project) -> Result<ExpiryScan, Error> {
    // An id starts with its time, so only the records of old snapshots are read.
    let keep = project.settings.op_keep;
    let mut expired = ExpiryScan::default();
    let is_old = |id: &String| id_created_at(id).is_none_or(|at| at.is_older_than(keep));
    for id in project.snap_ids()?.into_iter().filter(is_old) {
        match SnapshotRecord::load_if_exists(&project.store.layout().snapshot_record(&id)) {
            Err(e) => expired.retained.push(RetainedItem::unreadable(id, &e)),
            Ok(Some(SnapshotRecord { restored: Some(at), .. }))
                if at.is_older_than(project.settings.op_keep) && !is_snap_needed_in_place(project, &id)? =>
            {
                expired.expired.push(ExpiredItem { name: id, age_start: at, source: ItemSource::Snapshot });
            }
            Ok(_) => {}
        }
    }
    Ok(expired)
}

/// Marks an automatic snapshot as named by an event, so that it is retained; a missing one is ignored.
pub(crate) fn mark_named_by_event(store: &Store, id: &str) -> Result<(), Error> {
    let _lock = store.locks().acquire(&LockName::Store)?;
    let path = store.layout().snapshot_record(id);
    let Some(mut snap) = SnapshotRecord::load_if_exists(&path)? else { return Ok(()) };
    if let Some(automatic) = &mut snap.automatic {
        automatic.is_in_event = true;
        snap.save(&path)?;
    }
    Ok(())
}

/// Deletes an automatic snapshot that no event names.
pub(crate) fn delete_automatic(project: &Project, id: &str) -> Result<(), Error> {
    let lock = project.store.locks().acquire(&LockName::Store)?;
    let dir = project.store.layout().snapshot(id);
    let Some(snap) = SnapshotRecord::load_if_exists(&Layout::snapshot_record_in(&dir))? else {
        return Ok(());
    };
    // Since it was chosen for deletion, it may have been restored, or its restore may have started.
    if !snap.is_copy || snap.automatic.is_none_or(|automatic| automatic.is_in_event) {
        return Ok(());
    }
    let name = SnapshotRecord::ref_name(id);
    if let Some(tip) = project.repo.ref_tip(&name)? {
        project.repo.delete_ref(&name, tip, "git-proq: replaced by a newer automatic snapshot")?;
    }
    let removal = project.store.layout().begin_deletion(&dir)?;
    drop(lock);
    Ok(removal.finish()?)
}

/// Deletes an expired snapshot, unless it is needed again by now. Returns whether it was deleted.
pub fn delete_expired(project: &Project, id: &str) -> Result<bool, Error> {
    let lock = project.store.locks().acquire(&LockName::Store)?;
    let dir = project.store.layout().snapshot(id);
    let Some(snap) = SnapshotRecord::load_if_exists(&Layout::snapshot_record_in(&dir))? else {
        return Ok(false);
    };
    if !snap.restored.is_some_and(|at| at.is_older_than(project.settings.op_keep))
        || is_snap_needed_in_place(project, id)?
    {
        return Ok(false);
    }
    // A later snapshot that was not restored may have its parked files in this folder.
    for other in project.snap_ids()? {
        if project
            .find_unrestored_snap(&other)
            .ok()
            .flatten()
            .is_some_and(|snap| snap.parked_files_snapshot.as_deref() == Some(id))
        {
            return Ok(false);
        }
    }
    let name = SnapshotRecord::ref_name(id);
    if let Some(tip) = project.repo.ref_tip(&name)? {
        project.repo.delete_ref(&name, tip, "git-proq: restored long ago")?;
    }
    let removal = project.store.layout().begin_deletion(&dir)?;
    drop(lock);
    Ok(removal.finish().map(|()| true)?)
}
