//! Restoring a snapshot: exactly if HEAD's tree is unchanged, by a three-way merge if HEAD has moved.

use std::collections::HashSet;
use std::path::Path;

use super::clear::SnapshotFiles;
use super::file_modes::apply_modes;
use super::index::{self, INDEX_NAME, IndexLock, NewIndex};
use super::obstructions::{
    Obstruction, detect_obstruction, obstruction_above, preserve_obstructions, rename_to_free_names,
};
use super::open_operation::require_no_open_operation;
use super::path;
use super::preconditions::{LocalChanges, refuse_overlap};
use super::quarantine::{
    Quarantine, differing_files, exists_in_real_folder, has_real_parents, is_file_in_real_folder,
    matches_blob, remove_empty_parents, remove_empty_tree,
};
use super::rebuilt_files::RebuiltFiles;
use super::refresh_index::{IndexRefresh, clear_entry_stats, files_with_other_size};
use super::restore_forecast::{find_obstruction, merge_snapshot_tree, refuse_staged};
use super::restored_index::write_restored_index;
use super::sparse_entries::{SparseAdjustments, mark_skip_worktree};
use super::sparse_patterns::SparseExceptions;
use super::status::is_certainly_at;
use super::transition::{
    AppliedChanges, WorktreeContext, apply_files, read_new_folders, record_new_folders, remove_new_folders,
    tree_attribute_files,
};
use super::truncated_files::is_truncated_file;
use super::verbatim_restore::VerbatimRestore;
use super::{Change, Error, Oid, RepoPath, Snapshot, TreeFile, index_flags, restored_stamps, tree_changes};
use crate::fail_points;

/// Outcome of restoring a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub(crate) enum RestoreOutcome {
    /// Files, modes and index are as they were.
    Exact,
    /// HEAD had moved and the changes were merged into its commit.
    Merged,
    /// HEAD had moved and these paths conflict. Nothing was changed; the snapshot still holds everything.
    Conflict(Vec<RepoPath>),
}

/// Restores `snapshot` in a worktree whose HEAD is at `head`. `parked_dir` is the folder to which `clear`
/// moved the files; files missing or altered there come from the snapshot's objects. `raw_index` is the saved
/// index.
///
/// # Errors
/// [`Error::LocalChanges`] or [`Error::Obstructed`] when something new exists at the path of a snapshot's file.
/// Nothing is changed then.
pub(crate) fn restore(
    tree: &WorktreeContext<'_>,
    snapshot: &Snapshot,
    head: Oid,
    parked_dir: &Path,
    raw_index: &Path,
) -> Result<RestoreOutcome, Error> {
    let mut restoration = SnapshotRestore::new(tree, snapshot, parked_dir, raw_index)?;
    restoration.snapshot_files.drop_lost_ignored(|path| restoration.parked.contains(path));
    let outcome = if tree.repo.tree_of(head)? == tree.repo.tree_of(snapshot.base)? && raw_index.exists() {
        restoration.restore_exactly(raw_index, head).map(|()| RestoreOutcome::Exact)
    } else {
        restoration.restore_merged(head, raw_index)
    };
    fail_points::hit("restore.installed");
    outcome
}

/// Folder, within a step's folder, of HEAD's own files that were moved out of the way.
const HEAD_FILES_DIR: &str = "current";

/// List, within a step's folder, of parked files that the step puts in place.
const MOVED_LIST: &str = "given";

/// List, within a step's folder, of files that the step writes from the snapshot's objects.
const WRITTEN_LIST: &str = "written";

/// Files that a restore puts in place.
#[derive(Default)]
struct PlacedFiles {
    /// Parked files, which are moved into place.
    moved: Vec<RepoPath>,
    /// Files that are written from the snapshot's objects.
    written: Vec<RepoPath>,
}

