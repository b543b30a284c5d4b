//! Snapshots of a locked worktree: what git writes for them, and what a restore would do.

use std::path::Path;

use proq_git::snapshots::restore_forecast::RestoreOutcome;
use proq_git::snapshots::snapshot::Snapshot;
use proq_git::snapshots::{clear, late_writes, restore_forecast, snapshot};
use proq_git::status::worktree_scan::WorktreeScan;
use proq_git::{CommitId, RepoPath, TreeId};

use crate::lane::Error;
use crate::operation::locked_worktree::LockedWorktree;

impl LockedWorktree<'_> {
    /// Writes everything that differs from HEAD, which is at `head`, to git's objects, and passes the
    /// snapshot and the raw index to `save`. Untracked files at or below `excluded` are left out. Returns
    /// none when nothing differs.
    pub(crate) fn write_snapshot<T>(
        &self,
        head: CommitId,
        reason: &str,
        excluded: &[RepoPath],
        save: impl FnOnce(Snapshot, &Path) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.write_snapshot_from_scan(head, reason, excluded, &self.scan(), save)
    }

    /// Writes a snapshot as [`LockedWorktree::write_snapshot_from_scan`] does; where nothing differs from
    /// HEAD, writes one that records this.
    pub(crate) fn write_snapshot_always<T>(
        &self,
        head: CommitId,
        reason: &str,
        excluded: &[RepoPath],
        scan: &WorktreeScan,
        save: impl FnOnce(Snapshot, &Path) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let message = format!("git-proq: {reason}");
        self.with_temp_context("snapshot", |tree| {
            let found = snapshot::capture(tree, head, &message, excluded, scan)?;
            let snapshot = match found {
                Some(snapshot) => snapshot,
                None => snapshot::capture_unchanged(tree, head, &message, scan)?,
            };
            save(snapshot, &tree.raw_index())
        })
    }

    /// Writes a snapshot as [`LockedWorktree::write_snapshot`] does, from a scan that was just made.
    pub(crate) fn write_snapshot_from_scan<T>(
        &self,
        head: CommitId,
        reason: &str,
        excluded: &[RepoPath],
        scan: &WorktreeScan,
        save: impl FnOnce(Snapshot, &Path) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.with_temp_context("snapshot", |tree| {
            let found = snapshot::capture(tree, head, &format!("git-proq: {reason}"), excluded, scan)?;
            found.map(|snapshot| save(snapshot, &tree.raw_index())).transpose()
        })
    }

    /// Writes a snapshot as [`LockedWorktree::write_snapshot`] does, but also during a merge: a file with
    /// conflicts is saved as it is. With `even_if_unchanged`, writes one also where nothing differs from
    /// HEAD.
    pub(crate) fn write_unmerged_snapshot<T>(
        &self,
        head: CommitId,
        reason: &str,
        even_if_unchanged: bool,
        save: impl FnOnce(Snapshot, &Path) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let (message, scan) = (format!("git-proq: {reason}"), self.scan());
        self.with_temp_context("snapshot", |tree| {
            let snapshot = match snapshot::capture_unmerged(tree, head, &message, &scan)? {
                None if even_if_unchanged => Some(snapshot::capture_unchanged(tree, head, &message, &scan)?),
                found => found,
            };
            snapshot.map(|snapshot| save(snapshot, &tree.raw_index())).transpose()
        })
    }

    /// Returns a new snapshot that also includes later writes to the files of `snapshot` that are parked in
    /// `parked_dir`; none when nothing was written.
    pub(crate) fn renew_snapshot(
        &self,
        snapshot: &Snapshot,
        parked_dir: &Path,
    ) -> Result<Option<Snapshot>, Error> {
        self.with_temp_context("renew", |tree| {
            Ok(late_writes::capture_late_writes(tree, snapshot, parked_dir)?)
        })
    }

    /// Returns whether git's objects have every file of `snapshot` that is parked in `parked_dir` byte for byte.
    pub(crate) fn has_only_saved_bytes(&self, snapshot: &Snapshot, parked_dir: &Path) -> Result<bool, Error> {
        self.with_temp_context("compare", |tree| {
            Ok(late_writes::has_only_saved_bytes(tree, snapshot, parked_dir)?)
        })
    }

    /// Copies to `parked_dir` those files of a snapshot of this worktree that its objects do not hold byte
    /// for byte.
    pub fn copy_filtered_files(&self, snapshot: &Snapshot, parked_dir: &Path) -> Result<(), Error> {
        self.with_temp_context("copy", |tree| Ok(clear::copy_filtered_files(tree, snapshot, parked_dir)?))
    }

    /// Copies to `parked_dir` the untracked files of a snapshot that was restored here, as far as no object
    /// holds them unchanged.
    pub(crate) fn copy_restored_untracked(
        &self,
        snapshot: &Snapshot,
        parked_dir: &Path,
    ) -> Result<(), Error> {
        self.with_temp_context("copy", |tree| Ok(clear::copy_untracked_files(tree, snapshot, parked_dir)?))
    }

    /// Forecasts how a snapshot with the index `raw_index` and the files in `parked_dir` would be restored,
    /// without changing anything.
    pub fn forecast_restore(
        &self,
        snapshot: &Snapshot,
        head: CommitId,
        parked_dir: &Path,
        raw_index: &Path,
    ) -> Result<RestoreOutcome, Error> {
        self.with_temp_context("foresee", |tree| {
            Ok(restore_forecast::forecast_restore(tree, snapshot, head, parked_dir, raw_index)?)
        })
    }

    /// Writes a commit that saves everything in the index, including conflicts.
    pub(crate) fn commit_index(&self, message: &str) -> Result<Option<CommitId>, Error> {
        self.with_temp_context("index", |tree| Ok(snapshot::save_index_commit(tree, message)?))
    }

    /// Writes the tree of the tracked files as they are now, as far as git shows their changes.
    pub fn write_tracked_tree(&self) -> Result<TreeId, Error> {
        self.with_temp_context("tracked", |tree| Ok(snapshot::write_tracked_tree(tree)?))
    }
}
