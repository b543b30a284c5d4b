//! Owns steps in a linked worktree that somebody has moved or removed since: where it is now is what git has on record.

use std::path::{Path, PathBuf};

use super::operation::Operation;
use super::{Error, Project};
use crate::explain::quoted_path;
use crate::git::{self, Oid, Repo, WorktreeId};
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

/// Whether the folder of a step is no worktree of this repository any more, or another one than that of the step.
pub(super) fn is_gone(op: &Operation<'_>, step: &Step) -> bool {
    let repo = &op.project.repo;
    let linked = step.worktree().filter(|dir| repo.main_worktree() != Some(dir));
    linked.is_some_and(|dir| repo.is_no_worktree(dir) || planned(op, step).is_some_and(|p| p.is_gone))
}

/// Refuses a step that changes a worktree which is gone, or on a disk that is not there: such a step could neither be done nor be
/// taken back.
pub(super) fn refuse_absent(op: &Operation<'_>, step: &Step) -> Result<(), Error> {
    match step.worktree().filter(|_| is_gone(op, step)) {
        Some(dir) => Err(Error::Expired { path: dir.to_owned() }),
        None => Ok(()),
    }
}

/// Judges a step that a dead process left open in a worktree that is gone. No files are put right: a ref has moved or it has not, what was
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
    if let Some(admin) = &admin {
        if admin.join("locked").exists() {
            return Err(Error::Expired { path: dir.to_owned() });
        }
        let gone = format!("{} is not there any more; nothing was put right in its files", dir.display());
        op.project.listener.warn(gone);
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

/// Says how a worktree follows its branch, which is at `to` since a landing that was killed, and could not. One that is removed needs
/// not.
pub(super) fn tell_left_behind(op: &Operation<'_>, step: &Step, (from, to): (Oid, Oid), e: &Error) {
    let Some(dir) = step.worktree() else { return };
    if is_gone(op, step) && admin_dir(op, step).is_none() {
        return;
    }
    op.project.listener.warn(format!(
        "{} could not follow its branch: {e}; before you commit there: git -C {} read-tree -m -u {} {}",
        dir.display(),
        quoted_path(dir),
        from.short(),
        to.short()
    ));
}

/// Git's admin folder of the worktree of a step, where it has one still.
fn admin_dir(op: &Operation<'_>, step: &Step) -> Option<PathBuf> {
    let repo = &op.project.repo;
    match planned(op, step).and_then(|planned| planned.worktree) {
        Some(worktree) => repo.admin_dir_by(&worktree),
        None => repo.admin_dir_of(step.worktree()?),
    }
}

/// What the journal has on a step.
fn planned(op: &Operation<'_>, step: &Step) -> Option<Planned> {
    op.entry()?.steps.into_iter().find(|planned| planned.step == *step)
}
