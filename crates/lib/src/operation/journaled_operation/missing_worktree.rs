//! Operation steps whose linked worktree was moved or removed since: finding the new folder, and recovering a
//! step without its worktree.

use std::path::{Path, PathBuf};

use proq_git::Repo;
use proq_store::operations::journal::Journal;

use super::Operation;
use super::step::{BoxedStep, PlannedStep, Step};
use crate::errors::Error;

/// Updates the steps of a crashed process with the folders to which their worktrees were moved since, and
/// marks missing worktrees.
pub(crate) fn relocate_moved_worktrees(repo: &Repo, journal: &mut Journal<BoxedStep>) {
    journal.relocate_worktrees(|worktree, dir| repo.locate_worktree(worktree, dir));
}

/// Refuses a step whose worktree is missing or on a disk that is not mounted. git-proq could neither finish
/// nor undo such a step.
pub(crate) fn refuse_missing_worktree(repo: &Repo, step: &dyn Step) -> Result<(), Error> {
    refuse_step_if(is_worktree_missing(repo, step)?, step)
}

/// Refuses a planned step whose worktree is missing or was replaced since it was planned.
pub(crate) fn refuse_missing_or_replaced(op: &Operation<'_>, step: &dyn Step) -> Result<(), Error> {
    refuse_step_if(is_missing_or_replaced(op, step)?, step)
}

/// Refuses a step if `is_missing`, with the path of its worktree; allows a step that changes no worktree.
fn refuse_step_if(is_missing: bool, step: &dyn Step) -> Result<(), Error> {
    match step.changed_worktree().filter(|_| is_missing) {
        Some(dir) => Err(Error::PathMissing { path: dir.to_owned() }),
        None => Ok(()),
    }
}

/// Returns whether the folder of a step is no worktree of this repository.
fn is_worktree_missing(repo: &Repo, step: &dyn Step) -> Result<bool, Error> {
    let linked = step.changed_worktree().filter(|dir| repo.main_worktree() != Some(dir));
    Ok(linked.map(|dir| repo.is_worktree_missing(dir)).transpose()?.unwrap_or(false))
}

/// Returns whether the folder of a planned step is no longer a worktree of this repository, or is a different
/// worktree than planned.
pub(crate) fn is_missing_or_replaced(op: &Operation<'_>, step: &dyn Step) -> Result<bool, Error> {
    Ok(is_worktree_missing(&op.project.repo, step)?
        || step.changed_worktree().is_some()
            && planned_step(op, step).is_some_and(|planned| planned.is_worktree_missing))
}

/// Describes what happened to the folder of a missing worktree, as a phrase for a warning.
fn describe_missing(dir: &Path) -> &'static str {
    if dir.exists() { "is no longer the same worktree" } else { "no longer exists" }
}

/// Recovers a step that a crashed process left pending in a missing worktree. Returns whether the step counts
/// as done.
///
/// No file is changed, and parked files are left in their snapshot, whether the step was parking or restoring
/// them. Where git still has the worktree on record, its index is updated to the ref.
///
/// # Errors
/// [`Error::PathMissing`] for a locked worktree, which git keeps for a disk that is not always mounted. Once
/// the disk is mounted, the next command continues the recovery.
pub(crate) fn recover_step_without_worktree(
    op: &Operation<'_>,
    step: &dyn Step,
    scratch: &Path,
) -> Result<bool, Error> {
    let Some(dir) = step.changed_worktree() else { return Ok(false) };
    let admin = step_admin_dir(op, step);
    if admin.as_ref().is_some_and(|admin| admin.join("locked").exists()) {
        return Err(Error::PathMissing { path: dir.to_owned() });
    }
    if admin.is_some() || dir.exists() {
        let files_note = "its files were not changed";
        op.project.listener.warn(format!("{} {}; {files_note}", dir.display(), describe_missing(dir)));
    }
    step.recover_without_worktree(op, admin, scratch)
}

/// Returns whether a step updates a worktree whose branch an earlier step moved, and that worktree is
/// missing. Where git still has it on record, it may exist elsewhere; a warning then names the command that
/// updates it.
pub(crate) fn is_following_worktree_gone(op: &Operation<'_>, step: &dyn Step) -> bool {
    let Some((dir, command)) = step.changed_worktree().zip(step.follow_command()) else { return false };
    if !is_missing_or_replaced(op, step).unwrap_or(false) {
        return false;
    }
    if step_admin_dir(op, step).is_some() {
        op.project.listener.warn(format!(
            "{} {} and was not updated to its branch; before you commit there: {command}",
            dir.display(),
            describe_missing(dir)
        ));
    }
    true
}

/// Returns git's admin folder of a step's worktree, where git still has one.
fn step_admin_dir(op: &Operation<'_>, step: &dyn Step) -> Option<PathBuf> {
    let repo = &op.project.repo;
    match planned_step(op, step).and_then(|planned| planned.worktree) {
        Some(worktree) => repo.find_admin_dir(&worktree),
        None => repo.worktree_admin_dir(step.changed_worktree()?),
    }
}

/// Returns the journal's entry of a step, with status and worktree id; none when it is not in the journal.
fn planned_step(op: &Operation<'_>, step: &dyn Step) -> Option<PlannedStep> {
    op.journal_entry()?.steps.into_iter().find(|planned| planned.step == *step)
}
