//! Checkout mode of a new lane, configured before it has files: sparse checkout by scope, and git-lfs
//! pointers instead of file contents.

use std::collections::BTreeSet;
use std::path::Path;

use proq_base::config::choices::LfsContent;
use proq_git::history::tree_diff::tree_files;
use proq_git::status::scope::Scope;
use proq_git::{CommitId, Repo, RepoPath};
use proq_store::locks::lock::LockName;
use proq_store::records::lane::LaneRecord;

use crate::lane::{Error, Project};

/// Configures the worktree at `dir` for a commit, before it has files. With `sparse_globs`, the worktree is a
/// sparse checkout of the folders that contain files matching these globs. The caller holds the lock on
/// worktrees.
pub(crate) fn configure_checkout(
    project: &Project,
    dir: &Path,
    commit: CommitId,
    sparse_globs: Option<&[String]>,
) -> Result<(), Error> {
    if project.settings.lane_checkout.lfs == LfsContent::Pointer
        && let Some(reason) = project.repo.keep_lfs_pointers(dir)?
    {
        project.listener.warn(format!("files of git-lfs are downloaded in this lane: {reason}"));
    }
    if let Some(globs) = sparse_globs {
        project.repo.set_sparse_folders(dir, &scope_folders(&project.repo, commit, globs)?)?;
    }
    Ok(())
}

/// Returns the folders of a commit that a scope of these globs needs.
fn scope_folders(repo: &Repo, commit: CommitId, globs: &[String]) -> Result<Vec<RepoPath>, Error> {
    let files = tree_files(repo, commit, &BTreeSet::new())?;
    let files: Vec<RepoPath> = files.into_iter().map(|(path, _)| path).collect();
    Ok(Scope::parse(globs)?.containing_folders(&files))
}

/// Widens the sparse checkout of a lane, which was made for an earlier task, by the folders of its current
/// scope. A lane without a scope gets all folders.
///
/// # Errors
/// Fails when git cannot change the sparse checkout.
pub(crate) fn widen_sparse_cone(project: &Project, lane: &LaneRecord) -> Result<(), Error> {
    if !has_own_sparse_cone(&project.repo, lane) {
        return Ok(());
    }
    let scope = Some(&lane.scope).filter(|scope| !scope.is_empty());
    let folders = scope.map(|globs| scope_folders(&project.repo, lane.start, globs)).transpose()?;
    let _lock = project.store.locks().acquire(&LockName::WorktreeList)?;
    Ok(project.repo.widen_sparse_checkout(&lane.path, folders.as_deref())?)
}

/// Returns whether a lane has a scope and a sparse checkout that was made for it.
pub fn is_sparse_by_scope(repo: &Repo, lane: &LaneRecord) -> bool {
    !lane.scope.is_empty() && has_own_sparse_cone(repo, lane)
}

/// Returns whether a lane has a sparse checkout that differs from the main checkout's.
fn has_own_sparse_cone(repo: &Repo, lane: &LaneRecord) -> bool {
    repo.sparse_patterns(&lane.path).is_some()
        && !repo.main_worktree().is_some_and(|main| repo.have_same_sparse_patterns(main, &lane.path))
}
