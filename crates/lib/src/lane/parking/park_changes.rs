//! Parking a worktree's changes in a snapshot and restoring them, as steps of an operation.

use std::path::Path;

use proq_git::snapshots::restore_forecast::RestoreOutcome;
use proq_git::snapshots::snapshot::Snapshot;
use proq_git::status::worktree_scan::WorktreeScan;
use proq_git::{CommitId, RepoPath};
use proq_store::base::clock::now;
use proq_store::base::id::new_id;
use proq_store::base::record::Record;
use proq_store::paths::layout::Layout;
use proq_store::records::preview::PreviewRecord;
use proq_store::records::snapshot::SnapshotRecord;

use super::clear_worktree::ClearWorktree;
use super::pre_restore_state::PreRestoreState;
use super::restore_snapshot::RestoreSnapshot;
use super::snapshot_store;
use super::take_snapshot::{CopiedFiles, NewSnapshot, TakeSnapshot, TakenSnapshots};
use crate::lane::{Error, Project};
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::{BoxedStep, StepOutcome};

impl Operation<'_> {
    /// Parks the changes that a snapshot holds: moves the files out of the worktree and resets it to HEAD.
    pub(crate) fn park_snapshot_files(&self, dir: &Path, snap: &str) -> Result<(), Error> {
        let step = ClearWorktree { dir: dir.to_owned(), snapshot_id: snap.to_owned(), is_autostash: false };
        self.perform(step).map(drop)
    }

    /// Saves everything that differs from HEAD in a worktree whose HEAD is `head`; returns none when nothing
    /// differs. Untracked files at or below `excluded` are not the user's changes and stay in place.
    pub(crate) fn take_snapshot(
        &self,
        dir: &Path,
        head: CommitId,
        reason: &str,
        excluded: &[RepoPath],
    ) -> Result<Option<SnapshotRecord>, Error> {
        let scan = self.lock_worktree(dir)?.scan();
        self.snapshot_from_scan(dir, head, reason, excluded, &scan)
    }

    /// Saves everything that differs from HEAD in a worktree, as [`Operation::take_snapshot`] does, from a
    /// scan of it that was just made.
    pub(crate) fn snapshot_from_scan(
        &self,
        dir: &Path,
        head: CommitId,
        reason: &str,
        excluded: &[RepoPath],
        scan: &WorktreeScan,
    ) -> Result<Option<SnapshotRecord>, Error> {
        let save = |snapshot: Snapshot, raw_index: &Path| self.save_new_snapshot(reason, snapshot, raw_index);
        self.lock_worktree(dir)?.write_snapshot_from_scan(head, reason, excluded, scan, save)
    }

    /// Takes the snapshot of [`Operation::snapshot_from_scan`]. Where no file differs, takes one of the files
    /// that a sparse checkout shows against its patterns; returns none when it has no such files either.
    pub(crate) fn snapshot_files_or_sparse(
        &self,
        dir: &Path,
        head: CommitId,
        reason: &str,
        excluded: &[RepoPath],
        scan: &WorktreeScan,
    ) -> Result<Option<SnapshotRecord>, Error> {
        if let Some(snap) = self.snapshot_from_scan(dir, head, reason, excluded, scan)? {
            return Ok(Some(snap));
        }
        if !self.lock_worktree(dir)?.has_sparse_deviations()? {
            return Ok(None);
        }
        self.snapshot_index(dir, head, reason, excluded, scan).map(Some)
    }

    /// Takes a snapshot of a worktree in which no file differs from HEAD. The snapshot saves the index, which
    /// holds more than the files show.
    pub(crate) fn snapshot_index(
        &self,
        dir: &Path,
        head: CommitId,
        reason: &str,
        excluded: &[RepoPath],
        scan: &WorktreeScan,
    ) -> Result<SnapshotRecord, Error> {
        let save = |snapshot: Snapshot, raw_index: &Path| self.save_new_snapshot(reason, snapshot, raw_index);
        self.lock_worktree(dir)?.write_snapshot_always(head, reason, excluded, scan, save)
    }

    /// Saves a captured snapshot with its index, and returns its new record.
    fn save_new_snapshot(
        &self,
        reason: &str,
        snapshot: Snapshot,
        raw_index: &Path,
    ) -> Result<SnapshotRecord, Error> {
        let record = SnapshotRecord::new(reason, snapshot);
        self.save_snapshot(record.clone(), raw_index)?;
        Ok(record)
    }

    /// Restores a snapshot whose files were parked from a worktree at `head`: the inverse of
    /// [`Operation::park_snapshot_files`]. First saves the present flags, folders or files of a sparse
    /// checkout if restoring would change them, so that the restore can be reverted.
    pub(crate) fn unpark_snapshot_files(
        &self,
        dir: &Path,
        id: &str,
        head: CommitId,
    ) -> Result<RestoreOutcome, Error> {
        let is_sparse = self.project.repo.sparse_patterns(dir).is_some();
        let before = if self.is_reverting() {
            None
        } else if is_sparse || !self.has_snapshot_flags(dir, id)? {
            Some(self.snapshot_before_restore(
                dir,
                head,
                &format!("what was there before snapshot {id} came back"),
                id,
            )?)
        } else {
            // The snapshot's empty folders are removed with it again.
            let folders = self.load_snapshot(id)?.empty_dirs;
            let exists = |folder: &RepoPath| folder.to_fs_path(dir).is_dir();
            let empty_dirs: Vec<RepoPath> = folders.iter().filter(|f| exists(f)).cloned().collect();
            (!folders.is_empty()).then_some(PreRestoreState {
                snapshot_id: None,
                empty_dirs,
                colliding_ignored: Vec::new(),
            })
        };
        self.restore(dir, id, head, before)
    }

    /// Saves a snapshot with its index under the id of `record`, and returns the id.
    pub(crate) fn save_snapshot(&self, record: SnapshotRecord, raw_index: &Path) -> Result<String, Error> {
        self.save_snapshot_with_files(record, raw_index, CopiedFiles::Nothing)
    }

    /// Saves a snapshot with files that are copied into the snapshot's folder.
    pub(crate) fn save_snapshot_with_files(
        &self,
        record: SnapshotRecord,
        raw_index: &Path,
        copied_files: CopiedFiles,
    ) -> Result<String, Error> {
        let (id, snapshot) = (record.id.clone(), record.snapshot.clone());
        let contents = NewSnapshot { record, raw_index: raw_index.to_owned(), copied_files };
        drop(self.perform(TakeSnapshot::from(contents))?);
        self.remember_snapshot(id.clone(), snapshot);
        Ok(id)
    }

    /// Remembers the content of the snapshot `id` until the operation ends.
    pub(super) fn remember_snapshot(&self, id: String, snapshot: Snapshot) {
        self.with_memory(|taken: &mut TakenSnapshots| taken.0.insert(id, snapshot));
    }

    /// Returns the content of the snapshot `id`.
    pub(crate) fn load_snapshot(&self, id: &str) -> Result<Snapshot, Error> {
        if let Some(snapshot) = self.with_memory(|taken: &mut TakenSnapshots| taken.0.get(id).cloned()) {
            return Ok(snapshot);
        }
        let snap = self.project.load_snap(id)?;
        self.project.require_snap_commit(&snap)?;
        Ok(snap.snapshot)
    }

    /// Records that a snapshot's content is back in its worktree.
    pub(crate) fn mark_restored(&self, id: &str) -> Result<(), Error> {
        if let Some(step) = self.mark_restored_step(id)? {
            drop(self.perform(step)?);
            snapshot_store::prune_parked_folders(&self.project.store, id);
        }
        Ok(())
    }

    /// Returns the step that marks a snapshot as restored now; none when it has no record.
    fn mark_restored_step(&self, id: &str) -> Result<Option<BoxedStep>, Error> {
        let path = self.project.store.layout().snapshot_record(id);
        let Some(snap) = SnapshotRecord::load_if_exists(&path)? else { return Ok(None) };
        let text = SnapshotRecord { restored: Some(now()), ..snap }.to_toml(&path)?;
        self.write_record_step(&path, Some(text)).map(Some)
    }

    /// Records that a snapshot is about to be restored to a worktree again, so that expiry does not delete
    /// it.
    pub(crate) fn mark_not_restored(&self, id: &str) -> Result<(), Error> {
        let path = self.project.store.layout().snapshot_record(id);
        let snap = SnapshotRecord::load(&path)?;
        self.save_record(&SnapshotRecord { restored: None, is_copy: false, ..snap }, &path)
    }

    /// Restores a snapshot onto a worktree that is at `head`, including later writes to its parked files. A
    /// conflict leaves the worktree unchanged. `before` is the present state of the worktree.
    pub fn restore(
        &self,
        dir: &Path,
        id: &str,
        head: CommitId,
        before: Option<PreRestoreState>,
    ) -> Result<RestoreOutcome, Error> {
        let renewed_id = self.renew_snapshot(dir, id)?;
        let step = RestoreSnapshot {
            dir: dir.to_owned(),
            snapshot_id: renewed_id.clone(),
            head,
            state_before: before,
            is_autostash: false,
        };
        let outcome = restore_outcome(self.perform(step)?);
        self.warn_of_unrestored_ignored(&renewed_id, &outcome);
        if renewed_id != id && !matches!(outcome, RestoreOutcome::Conflict(_)) {
            self.mark_restored(&renewed_id)?;
        }
        Ok(outcome)
    }

    /// Restores a snapshot, marks it as restored and performs `following_steps`. Where HEAD has moved and the
    /// changes had to be merged, the operation cannot be rolled back: the worktree differs from before.
    /// `before` is the present state of the worktree; none if it is clean. Returns also the commit that holds
    /// the changes, restored or not.
    pub(crate) fn restore_then(
        &self,
        dir: &Path,
        id: &str,
        head: CommitId,
        before: Option<PreRestoreState>,
        following_steps: Vec<BoxedStep>,
    ) -> Result<(RestoreOutcome, CommitId), Error> {
        let repo = &self.project.repo;
        let is_exact = repo.tree_of(head)? == repo.tree_of(self.load_snapshot(id)?.head_commit)?;
        let renewed_id = self.renew_snapshot(dir, id)?;
        let restore = RestoreSnapshot {
            dir: dir.to_owned(),
            snapshot_id: renewed_id.clone(),
            head,
            state_before: before,
            is_autostash: false,
        };
        let mut steps = vec![BoxedStep::from(restore)];
        steps.extend(self.mark_restored_step(&renewed_id)?);
        if renewed_id != id {
            steps.extend(self.mark_restored_step(id)?);
        }
        steps.extend(following_steps);
        let outcome = if is_exact {
            self.perform_until_conflict(steps)?
        } else {
            restore_outcome(self.perform_irreversibly(steps)?)
        };
        snapshot_store::prune_parked_folders(&self.project.store, id);
        self.warn_of_unrestored_ignored(&renewed_id, &outcome);
        Ok((outcome, self.load_snapshot(&renewed_id)?.commit))
    }

    /// Warns where the ignored files are that could not be restored: no commit has them.
    fn warn_of_unrestored_ignored(&self, id: &str, outcome: &RestoreOutcome) {
        if !matches!(outcome, RestoreOutcome::Conflict(_)) {
            return;
        }
        let Ok(SnapshotRecord { snapshot, .. }) = self.project.load_snap(id) else { return };
        if let Ok(parked_dir) = snapshot_store::parked_dir(&self.project.store, id)
            && !snapshot.ignored.is_empty()
        {
            let paths: Vec<RepoPath> = snapshot.ignored.into_iter().map(|file| file.path).collect();
            let files_dir = Layout::parked_files_in(&parked_dir);
            let names = proq_git::base::error::list_paths(&paths);
            self.project.listener.warn(format!("saved ignored files in {}: {names}", files_dir.display()));
        }
    }

    /// Performs the steps in order; stops when the first one, a restore, reports a conflict.
    fn perform_until_conflict(&self, steps: Vec<BoxedStep>) -> Result<RestoreOutcome, Error> {
        let mut outcome = RestoreOutcome::Exact;
        for (n, step) in steps.into_iter().enumerate() {
            let applied = restore_outcome(self.perform(step)?);
            if n == 0 {
                outcome = applied;
                if matches!(outcome, RestoreOutcome::Conflict(_)) {
                    break;
                }
            }
        }
        Ok(outcome)
    }

    /// Returns the id of the snapshot to restore instead of `id`: a new one when its parked files were
    /// written to since, else `id`.
    fn renew_snapshot(&self, dir: &Path, id: &str) -> Result<String, Error> {
        let old = self.project.load_snap(id)?;
        let checkout = self.lock_worktree(dir)?;
        let parked_dir = snapshot_store::parked_dir(&self.project.store, id)?;
        let Some(snapshot) = checkout.renew_snapshot(&old.snapshot, &parked_dir)? else {
            return Ok(id.to_owned());
        };
        let files_in = Some(old.parked_files_snapshot.clone().unwrap_or_else(|| id.to_owned()));
        let record = SnapshotRecord {
            id: new_id(),
            at: now(),
            parked_files_snapshot: files_in,
            ..derived_record(&old, snapshot)
        };
        checkout.copy_index(&self.project.saved_index_path(dir, id), |raw_index| {
            self.save_snapshot(record, raw_index)
        })
    }

    /// Saves what differs from HEAD in a worktree before snapshot `incoming_id` is restored to it, as a copy:
    /// no file moves. Holds no snapshot when neither the files differ from HEAD nor the index flags from the
    /// incoming ones.
    pub(crate) fn snapshot_before_restore(
        &self,
        dir: &Path,
        head: CommitId,
        reason: &str,
        incoming_id: &str,
    ) -> Result<PreRestoreState, Error> {
        let checkout = self.lock_worktree(dir)?;
        let scan = checkout.scan();
        let excluded = self.project.preview_ignored_files(dir)?;
        let save = |snapshot: Snapshot, raw_index: &Path| {
            let copied_files = CopiedFiles::Filtered { dir: dir.to_owned() };
            self.save_snapshot_with_files(SnapshotRecord::new_copy(reason, snapshot), raw_index, copied_files)
        };
        // Only the index records what a sparse checkout shows, and which flags are set.
        let snap = if self.project.repo.sparse_patterns(dir).is_some()
            || !self.has_snapshot_flags(dir, incoming_id)?
        {
            Some(checkout.write_snapshot_always(head, reason, &excluded, &scan, save)?)
        } else {
            checkout.write_snapshot_from_scan(head, reason, &excluded, &scan, save)?
        };
        Ok(PreRestoreState {
            snapshot_id: snap,
            empty_dirs: checkout.find_empty_folders(&scan)?,
            colliding_ignored: Vec::new(),
        })
    }
}

/// Returns how a step restored a snapshot; exactly, for any other step.
fn restore_outcome(outcome: StepOutcome) -> RestoreOutcome {
    outcome.into_result().unwrap_or(RestoreOutcome::Exact)
}

/// Returns a record like `old` for another snapshot; the caller sets its id and time.
pub(crate) fn derived_record(old: &SnapshotRecord, snapshot: Snapshot) -> SnapshotRecord {
    SnapshotRecord {
        parked_files_snapshot: None,
        derived_from: None,
        is_copy: false,
        snapshot,
        ..old.clone()
    }
}

impl Project {
    /// Returns the files of the main checkout that were ignored when its preview was opened. Under a lane's
    /// ignore rules they could pass for edits of the user.
    pub(crate) fn preview_ignored_files(&self, dir: &Path) -> Result<Vec<RepoPath>, Error> {
        if self.repo.main_worktree() != Some(dir) {
            return Ok(Vec::new());
        }
        let open = PreviewRecord::load_if_exists(&self.store.layout().preview_record())?;
        Ok(open.map(|open| open.excluded_paths(dir)).unwrap_or_default())
    }
}
