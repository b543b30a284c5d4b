//! Commit of git-proq itself on top of a branch: notes in the repository's files that lanes have landed.

use proq_git as git;
use proq_git::history::commit::NewCommit;
use proq_git::history::tree_edit::TreeEdit;
use proq_git::{CommitId, TreeId};
use proq_store::locks::lock::LockName;

use super::branch_move;
use super::branch_move::{BranchMove, LandAttempt, MoveMode, Reversibility};
use crate::lane;
use crate::lane::Project;
use crate::merge::Error;
use crate::operation::journaled_operation::Operation;
use crate::operation::run_operation::operate;

/// Maximum number of attempts while the branch moves concurrently.
const MAX_ATTEMPTS: u32 = 5;

/// Commit of git-proq to create on top of a branch.
pub(crate) struct NoteCommit<'a> {
    /// Branch to commit to.
    pub onto: &'a str,
    /// Full commit message.
    pub message: &'a str,
    /// Callback that returns the edits of a tree; called again if the branch has moved.
    pub(crate) tree_edits: &'a dyn Fn(TreeId) -> Result<Vec<TreeEdit>, git::Error>,
}

impl NoteCommit<'_> {
    /// Creates the commit and moves the branch to it, with every worktree that is on it, as one operation.
    /// Returns none if the tree would not change. The repository's commit hooks are not run, because the
    /// commit contains no user's work.
    ///
    /// # Errors
    /// Fails as a landing does; nothing was moved then.
    pub fn create(&self, project: &Project) -> Result<Option<CommitId>, Error> {
        let mut last_reason = None;
        for _ in 0..MAX_ATTEMPTS {
            let mut new_commit = None;
            let landing = operate(project, "note", |op| self.try_create(op, &mut new_commit))?;
            match landing {
                LandAttempt::Landed => return Ok(new_commit),
                LandAttempt::Outdated(reason) => last_reason = reason.or(last_reason),
            }
        }
        Err(Error::BaseKeptMoving { base: self.onto.to_owned(), attempts: MAX_ATTEMPTS, last: last_reason })
    }

    /// Tries once to create the commit and move the branch; `new_commit` is set if the branch moved. Returns
    /// [`LandAttempt::Landed`] without a commit if the tree would not change.
    fn try_create(
        &self,
        op: &Operation<'_>,
        new_commit: &mut Option<CommitId>,
    ) -> Result<LandAttempt, Error> {
        let (project, repo) = (op.project, &op.project.repo);
        let tip = repo.branch_tip(self.onto)?;
        let from = tip.ok_or_else(|| lane::Error::NoOntoBranch { branch: self.onto.to_owned() })?;
        let old_tree = repo.tree_of(from)?;
        let tree = repo.edit_tree(old_tree, &(self.tree_edits)(old_tree)?)?;
        if tree == old_tree {
            return Ok(LandAttempt::Landed);
        }
        let to = NewCommit { tree, parents: &[from], message: self.message }.write(repo, None)?;
        let _lock = project.store.locks().acquire(&LockName::Merge)?;
        if repo.branch_tip(self.onto)? != Some(from) {
            return Ok(LandAttempt::Outdated(None));
        }
        op.set_reflog_message("git-proq: what has landed is noted");
        let landing = branch_move::move_branch(
            op,
            BranchMove { onto: self.onto, from, to },
            Vec::new(),
            MoveMode { reversibility: Reversibility::Irreversible, autostash: false },
        )?;
        *new_commit = (landing == LandAttempt::Landed).then_some(to);
        Ok(landing)
    }
}
