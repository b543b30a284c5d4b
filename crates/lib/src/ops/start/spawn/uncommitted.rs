//! Uncommitted changes in the worktree that a lane is spawned from.

use std::path::{Path, PathBuf};

use proq_git::base::error::list_paths;

use crate::lane::Project;
use crate::lane::inspection::evidence;
use crate::operation::locked_worktree::LockedWorktree;
use crate::ops::error::Error;

/// Check for changes of tracked files that a new lane lacks. It may read every file of a worktree, so callers
/// run it once the lane is in use.
#[derive(Debug, Clone)]
pub struct UncommittedCheck {
    /// Worktree to check; none if it is known to have no changes.
    worktree: Option<PathBuf>,
    /// Whether the lane got the changes, except for those that `git status` does not show.
    pub is_carried: bool,
}

impl UncommittedCheck {
    pub(super) fn new(worktree: Option<&Path>, is_carried: bool) -> UncommittedCheck {
        UncommittedCheck { worktree: worktree.map(Path::to_owned), is_carried }
    }

    /// Returns the check after the creation of the lane, which found no changes in the worktree `unchanged`.
    pub(super) fn without_unchanged(self, unchanged: Option<&Path>) -> UncommittedCheck {
        let is_unchanged = unchanged.is_some() && self.worktree.as_deref() == unchanged;
        let worktree = self.worktree.filter(|_| !is_unchanged || self.is_carried);
        UncommittedCheck { worktree, ..self }
    }

    /// Returns the names of the changed files that the lane lacks, as text; none if it lacks none.
    ///
    /// # Errors
    /// Fails when git cannot read the worktree.
    pub fn missing_files(&self, project: &Project) -> Result<Option<String>, Error> {
        let Some(worktree) = &self.worktree else { return Ok(None) };
        if !self.is_carried {
            return Ok(evidence::changed_file_names(&project.repo, worktree)?);
        }
        let paths = LockedWorktree::lock(project, worktree)?.edits_hidden_from_status()?;
        Ok((!paths.is_empty()).then(|| list_paths(&paths)))
    }
}
