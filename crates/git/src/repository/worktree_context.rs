//! Worktree that is about to change, with what a change needs: its folders, its repository, a way to warn.

use std::path::{Path, PathBuf};

use crate::{Repo, RepoPath};

/// Working tree that is about to change. The caller holds its transition lock.
pub struct WorktreeContext<'a> {
    /// Repository of the worktree.
    pub repo: &'a Repo,
    /// Top of the worktree.
    pub dir: &'a Path,
    /// Git directory of the worktree.
    pub git_dir: PathBuf,
    /// Existing empty folder below `proq/` for temporary files.
    pub scratch: &'a Path,
    /// Folder of the worktree that contains other worktrees, to which no commit may write.
    pub off_limits: Option<RepoPath>,
    /// Function that receives warnings for the user.
    pub warn: &'a dyn Fn(String),
}

impl WorktreeContext<'_> {
    /// Returns the path, in the scratch folder, of the copy of the worktree's index that belongs to a
    /// snapshot.
    pub fn raw_index(&self) -> PathBuf {
        self.scratch.join("raw-index")
    }
}
