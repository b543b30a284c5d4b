//! Restoring a snapshot: exactly if HEAD's tree is unchanged, by a three-way merge if HEAD has moved.

use std::collections::HashSet;
use std::path::Path;

use proq_base::fail_points;

use super::clear::SnapshotFiles;
use super::restore_forecast::{RestoreOutcome, find_obstruction, merge_snapshot_tree, refuse_staged};
use super::restored_index::write_restored_index;
use super::restored_stamps;
use super::snapshot::Snapshot;
use super::verbatim_restore::VerbatimRestore;
use crate::base::folders::{
    exists_in_real_folder, has_real_parents, is_file_in_real_folder, obstruction_above, remove_empty_parents,
    remove_empty_tree,
};
use crate::checkout::displaced_files::DisplacedFiles;
use crate::checkout::obstructions::{obstruction_after_cleanup, rename_to_free_names};
use crate::checkout::preconditions::{LocalChangeSearch, refuse_overlap};
use crate::checkout::quarantine::{Quarantine, matches_blob};
use crate::checkout::rebuilt_files::RebuiltFiles;
use crate::checkout::transition::{AppliedChanges, apply_files, read_new_folders};
use crate::history::tree_diff::{TreeChange, TreeFile, tree_attribute_files, tree_changes};
use crate::index::file_modes::apply_modes;
use crate::index::index_lock::{IndexLock, NewIndex};
use crate::index::refresh_index::{IndexRefresh, clear_entry_stats, files_with_other_size};
use crate::index::scratch_index::INDEX_NAME;
use crate::index::sparse_entries::{SparseAdjustments, mark_skip_worktree};
use crate::index::sparse_patterns::SparseExceptions;
use crate::index::{index_flags, scratch_index};
use crate::repository::open_operation::require_no_git_operation;
use crate::repository::worktree_context::WorktreeContext;
use crate::status::status_query::index_certainly_at;
use crate::{CommitId, Error, RepoPath, TreeId};

pub mod undo;

/// Restores `snapshot` in a worktree whose HEAD is at `head`. `parked_dir` holds the snapshot's files since
/// they were parked; files that are missing or altered there come from the snapshot's objects. `raw_index` is
/// the saved index.
///
/// # Errors
/// [`Error::LocalChanges`] or [`Error::Obstructed`] when something new exists at the path of a snapshot's
/// file. Nothing is changed then.
pub fn restore(
    tree: &WorktreeContext<'_>,
    snapshot: &Snapshot,
    head: CommitId,
    parked_dir: &Path,
    raw_index: &Path,
) -> Result<RestoreOutcome, Error> {
    let mut restoration = SnapshotRestore::new(tree, snapshot, parked_dir, raw_index)?;
    restoration.snapshot_files.drop_lost_ignored(|path| restoration.parked.contains(path));
    let outcome =
        if tree.repo.tree_of(head)? == tree.repo.tree_of(snapshot.head_commit)? && raw_index.exists() {
            restoration.restore_exactly(raw_index, head).map(|()| RestoreOutcome::Exact)
        } else {
            restoration.restore_merged(head, raw_index)
        };
    fail_points::hit("restore.installed");
    outcome
}

/// Name of a quarantine in a step's scratch folder. It receives the files, as HEAD has them, that a restore
/// replaces.
const DISPLACED_HEAD_FILES_DIR: &str = "current";

/// Restore of one snapshot in a worktree.
pub(crate) struct SnapshotRestore<'a> {
    tree: &'a WorktreeContext<'a>,
    snapshot: &'a Snapshot,
    snapshot_files: SnapshotFiles,
    parked: Quarantine,
    /// Files that a sparse checkout has to show or leave out, in addition to the files of the snapshot
    /// itself.
    sparse_changes: SparseAdjustments,
}

