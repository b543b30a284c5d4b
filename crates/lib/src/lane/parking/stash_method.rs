//! The git command that restores a snapshot with conflicts.

use proq_git::history::tree_diff;
use proq_git::{CommitId, Repo, RepoPath};

/// Git command that restores a snapshot which conflicts with the worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StashMethod {
    /// `git stash apply`: onto the current contents, with conflict markers.
    Apply,
    /// `git stash branch`: on a new branch that starts at the snapshot's base. Git does not overwrite an
    /// existing untracked file; on its own base the snapshot always applies.
    Branch,
}

impl StashMethod {
    /// Returns the command; the caller appends the snapshot's commit.
    pub fn command(self) -> &'static str {
        match self {
            StashMethod::Apply => "git stash apply",
            StashMethod::Branch => "git stash branch restored",
        }
    }

    /// Returns the clause that describes the outcome of the command.
    pub fn purpose(self) -> &'static str {
        match self {
            StashMethod::Apply => "and resolve",
            StashMethod::Branch => "on a new branch",
        }
    }
}

/// Chooses the git command for a snapshot, given by its commit, that conflicts at `conflicts`.
pub fn choose_stash_method(repo: &Repo, commit: Option<CommitId>, conflicts: &[RepoPath]) -> StashMethod {
    // The third parent of a stash commit has the untracked files.
    let untracked_commit = commit.and_then(|commit| repo.require_commit(&format!("{commit}^3")).ok());
    let untracked_files =
        untracked_commit.and_then(|tree| tree_diff::tree_paths(repo, tree).ok()).unwrap_or_default();
    let is_at_or_below =
        |path: &RepoPath, other: &RepoPath| path == other || path.parents().any(|up| up == *other);
    let touches_untracked = |path: &RepoPath| {
        untracked_files.iter().any(|file| is_at_or_below(file, path) || is_at_or_below(path, file))
    };
    if conflicts.iter().any(touches_untracked) { StashMethod::Branch } else { StashMethod::Apply }
}
