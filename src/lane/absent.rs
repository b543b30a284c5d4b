//! Owns steps in a linked worktree that somebody has moved or removed since: where it is now, and what becomes of one that is gone.

use std::path::{Path, PathBuf};

use super::operation::Operation;
use super::{Error, Project};
use crate::git::{self, RefMove, Repo, WorktreeId};
use crate::store::records::Step;
use crate::store::{Journal, Planned};

/// The linked worktree that each of `steps` changes, for the journal; empty when none of them changes one.
pub(super) fn worktrees(repo: &Repo, steps: &[Step]) -> Vec<Option<WorktreeId>> {
    let all: Vec<_> = steps.iter().map(|step| repo.worktree_id(step.worktree()?)).collect();
    if all.iter().all(Option::is_none) { Vec::new() } else { all }
}

/// Has the steps of a dead process name the folders to which their worktrees were moved since, and notes which of those are gone.
pub(super) fn follow_moved(project: &Project, journal: &mut Journal) {
    journal.relocate(|worktree, dir| project.repo.place_of(worktree, dir));
}

/// Refuses a step that changes a worktree which is gone, or on a disk that is not there: such a step could neither be done nor be
/// taken back.
pub(super) fn refuse_absent(project: &Project, step: &Step) -> Result<(), Error> {
    refuse_if(is_absent(project, step)?, step)
}

/// Refuses a step that was planned if its worktree is gone since.
pub(super) fn refuse_gone(op: &Operation<'_>, step: &Step) -> Result<(), Error> {
    refuse_if(is_gone(op, step)?, step)
}

fn refuse_if(gone: bool, step: &Step) -> Result<(), Error> {
    match step.worktree().filter(|_| gone) {
        Some(dir) => Err(Error::Expired { path: dir.to_owned() }),
        None => Ok(()),
    }
}

/// Whether the folder of a step is no worktree of this repository.
fn is_absent(project: &Project, step: &Step) -> Result<bool, Error> {
    let linked = step.worktree().filter(|dir| project.repo.main_worktree() != Some(dir));
    Ok(linked.map(|dir| project.repo.is_no_worktree(dir)).transpose()?.unwrap_or(false))
}

/// Whether the folder of a step that was planned is no worktree of this repository any more, or another one than that of the step.
pub(super) fn is_gone(op: &Operation<'_>, step: &Step) -> Result<bool, Error> {
    Ok(is_absent(op.project, step)? || planned(op, step).is_some_and(|planned| planned.is_gone))
}

/// What became of the folder of a worktree that is gone.
fn fate(dir: &Path) -> &'static str {
    if dir.exists() { "is not the worktree any more that it was" } else { "is not there any more" }
}

/// Judges a step that a dead process left open in a worktree that is gone. Files stay as they are: a ref has moved or it has not, what was
/// set aside stays in its snapshot, and so does what was to come back from one. Where git has the worktree on record still, its index
/// goes with the ref.
///
/// # Errors
/// [`Error::Expired`] for one that is locked, as git keeps it for a disk which is not always there: once it is there, the next command
/// goes on.
pub(super) fn settle(op: &Operation<'_>, step: &Step, scratch: &Path) -> Result<bool, Error> {
    let repo = &op.project.repo;
    let Some(dir) = step.worktree() else { return Ok(false) };
    let admin = admin_dir(op, step);
    if admin.as_ref().is_some_and(|admin| admin.join("locked").exists()) {
        return Err(Error::Expired { path: dir.to_owned() });
    }
    if admin.is_some() || dir.exists() {
        let files = "its files were left as they are";
        op.project.listener.warn(format!("{} {}; {files}", dir.display(), fate(dir)));
    }
    match step {
        Step::Tree { from, to, mv, .. } => {
            Ok(git::settle_without_files(repo, dir, admin, (*from, *to), mv, scratch)?)
        }
        step => {
            git::release_locks(admin.as_deref(), scratch)?;
            Ok(matches!(step, Step::Clear { .. }))
        }
    }
}

/// Whether a worktree that was to follow its branch is gone. Where git has it on record still, and so it may be somewhere, how it follows
/// is said.
pub(super) fn is_left_behind(op: &Operation<'_>, step: &Step) -> bool {
    let Step::Tree { dir, from, to, mv: RefMove::Nothing, .. } = step else { return false };
    if !is_gone(op, step).unwrap_or(false) {
        return false;
    }
    if admin_dir(op, step).is_some() {
        op.project.listener.warn(format!(
            "{} {} and could not follow its branch; wherever it is, before you commit there: git read-tree -m -u {} {}",
            dir.display(),
            fate(dir),
            from.short(),
            to.short()
        ));
    }
    true
}

/// Git's admin folder of the worktree of a step, where it has one still.
fn admin_dir(op: &Operation<'_>, step: &Step) -> Option<PathBuf> {
    let repo = &op.project.repo;
    match planned(op, step).and_then(|planned| planned.worktree) {
        Some(worktree) => repo.admin_dir_by(&worktree),
        None => repo.admin_dir_of(step.worktree()?),
    }
}

/// The entry of a step in the journal of its operation.
fn planned(op: &Operation<'_>, step: &Step) -> Option<Planned> {
    op.entry()?.steps.into_iter().find(|planned| planned.step == *step)
}
