//! Owns what the record of an open preview says about the way back to the branch that it was entered from.

use std::path::{Path, PathBuf};

use super::undo::TakeBack;
use super::{Error, Project, UndoError};
use crate::git::{Head, RefMove, WorktreeList};
use crate::store::Record;
use crate::store::records::{PreviewRecord, Step};

/// Another worktree that is on the branch which a preview was entered from, though none was by then. Git lets nobody check out a
/// branch in two worktrees: what one of them commits shows as reversed in the other. None where there is none.
///
/// # Errors
/// When the worktrees cannot be listed.
pub(crate) fn home_elsewhere(project: &Project, open: &PreviewRecord) -> Result<Option<PathBuf>, Error> {
    let Head::Branch(home) = &open.came_from else { return Ok(None) };
    let main = project.repo.main_worktree();
    if open.is_shared {
        return Ok(None);
    }
    other_worktree(project, home, main)
}

/// A worktree beside the main checkout that is on a branch and whose folder is there.
///
/// # Errors
/// When the worktrees cannot be listed.
pub(crate) fn other_worktree(
    project: &Project,
    branch: &str,
    main: Option<&Path>,
) -> Result<Option<PathBuf>, Error> {
    let worktrees = WorktreeList::read(&project.repo)?;
    let branch = &project.repo.branch_behind(branch);
    let mut others = worktrees.on_branch(branch).filter(|other| Some(other.path.as_path()) != main);
    Ok(others.find(|other| other.path.exists()).map(|other| other.path.clone()))
}

impl TakeBack<'_, '_> {
    /// Refuses to take back that a preview was entered, where that would not lead back: the branch is checked out elsewhere by now, or
    /// the user's changes have been edited since, so that the preview waits with others than this operation set aside.
    pub(super) fn refuse_closed_way(&self, step: &Step) -> Result<(), Error> {
        let project = self.op.project;
        let path = project.store.layout().preview();
        let Some(open) = PreviewRecord::find(&path)? else { return Ok(()) };
        let Step::Tree { dir, mv: RefMove::Switch { from, .. }, .. } = step else { return Ok(()) };
        if *from != open.came_from {
            return Ok(());
        }
        if let Some(id) = &open.snapshot
            && project.snap_without_record(id)?.is_some()
        {
            return Err(UndoError::Unrecorded.into());
        }
        if self.is_on(dir, from)? {
            return Ok(());
        }
        if let (Head::Branch(branch), Some(dir)) = (from, home_elsewhere(project, &open)?) {
            return Err(UndoError::CheckedOut { branch: branch.clone(), dir }.into());
        }
        let mut entered = None;
        for step in self.entry.standing() {
            // What was set aside may get another name within the operation.
            if let Step::File { path: at, old, new: Some(text) } = step
                && *at == self.op.below_store(&path)
                && (old.is_none() || entered.is_some())
            {
                entered = toml::from_str::<PreviewRecord>(text).ok();
            }
        }
        match entered {
            Some(entered) if entered.snapshot != open.snapshot => Err(UndoError::Replaced.into()),
            _ => Ok(()),
        }
    }
}
