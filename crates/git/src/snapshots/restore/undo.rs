//! Undo of a restore that failed or was interrupted, by the recorded list of the files that the restore puts
//! in place.

use super::{DISPLACED_HEAD_FILES_DIR, SnapshotRestore};
use crate::base::folders::{is_file_in_real_folder, remove_empty_parents};
use crate::base::path_list;
use crate::checkout::displaced_files::DisplacedFiles;
use crate::checkout::obstructions::{Obstruction, obstruction_after_cleanup, rename_to_free_names};
use crate::checkout::quarantine::{Quarantine, differing_files, matches_blob};
use crate::checkout::transition::{AppliedChanges, REPLACED_DIR, record_new_folders, remove_new_folders};
use crate::history::tree_diff::{TreeChange, TreeFile, tree_attribute_files, tree_changes};
use crate::repository::worktree_context::WorktreeContext;
use crate::snapshots::restore_forecast::merge_snapshot_tree;
use crate::snapshots::truncated_files::is_truncated_file;
use crate::snapshots::verbatim_restore::VerbatimRestore;
use crate::{CommitId, Error, RepoPath};

/// Name of a list in a step's scratch folder: the parked files that the restore moves into place.
const MOVED_LIST: &str = "given";

/// Name of a list in a step's scratch folder: the files that the restore writes from the snapshot's objects.
const WRITTEN_LIST: &str = "written";

/// Files that a restore puts in place.
#[derive(Default)]
pub(crate) struct PlacedFiles {
    /// Parked files, which are moved into place.
    moved: Vec<RepoPath>,
    /// Files that are written from the snapshot's objects.
    written: Vec<RepoPath>,
}

