//! Inverse of restoring a snapshot: the restored changes in the worktree, and all later ones, are saved in a
//! snapshot and parked again.

use std::path::Path;

use proq_base::fail_points;
use proq_git::RepoPath;
use proq_git::snapshots::restore_forecast::RestoreOutcome;
use proq_git::snapshots::snapshot::Snapshot;
use proq_store::base::clock::now;
use proq_store::base::id::new_id;
use proq_store::base::record::Record;
use proq_store::records::preview::PreviewRecord;
use proq_store::records::snapshot::SnapshotRecord;

use super::park_changes::derived_record;
use super::pre_restore_state::PreRestoreState;
use super::snapshot_store;
use super::take_snapshot::CopiedFiles;
use crate::lane::Error;
use crate::operation::journaled_operation::Operation;

impl Operation<'_> {
    /// Reverts the restore of snapshot `id`: parks the restored changes and all later ones in the worktree.
    /// Returns the id of the snapshot that has them; none if only empty folders were left to park. Changes
    /// that `id` does not hold become another snapshot, which then replaces `id` for the preview or lane that
    /// waits for it.
    pub(crate) fn undo_restore(
        &self,
        dir: &Path,
        id: &str,
        before: Option<&PreRestoreState>,
        excluded: &[RepoPath],
    ) -> Result<Option<String>, Error> {
        let old = self.project.load_snap(id)?;
        // git-proq takes the lock before it reads HEAD: what lands until then is not a user edit.
        let checkout = self.lock_worktree(dir)?;
        let base = self.project.repo.head_commit(dir)?.unwrap_or(old.snapshot.head_commit);
        let save = |snapshot: Snapshot, raw_index: &Path| {
            let awaited_id = self.awaited_id_and_restore_command(&old)?.map(|(id, _)| id);
            // Once the content differs, only another snapshot can hold what was merged and the result of the
            // merge.
            let is_awaited = |snap: &Option<String>| awaited_id.is_some() && awaited_id == *snap;
            if is_awaited(&old.derived_from) && !self.is_restore_untouched(dir, &old)? {
                return self.save_separate_snapshot(&old, before, snapshot, raw_index, false);
            }
            let is_renewed = is_awaited(&old.parked_files_snapshot);
            let is_merged = self.is_merged_restore(&old.snapshot, base, &snapshot)?;
            if is_merged && self.is_restore_untouched(dir, &old)? {
                return self.save_merged_result(dir, &old, awaited_id.as_deref(), snapshot, raw_index);
            }
            if !is_renewed
                && let Some(same_id) = self.find_matching_snapshot(dir, &old, &snapshot, raw_index)?
            {
                let snapshot = snapshot.with_id_of_equal(&self.project.load_snap(&same_id)?.snapshot);
                self.remember_snapshot(same_id.clone(), snapshot);
                return Ok(same_id);
            }
            self.save_separate_snapshot(&old, before, snapshot, raw_index, is_merged)
        };
        let scan = checkout.scan().with_restored_ignored(&old.snapshot.ignored);
        // Flags that were set since the restore, or that belong to the state before it.
        let has_flags_of = |id: &str| self.has_snapshot_flags(dir, id);
        let former_snap = before.and_then(|before| before.snapshot_id.as_deref());
        let flags_change =
            !has_flags_of(id)? || former_snap.is_some_and(|id| !has_flags_of(id).unwrap_or(false));
        let parked_id = match checkout.write_snapshot_from_scan(base, &old.reason, excluded, &scan, save)? {
            // Taken without a change, too: undoing this step must show again what a sparse checkout showed,
            // and set the same flags.
            None if flags_change
                || !old.snapshot.ignored.is_empty()
                || checkout.has_sparse_deviations()? =>
            {
                Some(checkout.write_snapshot_always(base, &old.reason, excluded, &scan, save)?)
            }
            taken => taken,
        };
        // Without a snapshot, only empty folders are left to park.
        if let Some(id) = &parked_id {
            self.park_snapshot_files(dir, id)?;
            fail_points::hit("aside.cleared");
        }
        before.map_or(Ok(()), |before| self.remove_restored_folders(dir, id, before))?;
        Ok(parked_id)
    }

    /// Saves the temporary result of merging a snapshot onto another commit; the original snapshot stays
    /// valid.
    fn save_merged_result(
        &self,
        dir: &Path,
        old: &SnapshotRecord,
        awaited_id: Option<&str>,
        snapshot: Snapshot,
        raw_index: &Path,
    ) -> Result<String, Error> {
        let record = SnapshotRecord {
            id: new_id(),
            at: now(),
            restored: Some(now()),
            derived_from: Some(awaited_id.unwrap_or(&old.id).to_owned()),
            ..derived_record(old, snapshot)
        };
        let parked_dir = snapshot_store::parked_dir(&self.project.store, &old.id)?;
        let (dir, restored) = (dir.to_owned(), Box::new(old.snapshot.clone()));
        let copied_files = CopiedFiles::RestoredUntracked { dir: dir.clone(), restored, parked_dir };
        let id = self.save_snapshot_with_files(record, raw_index, copied_files)?;
        if old.parked_files_snapshot.is_some() {
            self.save_renewed_again(&dir, old, awaited_id)?;
        }
        Ok(id)
    }

    /// Saves snapshot `old`, which renewed another snapshot, again under a new id, because the undo removes
    /// `old`. A preview or lane that waits for `awaited_id` then waits for the new snapshot.
    fn save_renewed_again(
        &self,
        dir: &Path,
        old: &SnapshotRecord,
        awaited_id: Option<&str>,
    ) -> Result<(), Error> {
        let files_in = old.parked_files_snapshot.clone();
        let record = SnapshotRecord {
            id: new_id(),
            at: now(),
            restored: None,
            parked_files_snapshot: files_in,
            ..derived_record(old, old.snapshot.clone())
        };
        let index = self.project.saved_index_path(dir, &old.id);
        let id = self.lock_worktree(dir)?.copy_index(&index, |raw| self.save_snapshot(record, raw))?;
        awaited_id.map_or(Ok(()), |waiting| self.replace_awaited(waiting, &id))
    }

    /// Removes the empty folders that a restored snapshot created and that were not there `before`.
    pub(crate) fn remove_restored_folders(
        &self,
        dir: &Path,
        id: &str,
        before: &PreRestoreState,
    ) -> Result<(), Error> {
        let old = self.project.load_snap(id)?;
        self.lock_worktree(dir)?.remove_empty_folders(&old.snapshot.empty_dirs, &before.empty_dirs);
        Ok(())
    }

    /// Saves the present changes as a separate snapshot. A preview or lane that waited for `old` then waits
    /// for the new one. If nothing waits for it and it holds nothing new, it is marked as restored, so that
    /// it expires. `is_merged` is whether all of it results from merging `old`.
    fn save_separate_snapshot(
        &self,
        old: &SnapshotRecord,
        before: Option<&PreRestoreState>,
        snapshot: Snapshot,
        raw_index: &Path,
        is_merged: bool,
    ) -> Result<String, Error> {
        let mut known_snapshots = vec![old.snapshot.clone()];
        if let Some(before) = before.and_then(|before| before.snapshot_id.as_deref()) {
            known_snapshots.push(self.load_snapshot(before)?);
        }
        let new_paths = match is_merged {
            true => Vec::new(),
            false => snapshot.paths_not_in_others(&self.project.repo, &known_snapshots)?,
        };
        let awaited = self.awaited_id_and_restore_command(old)?;
        // The files of another state are restored to the worktree right away: `old` has the rest.
        let has_rest = before.is_some_and(|before| before.snapshot_id.is_some())
            && new_paths.is_empty()
            && old.snapshot.ignored.is_empty()
            && snapshot.ignored.is_empty();
        let awaited = awaited.filter(|(id, _)| !(has_rest && *id == old.id));
        // No git object holds an ignored file, so this snapshot may be the only copy.
        let is_needed = !new_paths.is_empty() || !snapshot.ignored.is_empty() || awaited.is_some();
        let restored = match awaited {
            Some(_) => None,
            None if is_needed => old.restored,
            None => Some(now()),
        };
        let commit = snapshot.commit;
        let record = SnapshotRecord { id: new_id(), at: now(), restored, ..derived_record(old, snapshot) };
        let id = self.save_snapshot(record, raw_index)?;
        if let Some((awaited_id, _)) = &awaited {
            self.replace_awaited(awaited_id, &id)?;
        }
        if new_paths.is_empty() {
            return Ok(id);
        }
        if let Some((_, restore_command)) = awaited {
            self.report_parked_files(&new_paths, &restore_command);
        } else if before.is_some() || self.is_reverting() {
            self.project.listener.warn(format!(
                "saved later edits as snapshot {id}: git stash apply {}",
                commit.short_in_command()
            ));
        }
        Ok(id)
    }

    /// Reports which files were parked in addition to those of an operation, and the command that restores
    /// them.
    fn report_parked_files(&self, paths: &[RepoPath], restore_command: &str) {
        let names = proq_git::base::error::list_paths(paths);
        let text = format!("saved later changes to {names}; restore them: {restore_command}");
        match self.is_reverting() {
            true => self.project.listener.warn(text),
            // The operation may still be rolled back.
            false => self.defer(move |project| project.listener.step_done(text)),
        }
    }

    /// Returns the id by which an open preview or a lane waits for a snapshot, and the command that restores
    /// it. The id is the snapshot's own, or that of the snapshot that it renews or replaces. None when
    /// nothing waits for it.
    fn awaited_id_and_restore_command(
        &self,
        snap: &SnapshotRecord,
    ) -> Result<Option<(String, String)>, Error> {
        for id in std::iter::once(&snap.id).chain(&snap.parked_files_snapshot).chain(&snap.derived_from) {
            if let Some(restore_command) = self.awaited_restore_command(id)? {
                return Ok(Some((id.clone(), restore_command)));
            }
        }
        Ok(None)
    }

    /// Returns the command that restores a snapshot for which an open preview or a lane waits; none when
    /// nothing waits for it.
    pub(crate) fn awaited_restore_command(&self, id: &str) -> Result<Option<String>, Error> {
        let open = PreviewRecord::load_if_exists(&self.project.store.layout().preview_record())?;
        if open.is_some_and(|open| open.parked_snapshot.as_deref() == Some(id)) {
            return Ok(Some("git proq preview --back".to_owned()));
        }
        let lanes = self.project.owned_lanes()?;
        let lane = lanes.iter().find(|lane| lane.preview_edit_snapshots.iter().any(|edit| edit == id));
        Ok(lane.map(|lane| format!("git proq preview {}", lane.name)))
    }

    /// Makes the open preview and all lanes that wait for snapshot `old` wait for `new`, and marks `old` as
    /// restored.
    fn replace_awaited(&self, old: &str, new: &str) -> Result<(), Error> {
        let path = self.project.store.layout().preview_record();
        if let Some(mut open) = PreviewRecord::load_if_exists(&path)?
            && open.parked_snapshot.as_deref() == Some(old)
        {
            open.parked_snapshot = Some(new.to_owned());
            self.save_record(&open, &path)?;
        }
        for lane in self.project.owned_lanes()? {
            if lane.preview_edit_snapshots.iter().any(|edit| edit == old) {
                self.update_lane(&lane.name, |lane| {
                    lane.preview_edit_snapshots
                        .iter_mut()
                        .filter(|edit| *edit == old)
                        .for_each(|edit| new.clone_into(edit));
                })?;
            }
        }
        self.mark_restored(old)
    }

    /// Restores a worktree, whose files are as in HEAD, to its state before a snapshot was restored to it.
    /// `taken_snap` is the snapshot that holds the contents parked from it just now.
    pub(super) fn restore_previous_state(
        &self,
        dir: &Path,
        before: &PreRestoreState,
        taken_snap: Option<String>,
    ) -> Result<(), Error> {
        if let Some(snap) = &before.snapshot_id {
            let snapshot = self.load_snapshot(snap)?;
            let head = self.project.repo.head_commit(dir)?.unwrap_or(snapshot.head_commit);
            if let RestoreOutcome::Conflict(paths) = self.restore(dir, snap, head, None)? {
                return Err(Error::RestoreConflict { dir: dir.to_owned(), paths, snapshot: snapshot.commit });
            }
        }
        let checkout = self.lock_worktree(dir)?;
        if let Some(taken_snap) = taken_snap.filter(|_| !before.colliding_ignored.is_empty()) {
            checkout.restore_parked_files(
                &snapshot_store::parked_dir(&self.project.store, &taken_snap)?,
                &before.colliding_ignored,
            )?;
            snapshot_store::prune_parked_folders(&self.project.store, &taken_snap);
        }
        checkout.create_folders(&before.empty_dirs);
        Ok(())
    }
}