impl<'a> SnapshotRestore<'a> {
    /// Prepares to restore `snapshot` with `raw_index` from `parked_dir`.
    pub fn new(
        tree: &'a WorktreeContext<'a>,
        snapshot: &'a Snapshot,
        parked_dir: &Path,
        raw_index: &Path,
    ) -> Result<SnapshotRestore<'a>, Error> {
        let snapshot_files = SnapshotFiles::load(tree, snapshot)?;
        let snapshot_paths: HashSet<RepoPath> =
            snapshot_files.all_changes().into_iter().map(|change| change.path).collect();
        let head_files_dir = tree.scratch.join(DISPLACED_HEAD_FILES_DIR).join("files");
        let is_displaced = |path: &RepoPath| path.to_fs_path(&head_files_dir).symlink_metadata().is_ok();
        let sparse_changes = SparseAdjustments::compare(
            tree,
            raw_index,
            &snapshot.present_skipped,
            |path| snapshot_paths.contains(path),
            is_displaced,
        );
        Ok(SnapshotRestore {
            tree,
            snapshot,
            snapshot_files,
            parked: Quarantine::open(parked_dir)?,
            sparse_changes,
        })
    }

    /// Restores files, modes and index as they were, in a worktree at whose `head` the files are those of the
    /// snapshot's base.
    fn restore_exactly(&self, raw_index: &Path, head: CommitId) -> Result<(), Error> {
        let lock = self.lock_index()?;
        // No other process writes to the index while it is locked.
        let is_at_head =
            |changes| index_certainly_at(self.tree.repo, self.tree.dir, &self.tree.git_dir, head, changes);
        let local = if is_at_head(&self.snapshot_files.all_changes()) {
            LocalChangeSearch::None
        } else {
            LocalChangeSearch::SinceHead
        };
        if local != LocalChangeSearch::None {
            refuse_staged(self.tree, head, self.snapshot)?;
        }
        let displaced: Vec<TreeChange> = self
            .snapshot_files
            .tracked
            .iter()
            .filter(|c| c.old.is_some() && !self.is_restored(&c.path, self.expected_file(c)))
            .chain(&self.sparse_changes.removed)
            .cloned()
            .collect();
        self.refuse_obstructions(&displaced, local)?;
        let head_files = Quarantine::open(&self.tree.scratch.join(DISPLACED_HEAD_FILES_DIR))?;
        let files = [self.snapshot_files.changed_files(), self.sparse_changes.added.clone()].concat();
        let placed = self.record_placed_files(&files)?;
        let result = self.displace_head_files(&displaced, &head_files);
        let result = result.inspect(|()| fail_points::hit("restore.taken"));
        let result = result.and_then(|()| self.place_files(&files));
        let result = result.and_then(|()| self.build_refreshed_index(raw_index, lock.index()));
        let result = result.and_then(|next| lock.install(next));
        if let Err(e) = result {
            let files = self.inspect_written_files(&placed)?;
            let rename_obstructions =
                |_: &mut DisplacedFiles<'_>, found: Vec<_>| rename_to_free_names(self.tree, &found);
            self.undo(files, &displaced, &head_files, placed, rename_obstructions)?;
            return Err(e);
        }
        restored_stamps::write_stamps(
            self.tree.dir,
            &self.parked,
            &self.snapshot_files,
            &self.snapshot_files.tracked,
        );
        Ok(())
    }

    /// Builds the restored index from `raw_index`, with the current stat data of the files. `current_index`
    /// shows which files were written again since the snapshot.
    fn build_refreshed_index(&self, raw_index: &Path, current_index: &Path) -> Result<NewIndex, Error> {
        let files = self.snapshot_files.changed_files();
        let paths = files.iter().map(|(path, _)| path).collect();
        let plan = IndexRefresh::plan_from_later_index(self.tree, raw_index, current_index, &paths);
        if let Some(new_index) = plan.and_then(|plan| plan.build(self.tree)) {
            return Ok(new_index);
        }
        let index_file = self.tree.scratch.join(INDEX_NAME);
        scratch_index::copy_with_mtime(raw_index, &index_file)?;
        clear_entry_stats(
            self.tree,
            &index_file,
            &files_with_other_size(self.tree.repo, raw_index, current_index),
        )?;
        index_flags::refresh_stat_data(self.tree.repo, self.tree.dir, &index_file)?;
        mark_skip_worktree(self.tree, &index_file, self.snapshot.present_skipped.iter())?;
        Ok(NewIndex::InFile(index_file))
    }

    /// Fails if something else exists where the snapshot's files belong. Files that are restored already are
    /// skipped: an earlier restore may have been interrupted.
    fn refuse_obstructions(&self, displaced: &[TreeChange], local: LocalChangeSearch) -> Result<(), Error> {
        let mut pending_changes: Vec<TreeChange> = self
            .snapshot_files
            .tracked
            .iter()
            .filter(|c| !self.is_restored(&c.path, self.expected_file(c)))
            .cloned()
            .collect();
        // A file that was removed from the index only stands at the path of HEAD's file, which leaves first.
        pending_changes.extend(self.sparse_changes.removed.iter().cloned());
        let is_not_displaced = |path: &RepoPath| !displaced.iter().any(|c| c.path == *path);
        let arriving = self
            .snapshot_files
            .untracked_and_ignored()
            .filter(|(p, side)| is_not_displaced(p) && !self.is_restored(p, Some(*side)));
        pending_changes.extend(arriving.map(|(path, side)| TreeChange {
            path: path.clone(),
            old: None,
            new: Some(*side),
        }));
        match refuse_overlap(self.tree, &pending_changes, local, &SparseExceptions::default()) {
            Err(Error::LocalChanges { dir, overlapping_paths: mut paths, hint: remedy }) => {
                // A file that is missing here but parked is no user's change, and neither is one that will be
                // intent-to-add again.
                let is_retained =
                    |p: &RepoPath| self.parked.contains(p) || self.snapshot.intent_to_add.contains(p);
                paths.retain(|p| obstruction_after_cleanup(self.tree.dir, p).is_some() || !is_retained(p));
                if paths.is_empty() {
                    Ok(())
                } else {
                    Err(Error::LocalChanges { dir, overlapping_paths: paths, hint: remedy })
                }
            }
            other => other,
        }
    }

    /// Returns the mode and blob that the snapshot has at the path of a change; none if it has no file there.
    /// A file that was only removed from the index is untracked in the snapshot.
    fn expected_file(&self, change: &TreeChange) -> Option<TreeFile> {
        let untracked_side = || {
            self.snapshot_files
                .untracked_and_ignored()
                .find(|(path, _)| *path == change.path)
                .map(|(_, side)| *side)
        };
        change.new.or_else(untracked_side)
    }

    /// Returns whether the worktree has at `path` exactly `side`, the snapshot's file, or nothing if that is
    /// none. No different copy may still be parked. An identical parked copy is accepted: an interrupted undo
    /// restored the earlier file, and git removes no file with a flag.
    fn is_restored(&self, path: &RepoPath, side: Option<TreeFile>) -> bool {
        let exists = exists_in_real_folder(self.tree.dir, path);
        let has_content = |side| matches_blob(self.tree.repo, &path.to_fs_path(self.tree.dir), side);
        match side {
            Some(side) => {
                let parked_matches = || self.parked.matches_blob(self.tree.repo, path, side);
                exists && has_content(side) && (!self.parked.contains(path) || parked_matches())
            }
            None => !exists,
        }
    }

    fn lock_index(&self) -> Result<IndexLock, Error> {
        let lock = IndexLock::acquire_with_sharing(self.tree)?;
        require_no_git_operation(self.tree.dir, &self.tree.git_dir)?;
        Ok(lock)
    }

    /// Moves files that are as HEAD has them out of the way of the snapshot's files. Then compares them with
    /// HEAD.
    ///
    /// # Errors
    /// [`Error::Raced`] when a file was edited before it was moved.
    fn displace_head_files(&self, displaced: &[TreeChange], head_files: &Quarantine) -> Result<(), Error> {
        let mut expected = Vec::new();
        for change in displaced {
            if head_files.move_in(self.tree.dir, &change.path)? {
                expected.extend(change.old.map(|side| (change.path.clone(), side)));
            }
            remove_empty_parents(self.tree.dir, &change.path);
        }
        let attributes = || {
            tree_attribute_files(self.tree.repo, self.snapshot.head_commit, expected.iter().map(|(p, _)| p))
        };
        let edited = head_files.differing_files(self.tree, &expected, &attributes)?;
        if edited.is_empty() {
            return Ok(());
        }
        Err(Error::Raced { dir: self.tree.dir.to_owned(), raced_paths: edited })
    }

    /// Creates the snapshot's files in the worktree: moves parked files there, and writes missing ones from
    /// the snapshot's objects.
    fn place_files(&self, files: &[(RepoPath, TreeFile)]) -> Result<(), Error> {
        let mut missing = Vec::new();
        for (path, side) in files {
            if has_real_parents(self.tree.dir, path) {
                // Git prunes these too when it writes a file, but not behind a link that was created above
                // since the check. The undo knows of the folder.
                remove_empty_tree(&path.to_fs_path(self.tree.dir));
            }
            match (self.is_restored(path, Some(*side)), self.parked.contains(path)) {
                (true, true) => self.parked.remove_file(path)?,
                (true, false) => {}
                (false, true) => self.parked.move_out(self.tree.dir, path)?,
                (false, false) => missing.push(path.clone()),
            }
        }
        self.write_from_objects(&missing)?;
        // If HEAD has moved, a file may exist there now.
        let is_obstructed = |dir: &RepoPath| {
            obstruction_above(self.tree.dir, dir).is_some() || is_file_in_real_folder(self.tree.dir, dir)
        };
        for dir in self.snapshot.empty_dirs.iter().filter(|dir| !is_obstructed(dir)) {
            let dir = dir.to_fs_path(self.tree.dir);
            std::fs::create_dir_all(&dir).map_err(Error::io("create", &dir))?;
        }
        self.apply_saved_modes(|path| self.snapshot.empty_dirs.contains(path))?;
        fail_points::hit("restore.given");
        Ok(())
    }

    /// Sets the permission bits of the snapshot on files and new folders that `is_selected` accepts.
    fn apply_saved_modes(&self, is_selected: impl Fn(&RepoPath) -> bool) -> Result<(), Error> {
        let mut modes = self.snapshot.modes.clone();
        modes.retain(|mode| is_selected(&mode.path));
        if modes.is_empty() {
            return Ok(());
        }
        let created_dirs = read_new_folders(self.tree)?;
        apply_modes(self.tree.dir, &modes, |folder| created_dirs.contains(folder)).map(drop)
    }

    /// Writes files from the snapshot's trees.
    fn write_from_objects(&self, paths: &[RepoPath]) -> Result<(), Error> {
        let (untracked, tracked): (Vec<_>, Vec<_>) = paths.iter().partition(|p| self.is_untracked(p));
        self.rebuilt_files_of_tree(self.snapshot.work_tree).write_to_worktree(&tracked)?;
        match self.snapshot.untracked_tree {
            Some(id) => self.rebuilt_files_of_tree(id).write_to_worktree(&untracked),
            None => Ok(()),
        }
    }

    /// Returns whether the snapshot has the path as an untracked file.
    fn is_untracked(&self, path: &RepoPath) -> bool {
        self.snapshot_files.untracked.iter().any(|(p, _)| p == path)
    }

    /// Returns the builder of a path's file from the snapshot's tree of untracked or tracked files. None if
    /// the path is untracked and the snapshot has no tree of untracked files.
    fn rebuilt_files_for_path(&self, path: &RepoPath) -> Option<RebuiltFiles<'_>> {
        let source_tree = if self.is_untracked(path) {
            self.snapshot.untracked_tree
        } else {
            Some(self.snapshot.work_tree)
        };
        source_tree.map(|id| self.rebuilt_files_of_tree(id))
    }

    fn rebuilt_files_of_tree(&self, tree_id: TreeId) -> RebuiltFiles<'_> {
        RebuiltFiles::new(self.tree, tree_id, &self.snapshot.modes)
    }

    /// Restores the snapshot onto `head`, to which HEAD has moved, by merging its changes into that commit.
    fn restore_merged(&self, head: CommitId, raw_index: &Path) -> Result<RestoreOutcome, Error> {
        let merged_work = merge_snapshot_tree(self.tree, self.snapshot, head, self.snapshot.work_tree)?;
        let merged_index = merge_snapshot_tree(self.tree, self.snapshot, head, self.snapshot.index_tree)?;
        let (merged_work, merged_index) = match (merged_work, merged_index) {
            (Ok(merged_work), Ok(merged_index)) => (merged_work, merged_index),
            (Err(paths), _) | (_, Err(paths)) => return Ok(RestoreOutcome::Conflict(paths)),
        };
        let changes = tree_changes(self.tree.repo, head, merged_work)?;
        let lock = self.lock_index()?;
        refuse_staged(self.tree, head, self.snapshot)?;
        if let Some(conflict) =
            find_obstruction(self.tree, &self.snapshot_files, (self.snapshot.head_commit, head), &changes)?
        {
            return Ok(conflict);
        }
        let newly_visible = self.newly_visible_files(head)?;
        let files: Vec<(RepoPath, TreeFile)> = self
            .snapshot_files
            .untracked_and_ignored()
            .chain(newly_visible.iter().copied())
            .cloned()
            .collect();
        let placed = self.record_placed_files(&files)?;
        // Includes every path that the merge writes.
        let written_paths: Vec<RepoPath> =
            changes.iter().filter(|c| c.new.is_some()).map(|c| c.path.clone()).collect();
        let mut visible_paths: HashSet<&RepoPath> = written_paths.iter().collect();
        let mut as_edited = VerbatimRestore::open(self.tree, &self.parked)?;
        let applied = self.apply_merged_tree(lock.index(), head, merged_work, &changes, &visible_paths)?;
        visible_paths.extend(newly_visible.iter().map(|(path, _)| path));
        let index_file = self.tree.scratch.join(INDEX_NAME);
        let result = as_edited
            .find_converted_files(&self.snapshot_files, &changes, merged_work)
            .and_then(|()| self.place_files(&files))
            .and_then(|()| as_edited.replace_converted_files(&index_file))
            .and_then(|()| self.apply_saved_modes(|path| !self.is_untracked(path)))
            .and_then(|()| {
                write_restored_index(
                    self.tree,
                    self.snapshot,
                    (&index_file, merged_index),
                    raw_index,
                    &visible_paths,
                )
            })
            .and_then(|()| lock.install(NewIndex::InFile(index_file)));
        if let Err(e) = result {
            self.undo_placed_files(&placed)?;
            as_edited.remove_copies()?;
            applied.undo(self.tree)?;
            return Err(e);
        }
        applied.accept();
        if as_edited.finish() {
            restored_stamps::write_stamps(self.tree.dir, &self.parked, &self.snapshot_files, &changes);
        } else {
            restored_stamps::remove_stamps(&self.parked);
        }
        Ok(RestoreOutcome::Merged)
    }

    /// Returns the additional files of a sparse checkout that can be shown after HEAD has moved to `head`.
    /// HEAD must not have changed them since, and their paths must be free.
    fn newly_visible_files(&self, head: CommitId) -> Result<Vec<&(RepoPath, TreeFile)>, Error> {
        // Files that changed since, or whose place is taken, are left out as git does.
        let head_changes = match self.sparse_changes.added.is_empty() {
            true => Vec::new(),
            false => tree_changes(self.tree.repo, self.snapshot.head_commit, head)?,
        };
        let changed_paths: HashSet<&RepoPath> = head_changes.iter().map(|c| &c.path).collect();
        let is_unchanged = |path: &RepoPath| {
            !changed_paths.contains(path) && obstruction_after_cleanup(self.tree.dir, path).is_none()
        };
        Ok(self.sparse_changes.added.iter().filter(|(path, _)| is_unchanged(path)).collect())
    }

    /// Writes the files in `changes`, by which the merged tree `to` differs from HEAD at `from`. The sparse
    /// checkout shows `visible_paths` whatever its patterns are.
    fn apply_merged_tree(
        &self,
        index: &Path,
        from: CommitId,
        to: TreeId,
        changes: &[TreeChange],
        visible_paths: &HashSet<&RepoPath>,
    ) -> Result<AppliedChanges<'a>, Error> {
        let incoming = changes.to_vec();
        let against =
            SparseExceptions { shown_against_patterns: visible_paths.clone(), ..SparseExceptions::default() };
        apply_files(self.tree, index, from, to.oid(), incoming, LocalChangeSearch::SinceHead, &against)
    }
}
