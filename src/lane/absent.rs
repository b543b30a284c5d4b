//! Owns steps in a linked worktree that somebody has moved or removed since: where it is now is what git has on record.

use std::path::Path;

use super::operation::Operation;
use super::{Error, Project};
use crate::git::{self, Repo};
use crate::store::Journal;
use crate::store::records::Step;

/// What git calls the linked worktree that each of `steps` changes, for the journal; empty when none of them changes one.
pub(super) fn worktrees(repo: &Repo, steps: &[Step]) -> Vec<String> {
    let name = |step: &Step| step.worktree().and_then(|dir| repo.worktree_id(dir)).unwrap_or_default();
    let all: Vec<String> = steps.iter().map(name).collect();
    if all.iter().all(String::is_empty) { Vec::new() } else { all }
}

/// Has the steps of a dead process name the folders to which their worktrees were moved since.
pub(super) fn follow_moved(project: &Project, journal: &mut Journal) {
    journal.relocate(|worktree, dir| project.repo.place_of(worktree).filter(|place| place != dir));
}

/// Whether the folder of a step is no worktree of this repository any more.
pub(super) fn is_gone(project: &Project, step: &Step) -> bool {
    let linked = step.worktree().filter(|dir| project.repo.main_worktree() != Some(dir));
    linked.is_some_and(|dir| project.repo.is_no_worktree(dir))
}

/// Refuses a step that changes a worktree which is gone, or on a disk that is not there: such a step could neither be done nor be
/// taken back.
pub(super) fn refuse_absent(project: &Project, step: &Step) -> Result<(), Error> {
    match step.worktree().filter(|_| is_gone(project, step)) {
        Some(dir) => Err(Error::Expired { path: dir.to_owned() }),
        None => Ok(()),
    }
}

/// Judges a step that a dead process left open in a worktree that is gone. There are no files to put right: a branch has moved or it
/// has not, what was set aside stays in its snapshot, and what was to come back from one does.
///
/// # Errors
/// [`Error::Expired`] for one that git keeps for a disk which is not always there: once it is there, the next command goes on.
pub(super) fn settle(op: &Operation<'_>, step: &Step, scratch: &Path) -> Result<bool, Error> {
    let repo = &op.project.repo;
    let Some(dir) = step.worktree() else { return Ok(false) };
    let admin = repo.admin_dir_of(dir);
    if !dir.exists() && admin.as_ref().is_some_and(|admin| admin.join("locked").exists()) {
        return Err(Error::Expired { path: dir.to_owned() });
    }
    git::release_locks(admin.as_deref(), scratch)?;
    match step {
        Step::Tree { from, to, mv, .. } => {
            Ok(git::settle_move(repo, admin.as_deref(), (*from, *to), mv, scratch)?)
        }
        step => Ok(matches!(step, Step::Clear { .. })),
    }
}
