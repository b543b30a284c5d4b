//! Files that an undo moves out of a worktree, to remove them or to put others in their place.
//!
//! Another program may write such a file after the undo has inspected it. So the file is moved out first, and
//! then compared with what was inspected. No rename here replaces a file.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;

use proq_base::fail_points;

use super::obstructions::{
    Obstruction, move_to_free_name, obstruction_after_cleanup, preserve_obstructions, rename_to_free_names,
};
use super::quarantine::{FILES_DIR, Quarantine};
use crate::base::folders::is_file_in_real_folder;
use crate::repository::worktree_context::WorktreeContext;
use crate::{CommitId, Error, Oid, Repo, RepoPath};

/// Name of a folder in a step's scratch folder, for files that were moved out and not compared yet.
const MOVED_OUT_DIR: &str = "moved-out";
/// Name of a folder in a step's scratch folder, for files that are in a commit which is not recorded yet.
const SAVED_DIR: &str = "moved-out-saved";
/// Maximum number of times that one file is moved out while another program creates it again and again.
const MAX_ATTEMPTS: usize = 100;

/// Files of a worktree that an undo has inspected and moves out.
pub(crate) struct DisplacedFiles<'a> {
    tree: &'a WorktreeContext<'a>,
    /// Files that were moved out and not compared yet.
    moved: Quarantine,
    /// Files that were moved out and are in a commit.
    saved: Quarantine,
    /// Files that were moved out and are as they were inspected.
    unneeded: Quarantine,
    /// Contents of the inspected files.
    inspected: BTreeMap<RepoPath, FileContent>,
    /// Paths of files that are in a commit.
    committed_paths: BTreeSet<RepoPath>,
}

