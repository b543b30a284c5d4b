//! Undo of the files that a transition has written: git's files are moved to the scratch folder, and the
//! originals are restored.

use std::collections::HashSet;

use super::{AppliedChanges, NEWLY_SHOWN_LIST, remove_new_folders};
use crate::base::folders::exists_in_real_folder;
use crate::base::path_list;
use crate::checkout::displaced_files::DisplacedFiles;
use crate::checkout::obstructions::{Obstruction, obstruction_after_cleanup};
use crate::checkout::partial_files::is_missing_or_git_written;
use crate::checkout::quarantine::{differing_files, matches_blob};
use crate::history::tree_diff::{TreeChange, TreeFile, tree_attribute_files};
use crate::repository::worktree_context::WorktreeContext;
use crate::{CommitId, Error, RepoPath};

impl AppliedChanges<'_> {
    /// Returns obstructions at the paths of files that are restored: files that are neither the original nor
    /// what git was writing. If git cannot be run, only a file that is byte for byte the new content counts
    /// as written by git.
    fn find_obstructions(&self, tree: &WorktreeContext<'_>) -> Vec<Obstruction> {
        let is_known = |obstruction: &Obstruction, change: &TreeChange| {
            let is_from = |side| {
                is_missing_or_git_written(tree, &obstruction.path, side, self.target_commit_or_tree)
                    .unwrap_or(false)
            };
            obstruction.is_replaceable
                && (self.replaced_files.is_same_or_identical(self.dir, &obstruction.path)
                    || change.new.is_some_and(is_from))
        };
        let returning = self.changes.iter().filter(|c| self.replaced_files.contains(&c.path));
        let obstructions =
            returning.filter_map(|change| Some((obstruction_after_cleanup(self.dir, &change.path)?, change)));
        obstructions.filter(|(found, change)| !is_known(found, change)).map(|(found, _)| found).collect()
    }

    /// Undoes all changes by renames: removes the new files that git wrote, and restores the replaced
    /// originals. A file with other content than git's belongs to the user and is not touched.
    ///
    /// # Errors
    /// [`Error::RestoreFailed`] when the undo failed too. The error names the folder of the files, which are
    /// not deleted then.
    pub fn undo(self, tree: &WorktreeContext<'_>) -> Result<(), Error> {
        self.undo_with(tree, |_, obstructions| Ok(((), obstructions)))
    }

    /// Undoes all changes, and first moves the user's files out of the way of the originals. Returns a commit
    /// with the moved files, as far as a commit can hold them.
    ///
    /// # Errors
    /// [`Error::RestoreFailed`] when the undo failed too.
    pub(crate) fn undo_and_save(self, tree: &WorktreeContext<'_>) -> Result<Option<CommitId>, Error> {
        self.undo_with(tree, |displaced, obstructions| Ok((displaced.preserve(obstructions)?, Vec::new())))
    }

    /// Undoes all changes. `save` receives the obstructions; it returns its outcome and those that stay.
    fn undo_with<T>(
        self,
        tree: &WorktreeContext<'_>,
        save: impl FnOnce(&mut DisplacedFiles<'_>, Vec<Obstruction>) -> Result<(T, Vec<Obstruction>), Error>,
    ) -> Result<T, Error> {
        let undo = || {
            let mut displaced = DisplacedFiles::open(tree)?;
            displaced.inspect(self.changes.iter().map(|change| &change.path));
            self.remove_new_files(tree, &displaced)?;
            let (outcome, staying) = save(&mut displaced, self.find_obstructions(tree))?;
            self.restore_replaced(tree, &displaced, &staying)?;
            displaced.finish().map(|()| outcome)
        };
        undo().map_err(|source| self.restore_failed_error(tree, source))
    }

    /// Returns the error of an undo that failed because of `source`; it names the scratch folder.
    pub(crate) fn restore_failed_error(&self, tree: &WorktreeContext<'_>, source: Error) -> Error {
        Error::RestoreFailed {
            dir: self.dir.to_owned(),
            saved_dir: tree.scratch.to_owned(),
            source: Box::new(source),
        }
    }

    /// Removes the new files that git wrote from the worktree. Files with other content than git's are not
    /// touched.
    fn remove_new_files(
        &self,
        tree: &WorktreeContext<'_>,
        displaced: &DisplacedFiles<'_>,
    ) -> Result<(), Error> {
        let absent: HashSet<RepoPath> =
            path_list::read_path_list(&tree.scratch.join(NEWLY_SHOWN_LIST))?.into_iter().collect();
        let is_new = |c: &&TreeChange| c.old.is_none() || absent.contains(&c.path);
        let expected: Vec<(RepoPath, TreeFile)> = self
            .changes
            .iter()
            .filter(|c| is_new(c) && exists_in_real_folder(self.dir, &c.path))
            .filter_map(|c| Some((c.path.clone(), c.new?)))
            .collect();
        // On a full disk git cannot be run. Then only a file that is byte for byte git's counts as git's.
        let foreign = self
            .find_foreign(tree, &expected)
            .map(|foreign| self.without_truncated(tree, foreign, &expected));
        let foreign = foreign.unwrap_or_else(|_| {
            let has_changed = |(path, side): &&(RepoPath, TreeFile)| {
                !matches_blob(tree.repo, &path.to_fs_path(self.dir), *side)
            };
            expected.iter().filter(has_changed).map(|(path, _)| path.clone()).collect()
        });
        for (path, _) in expected.iter().filter(|(p, _)| !foreign.contains(p)) {
            displaced.discard(path)?;
        }
        remove_new_folders(tree);
        Ok(())
    }

    /// Restores the replaced files, except where `obstructions` are in the way.
    fn restore_replaced(
        &self,
        tree: &WorktreeContext<'_>,
        displaced: &DisplacedFiles<'_>,
        obstructions: &[Obstruction],
    ) -> Result<(), Error> {
        let is_obstructed = |path: &RepoPath| {
            obstructions.iter().any(|s| s.path == *path || path.parents().any(|up| up == s.path))
        };
        let mut edited = Vec::new();
        for change in self.changes.iter().filter(|c| self.replaced_files.contains(&c.path)) {
            if self.replaced_files.is_same_file(self.dir, &change.path) {
                continue;
            }
            if !is_obstructed(&change.path) {
                displaced.replace(&change.path, &self.replaced_files)?;
            } else if change
                .old
                .is_some_and(|side| !self.replaced_files.matches_blob(tree.repo, &change.path, side))
            {
                // The original was edited, and another file was then created in its place: both are retained.
                edited.push(change.path.clone());
            }
        }
        match edited.is_empty() {
            true => Ok(()),
            false => Err(Error::Raced { dir: self.dir.to_owned(), raced_paths: edited }),
        }
    }

    /// Returns `paths` without those that a killed git was writing, which hold only the beginning of their
    /// content.
    fn without_truncated(
        &self,
        tree: &WorktreeContext<'_>,
        mut paths: Vec<RepoPath>,
        expected: &[(RepoPath, TreeFile)],
    ) -> Vec<RepoPath> {
        paths.retain(|path| {
            let side = expected.iter().find(|(p, _)| p == path).map(|(_, side)| *side);
            !side.is_some_and(|side| {
                is_missing_or_git_written(tree, path, side, self.target_commit_or_tree).unwrap_or(false)
            })
        });
        paths
    }

    /// Returns the paths of `expected`, new files of the transition, whose content on disk is not what git
    /// wrote.
    fn find_foreign(
        &self,
        tree: &WorktreeContext<'_>,
        expected: &[(RepoPath, TreeFile)],
    ) -> Result<Vec<RepoPath>, Error> {
        let index_file = tree.scratch.join("check-arrived");
        let paths = || expected.iter().map(|(p, _)| p);
        let attributes = || tree_attribute_files(tree.repo, self.target_commit_or_tree, paths());
        differing_files(tree.repo, &tree.git_dir, self.dir, &index_file, expected, &attributes)
    }
}
