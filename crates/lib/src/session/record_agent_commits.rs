//! The step that records commits of an agent.

use std::path::{Path, PathBuf};

use proq_git::CommitId;
use serde::{Deserialize, Serialize};

use crate::lane::Error;
use crate::lane::steps::branch_undo::BranchUndo;
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::undo::{StepUndo, UndoForecast, UndoProgress};
use crate::operation::journaled_operation::step::{MovedBranch, RefChange, Step, StepOutcome};

/// Record that an agent moved the branch of a worktree. This step changes nothing.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename = "worked")]
pub struct RecordAgentCommits {
    /// Top folder of the worktree.
    #[serde(with = "proq_store::paths::path_form")]
    pub dir: PathBuf,
    /// Branch, without `refs/heads/`.
    pub branch: String,
    /// Old tip.
    pub from: CommitId,
    /// New tip.
    pub to: CommitId,
}

impl Step for RecordAgentCommits {
    fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        vec![&mut self.dir]
    }

    fn moved_branch(&self) -> Option<MovedBranch<'_>> {
        Some(MovedBranch { name: &self.branch, old: Some(self.from), new: Some(self.to) })
    }

    fn moved_ref(&self) -> Option<RefChange> {
        let name = format!("refs/heads/{}", self.branch);
        Some(RefChange { name, before: Some(self.from), after: Some(self.to) })
    }

    fn log_line(&self) -> Option<String> {
        let RecordAgentCommits { dir, branch, from, to } = self;
        let (dir, from, to) = (dir.display(), from.short(), to.short());
        Some(format!("{dir}: {branch} {from} -> {to} while an agent worked there"))
    }

    fn apply(&self, _op: &Operation<'_>, _scratch: &Path) -> Result<StepOutcome, Error> {
        Ok(StepOutcome::done())
    }

    fn check_undo(&self, undo: &StepUndo<'_, '_>, forecast: &mut UndoForecast) -> Result<(), Error> {
        BranchUndo::new(self.moved_branch()).map_or(Ok(()), |branch| branch.check(undo, forecast))
    }

    fn undo(&self, undo: &StepUndo<'_, '_>) -> Result<UndoProgress, Error> {
        BranchUndo::new(self.moved_branch()).map_or(Ok(()), |branch| branch.run(undo))?;
        Ok(UndoProgress::Finished)
    }

    fn recover(&self, _op: &Operation<'_>, _scratch: &Path) -> Result<bool, Error> {
        Ok(true)
    }
}