impl SnapshotRestore<'_> {
    /// Undoes the restore of a killed process, as recorded in its scratch folder. Returns commits with files
    /// that other programs wrote since and that had to be moved out of the way.
    pub(crate) fn undo_interrupted(&self, head: CommitId) -> Result<Vec<CommitId>, Error> {
        let placed = self.read_placed_files()?;
        self.parked.remove_temp_copies(self.tree.dir, placed.moved.iter());
        let mut files = DisplacedFiles::open(self.tree)?;
        files.inspect(&placed.written);
        if !self.tree.scratch.join(REPLACED_DIR).exists() {
            let displaced = self.snapshot_files.tracked.iter().filter(|c| c.old.is_some());
            let displaced: Vec<TreeChange> = displaced.chain(&self.sparse_changes.removed).cloned().collect();
            let displaced_head_files = Quarantine::open(&self.tree.scratch.join(DISPLACED_HEAD_FILES_DIR))?;
            let placed = self.retain_placed_files(placed, &displaced, &displaced_head_files)?;
            let foreign_commit = files.preserve(self.find_foreign_files(&placed))?;
            let obstruction_commit =
                self.undo(files, &displaced, &displaced_head_files, placed, |files, found| {
                    files.preserve(found)
                })?;
            return Ok(foreign_commit.into_iter().chain(obstruction_commit).collect());
        }
        let applied = match merge_snapshot_tree(self.tree, self.snapshot, head, self.snapshot.work_tree)? {
            Ok(merged_tree) => Some(AppliedChanges::open_from_scratch_folder(
                self.tree,
                tree_changes(self.tree.repo, head, merged_tree)?,
                merged_tree.oid(),
            )?),
            Err(_) => None,
        };
        let foreign_commit = files.preserve(self.find_foreign_files(&placed))?;
        self.remove_placed_files(&files, &placed)?;
        files.finish()?;
        VerbatimRestore::open(self.tree, &self.parked)?.remove_copies()?;
        let obstruction_commit = applied.map_or(Ok(None), |applied| applied.undo_and_save(self.tree))?;
        Ok(foreign_commit.into_iter().chain(obstruction_commit).collect())
    }

    /// Prepares the undo of a restore that failed: files that it wrote and that other programs have changed
    /// since get other names.
    pub(crate) fn inspect_written_files(&self, placed: &PlacedFiles) -> Result<DisplacedFiles<'_>, Error> {
        let mut files = DisplacedFiles::open(self.tree)?;
        files.inspect(&placed.written);
        let mut foreign = self.find_foreign_files(placed);
        foreign.retain(|found| placed.written.contains(&found.path));
        rename_to_free_names(self.tree, &foreign).map(|()| files)
    }

    /// Removes the files that a restore that failed has put in place.
    pub(crate) fn undo_placed_files(&self, placed: &PlacedFiles) -> Result<(), Error> {
        let files = self.inspect_written_files(placed)?;
        self.remove_placed_files(&files, placed)?;
        files.finish()
    }

    /// Returns files at the paths of this restore that differ from the snapshot's, because other programs
    /// wrote them since. A changed ignored file is not included; it is parked again as it is.
    fn find_foreign_files(&self, placed: &PlacedFiles) -> Vec<Obstruction> {
        let is_placed = |path: &RepoPath| {
            let was_written = !placed.written.contains(path)
                || self.rebuilt_files_for_path(path).is_none_or(|r| r.was_moved_to_worktree(path));
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

    /// Returns the files of `displaced` whose copy in `displaced_head_files` no longer matches HEAD, because
    /// other programs wrote to them since. If git cannot be run, it returns all copies that differ from
    /// HEAD's blobs byte for byte.
    fn edited_displaced_files(
        &self,
        displaced: &[&TreeChange],
        displaced_head_files: &Quarantine,
    ) -> Vec<RepoPath> {
        let expected: Vec<_> = displaced.iter().filter_map(|c| Some((c.path.clone(), c.old?))).collect();
        let attributes = || {
            tree_attribute_files(self.tree.repo, self.snapshot.head_commit, expected.iter().map(|(p, _)| p))
        };
        let changed = displaced_head_files.differing_files(self.tree, &expected, &attributes);
        changed.unwrap_or_else(|_| {
            let has_changed = |(path, side): &&(RepoPath, TreeFile)| {
                !displaced_head_files.matches_blob(self.tree.repo, path, *side)
            };
            expected.iter().filter(has_changed).map(|(path, _)| path.clone()).collect()
        })
    }

    /// Records which of `files` this step will put in place, so that the step can be undone. The others are
    /// in place already.
    pub(crate) fn record_placed_files(&self, files: &[(RepoPath, TreeFile)]) -> Result<PlacedFiles, Error> {
        let pending = files.iter().filter(|(path, side)| !self.is_restored(path, Some(*side)));
        let (moved, written) =
            pending.map(|(path, _)| path.clone()).partition(|path| self.parked.contains(path));
        let placed = PlacedFiles { moved, written };
        // A folder is recorded as if a file were put into it.
        let folders: Vec<RepoPath> = self.snapshot.empty_dirs.iter().map(|dir| dir.join(b"-")).collect();
        record_new_folders(self.tree, placed.moved.iter().chain(&placed.written).chain(&folders))?;
        for (name, paths) in [(WRITTEN_LIST, &placed.written), (MOVED_LIST, &placed.moved)] {
            path_list::write_path_list(&self.tree.scratch.join(name), paths)?;
        }
        Ok(placed)
    }

    /// Reads the recorded list of placed files; empty when the step stopped before it was recorded.
    fn read_placed_files(&self) -> Result<PlacedFiles, Error> {
        let read_list = |name| path_list::read_path_list(&self.tree.scratch.join(name));
        Ok(PlacedFiles { moved: read_list(MOVED_LIST)?, written: read_list(WRITTEN_LIST)? })
    }

    /// Returns `placed` without files that this step has not put in place yet. At such a path, HEAD's own
    /// file may still exist, unless a sparse checkout left it out.
    fn retain_placed_files(
        &self,
        mut placed: PlacedFiles,
        displaced: &[TreeChange],
        displaced_head_files: &Quarantine,
    ) -> Result<PlacedFiles, Error> {
        let may_be_head_file = |path: &RepoPath| {
            displaced.iter().any(|c| c.path == *path) && !displaced_head_files.contains(path)
        };
        placed.moved.retain(|path| !may_be_head_file(path) || !self.parked.contains(path));
        let discarded = self.open_discard_quarantine()?;
        let has_arrived = |path: &RepoPath| {
            self.rebuilt_files_for_path(path).is_some_and(|rebuilt| rebuilt.was_moved_to_worktree(path))
                && !discarded.contains(path)
        };
        placed.written.retain(|path| !may_be_head_file(path) || has_arrived(path));
        Ok(placed)
    }

    /// Opens the quarantine for files that the step wrote from the snapshot's objects and that its undo
    /// removes from the worktree.
    fn open_discard_quarantine(&self) -> Result<Quarantine, Error> {
        Quarantine::open(&self.tree.scratch.join("returned"))
    }

    /// Removes files that were put in place. Parked files are parked again. Files written from the snapshot's
    /// objects are discarded, since the objects still hold them.
    fn remove_placed_files(&self, files: &DisplacedFiles<'_>, placed: &PlacedFiles) -> Result<(), Error> {
        for path in &placed.moved {
            if self.parked.move_in_again(self.tree.dir, path)? {
                remove_empty_parents(self.tree.dir, path);
            }
        }
        let discarded = self.open_discard_quarantine()?;
        for path in &placed.written {
            let Some(rebuilt) = self.rebuilt_files_for_path(path) else { continue };
            let was_discarded = discarded.contains(path);
            files.copy_if_committed(path)?;
            if rebuilt.take_from_worktree(path, &discarded)? {
                if !was_discarded {
                    files.save_if_changed(&discarded, path)?;
                }
                remove_empty_parents(self.tree.dir, path);
            }
        }
        remove_new_folders(self.tree);
        Ok(())
    }

    /// Removes the placed files and restores HEAD's displaced files. `files` have been inspected since the
    /// files were placed. `save` first saves files that other programs created at the paths of displaced files.
    pub fn undo<T>(
        &self,
        mut files: DisplacedFiles<'_>,
        displaced: &[TreeChange],
        displaced_head_files: &Quarantine,
        placed: PlacedFiles,
        save: impl FnOnce(&mut DisplacedFiles<'_>, Vec<Obstruction>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let placed = self.retain_placed_files(placed, displaced, displaced_head_files)?;
        self.remove_placed_files(&files, &placed)?;
        let moved_away: Vec<&TreeChange> =
            displaced.iter().filter(|c| displaced_head_files.contains(&c.path)).collect();
        let (mut obstructions, mut returning, mut replaced) = (Vec::new(), Vec::new(), Vec::new());
        for change in moved_away {
            match obstruction_after_cleanup(self.tree.dir, &change.path) {
                Some(obstruction) if obstruction.is_replaceable => replaced.push((change, obstruction)),
                obstruction => {
                    obstructions.extend(obstruction);
                    returning.push(&change.path);
                }
            }
        }
        let changes: Vec<&TreeChange> = replaced.iter().map(|(change, _)| *change).collect();
        let edited = self.edited_displaced_files(&changes, displaced_head_files);
        // A new file at the path of HEAD's file is newer and stays, unless HEAD's displaced file was edited
        // too.
        for (change, obstruction) in replaced.into_iter().filter(|(change, _)| edited.contains(&change.path))
        {
            obstructions.push(obstruction);
            returning.push(&change.path);
        }
        files.inspect(returning.iter().copied());
        let saved = save(&mut files, obstructions)?;
        for path in returning {
            files.replace(path, displaced_head_files)?;
        }
        files.finish()?;
        Ok(saved)
    }
}
