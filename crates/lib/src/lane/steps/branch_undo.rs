//! Undo of a step that moved a branch, with every worktree that is on the branch now.

use std::path::{Path, PathBuf};

use proq_git::CommitId;
use proq_git::base::head::RefMove;
use proq_git::status::local_state::LocalState;
use proq_git::worktrees::worktree::WorktreeList;
use proq_store::base::id::new_id;

use crate::errors::undo_error::UndoError;
use crate::lane::Error;
use crate::lane::context::symbolic_branch::branch_to_move;
use crate::operation::journaled_operation::step::MovedBranch;
use crate::operation::journaled_operation::step::undo::{StepUndo, UndoForecast};

/// Move of a branch between two existing commits, which an undo reverts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BranchUndo<'a> {
    /// Branch as the step has it.
    branch: &'a str,
    /// Commit to return to.
    old: CommitId,
    /// Commit that the step moved the branch to.
    new: CommitId,
}

impl<'a> BranchUndo<'a> {
    /// Returns the undo of a branch move; none for a branch that the step created or removed.
    pub(crate) fn new(moved: Option<MovedBranch<'a>>) -> Option<BranchUndo<'a>> {
        let MovedBranch { name, old, new } = moved?;
        Some(BranchUndo { branch: name, old: old?, new: new? })
    }

    /// Checks whether the branch can be moved back, with the worktrees that are on it, and records the effect in
    /// `forecast`.
    ///
    /// # Errors
    /// Fails as [`BranchUndo::run`] would.
    pub(crate) fn check(self, undo: &StepUndo<'_, '_>, forecast: &mut UndoForecast) -> Result<(), Error> {
        let BranchUndo { old, new, .. } = self;
        let branch = &branch_to_move(undo.op.project, self.branch);
        let name = format!("refs/heads/{branch}");
        let Some(tip) = forecast.tip_of(undo, &name)? else {
            return Err(UndoError::BranchGone { branch: branch.to_owned(), last_tip: new }.into());
        };
        self.require_unshared(undo, branch, tip)?;
        if tip != old {
            for worktree in WorktreeList::read(&undo.op.project.repo)?.on_branch(branch) {
                let checkout = undo.op.lock_worktree(&worktree.path)?;
                if undo.op.is_carried_in_forecast(&worktree.path) {
                    checkout.check_transition_once_saved(tip, old, None)?;
                } else {
                    checkout.check_undo_transition(tip, old, &dropped_state(undo, &worktree.path, new))?;
                }
            }
        }
        forecast.ref_tips.insert(name, Some(old));
        Ok(())
    }

    /// Moves the branch back, together with every worktree that is on it now, even if that worktree was
    /// elsewhere when the branch moved.
    ///
    /// # Errors
    /// [`UndoError::BranchGone`], [`UndoError::BuiltOn`], [`UndoError::Pushed`], or the error of a worktree that
    /// cannot follow.
    pub(crate) fn run(self, undo: &StepUndo<'_, '_>) -> Result<(), Error> {
        let (op, BranchUndo { old, new, .. }) = (undo.op, self);
        let repo = &op.project.repo;
        let branch = &branch_to_move(op.project, self.branch);
        let Some(tip) = repo.branch_tip(branch)? else {
            return Err(UndoError::BranchGone { branch: branch.to_owned(), last_tip: new }.into());
        };
        if tip == old {
            // The user has already reverted everything with git, except for empty folders.
            for worktree in WorktreeList::read(repo)?.on_branch(branch) {
                let state = dropped_state(undo, &worktree.path, new);
                op.lock_worktree(&worktree.path)?.create_folders(&state.empty_dirs);
            }
            return Ok(());
        }
        self.require_unshared(undo, branch, tip)?;
        if !repo.is_ancestor(tip, new)? {
            // The branch has the user's own commits, not only a landing that can be redone.
            op.anchor(&format!("refs/proq/saved/{}-{}", branch.replace('/', "-"), new_id()), tip)?;
        }
        op.retain_commit(new)?;
        op.set_reflog_message(format!("git-proq: operation {} undone", undo.number));
        // No preview may be opened or left from here until this operation finishes or has been reverted.
        // Otherwise the main checkout could be on the branch without following its move.
        let _main = repo.main_worktree().map(|dir| op.lock_worktree(dir)).transpose()?;
        let worktrees = WorktreeList::read(repo)?;
        let dirs: Vec<PathBuf> = worktrees.on_branch(branch).map(|w| w.path.clone()).collect();
        let Some((first, others)) = dirs.split_first() else {
            let name = format!("refs/heads/{branch}");
            return op.move_ref(&name, tip, old);
        };
        for dir in others {
            op.lock_worktree(dir)?.check_undo_transition(tip, old, &dropped_state(undo, dir, new))?;
        }
        let revert_worktree =
            |dir: &Path, mv| op.revert_transition(dir, (tip, old), mv, &dropped_state(undo, dir, new), &[]);
        revert_worktree(first, RefMove::Branch(branch.to_owned()))?;
        others.iter().try_for_each(|dir| revert_worktree(dir, RefMove::Nothing))
    }

    /// Refuses to move `branch` back if other users or branches would miss its commits. `tip` is the branch's
    /// current commit. A fast-forward loses nothing.
    fn require_unshared(&self, undo: &StepUndo<'_, '_>, branch: &str, tip: CommitId) -> Result<(), Error> {
        let (repo, BranchUndo { old, new, .. }) = (&undo.op.project.repo, *self);
        if undo.force || tip == old {
            return Ok(());
        }
        if tip != new {
            return Err(UndoError::BuiltOn { branch: branch.to_owned(), tip }.into());
        }
        if repo.is_ancestor(new, old)? {
            return Ok(());
        }
        match repo.remote_branch_with(new)? {
            Some(remote_branch) => Err(UndoError::Pushed { branch: branch.to_owned(), remote_branch }.into()),
            None => Ok(()),
        }
    }
}

/// Returns the empty folders and index flags that the worktree at `dir` lost when the undone operation moved it
/// to `commit`; empty if no step did.
fn dropped_state(undo: &StepUndo<'_, '_>, dir: &Path, commit: CommitId) -> LocalState {
    undo.entry.applied_steps().find_map(|step| step.dropped_state(dir, commit)).cloned().unwrap_or_default()
}
