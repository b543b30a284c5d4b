//! Verbatim restore of edited files after HEAD has moved: git would write them as its filters convert them,
//! not with the bytes that the user had.
//!
//! An editor may write one of these files after git did. So git's file is moved out and compared with what
//! git writes before the copy takes its name. No rename here replaces a file.

use std::path::{Path, PathBuf};

use proq_base::fail_points;

use super::clear::SnapshotFiles;
use super::late_writes::NOT_RESTORED_PREFIX;
use crate::base::file_copy::is_prefix;
use crate::base::folders::obstruction_above;
use crate::base::path_list;
use crate::checkout::quarantine::{FILES_DIR, Quarantine, move_without_replacing};
use crate::checkout::rebuilt_files::build_files;
use crate::history::tree_diff::{TreeChange, TreeFile};
use crate::index::refresh_index::clear_entry_stats;
use crate::repository::worktree_context::WorktreeContext;
use crate::{Error, RepoPath, TreeId};

/// Name of the folder, in a step's scratch folder, for copies of parked files and the list of replaced files.
const VERBATIM_DIR: &str = "as-edited";

/// Replacement of files that git wrote by byte-for-byte copies of the user's parked files, where the merge
/// left the content unchanged.
pub(crate) struct VerbatimRestore<'a> {
    tree: &'a WorktreeContext<'a>,
    parked: &'a Quarantine,
    copies: Quarantine,
    /// The files that git writes, written a second time where no editor finds them.
    expected: Quarantine,
    /// Files that were moved out of the worktree for a copy.
    displaced: Quarantine,
    /// Copies that an undo moved out of the worktree.
    returned: Quarantine,
    /// Files that git has converted, which the copies replace.
    converted_files: Vec<(RepoPath, TreeFile)>,
    /// Whether another program wrote one of these files during the restore.
    has_foreign_files: bool,
}

