//! Return from an open preview to the branch that it was entered from: whether that branch is checked out
//! elsewhere.

use std::path::{Path, PathBuf};

use proq_git::Repo;
use proq_git::base::head::Head;
use proq_git::worktrees::worktree::WorktreeList;
use proq_store::records::preview::PreviewRecord;

use crate::lane::Error;

/// Returns another worktree that is now on the branch a preview was entered from; none if one was on it
/// already at that time. Git allows a branch in one worktree only: a commit in one of two such worktrees
/// appears as reversed in the other.
///
/// # Errors
/// Fails when the worktrees cannot be listed.
pub(crate) fn origin_branch_elsewhere(repo: &Repo, open: &PreviewRecord) -> Result<Option<PathBuf>, Error> {
    let Head::Branch(origin_branch) = &open.previous_head else { return Ok(None) };
    let main = repo.main_worktree();
    if open.is_branch_shared {
        return Ok(None);
    }
    existing_worktree_on_branch(repo, origin_branch, main)
}

/// Returns a worktree besides `except` that is on `branch` and whose folder exists; none without one.
///
/// # Errors
/// Fails when the worktrees cannot be listed.
pub(crate) fn existing_worktree_on_branch(
    repo: &Repo,
    branch: &str,
    except: Option<&Path>,
) -> Result<Option<PathBuf>, Error> {
    let worktrees = WorktreeList::read(repo)?;
    let branch = &repo.resolve_symbolic_branch(branch);
    let mut others = worktrees.on_branch(branch).filter(|other| Some(other.path.as_path()) != except);
    Ok(others.find(|other| other.path.exists()).map(|other| other.path.clone()))
}
