//! The step that creates a ref to keep a commit.

use std::path::Path;

use proq_git::CommitId;
use proq_git::checkout::ref_recovery;
use serde::{Deserialize, Serialize};

use crate::lane::Error;
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::{RefChange, Step, StepOutcome};

/// Creation of a ref that keeps a commit. The ref stays, whatever happens to the other steps.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename = "anchor")]
pub struct KeepRef {
    /// Full name of the ref.
    pub name: String,
    /// Commit that the ref keeps.
    pub new: CommitId,
}

impl Step for KeepRef {
    fn moved_ref(&self) -> Option<RefChange> {
        Some(RefChange { name: self.name.clone(), before: None, after: Some(self.new) })
    }

    fn log_line(&self) -> Option<String> {
        Some(format!("kept: {} -> {}", self.name, self.new.short()))
    }

    fn apply(&self, op: &Operation<'_>, _scratch: &Path) -> Result<StepOutcome, Error> {
        let repo = &op.project.repo;
        if repo.create_private_ref(&self.name, self.new).is_none() {
            repo.create_ref(&self.name, self.new, &op.reflog_message())?;
        }
        Ok(StepOutcome::done())
    }

    fn prepares_inverse(&self) -> bool {
        true
    }

    fn recover(&self, op: &Operation<'_>, scratch: &Path) -> Result<bool, Error> {
        let repo = &op.project.repo;
        ref_recovery::recover_ref_locks(repo, &self.name, Some(self.new), scratch)?;
        Ok(repo.ref_tip(&self.name)? == Some(self.new))
    }
}

impl Operation<'_> {
    /// Creates a ref that keeps a commit from garbage collection, and that stays even if the operation is
    /// reverted.
    pub(crate) fn anchor(&self, name: &str, new: CommitId) -> Result<(), Error> {
        self.perform(KeepRef { name: name.to_owned(), new }).map(drop)
    }

    /// Keeps a commit from garbage collection for as long as this operation is in the log.
    pub(crate) fn retain_commit(&self, commit: CommitId) -> Result<(), Error> {
        let name = format!("refs/proq/op/{}-{}", self.header.borrow().id, self.step_count());
        self.anchor(&name, commit)
    }
}
