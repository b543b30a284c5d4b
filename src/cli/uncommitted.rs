//! Warning about uncommitted changes that a new lane does not have.

use std::path::Path;

use super::CommandContext;
use super::spawn::Spawn;
use crate::git;
use crate::lane::{self, LockedWorktree, Project};

/// Pending check for uncommitted changes of tracked files in the worktree that a lane is spawned from.
pub(super) struct UncommittedWarning<'a> {
    project: &'a Project,
    /// Worktree to check.
    worktree: Option<&'a Path>,
    /// Whether the lane is given the changes too (`--carry`).
    is_carried: bool,
}

impl<'a> UncommittedWarning<'a> {
    /// Prepares the check of `worktree`, without reading any file yet.
    pub(super) fn from_args(
        project: &'a Project,
        args: &Spawn,
        worktree: Option<&'a Path>,
    ) -> UncommittedWarning<'a> {
        UncommittedWarning { project, worktree, is_carried: args.carry }
    }

    /// Prints the warning with the names of the changed files. A worktree equal to `unchanged` is known to
    /// have no changes. The check may read every file of the worktree, so call it when the lane is already in
    /// use.
    pub(super) fn warn(self, session: &CommandContext, unchanged: Option<&Path>) {
        let Some(worktree) = self.worktree.filter(|worktree| unchanged != Some(worktree) || self.is_carried)
        else {
            return;
        };
        let result = match self.is_carried {
            true => hidden_edits(self.project, worktree).map_err(|e| e.to_string()),
            false => changed_file_names(self.project, worktree).map_err(|e| e.to_string()),
        };
        // The lane already exists, so a failure of git here is only a warning.
        match result {
            Ok(None) => {}
            Ok(Some(names)) if self.is_carried => session.ui.warn(format!(
                "edits that git status does not show stay where they are (skip-worktree, assume-unchanged): {names}"
            )),
            Ok(Some(names)) => session.ui.warn(format!(
                "the lane starts without your uncommitted changes ({names}); --carry takes them along"
            )),
            Err(e) => session.ui.warn(format!("whether you have uncommitted changes cannot be told: {e}")),
        }
    }
}

/// Names the edits of tracked files that `git status` does not show; none if there are none.
fn hidden_edits(project: &Project, worktree: &Path) -> Result<Option<String>, lane::Error> {
    let paths = LockedWorktree::lock(project, worktree)?.edits_hidden_from_status()?;
    Ok((!paths.is_empty()).then(|| git::list_paths(&paths)))
}

/// Names the tracked files with uncommitted changes; none if there are none.
pub(super) fn changed_file_names(project: &Project, worktree: &Path) -> Result<Option<String>, git::Error> {
    let dirty = git::status(&project.repo, worktree, false)?;
    let mut names = dirty.tracked().map(|e| e.path.to_string());
    let Some(first) = names.next() else { return Ok(None) };
    let more_count = names.count();
    Ok(Some(if more_count == 0 { first } else { format!("{first} and {more_count} more") }))
}