impl<'a> DisplacedFiles<'a> {
    /// Prepares an undo. Files that an interrupted undo of the same step moved out, and about which it decided
    /// nothing, return to their places. Where a place is occupied, the file gets a free name next to it.
    pub fn open(tree: &'a WorktreeContext<'a>) -> Result<DisplacedFiles<'a>, Error> {
        let open = |name: &str| Quarantine::open(&tree.scratch.join(name));
        let displaced = DisplacedFiles {
            tree,
            moved: open(MOVED_OUT_DIR)?,
            saved: open(SAVED_DIR)?,
            unneeded: Quarantine::create_unused(tree.scratch, "unneeded")?,
            inspected: BTreeMap::new(),
            committed_paths: BTreeSet::new(),
        };
        for quarantine in [&displaced.moved, &displaced.saved] {
            for path in quarantine.list_files()? {
                quarantine.remove_temp_copies(tree.dir, std::iter::once(&path));
                displaced.return_file(quarantine, &path)?;
            }
        }
        Ok(displaced)
    }

    /// Reads the files at `paths`. A caller then decides what happens to them: whatever another program writes
    /// from now on is no longer what it has decided about.
    pub fn inspect<'p>(&mut self, paths: impl IntoIterator<Item = &'p RepoPath>) {
        for path in paths {
            if let Some(content) = self.worktree_content(path) {
                self.inspected.insert(path.clone(), content);
            }
        }
    }

    /// Saves obstructions as [`preserve_obstructions`] does.
    pub fn preserve(&mut self, obstructions: Vec<Obstruction>) -> Result<Option<CommitId>, Error> {
        let paths: Vec<RepoPath> = obstructions.iter().map(|found| found.path.clone()).collect();
        self.inspect(&paths);
        let commit = preserve_obstructions(self.tree, obstructions)?;
        if commit.is_some() {
            self.committed_paths.extend(paths);
        }
        Ok(commit)
    }

    /// Removes the file at `path` from the worktree. It stays if another program has written it since it was
    /// inspected.
    pub fn discard(&self, path: &RepoPath) -> Result<(), Error> {
        fail_points::hit("undo.removing");
        if self.moved.move_in(self.tree.dir, path)? {
            fail_points::hit("undo.removed");
            if !self.settle_inspected(path)? {
                self.return_file(&self.moved, path)?;
            }
        }
        Ok(())
    }

    /// Moves the file of `path` from `quarantine` to the worktree. A file there is removed if it is as it was
    /// inspected, and otherwise gets a free name.
    pub fn replace(&self, path: &RepoPath, quarantine: &Quarantine) -> Result<(), Error> {
        let mut attempts = 1;
        loop {
            fail_points::hit("undo.replacing");
            self.clear_place(path)?;
            fail_points::hit("undo.displaced");
            match quarantine.move_out(self.tree.dir, path) {
                Err(_)
                    if attempts < MAX_ATTEMPTS
                        && obstruction_after_cleanup(self.tree.dir, path).is_some() =>
                {
                    attempts += 1;
                }
                result => return result,
            }
        }
    }

    /// Moves away what is in the place of `path`.
    fn clear_place(&self, path: &RepoPath) -> Result<(), Error> {
        match obstruction_after_cleanup(self.tree.dir, path) {
            Some(obstruction) if obstruction.is_replaceable => {
                if self.moved.move_in(self.tree.dir, path)? && !self.settle_inspected(path)? {
                    move_to_free_name(self.tree, &self.moved.file_path(path), path)?;
                }
                Ok(())
            }
            Some(obstruction) => rename_to_free_names(self.tree, &[obstruction]),
            None => Ok(()),
        }
    }

    /// Puts a file that was moved out with those that are decided about, if it is as it was inspected. Returns
    /// whether it is.
    fn settle_inspected(&self, path: &RepoPath) -> Result<bool, Error> {
        let is_committed = self.committed_paths.contains(path);
        let settled = if is_committed { &self.saved } else { &self.unneeded };
        if !self.is_as_inspected(&self.moved, path) || settled.contains(path) {
            return Ok(false);
        }
        settled.move_in(&self.moved.dir().join(FILES_DIR), path)
    }

    /// Keeps a copy of the file at `path`, which a caller is about to move out, until the commit that has it is
    /// recorded.
    pub fn copy_if_committed(&self, path: &RepoPath) -> Result<(), Error> {
        if self.committed_paths.contains(path) && !self.saved.contains(path) {
            self.saved.copy_in(self.tree.dir, path)?;
        }
        Ok(())
    }

    /// Saves a file that was moved from the worktree to `quarantine`, under a free name, if it is not as it was
    /// inspected. The quarantine keeps a copy.
    pub fn save_if_changed(&self, quarantine: &Quarantine, path: &RepoPath) -> Result<(), Error> {
        if !quarantine.contains(path) || self.is_as_inspected(quarantine, path) {
            return Ok(());
        }
        self.moved.copy_from_other(quarantine, path)?;
        move_to_free_name(self.tree, &self.moved.file_path(path), path)
    }

    /// Saves what other programs wrote, through open descriptors, to files that were moved out.
    pub fn finish(self) -> Result<(), Error> {
        for path in self.inspected.keys() {
            for quarantine in [&self.saved, &self.unneeded] {
                if quarantine.contains(path) && !self.is_as_inspected(quarantine, path) {
                    move_to_free_name(self.tree, &quarantine.file_path(path), path)?;
                }
            }
        }
        Ok(())
    }

    /// Removes the files of which the caller has recorded the commit.
    pub fn forget_saved(tree: &WorktreeContext<'_>) {
        drop(std::fs::remove_dir_all(tree.scratch.join(SAVED_DIR)));
    }

    /// Moves a file from `quarantine` back to its place. If something else is there, it gets a free name.
    fn return_file(&self, quarantine: &Quarantine, path: &RepoPath) -> Result<(), Error> {
        match quarantine.move_back(self.tree.dir, path)? {
            true => Ok(()),
            false => move_to_free_name(self.tree, &quarantine.file_path(path), path),
        }
    }

    /// Returns whether the file of `path` in `quarantine` is as it was inspected in the worktree.
    fn is_as_inspected(&self, quarantine: &Quarantine, path: &RepoPath) -> bool {
        let content = FileContent::read(self.tree.repo, &quarantine.file_path(path));
        content.is_some() && content.as_ref() == self.inspected.get(path)
    }

    /// Returns the content of the worktree's file at `path`; none if there is no readable file.
    fn worktree_content(&self, path: &RepoPath) -> Option<FileContent> {
        let file = path.to_fs_path(self.tree.dir);
        is_file_in_real_folder(self.tree.dir, path)
            .then(|| FileContent::read(self.tree.repo, &file))
            .flatten()
    }
}

/// Content of a file, to be compared with that of the same file later.
#[derive(PartialEq, Eq)]
enum FileContent {
    /// Bytes of a regular file, as the id of their blob.
    Bytes(Oid),
    /// Target of a symbolic link.
    Link(OsString),
}

impl FileContent {
    /// Reads a regular file or a symbolic link; none for anything else and for unreadable files.
    fn read(repo: &Repo, file: &Path) -> Option<FileContent> {
        let meta = file.symlink_metadata().ok()?;
        if meta.is_symlink() {
            return std::fs::read_link(file).ok().map(|target| FileContent::Link(target.into_os_string()));
        }
        let bytes = meta.is_file().then(|| std::fs::read(file).ok())??;
        repo.blob_id(&bytes).map(|id| FileContent::Bytes(id.oid()))
    }
}
