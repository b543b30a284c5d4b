//! Owns what kind of checkout a new lane is, which has to be settled before it has files.

use std::collections::BTreeSet;
use std::path::Path;

use super::{Error, Project};
use crate::git::{Oid, RepoPath, Scope, tree_files};
use crate::store::LockName;
use crate::store::records::LaneRecord;

/// Settles it for the worktree at `dir` of a commit, which has no files yet: with `cut`, it gets only what lies beside the files
/// that these globs are about. The caller holds the worktrees' lock.
pub(super) fn settle(
    project: &Project,
    dir: &Path,
    commit: Oid,
    cut: Option<&[String]>,
) -> Result<(), Error> {
    if project.settings.checkouts.pointers
        && let Some(why) = project.repo.keep_pointers(dir)?
    {
        project.listener.warn(format!("files of git-lfs are whole in this lane: {why}"));
    }
    if let Some(globs) = cut {
        project.repo.cut_worktree(dir, &folders(project, commit, globs)?)?;
    }
    Ok(())
}

/// The folders that these globs are about in a commit.
fn folders(project: &Project, commit: Oid, globs: &[String]) -> Result<Vec<RepoPath>, Error> {
    let files = tree_files(&project.repo, commit, &BTreeSet::new())?;
    let files: Vec<RepoPath> = files.into_iter().map(|(path, _)| path).collect();
    Ok(Scope::read(globs)?.folders(&files))
}

/// Has a lane that was cut for an earlier task show the folders of the scope that it has now, too; without one, all.
///
/// # Errors
/// When git will not.
pub(crate) fn widen(project: &Project, lane: &LaneRecord) -> Result<(), Error> {
    if !is_cut_apart(project, lane) {
        return Ok(());
    }
    let scope = Some(&lane.scope).filter(|scope| !scope.is_empty());
    let folders = scope.map(|globs| folders(project, lane.start, globs)).transpose()?;
    let _lock = project.store.locks().take(&LockName::Worktrees)?;
    Ok(project.repo.widen_worktree(&lane.path, folders.as_deref())?)
}

/// Whether a lane was cut for itself, and has what it was cut by.
pub(crate) fn is_cut(project: &Project, lane: &LaneRecord) -> bool {
    !lane.scope.is_empty() && is_cut_apart(project, lane)
}

/// Whether a lane is cut, and not as the main checkout is.
fn is_cut_apart(project: &Project, lane: &LaneRecord) -> bool {
    let repo = &project.repo;
    repo.cut_of(&lane.path).is_some()
        && !repo.main_worktree().is_some_and(|main| repo.are_cut_alike(main, &lane.path))
}
