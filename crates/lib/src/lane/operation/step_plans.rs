//! Common steps of an operation: refs, moves of files, and transitions of worktrees.

use std::path::Path;

use proq_git::base::head::RefMove;
use proq_git::status::local_state::LocalState;
use proq_git::{CommitId, RepoPath};
use proq_store::records::step::Step;

use super::journaled_operation::Operation;
use crate::lane::Error;

impl Operation<'_> {
    /// Creates a ref that must not exist yet.
    pub fn create_ref(&self, name: &str, new: CommitId) -> Result<(), Error> {
        self.perform(Step::MoveRef { name: name.to_owned(), old: None, new: Some(new) }).map(drop)
    }

    /// Deletes a ref that must be at `old`.
    pub fn delete_ref(&self, name: &str, old: CommitId) -> Result<(), Error> {
        self.perform(Step::MoveRef { name: name.to_owned(), old: Some(old), new: None }).map(drop)
    }

    /// Creates a ref that keeps a commit from garbage collection, and that stays even if the operation is
    /// reverted.
    pub(crate) fn anchor(&self, name: &str, new: CommitId) -> Result<(), Error> {
        self.perform(Step::KeepRef { name: name.to_owned(), new }).map(drop)
    }

    /// Keeps a commit from garbage collection for as long as this operation is in the log.
    pub(crate) fn retain_commit(&self, commit: CommitId) -> Result<(), Error> {
        let name = format!("refs/proq/op/{}-{}", self.header.borrow().id, self.step_count());
        self.anchor(&name, commit)
    }

    /// Moves a file or folder to another path.
    pub(crate) fn move_path(&self, from: &Path, to: &Path) -> Result<(), Error> {
        self.perform(Step::MovePath { from: from.to_owned(), to: to.to_owned() }).map(drop)
    }

    /// Switches a worktree from one commit to another, and moves the ref.
    pub fn transition(&self, dir: &Path, from: CommitId, to: CommitId, mv: RefMove) -> Result<(), Error> {
        self.perform(self.transition_step(dir, from, to, mv)).map(drop)
    }

    /// Creates the step that moves a worktree from one commit to another. It includes the local state that
    /// reverting the step must restore.
    pub(crate) fn transition_step(&self, dir: &Path, from: CommitId, to: CommitId, mv: RefMove) -> Step {
        // If the local state cannot be read now, the step will fail.
        let repo = &self.project.repo;
        let mut drops = LocalState::lost_on_switch(repo, dir, from, to).unwrap_or_default();
        if matches!(mv, RefMove::Switch { .. }) {
            drops = drops.with_flags(LocalState::read_manual_flags(repo, dir, None).unwrap_or_default());
        }
        Step::Checkout {
            dir: dir.to_owned(),
            from,
            to,
            ref_move: mv,
            dropped_state: drops,
            restored_state: LocalState::default(),
        }
    }

    /// Moves a worktree back to a commit, where it had the local state `local_state`. `dropped_dirs` are empty
    /// folders that disappear with the current contents; reverting the step restores them.
    pub(crate) fn revert_transition(
        &self,
        dir: &Path,
        (from, to): (CommitId, CommitId),
        ref_move: RefMove,
        local_state: &LocalState,
        dropped_dirs: &[RepoPath],
    ) -> Result<(), Error> {
        let mut step = self.transition_step(dir, from, to, ref_move);
        if let Step::Checkout { restored_state: step_restored_state, dropped_state: drops, .. } = &mut step {
            step_restored_state.clone_from(local_state);
            drops.empty_dirs.extend_from_slice(dropped_dirs);
        }
        self.perform(step).map(drop)
    }
}