/// Restore of one snapshot in a worktree.
pub(super) struct SnapshotRestore<'a> {
    tree: &'a WorktreeContext<'a>,
    snapshot: &'a Snapshot,
    snapshot_files: SnapshotFiles,
    parked: Quarantine,
    /// Files that a sparse checkout has to show, and files that it has to leave out, in addition.
    sparse_changes: SparseAdjustments,
}

impl<'a> SnapshotRestore<'a> {
    /// Prepares to restore `snapshot` with `raw_index` from `parked_dir`.
    pub(super) fn new(
        tree: &'a WorktreeContext<'a>,
        snapshot: &'a Snapshot,
        parked_dir: &Path,
        raw_index: &Path,
    ) -> Result<SnapshotRestore<'a>, Error> {
        let snapshot_files = SnapshotFiles::load(tree, snapshot)?;
        let snapshot_paths: HashSet<RepoPath> =
            snapshot_files.all_changes().into_iter().map(|change| change.path).collect();
        let head_files_dir = tree.scratch.join(HEAD_FILES_DIR).join("files");
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

    /// Undoes the work of a killed process, found from its scratch folder. Returns commits with files that
    /// others wrote since and that had to be moved.
    pub(super) fn undo_interrupted(&self, head: Oid) -> Result<Vec<Oid>, Error> {
        let placed = self.read_placed_files()?;
        self.parked.remove_temp_copies(self.tree.dir, placed.moved.iter());
        let save_obstructions = |obstructions| preserve_obstructions(self.tree, obstructions);
        if !self.tree.scratch.join(super::transition::REPLACED_DIR).exists() {
            let displaced = self.snapshot_files.tracked.iter().filter(|c| c.old.is_some());
            let displaced: Vec<Change> = displaced.chain(&self.sparse_changes.removed).cloned().collect();
            let head_files = Quarantine::open(&self.tree.scratch.join(HEAD_FILES_DIR))?;
            let placed = self.retain_arrived(placed, &displaced, &head_files)?;
            let foreign_commit = save_obstructions(self.find_foreign_files(&placed))?;
            let obstruction_commit = self.undo(&displaced, &head_files, placed, save_obstructions)?;
            return Ok(foreign_commit.into_iter().chain(obstruction_commit).collect());
        }
        let applied = match merge_snapshot_tree(self.tree, self.snapshot, head, self.snapshot.work_tree)? {
            Ok(merged_tree) => Some(AppliedChanges::from_scratch(
                self.tree,
                tree_changes(self.tree.repo, head, merged_tree)?,
                merged_tree,
            )?),
            Err(_) => None,
        };
        let foreign_commit = save_obstructions(self.find_foreign_files(&placed))?;
        self.remove_placed_files(&placed)?;
        VerbatimRestore::open(self.tree, &self.parked)?.remove_copies()?;
        let obstruction_commit = applied.map_or(Ok(None), |applied| applied.undo_and_save(self.tree))?;
        Ok(foreign_commit.into_iter().chain(obstruction_commit).collect())
    }

    /// Returns files at the paths of this step that differ from the snapshot's: others wrote them since. An
    /// ignored one is parked again unchanged.
    fn find_foreign_files(&self, placed: &PlacedFiles) -> Vec<Obstruction> {
        let is_placed = |path: &RepoPath| {
            let was_written = !placed.written.contains(path)
                || self.object_writer(path).is_none_or(|r| r.was_moved_to_worktree(path));
            was_written && !self.parked.contains(path) && is_file_in_real_folder(self.tree.dir, path)
        };
        let mut expected = self.snapshot_files.files_with_objects();
        expected.retain(|(path, _)| {
            (placed.moved.contains(path) || placed.written.contains(path)) && is_placed(path)
        });
        let attributes = || self.snapshot_files.attribute_files(self.tree, self.snapshot);
        let index_file = self.tree.scratch.join("check-given");
        let WorktreeContext { repo, git_dir, dir, .. } = self.tree;
        let changed = differing_files(repo, git_dir, dir, &index_file, &expected, &attributes);
        let changed = changed.unwrap_or_else(|_| {
            let has_changed =
                |(path, side): &&(RepoPath, TreeFile)| !matches_blob(repo, &path.to_fs_path(dir), *side);
            expected.iter().filter(has_changed).map(|(path, _)| path.clone()).collect()
        });
        let foreign =
            changed.into_iter().filter(|path| !is_truncated_file(self.tree, self.snapshot, path, &expected));
        foreign.map(|path| Obstruction { path, is_replaceable: true }).collect()
    }

