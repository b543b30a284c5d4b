//! The step that moves, creates or deletes a ref.

use std::collections::BTreeSet;
use std::path::Path;

use proq_base::lane_name::LaneName;
use proq_git as git;
use proq_git::checkout::ref_recovery;
use proq_git::worktrees::worktree::WorktreeList;
use proq_git::{CommitId, Repo};
use serde::{Deserialize, Serialize};

use super::branch_undo::BranchUndo;
use crate::lane::Error;
use crate::lane::context::symbolic_branch::refuse_symbolic_branch;
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::undo::{StepUndo, UndoForecast, UndoProgress};
use crate::operation::journaled_operation::step::{BoxedStep, MovedBranch, RefChange, Step, StepOutcome};

/// Prefix of the refs that keep an operation's objects while the operation is active.
const PENDING_REF_PREFIX: &str = "refs/proq/pending/";

/// Move of a ref; none stands for "does not exist".
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename = "ref")]
pub struct MoveRef {
    /// Full name of the ref.
    pub name: String,
    /// Old value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<CommitId>,
    /// New value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<CommitId>,
}

/// Refs that an operation creates after a deletion, which a running `git pack-refs` may have packed before.
#[derive(Default)]
struct RecreatedRefs(BTreeSet<String>);

/// Returns the name of the ref that keeps an operation's objects while it is active.
pub fn pending_ref(id: &str) -> String {
    format!("{PENDING_REF_PREFIX}{id}")
}

/// Returns the step that moves a ref from `old` to `new`; none stands for "does not exist".
pub(crate) fn move_ref_step(name: String, old: Option<CommitId>, new: Option<CommitId>) -> BoxedStep {
    MoveRef { name, old, new }.into()
}

impl Step for MoveRef {
    fn is_temporary(&self) -> bool {
        self.name.starts_with(PENDING_REF_PREFIX)
    }

    fn moved_branch(&self) -> Option<MovedBranch<'_>> {
        let name = self.name.strip_prefix("refs/heads/")?;
        Some(MovedBranch { name, old: self.old, new: self.new })
    }

    fn moved_ref(&self) -> Option<RefChange> {
        Some(RefChange { name: self.name.clone(), before: self.old, after: self.new })
    }

    fn log_line(&self) -> Option<String> {
        let short_id = |id: Option<CommitId>| id.map_or_else(|| "nothing".to_owned(), CommitId::short);
        Some(format!("{}: {} -> {}", self.name, short_id(self.old), short_id(self.new)))
    }

    fn apply(&self, op: &Operation<'_>, _scratch: &Path) -> Result<StepOutcome, Error> {
        let MoveRef { name, old, new } = self;
        let repo = &op.project.repo;
        // A lane's branch belongs to git-proq, and another program made it symbolic.
        if let Some(branch) = name.strip_prefix("refs/heads/").filter(|_| old.is_some()) {
            refuse_symbolic_branch(repo, branch)?;
        }
        let Some(null) = old.or(*new).map(CommitId::null) else { return Ok(StepOutcome::done()) };
        if new.is_none() {
            refuse_checked_out_branch(repo, name)?;
        }
        let swap = || {
            let in_process = match (*old, *new) {
                (Some(old), None) => repo.delete_loose_ref(name, old),
                (None, Some(new)) => repo.create_private_ref(name, new),
                _ => None,
            };
            let swap_by_git =
                || repo.swap_ref(name, new.unwrap_or(null), old.unwrap_or(null), &op.reflog_message());
            in_process.map_or_else(swap_by_git, Ok)
        };
        let is_recreated = op.with_memory(|recreated: &mut RecreatedRefs| recreated.0.contains(name));
        match *new {
            Some(new) if old.is_none() && is_recreated => repo.recreate_ref(name, new, swap)?,
            _ => swap()?,
        }
        Ok(StepOutcome::done())
    }

    fn invert(&self, op: &Operation<'_>) -> Result<(), Error> {
        if self.new.is_none() {
            op.expect_recreated_ref(&self.name);
        }
        op.perform(MoveRef { name: self.name.clone(), old: self.new, new: self.old }).map(drop)
    }

    fn check_undo(&self, undo: &StepUndo<'_, '_>, forecast: &mut UndoForecast) -> Result<(), Error> {
        if let Some(branch) = BranchUndo::new(self.moved_branch()) {
            return branch.check(undo, forecast);
        }
        let tip = forecast.tip_of(undo, &self.name)?;
        if tip != self.new && tip != self.old {
            let reason = tip
                .map_or_else(|| "it no longer exists".to_owned(), |tip| format!("it is at {}", tip.short()));
            return Err(git::Error::RefNotMoved { ref_name: self.name.clone(), reason }.into());
        }
        forecast.ref_tips.insert(self.name.clone(), self.old);
        Ok(())
    }

    fn undo(&self, undo: &StepUndo<'_, '_>) -> Result<UndoProgress, Error> {
        if let Some(branch) = BranchUndo::new(self.moved_branch()) {
            return branch.run(undo).map(|()| UndoProgress::Finished);
        }
        // The user may have deleted the ref already, or created the deleted one again.
        match undo.op.project.repo.ref_tip(&self.name)? == self.old {
            true => Ok(UndoProgress::Finished),
            false => Ok(UndoProgress::Invert),
        }
    }

    fn recover(&self, op: &Operation<'_>, scratch: &Path) -> Result<bool, Error> {
        let repo = &op.project.repo;
        ref_recovery::recover_ref_locks(repo, &self.name, self.new, scratch)?;
        Ok(self.new != self.old && repo.ref_tip(&self.name)? == self.new)
    }

    fn is_unnoticed_until_done(&self) -> bool {
        true
    }
}

