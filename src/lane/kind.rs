//! Owns what kind of checkout a new lane is, which has to be settled before it has files.

use std::path::Path;

use super::{Error, Project};

/// Settles it for the worktree at `dir`, which has no files yet. The caller holds the worktrees' lock.
pub(super) fn settle(project: &Project, dir: &Path) -> Result<(), Error> {
    if project.settings.checkouts.pointers
        && let Some(why) = project.repo.keep_pointers(dir)?
    {
        project.listener.warn(format!("files of git-lfs are whole in this lane: {why}"));
    }
    Ok(())
}