    /// Returns the displaced files that no longer match HEAD: others wrote into them since. If git cannot be
    /// run, these are all files that are not byte for byte HEAD's.
    fn edited_while_displaced(&self, displaced: &[&Change], head_files: &Quarantine) -> Vec<RepoPath> {
        let expected: Vec<_> = displaced.iter().filter_map(|c| Some((c.path.clone(), c.old?))).collect();
        let attributes =
            || tree_attribute_files(self.tree.repo, self.snapshot.base, expected.iter().map(|(p, _)| p));
        let changed = head_files.differing_files(self.tree, &expected, &attributes);
        changed.unwrap_or_else(|_| {
            let has_changed =
                |(path, side): &&(RepoPath, TreeFile)| !head_files.matches_blob(self.tree.repo, path, *side);
            expected.iter().filter(has_changed).map(|(path, _)| path.clone()).collect()
        })
    }

    /// Records which of `files` this step will put in place, so that the step can be undone. The others are
    /// in place already.
    fn record_placed_files(&self, files: &[(RepoPath, TreeFile)]) -> Result<PlacedFiles, Error> {
        let pending = files.iter().filter(|(path, side)| !self.is_restored(path, Some(*side)));
        let (moved, written) =
            pending.map(|(path, _)| path.clone()).partition(|path| self.parked.contains(path));
        let placed = PlacedFiles { moved, written };
        // A folder is recorded as if a file were put into it.
        let folders: Vec<RepoPath> = self.snapshot.empty_dirs.iter().map(|dir| dir.join(b"-")).collect();
        record_new_folders(self.tree, placed.moved.iter().chain(&placed.written).chain(&folders))?;
        for (name, paths) in [(WRITTEN_LIST, &placed.written), (MOVED_LIST, &placed.moved)] {
            path::write_path_list(&self.tree.scratch.join(name), paths)?;
        }
        Ok(placed)
    }

    /// Reads the recorded list of placed files; empty when the step stopped before it was recorded.
    fn read_placed_files(&self) -> Result<PlacedFiles, Error> {
        let read_list = |name| path::read_path_list(&self.tree.scratch.join(name));
        Ok(PlacedFiles { moved: read_list(MOVED_LIST)?, written: read_list(WRITTEN_LIST)? })
    }

    /// Retains the entries of `placed` that this step has put in place. HEAD's own file of such a path is
    /// there until it is moved away, unless a sparse checkout left it out.
    fn retain_arrived(
        &self,
        mut placed: PlacedFiles,
        displaced: &[Change],
        head_files: &Quarantine,
    ) -> Result<PlacedFiles, Error> {
        let may_be_head_file =
            |path: &RepoPath| displaced.iter().any(|c| c.path == *path) && !head_files.contains(path);
        placed.moved.retain(|path| !may_be_head_file(path) || !self.parked.contains(path));
        let discarded = self.discard_quarantine()?;
        let has_arrived = |path: &RepoPath| {
            self.object_writer(path).is_some_and(|rebuilt| rebuilt.was_moved_to_worktree(path))
                && !discarded.contains(path)
        };
        placed.written.retain(|path| !may_be_head_file(path) || has_arrived(path));
        Ok(placed)
    }

