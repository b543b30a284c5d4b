//! Return from an open preview to the branch that it was entered from: whether that branch is checked out
//! elsewhere, and whether undo may return.

use std::path::{Path, PathBuf};

use proq_git::Repo;
use proq_git::base::head::{Head, RefMove};
use proq_git::worktrees::worktree::WorktreeList;
use proq_store::base::record::Record;
use proq_store::records::preview::PreviewRecord;
use proq_store::records::step::Step;

use super::entry_revert::EntryRevert;
use crate::lane::Error;
use crate::lane::errors::undo_error::UndoError;

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

impl EntryRevert<'_, '_> {
    /// Refuses to undo the operation that entered a preview if the undo would not restore the earlier state.
    /// Either the branch is checked out elsewhere by now, or the preview holds other changes than the
    /// operation parked, because the user edited them since.
    pub(crate) fn require_preview_return(&self, step: &Step) -> Result<(), Error> {
        let project = self.op.project;
        let path = project.store.layout().preview_record();
        let Some(open) = PreviewRecord::load_if_exists(&path)? else { return Ok(()) };
        let Step::Checkout { dir, ref_move: RefMove::Switch { from, .. }, .. } = step else { return Ok(()) };
        if *from != open.previous_head {
            return Ok(());
        }
        if let Some(id) = &open.parked_snapshot
            && project.orphaned_snap_commit(id)?.is_some()
        {
            return Err(UndoError::PreviewRecordMissing.into());
        }
        if self.has_head(dir, from)? {
            return Ok(());
        }
        if let (Head::Branch(branch), Some(dir)) = (from, origin_branch_elsewhere(&project.repo, &open)?) {
            return Err(UndoError::CheckedOutElsewhere { branch: branch.clone(), dir }.into());
        }
        let mut entered_preview = None;
        for step in self.entry.applied_steps() {
            // An operation may rename the changes that it set aside.
            if let Step::WriteRecord { path: record_path, old, new: Some(text) } = step
                && *record_path == self.op.store_relative_path(&path)
                && (old.is_none() || entered_preview.is_some())
            {
                entered_preview = toml::from_str::<PreviewRecord>(text).ok();
            }
        }
        match entered_preview {
            Some(entered) if entered.parked_snapshot != open.parked_snapshot => {
                Err(UndoError::PreviewChangesReplaced.into())
            }
            _ => Ok(()),
        }
    }
}
