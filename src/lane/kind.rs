//! Owns what kind of checkout a new lane is, which has to be settled before it has files.

use std::collections::BTreeSet;
use std::path::Path;

use super::{Error, Project};
use crate::git::{Oid, RepoPath, Scope, tree_files};
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
        let files = tree_files(&project.repo, commit, &BTreeSet::new())?;
        let files: Vec<RepoPath> = files.into_iter().map(|(path, _)| path).collect();
        project.repo.cut_worktree(dir, &Scope::read(globs)?.folders(&files))?;
    }
    Ok(())
}

/// Whether a lane was cut for itself, and not as the main checkout is.
pub(crate) fn is_cut(project: &Project, lane: &LaneRecord) -> bool {
    let repo = &project.repo;
    !lane.scope.is_empty()
        && repo.cut_of(&lane.path).is_some()
        && !repo.main_worktree().is_some_and(|main| repo.are_cut_alike(main, &lane.path))
}