    /// Returns the quarantine of files that were written from the snapshot's objects and are removed again.
    fn discard_quarantine(&self) -> Result<Quarantine, Error> {
        Quarantine::open(&self.tree.scratch.join("returned"))
    }

    /// Removes files that were put in place. Parked files are parked again. Files written from the snapshot's
    /// objects are discarded, since the objects still hold them.
    fn remove_placed_files(&self, placed: &PlacedFiles) -> Result<(), Error> {
        for path in &placed.moved {
            if self.parked.move_in_again(self.tree.dir, path)? {
                remove_empty_parents(self.tree.dir, path);
            }
        }
        let discarded = self.discard_quarantine()?;
        for path in &placed.written {
            if self
                .object_writer(path)
                .map_or(Ok(false), |rebuilt| rebuilt.take_from_worktree(path, &discarded))?
            {
                remove_empty_parents(self.tree.dir, path);
            }
        }
        remove_new_folders(self.tree);
        Ok(())
    }

    fn restore_exactly(&self, raw_index: &Path, head: Oid) -> Result<(), Error> {
        let lock = self.lock_index()?;
        // No other process writes to the index while it is locked.
        let is_at_head =
            |changes| is_certainly_at(self.tree.repo, self.tree.dir, &self.tree.git_dir, head, changes);
        let local = if is_at_head(&self.snapshot_files.all_changes()) {
            LocalChanges::None
        } else {
            LocalChanges::SinceHead
        };
        if local != LocalChanges::None {
            refuse_staged(self.tree, head, self.snapshot)?;
        }
        let displaced: Vec<Change> = self
            .snapshot_files
            .tracked
            .iter()
            .filter(|c| c.old.is_some() && !self.is_restored(&c.path, self.expected_side(c)))
            .chain(&self.sparse_changes.removed)
            .cloned()
            .collect();
        self.refuse_obstructions(&displaced, local)?;
        let head_files = Quarantine::open(&self.tree.scratch.join(HEAD_FILES_DIR))?;
        let files = [self.snapshot_files.files(), self.sparse_changes.added.clone()].concat();
        let placed = self.record_placed_files(&files)?;
        let result = self.displace_head_files(&displaced, &head_files);
        let result = result.inspect(|()| fail_points::hit("restore.taken"));
        let result = result.and_then(|()| self.place_files(&files));
        let result = result.and_then(|()| self.build_refreshed_index(raw_index, lock.index()));
        let result = result.and_then(|next| lock.install(next));
        if let Err(e) = result {
            let rename_obstructions = |obstructions: Vec<_>| rename_to_free_names(self.tree, &obstructions);
            self.undo(&displaced, &head_files, placed, rename_obstructions)?;
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

    /// Builds the new index from the raw index, with the current stat data of the files. Content written
    /// since is in the `current_index`, or was restored.
    fn build_refreshed_index(&self, raw_index: &Path, current_index: &Path) -> Result<NewIndex, Error> {
        let files = self.snapshot_files.files();
        let paths = files.iter().map(|(path, _)| path).collect();
        let plan = IndexRefresh::plan_from_later_index(self.tree, raw_index, current_index, &paths);
        if let Some(new_index) = plan.and_then(|plan| plan.build(self.tree)) {
            return Ok(new_index);
        }
        let index_file = self.tree.scratch.join(INDEX_NAME);
        index::copy(raw_index, &index_file)?;
        clear_entry_stats(
            self.tree,
            &index_file,
            &files_with_other_size(self.tree.repo, raw_index, current_index),
        )?;
        index_flags::refresh(self.tree.repo, self.tree.dir, &index_file)?;
        mark_skip_worktree(self.tree, &index_file, self.snapshot.present_skipped.iter())?;
        Ok(NewIndex::InFile(index_file))
    }

    /// Refuses if something exists where the snapshot's files belong. Files that are restored already are
    /// skipped: an earlier restore may have been interrupted.
    fn refuse_obstructions(&self, displaced: &[Change], local: LocalChanges) -> Result<(), Error> {
        let mut pending_changes: Vec<Change> = self
            .snapshot_files
            .tracked
            .iter()
            .filter(|c| !self.is_restored(&c.path, self.expected_side(c)))
            .cloned()
            .collect();
        // A file that was removed from the index only stands at the path of HEAD's file, which leaves first.
        pending_changes.extend(self.sparse_changes.removed.iter().cloned());
        let is_not_displaced = |path: &RepoPath| !displaced.iter().any(|c| c.path == *path);
        let arriving = self
            .snapshot_files
            .untracked_and_ignored()
            .filter(|(p, side)| is_not_displaced(p) && !self.is_restored(p, Some(*side)));
        pending_changes.extend(arriving.map(|(path, side)| Change {
            path: path.clone(),
            old: None,
            new: Some(*side),
        }));
        match refuse_overlap(self.tree, &pending_changes, local, &SparseExceptions::default()) {
            Err(Error::LocalChanges { dir, mut paths, hint: remedy }) => {
                // A file that is missing here but parked is no user's change, and neither is one that will be
                // intent-to-add again.
                let is_retained =
                    |p: &RepoPath| self.parked.contains(p) || self.snapshot.intent_to_add.contains(p);
                paths.retain(|p| detect_obstruction(self.tree.dir, p).is_some() || !is_retained(p));
                if paths.is_empty() { Ok(()) } else { Err(Error::LocalChanges { dir, paths, hint: remedy }) }
            }
            other => other,
        }
    }

    /// Returns the snapshot's file at the path of a change: a file that was removed from the index may still
    /// exist.
    fn expected_side(&self, change: &Change) -> Option<TreeFile> {
        let untracked_side = || {
            self.snapshot_files
                .untracked_and_ignored()
                .find(|(path, _)| *path == change.path)
                .map(|(_, side)| *side)
        };
        change.new.or_else(untracked_side)
    }

    /// Returns whether a path is as the snapshot has it, and no other copy of it is parked. An identical
    /// parked copy is accepted: an interrupted undo restored the earlier file, and git removes no file with a
    /// flag.
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
        let lock = IndexLock::acquire_shared(self.tree)?;
        require_no_open_operation(self.tree.dir, &self.tree.git_dir)?;
        Ok(lock)
    }

    /// Moves HEAD's own files out of the way, and then compares them with HEAD.
    ///
    /// # Errors
    /// [`Error::Raced`] when a file was edited.
    fn displace_head_files(&self, displaced: &[Change], head_files: &Quarantine) -> Result<(), Error> {
        let mut expected = Vec::new();
        for change in displaced {
            if head_files.move_in(self.tree.dir, &change.path)? {
                expected.extend(change.old.map(|side| (change.path.clone(), side)));
            }
            remove_empty_parents(self.tree.dir, &change.path);
        }
        let attributes =
            || tree_attribute_files(self.tree.repo, self.snapshot.base, expected.iter().map(|(p, _)| p));
        let edited = head_files.differing_files(self.tree, &expected, &attributes)?;
        if edited.is_empty() {
            return Ok(());
        }
        Err(Error::Raced { dir: self.tree.dir.to_owned(), paths: edited })
    }

    /// Puts the snapshot's files in place: moves the parked files, and writes missing ones from the
    /// snapshot's objects.
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
        self.tree_writer(self.snapshot.work_tree).write_to_worktree(&tracked)?;
        match self.snapshot.untracked_tree {
            Some(id) => self.tree_writer(id).write_to_worktree(&untracked),
            None => Ok(()),
        }
    }

