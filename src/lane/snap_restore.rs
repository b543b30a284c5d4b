//! Owns bringing a snapshot back when somebody asks for it, onto the worktree they stand in.

use std::path::{Path, PathBuf};

use super::{Error, Operation, Project, SnapState, SnapView, fill, ignored_files, operate};
use crate::git::{self, Head, RepoPath, Restored};
use crate::store::records::LaneRecord;
use crate::store::{LockName, remove_tree};

/// What bringing a snapshot back did, or would do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub(crate) struct Brought {
    /// How it came back.
    pub(crate) restored: Restored,
    /// The worktree.
    pub(crate) dir: PathBuf,
    /// Whether an untracked file of the snapshot is among what conflicts.
    pub(crate) loose_conflict: bool,
    /// Ignored files of an automatic snapshot that were not brought back, since something else stands in their places.
    pub(crate) ignored_in_the_way: Vec<RepoPath>,
}

/// Brings a snapshot back onto the worktree that the user stands in, and an automatic one onto the worktree that it was taken of,
/// which is made again where it is gone; with `dry_run` only says how it would come back.
///
/// # Errors
/// [`Error::SnapWaits`] when the open preview will bring it back, [`git::Error::Overlap`] and the like when something
/// stands in its way: nothing was changed.
pub(crate) fn restore_snap(project: &Project, view: &SnapView, dry_run: bool) -> Result<Brought, Error> {
    operate(project, "snap restore", |op| restore_in(op, view, dry_run))
}

fn restore_in(op: &Operation<'_>, view: &SnapView, dry_run: bool) -> Result<Brought, Error> {
    let project = op.project;
    let id = &view.record.id;
    if let SnapState::Waiting(lane) = &view.state {
        return Err(Error::SnapWaits { id: id.clone(), lane: lane.clone() });
    }
    let dir = target(project, view, dry_run)?;
    let checkout = op.checkout(&dir)?;
    let now = project.repo.head_of(&dir)?.ok_or_else(|| Error::NoHead { id: id.clone() })?;
    let unmerged = git::status(&project.repo, &dir, false)?.unmerged();
    if !unmerged.is_empty() {
        return Err(git::Error::Unmerged { dir, paths: unmerged }.into());
    }
    let mut announced = project.repo.announced(&dir, None)?;
    announced.retain(|path| !view.record.snapshot.intent_to_add.contains(path));
    if !announced.is_empty() {
        // They are a part of the index alone, and the snapshot brings its own.
        let remedy = git::Remedy::of(&project.repo, &dir, &announced);
        return Err(git::Error::Overlap { dir, paths: announced, remedy }.into());
    }
    let restored = if dry_run { checkout.foresee(&view.record, now)? } else { bring(op, &dir, view, now)? };
    let loose_conflict = match (&restored, view.record.snapshot.untracked_tree) {
        (Restored::Conflict(paths), Some(tree)) => {
            let loose = git::files_of(&project.repo, tree)?;
            let above =
                |path: &RepoPath| loose.iter().any(|l| l == path || l.parents().any(|up| up == *path));
            paths.iter().any(above)
        }
        _ => false,
    };
    let mut ignored_in_the_way = Vec::new();
    if let Some(automatic) = view.record.automatic.as_ref().filter(|_| !dry_run)
        && !matches!(restored, Restored::Conflict(_))
    {
        let copies = project.store.layout().snapshot_ignored(id);
        ignored_in_the_way = ignored_files::give_back(&dir, &copies, &automatic.ignored)?;
    }
    Ok(Brought { restored, dir, loose_conflict, ignored_in_the_way })
}

/// The top folder of the worktree that a snapshot comes back to.
fn target(project: &Project, view: &SnapView, dry_run: bool) -> Result<PathBuf, Error> {
    let id = &view.record.id;
    let none = || Error::NoWorktree { id: id.clone() };
    let Some(automatic) = &view.record.automatic else {
        return Ok(project.repo.here().ok_or_else(none)?.to_owned());
    };
    let Some(lane) = &automatic.lane else { return Ok(project.repo.require_main()?.to_owned()) };
    let lane = project.lane(lane)?;
    if !dry_run && lane.path.symlink_metadata().is_err() {
        make_worktree_again(project, &lane)?;
    }
    Ok(lane.path)
}

/// Makes the worktree of a lane whose folder is gone, at the tip of the lane's branch. A failure takes it back.
fn make_worktree_again(project: &Project, lane: &LaneRecord) -> Result<(), Error> {
    let gone = || Error::Unborn { branch: lane.place.branch.clone() };
    let tip = project.repo.branch_tip(&lane.place.branch)?.ok_or_else(gone)?;
    let _lock = project.store.locks().take(&LockName::Worktrees)?;
    project.repo.forget_worktree(&lane.path)?;
    let made = project.repo.add_worktree(&lane.path, &Head::Branch(lane.place.branch.clone()));
    let filled =
        made.map_err(Error::from).and_then(|()| fill::fill(project, &[lane.path.as_path()], tip).map(drop));
    if filled.is_err() {
        drop(remove_tree(&lane.path));
        drop(project.repo.forget_worktree(&lane.path));
    }
    filled
}

fn bring(op: &Operation<'_>, dir: &Path, view: &SnapView, now: git::Oid) -> Result<Restored, Error> {
    let id = &view.record.id;
    let brought = op.attempt(|| {
        let why = format!("what was there before snapshot {id} came back");
        let mut before = op.copy_of(dir, now, &why)?;
        // What git ignores it does not list.
        let snapshot = &view.record.snapshot;
        let is_there = |path: &&RepoPath| path.under(dir).symlink_metadata().is_ok();
        let folders = snapshot.empty_dirs.iter().filter(|path| path.under(dir).is_dir());
        before.empty_dirs.extend(folders.cloned());
        before.ignored = snapshot.ignored.iter().map(|file| &file.path).filter(is_there).cloned().collect();
        op.wake(id)?;
        let restored = op.restore(dir, id, now, Some(before))?;
        if let Restored::Conflict(paths) = restored {
            // It is not on its way any more.
            let snapshot = view.record.snapshot.commit;
            return Err(Error::DoesNotFit { dir: dir.to_owned(), paths, snapshot });
        }
        op.retire(id)?;
        if let SnapState::Edits(lane) = &view.state {
            op.update_lane(lane, |lane| lane.preview_edits.retain(|edit| edit != id))?;
        }
        Ok(restored)
    });
    match brought {
        Err(Error::DoesNotFit { paths, .. }) => Ok(Restored::Conflict(paths)),
        other => other,
    }
}
