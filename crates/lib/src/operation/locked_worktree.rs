//! A worktree whose transition lock is held: the only way to a transition, a snapshot, a clear or a restore.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use proq_git::base::folders;
use proq_git::checkout::{preconditions, quarantine};
use proq_git::history::commit::NewCommit;
use proq_git::index::{index_flags, sparse_entries};
use proq_git::merge::resolve;
use proq_git::repository::objects::TempObjectStore;
use proq_git::repository::worktree_context::WorktreeContext;
use proq_git::status::local_state::LocalState;
use proq_git::status::worktree_scan::WorktreeScan;
use proq_git::status::{status_query, untracked_folders};
use proq_git::{CommitId, RepoPath};
use proq_store::locks::lock::LockGuard;
use proq_store::operations::scratch::ScratchDir;

use crate::errors::Error;
use crate::project::Project;

/// A worktree that no other git-proq process changes while this value exists.
#[must_use]
pub struct LockedWorktree<'a> {
    project: &'a Project,
    dir: PathBuf,
    git_dir: PathBuf,
    scratch: OnceCell<ScratchDir>,
    _lock: LockGuard,
}

impl<'a> LockedWorktree<'a> {
    /// Creates the value for the worktree at `dir`, whose transition lock is `lock`.
    pub fn new(project: &'a Project, dir: &Path, git_dir: PathBuf, lock: LockGuard) -> LockedWorktree<'a> {
        LockedWorktree { project, dir: dir.to_owned(), git_dir, scratch: OnceCell::new(), _lock: lock }
    }

    /// Returns the top folder of the worktree.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the git directory of the worktree.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Fails where a transition between two commits would be refused, without changing anything.
    pub(crate) fn check_transition(&self, from: CommitId, to: CommitId) -> Result<(), Error> {
        self.check_transition_to_temp(from, to, None)
    }

    /// Checks a transition as [`LockedWorktree::check_transition`] does, for an undo that restores files
    /// together with the local state `incoming_state`.
    pub(crate) fn check_undo_transition(
        &self,
        from: CommitId,
        to: CommitId,
        incoming_state: &LocalState,
    ) -> Result<(), Error> {
        self.with_temp_context("check", |tree| {
            Ok(preconditions::preflight_transition(tree, from, to, None, incoming_state)?)
        })
    }

    /// Checks a transition as [`LockedWorktree::check_transition`] does, to a commit that may exist only in
    /// `temp_objects`.
    pub(crate) fn check_transition_to_temp(
        &self,
        from: CommitId,
        to: CommitId,
        temp_objects: Option<&TempObjectStore>,
    ) -> Result<(), Error> {
        self.with_temp_context("check", |tree| {
            Ok(preconditions::preflight_transition(tree, from, to, temp_objects, &LocalState::default())?)
        })
    }

    /// Checks whether a transition will be possible after the local changes of this worktree and the
    /// untracked files `parked_paths` have been parked.
    pub(crate) fn check_transition_once_parked(
        &self,
        commits: (CommitId, CommitId),
        parked_paths: &HashSet<RepoPath>,
    ) -> Result<(), Error> {
        self.with_temp_context("check", |tree| {
            Ok(preconditions::preflight_once_clean(tree, commits, parked_paths, None)?)
        })
    }

    /// Checks whether a transition will be possible after all uncommitted changes of this worktree have been
    /// saved and parked. `to` may exist only in `temp_objects`.
    pub(crate) fn check_transition_once_saved(
        &self,
        from: CommitId,
        to: CommitId,
        temp_objects: Option<&TempObjectStore>,
    ) -> Result<(), Error> {
        let status = status_query::status(&self.project.repo, &self.dir, true)?;
        let untracked = status.untracked().filter(|entry| !entry.is_nested_repo);
        let saved_paths: HashSet<RepoPath> = untracked.map(|entry| entry.path.clone()).collect();
        self.with_temp_context("check", |tree| {
            Ok(preconditions::preflight_once_clean(tree, (from, to), &saved_paths, temp_objects)?)
        })
    }

    /// Scans the worktree, for all callers that need its state while the lock is held.
    pub fn scan(&self) -> WorktreeScan {
        WorktreeScan::scan(&self.project.repo, &self.dir, &self.git_dir)
    }

    /// Passes a copy of an index file to `save`.
    pub fn copy_index<T>(
        &self,
        index: &Path,
        save: impl FnOnce(&Path) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.with_temp_context("copy", |tree| {
            let copy = tree.raw_index();
            match std::fs::copy(index, &copy) {
                // A missing index is the same as an empty one.
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => std::fs::write(&copy, ""),
                copied => copied.map(drop),
            }
            .map_err(Error::io("copy", index))?;
            save(&copy)
        })
    }

    /// Returns whether the index here has the same user-set flags as another index of this worktree.
    pub(crate) fn has_same_user_flags(&self, other: &Path) -> Result<bool, Error> {
        let index = self.git_dir.join("index");
        self.with_temp_context("flags", |tree| Ok(index_flags::has_same_manual_flags(tree, &index, other)?))
    }

    /// Compares user-set flags as [`LockedWorktree::has_same_user_flags`] does, but ignores entries that the
    /// index of this worktree lacks.
    pub(crate) fn has_same_flags_of_present_entries(&self, other: &Path) -> Result<bool, Error> {
        let index = self.git_dir.join("index");
        self.with_temp_context("flags", |tree| Ok(index_flags::keeps_manual_flags(tree, &index, other)?))
    }

    /// Returns whether two index files of this worktree flag the same entries as assume-unchanged and
    /// skip-worktree.
    pub fn has_same_flags(&self, first: &Path, second: &Path) -> Result<bool, Error> {
        Ok(index_flags::has_same_flags(&self.project.repo, &self.dir, first, second)?)
    }

    /// Removes `folders` and the folders above them, as far as they are empty and not among `retained`.
    pub(crate) fn remove_empty_folders(&self, folders: &[RepoPath], retained: &[RepoPath]) {
        let is_retained =
            |folder: &RepoPath| retained.iter().any(|k| k == folder || k.parents().any(|up| up == *folder));
        for folder in folders {
            let chain =
                std::iter::once(folder.clone()).chain(folder.parents().collect::<Vec<_>>().into_iter().rev());
            for up in chain.filter(|up| !up.as_bytes().is_empty()).take_while(|up| !is_retained(up)) {
                if !folders::remove_if_empty(&up.to_fs_path(&self.dir)) {
                    break;
                }
            }
        }
    }

    /// Returns the empty folders here, which git does not record. The caller has checked that nothing else
    /// differs from HEAD.
    pub(crate) fn find_empty_folders(&self, scan: &WorktreeScan) -> Result<Vec<RepoPath>, Error> {
        self.with_temp_context("empty", |tree| Ok(untracked_folders::empty_folders(tree, scan)?))
    }

    /// Returns whether a sparse checkout shows or leaves out other files than its patterns select. Git undoes
    /// such deviations on its next move to another commit, and only a snapshot restores them.
    pub(crate) fn has_sparse_deviations(&self) -> Result<bool, Error> {
        self.with_temp_context("odd", |tree| Ok(sparse_entries::deviates_from_patterns(tree)?))
    }

    /// Returns whether index entries have user-set flags. When git moves to a commit without the files of
    /// such entries, it drops the flags, and only a snapshot restores them.
    pub(crate) fn has_user_flags(&self) -> Result<bool, Error> {
        self.with_temp_context("flags", |tree| Ok(index_flags::has_manual_flags(tree)?))
    }

    /// Returns the user-set flags of index entries of this worktree; with `shared_with`, only the flags that
    /// this other index has too.
    pub(crate) fn user_flags(&self, shared_with: Option<&Path>) -> Result<LocalState, Error> {
        Ok(LocalState::read_manual_flags(&self.project.repo, &self.dir, shared_with)?)
    }

    /// Moves parked files back to their paths, where those are free.
    pub fn restore_parked_files(&self, parked_dir: &Path, paths: &[RepoPath]) -> Result<(), Error> {
        Ok(quarantine::restore_parked_files(&self.dir, parked_dir, paths)?)
    }

    /// Creates folders again whose path a file had occupied.
    pub(crate) fn create_folders(&self, folders: &[RepoPath]) {
        for folder in folders {
            // If another file is at the path now, it stays.
            drop(std::fs::create_dir_all(folder.to_fs_path(&self.dir)));
        }
    }

    /// Returns the files and folders here that git ignores.
    pub fn ignored_paths(&self, scan: &WorktreeScan) -> Result<Vec<RepoPath>, Error> {
        Ok(scan.ignored_paths(&self.project.repo, &self.dir)?)
    }

    /// Returns the paths that remain in this worktree whatever commit is shown: ignored ones and nested
    /// repositories. Git would treat the files of a nested repository as untracked once a commit has a
    /// tracked file in its folder.
    pub(crate) fn ignored_and_nested(&self, scan: &WorktreeScan) -> Result<Vec<RepoPath>, Error> {
        let repo = &self.project.repo;
        let mut all = self.ignored_paths(scan)?;
        all.extend(scan.nested_repositories(repo, &self.dir)?);
        Ok(all)
    }

    /// Returns the edited files that index flags hide from git.
    pub fn hidden_edits(&self) -> Result<Vec<RepoPath>, Error> {
        self.with_temp_context("hidden", |tree| {
            Ok(index_flags::hidden_edits(tree.repo, tree.dir, &tree.git_dir, tree.scratch)?)
        })
    }

    /// Returns the paths with edits that a flag hides, and files that are missing although git was configured
    /// to skip them.
    pub fn hidden_changes(&self) -> Result<Vec<RepoPath>, Error> {
        self.with_temp_context("hidden", |tree| {
            Ok(index_flags::hidden_changes(tree.repo, tree.dir, &tree.git_dir, tree.scratch)?)
        })
    }

    /// Writes a commit on top of `head` that saves everything here that git does not ignore, including
    /// conflicts.
    pub(crate) fn commit_worktree_files(&self, head: CommitId, message: &str) -> Result<CommitId, Error> {
        self.with_temp_context("laid-out", |tree| {
            let written = resolve::capture_worktree_contents(tree)?;
            Ok(NewCommit { tree: written.tree, parents: &[head], message }.write_as_proq(tree.repo, None)?)
        })
    }

    /// Writes everything here that git does not ignore as a tree, including conflicts.
    pub(crate) fn write_worktree_tree(&self) -> Result<resolve::WorktreeContents, Error> {
        self.with_temp_context("laid-out", |tree| Ok(resolve::capture_worktree_contents(tree)?))
    }

    /// Returns the tracked files with edits that `git status` does not show.
    pub fn edits_hidden_from_status(&self) -> Result<Vec<RepoPath>, Error> {
        self.with_temp_context("not-shown", |tree| {
            let status = status_query::status(tree.repo, tree.dir, false)?;
            Ok(status_query::split_flagged_edits(tree.repo, tree.dir, tree.scratch, &status)?.1)
        })
    }

    /// Calls `work` with this worktree's context and a temporary folder of the given name, which is removed
    /// afterwards.
    pub(crate) fn with_temp_context<T>(
        &self,
        temp_name: &str,
        work: impl FnOnce(&WorktreeContext<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.scratch.get().is_none() {
            drop(self.scratch.set(self.project.store.layout().create_scratch()?));
        }
        let Some(scratch) = self.scratch.get() else { unreachable!("it was just set") };
        let dir = scratch.create_subdir(temp_name)?;
        let result = self.with_context(&dir, work);
        drop(std::fs::remove_dir_all(&dir));
        result
    }

    /// Calls `work` with this worktree's context, with `scratch` as the folder for intermediate files.
    pub(crate) fn with_context<T>(
        &self,
        scratch: &Path,
        work: impl FnOnce(&WorktreeContext<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let warn = |text: String| self.project.listener.warn(text);
        work(&WorktreeContext {
            repo: &self.project.repo,
            dir: &self.dir,
            git_dir: self.git_dir.clone(),
            scratch,
            off_limits: self.project.worktrees_folder_below(&self.dir),
            warn: &warn,
        })
    }
}
