//! Status of a worktree: the paths that differ from HEAD, and how.

use std::collections::HashSet;

use crate::RepoPath;

/// Kind of difference between a worktree and HEAD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusKind {
    /// Path known to git and changed in the index, the worktree or both.
    Tracked {
        /// Whether the index differs from HEAD.
        staged: bool,
        /// Whether the worktree differs from the index.
        unstaged: bool,
        /// Whether the file is missing in the worktree.
        deleted: bool,
    },
    /// Path with conflict stages in the index.
    Unmerged,
    /// Path that is not known to git and not ignored. git prints an embedded repository with a trailing `/`.
    Untracked,
}

/// One path of a worktree that differs from HEAD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusEntry {
    /// Kind of the difference.
    pub kind: StatusKind,
    /// Path from the top of the worktree, without the trailing `/` of an embedded repository.
    pub path: RepoPath,
    /// Whether the path is an embedded repository, which git cannot add as files.
    pub is_nested_repo: bool,
    /// Whether the path is a submodule.
    pub is_submodule: bool,
}

impl StatusEntry {
    /// Returns whether a submodule differs only in its content or checked-out commit, without a staged
    /// change. Such a change stays in the submodule's folder, whatever the index records.
    pub fn is_only_inside_submodule(&self) -> bool {
        self.is_submodule && !matches!(self.kind, StatusKind::Tracked { staged: true, .. })
    }
}

/// Status of a worktree: all paths that differ from HEAD.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorktreeStatus {
    /// Entries in git's order.
    pub entries: Vec<StatusEntry>,
}

impl WorktreeStatus {
    /// Returns whether the worktree has no difference from HEAD.
    pub fn is_clean(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns entries with changes to tracked files.
    pub fn tracked(&self) -> impl Iterator<Item = &StatusEntry> {
        self.entries.iter().filter(|e| matches!(e.kind, StatusKind::Tracked { .. }))
    }

    /// Returns untracked files, including embedded repositories.
    pub fn untracked(&self) -> impl Iterator<Item = &StatusEntry> {
        self.entries.iter().filter(|e| e.kind == StatusKind::Untracked)
    }

    /// Returns entries whose index content differs from HEAD.
    pub fn staged(&self) -> impl Iterator<Item = &StatusEntry> {
        self.entries.iter().filter(|e| matches!(e.kind, StatusKind::Tracked { staged: true, .. }))
    }

    /// Returns the paths that have conflict stages in the index.
    pub fn unmerged(&self) -> Vec<RepoPath> {
        self.entries.iter().filter(|e| e.kind == StatusKind::Unmerged).map(|e| e.path.clone()).collect()
    }

    /// Returns all paths, each once.
    pub fn paths(&self) -> Vec<RepoPath> {
        // A file that was removed from the index but still exists is both removed and untracked.
        let mut listed = HashSet::new();
        self.entries.iter().filter(|e| listed.insert(&e.path)).map(|e| e.path.clone()).collect()
    }
}