    fn is_untracked(&self, path: &RepoPath) -> bool {
        self.snapshot_files.untracked.iter().any(|(p, _)| p == path)
    }

    /// Returns the writer for a path; none when no tree of the snapshot has the path.
    fn object_writer(&self, path: &RepoPath) -> Option<RebuiltFiles<'_>> {
        let source_tree = if self.is_untracked(path) {
            self.snapshot.untracked_tree
        } else {
            Some(self.snapshot.work_tree)
        };
        source_tree.map(|id| self.tree_writer(id))
    }

    fn tree_writer(&self, tree_id: Oid) -> RebuiltFiles<'_> {
        RebuiltFiles::new(self.tree, tree_id, &self.snapshot.modes)
    }

    /// Undoes the placement and restores the displaced files. `save` saves files that others put in their
    /// place.
    fn undo<T>(
        &self,
        displaced: &[Change],
        head_files: &Quarantine,
        placed: PlacedFiles,
        save: impl FnOnce(Vec<Obstruction>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let placed = self.retain_arrived(placed, displaced, head_files)?;
        self.remove_placed_files(&placed)?;
        let moved_away: Vec<&Change> = displaced.iter().filter(|c| head_files.contains(&c.path)).collect();
        let (mut obstructions, mut returning, mut replaced) = (Vec::new(), Vec::new(), Vec::new());
        for change in moved_away {
            match detect_obstruction(self.tree.dir, &change.path) {
                Some(obstruction) if obstruction.is_replaceable => replaced.push((change, obstruction)),
                obstruction => {
                    obstructions.extend(obstruction);
                    returning.push(&change.path);
                }
            }
        }
        let changes: Vec<&Change> = replaced.iter().map(|(change, _)| *change).collect();
        let edited = self.edited_while_displaced(&changes, head_files);
        // A new file at the path of HEAD's file is newer and stays, unless HEAD's displaced file was edited
        // too.
        for (change, obstruction) in replaced.into_iter().filter(|(change, _)| edited.contains(&change.path))
        {
            obstructions.push(obstruction);
            returning.push(&change.path);
        }
        let saved = save(obstructions)?;
        for path in returning {
            head_files.move_out_replacing(self.tree.dir, path)?;
        }
        Ok(saved)
    }

    fn restore_merged(&self, head: Oid, raw_index: &Path) -> Result<RestoreOutcome, Error> {
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
            find_obstruction(self.tree, &self.snapshot_files, (self.snapshot.base, head), &changes)?
        {
            return Ok(conflict);
        }
        // Files that changed since, or whose place is taken, are left out as git does.
        let head_changes = match self.sparse_changes.added.is_empty() {
            true => Vec::new(),
            false => tree_changes(self.tree.repo, self.snapshot.base, head)?,
        };
        let changed_paths: HashSet<&RepoPath> = head_changes.iter().map(|c| &c.path).collect();
        let is_unchanged = |path: &RepoPath| {
            !changed_paths.contains(path) && detect_obstruction(self.tree.dir, path).is_none()
        };
        let newly_visible: Vec<_> =
            self.sparse_changes.added.iter().filter(|(path, _)| is_unchanged(path)).collect();
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
        let incoming = changes.clone();
        let against = SparseExceptions { included: visible_paths.clone(), ..SparseExceptions::default() };
        let applied = apply_files(
            self.tree,
            lock.index(),
            (head, merged_work),
            incoming,
            LocalChanges::SinceHead,
            &against,
        )?;
        let as_edited = VerbatimRestore::open(self.tree, &self.parked)?;
        visible_paths.extend(newly_visible.iter().map(|(path, _)| path));
        let index_file = self.tree.scratch.join(INDEX_NAME);
        let result = self
            .place_files(&files)
            .and_then(|()| as_edited.replace_converted_files(&self.snapshot_files, &changes, &index_file))
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
            self.remove_placed_files(&placed)?;
            as_edited.remove_copies()?;
            applied.undo(self.tree)?;
            return Err(e);
        }
        applied.accept();
        restored_stamps::write_stamps(self.tree.dir, &self.parked, &self.snapshot_files, &changes);
        Ok(RestoreOutcome::Merged)
    }
}