impl<'a> VerbatimRestore<'a> {
    /// Prepares a verbatim restore from the quarantine `parked`, whose files are copied and not moved.
    pub fn open(tree: &'a WorktreeContext<'a>, parked: &'a Quarantine) -> Result<VerbatimRestore<'a>, Error> {
        let dir = tree.scratch.join(VERBATIM_DIR);
        Ok(VerbatimRestore {
            tree,
            parked,
            copies: Quarantine::open(&dir)?,
            expected: Quarantine::open(&dir.join("expected"))?,
            displaced: Quarantine::open(&dir.join("displaced"))?,
            returned: Quarantine::open(&dir.join("returned"))?,
            converted_files: Vec::new(),
            has_foreign_files: false,
        })
    }

    /// Finds the files of `changes` whose bytes differ from the parked ones although the content of the merged
    /// tree `merged` equals the snapshot's, and has git write them a second time. No file of the snapshot may
    /// be in the worktree yet: it could have other attributes than those by which git wrote the first.
    pub(crate) fn find_converted_files(
        &mut self,
        snapshot_files: &SnapshotFiles,
        changes: &[TreeChange],
        merged: TreeId,
    ) -> Result<(), Error> {
        let has_other_bytes = |(path, _): &(RepoPath, TreeFile)| {
            let (written_file, parked_file) = (path.to_fs_path(self.tree.dir), self.parked.file_path(path));
            self.parked.contains(path) && has_same_bytes(&written_file, &parked_file) == Some(false)
        };
        let edited = changes
            .iter()
            .filter(|c| snapshot_files.tracked.iter().any(|t| t.path == c.path && t.new == c.new));
        let edited = edited.filter_map(|c| Some((c.path.clone(), c.new?)));
        let files: Vec<(RepoPath, TreeFile)> = edited.filter(has_other_bytes).collect();
        let paths: Vec<&RepoPath> = files.iter().map(|(path, _)| path).collect();
        if !paths.is_empty() {
            // An earlier attempt of the same step may have left files, which git does not overwrite.
            let expected_files = self.expected.dir().join(FILES_DIR);
            std::fs::remove_dir_all(&expected_files).map_err(Error::io("remove", &expected_files))?;
            build_files(self.tree, merged, &expected_files, &paths)?;
        }
        self.converted_files = files;
        Ok(())
    }

    /// Replaces the converted files by copies of the parked ones. A file that another program wrote there is
    /// newer and stays, and the copy is saved. Then clears the stat data of these files in the index file
    /// `index`.
    pub(crate) fn replace_converted_files(&mut self, index: &Path) -> Result<(), Error> {
        if self.converted_files.is_empty() {
            return Ok(());
        }
        let paths: Vec<RepoPath> = self.converted_files.iter().map(|(path, _)| path.clone()).collect();
        path_list::write_path_list(&self.replaced_list_path(), &paths)?;
        for path in &paths {
            self.copies.copy_from_other(self.parked, path)?;
            if !self.replace_file(path)? {
                self.save_copy(path)?;
                self.has_foreign_files = true;
            }
        }
        fail_points::hit("restore.as-edited");
        clear_entry_stats(self.tree, index, &self.converted_files)
    }

    /// Replaces git's file at `path` by the copy. Returns false if another program's file is there, or if
    /// that program removed the file.
    fn replace_file(&self, path: &RepoPath) -> Result<bool, Error> {
        let is_git_file = |file: &Path| has_same_bytes(file, &self.expected.file_path(path)) == Some(true);
        if !is_git_file(&path.to_fs_path(self.tree.dir)) {
            return Ok(false);
        }
        fail_points::hit("restore.compared");
        if !self.displaced.move_in(self.tree.dir, path)? {
            return Ok(false);
        }
        fail_points::hit("restore.displaced");
        // The comparison above cannot see a write between it and the rename.
        if !is_git_file(&self.displaced.file_path(path)) {
            self.return_or_save(&self.displaced, path)?;
            return Ok(false);
        }
        match self.copies.move_out(self.tree.dir, path) {
            Ok(()) => {
                fail_points::hit("restore.replaced");
                Ok(true)
            }
            // Between the two renames an editor created the file.
            Err(_) if is_occupied(self.tree, path) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Saves the copy of `path`, which is not restored, next to the parked files, and names it in a warning.
    fn save_copy(&self, path: &RepoPath) -> Result<(), Error> {
        let saved_file = self.save_beside_parked(&self.copies, path)?;
        (self.tree.warn)(format!(
            "{path} was written while your changes were restored, and stays as it is; your saved version is {}",
            saved_file.display()
        ));
        Ok(())
    }

    /// Saves what other programs wrote through open descriptors to git's files after these were replaced.
    /// Returns whether all files are as the user parked them.
    pub(crate) fn finish(mut self) -> bool {
        for (path, _) in self.converted_files.iter().filter(|(path, _)| self.displaced.contains(path)) {
            let is_git_file =
                has_same_bytes(&self.displaced.file_path(path), &self.expected.file_path(path)) == Some(true);
            if !is_git_file {
                self.has_foreign_files = true;
                if let Err(e) = self.save_foreign_file(&self.displaced, path) {
                    (self.tree.warn)(e.to_string());
                }
            }
        }
        !self.has_foreign_files
    }

    /// Removes the copies that `VerbatimRestore::replace_converted_files` wrote to the worktree, so that an
    /// undo does not treat them as the user's edits. Returns files of other programs to the worktree.
    pub(crate) fn remove_copies(&self) -> Result<(), Error> {
        let files = path_list::read_path_list(&self.replaced_list_path())?;
        self.copies.remove_temp_copies(self.tree.dir, files.iter());
        for path in &files {
            let parked_file = self.parked.file_path(path);
            // An interrupted undo may have left one.
            self.settle_moved_file(&self.returned, path, &parked_file)?;
            if has_same_bytes(&path.to_fs_path(self.tree.dir), &parked_file) == Some(true)
                && self.returned.move_in(self.tree.dir, path)?
            {
                fail_points::hit("restore.copy-returned");
                self.settle_moved_file(&self.returned, path, &parked_file)?;
            }
            self.settle_moved_file(&self.displaced, path, &self.expected.file_path(path))?;
        }
        Ok(())
    }

    /// Removes the file of `path` from `quarantine` if it has the bytes of `known_file`. Otherwise another
    /// program wrote it, and it returns to the worktree.
    fn settle_moved_file(
        &self,
        quarantine: &Quarantine,
        path: &RepoPath,
        known_file: &Path,
    ) -> Result<(), Error> {
        if !quarantine.contains(path) {
            return Ok(());
        }
        quarantine.remove_temp_copies(self.tree.dir, std::iter::once(path));
        match has_same_bytes(&quarantine.file_path(path), known_file) {
            Some(true) => quarantine.remove_file(path),
            _ => self.return_or_save(quarantine, path),
        }
    }

    /// Moves another program's file from `quarantine` back to the worktree. If something newer is there, the
    /// file is saved next to the parked files.
    fn return_or_save(&self, quarantine: &Quarantine, path: &RepoPath) -> Result<(), Error> {
        match quarantine.move_back(self.tree.dir, path)? {
            true => Ok(()),
            false => self.save_foreign_file(quarantine, path),
        }
    }

    /// Saves another program's file next to the parked files, and names it in a warning.
    fn save_foreign_file(&self, quarantine: &Quarantine, path: &RepoPath) -> Result<(), Error> {
        let saved_file = self.save_beside_parked(quarantine, path)?;
        (self.tree.warn)(format!(
            "{path} was written while your changes were restored, and then replaced; what was written is saved as {}",
            saved_file.display()
        ));
        Ok(())
    }

    /// Moves the file of `path` from `quarantine` to a new place next to the parked files.
    fn save_beside_parked(&self, quarantine: &Quarantine, path: &RepoPath) -> Result<PathBuf, Error> {
        let place_in = |n: u32| path.to_fs_path(&self.parked.dir().join(format!("{NOT_RESTORED_PREFIX}{n}")));
        let place = (1..u32::MAX).map(place_in).find(|place| place.symlink_metadata().is_err());
        let place = place.unwrap_or_else(|| place_in(0));
        if let Some(parent) = place.parent() {
            std::fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
        }
        move_without_replacing(&quarantine.file_path(path), &place).map(|()| place)
    }

    /// Returns the path of the list of replaced files.
    fn replaced_list_path(&self) -> PathBuf {
        self.tree.scratch.join(VERBATIM_DIR).join("list")
    }
}

/// Returns whether something exists at `path` or in the place of one of its folders.
fn is_occupied(tree: &WorktreeContext<'_>, path: &RepoPath) -> bool {
    path.to_fs_path(tree.dir).symlink_metadata().is_ok() || obstruction_above(tree.dir, path).is_some()
}

/// Returns whether two files have the same bytes; `None` if one of them is not a regular file or cannot be
/// read.
fn has_same_bytes(first: &Path, second: &Path) -> Option<bool> {
    let (a, b) = (first.symlink_metadata().ok()?, second.symlink_metadata().ok()?);
    if !a.is_file() || !b.is_file() {
        return None;
    }
    if a.len() == b.len() { is_prefix(first, second).ok() } else { Some(false) }
}
