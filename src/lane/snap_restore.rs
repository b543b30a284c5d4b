//! Owns bringing a snapshot back when somebody asks for it, onto the worktree they stand in.

use std::path::{Path, PathBuf};

use super::{
    Error, Operation, Project, SnapState, SnapView, SnapshotError, fill, ignored_files, operate, snaps,
};
use crate::git::{self, Head, Oid, RepoPath, Restored};
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
    /// How git brings it back where it conflicts.
    pub(crate) way_back: WayBack,
    /// Ignored files of an automatic snapshot that were not brought back, since something else stands in their places.
    pub(crate) ignored_in_the_way: Vec<RepoPath>,
    /// Ignored files that were set aside with it, came back with it once, and are not as they were any more: no object has them.
    pub(crate) ignored_gone: Vec<RepoPath>,
}

/// How plain git brings back a snapshot that conflicts with what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WayBack {
    /// Onto what is there, with markers where it conflicts.
    Apply,
    /// On a branch that begins where it was taken. Git puts no untracked file over one that is there; on its own base it always fits.
    Branch,
}

impl WayBack {
    /// The command, which ends with the snapshot's commit.
    pub(crate) fn command(self) -> &'static str {
        match self {
            WayBack::Apply => "git stash apply",
            WayBack::Branch => "git stash branch NAME",
        }
    }

    /// The outcome of the command.
    pub(crate) fn aim(self) -> &'static str {
        match self {
            WayBack::Apply => "and resolve",
            WayBack::Branch => "on a branch of its own",
        }
    }
}

/// How git brings a snapshot back that conflicts at these paths, by its commit.
pub(crate) fn way_back(project: &Project, commit: Option<Oid>, conflicts: &[RepoPath]) -> WayBack {
    // The third parent of a commit in the shape of a stash has the untracked files.
    let untracked = commit.and_then(|commit| project.repo.require_commit(&format!("{commit}^3")).ok());
    let loose = untracked.and_then(|tree| git::files_of(&project.repo, tree).ok()).unwrap_or_default();
    let is_at = |path: &RepoPath, other: &RepoPath| path == other || path.parents().any(|up| up == *other);
    let meets = |path: &RepoPath| loose.iter().any(|file| is_at(file, path) || is_at(path, file));
    if conflicts.iter().any(meets) { WayBack::Branch } else { WayBack::Apply }
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
        return Err(staged(project, &dir, id, announced));
    }
    let restored = if dry_run { checkout.foresee(&view.record, now) } else { bring(op, &dir, view, now) };
    let restored = restored.map_err(|e| match &e {
        Error::Git(git::Error::Overlap { paths, .. })
            if git::staged_beside(&project.repo, &dir, now, &view.record.snapshot)
                .is_ok_and(|staged| staged == *paths) =>
        {
            staged(project, &dir, id, paths.clone())
        }
        _ => e,
    })?;
    let way_back = match &restored {
        Restored::Conflict(paths) => way_back(project, Some(view.commit()), paths),
        Restored::Exactly | Restored::Merged => WayBack::Apply,
    };
    let mut ignored_in_the_way = Vec::new();
    if let Some(automatic) = view.record.automatic.as_ref().filter(|_| !dry_run)
        && !matches!(restored, Restored::Conflict(_))
    {
        let copies = project.store.layout().snapshot_ignored(id);
        ignored_in_the_way = ignored_files::give_back(&dir, &copies, &automatic.ignored)?;
    }
    let aside = snaps::aside(project, id)?;
    let ignored = view.record.snapshot.ignored.iter();
    let gone = ignored.filter(|file| !file.is_kept(&project.repo, &dir, &aside));
    let ignored_gone = gone.map(|file| file.path.clone()).collect();
    Ok(Brought { restored, dir, way_back, ignored_in_the_way, ignored_gone })
}

/// The refusal to replace an index in which these paths are staged.
fn staged(project: &Project, dir: &Path, id: &str, paths: Vec<RepoPath>) -> Error {
    let remedy = git::Remedy::of(&project.repo, dir, &paths);
    let remedy = Box::new(remedy);
    SnapshotError::Staged { id: id.to_owned(), dir: dir.to_owned(), paths, remedy }.into()
}

/// The top folder of the worktree that a snapshot comes back to.
fn target(project: &Project, view: &SnapView, dry_run: bool) -> Result<PathBuf, Error> {
    let id = &view.record.id;
    let none = || Error::NoWorktree { id: id.clone() };
    let Some(automatic) = &view.record.automatic else {
        return Ok(project.repo.here().ok_or_else(none)?.to_owned());
    };
    let Some(lane) = &automatic.lane else { return Ok(project.repo.require_main()?.to_owned()) };
    let lane = project.lane(lane).map_err(|e| match e {
        Error::Unknown { name, .. } => {
            SnapshotError::Lane { id: id.clone(), commit: view.commit(), lane: name }.into()
        }
        other => other,
    })?;
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

fn bring(op: &Operation<'_>, dir: &Path, view: &SnapView, now: Oid) -> Result<Restored, Error> {
    let id = &view.record.id;
    let brought = op.attempt(|| {
        let why = format!("what was there before snapshot {id} came back");
        let mut before = op.copy_of(dir, now, &why, id)?;
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