/// Refuses to delete a branch that is checked out, since that worktree's HEAD would be invalid.
fn refuse_checked_out_branch(repo: &Repo, name: &str) -> Result<(), Error> {
    let Some(branch) = name.strip_prefix("refs/heads/") else { return Ok(()) };
    match WorktreeList::read(repo)?.on_branch(branch).next() {
        None => Ok(()),
        Some(worktree) => {
            let reason = format!("{} is on it", worktree.path.display());
            Err(git::Error::RefNotMoved { ref_name: branch.to_owned(), reason }.into())
        }
    }
}

impl Operation<'_> {
    /// Notes that this operation creates a ref that existed before, so that git does not remove it again.
    pub(crate) fn expect_recreated_ref(&self, name: &str) {
        self.with_memory(|recreated: &mut RecreatedRefs| recreated.0.insert(name.to_owned()));
    }

    /// Creates the branch of a lane, which must not exist yet. A lane of this name may have been removed while git
    /// packed refs, and its branch is then created again.
    pub(crate) fn create_lane_branch(
        &self,
        lane: &LaneName,
        branch: &str,
        tip: CommitId,
    ) -> Result<(), Error> {
        let ref_name = format!("refs/heads/{branch}");
        if self.project.last_removed_name(lane.as_str()).is_some() {
            self.expect_recreated_ref(&ref_name);
        }
        self.create_ref(&ref_name, tip)
    }

    /// Creates a ref that must not exist yet.
    pub fn create_ref(&self, name: &str, new: CommitId) -> Result<(), Error> {
        self.perform(MoveRef { name: name.to_owned(), old: None, new: Some(new) }).map(drop)
    }

    /// Moves a ref that must be at `old`.
    pub(super) fn move_ref(&self, name: &str, old: CommitId, new: CommitId) -> Result<(), Error> {
        self.perform(MoveRef { name: name.to_owned(), old: Some(old), new: Some(new) }).map(drop)
    }

    /// Deletes a ref that must be at `old`.
    pub fn delete_ref(&self, name: &str, old: CommitId) -> Result<(), Error> {
        self.perform(MoveRef { name: name.to_owned(), old: Some(old), new: None }).map(drop)
    }
}
