//! Restore of a snapshot on the user's request, to the worktree of the current directory or the one it was
//! taken of.

use std::path::{Path, PathBuf};

use proq_git as git;
use proq_git::base::head::Head;
use proq_git::base::local_changes_remedy;
use proq_git::snapshots::restore_forecast;
use proq_git::snapshots::restore_forecast::RestoreOutcome;
use proq_git::status::status_query;
use proq_git::{CommitId, Repo, RepoPath};
use proq_store::base::file_tree::remove_tree;
use proq_store::locks::lock::LockName;
use proq_store::records::lane::LaneRecord;

use super::ignored_files;
use super::snap_view::{SnapState, SnapView};
use crate::errors::snapshot_error::SnapshotError;
use crate::lane::parking::snapshot_store;
pub use crate::lane::parking::stash_method::{StashMethod, choose_stash_method};
use crate::lane::worktree::populate;
use crate::lane::{Error, Project};
use crate::operation::journaled_operation::Operation;
use crate::operation::run_operation::operate;

/// Result, or forecast, of restoring a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct RestoreReport {
    /// Whether the snapshot was restored exactly, merged, or conflicts.
    pub outcome: RestoreOutcome,
    /// Worktree that the snapshot was restored to.
    pub dir: PathBuf,
    /// Git command for restoring the snapshot if it conflicts.
    pub stash_method: StashMethod,
    /// Ignored files of an automatic snapshot that were not restored, because their paths are taken.
    pub blocked_ignored: Vec<RepoPath>,
    /// Ignored files that were parked with the snapshot, were restored once, and have changed since. No
    /// object holds their old content.
    pub lost_ignored: Vec<RepoPath>,
}

/// Restores a snapshot to the user's current worktree. An automatic snapshot is restored to the worktree that
/// it was taken of, which is created again if it is missing. With `dry_run`, only returns how the snapshot
/// would be restored.
///
/// # Errors
/// [`Error::SnapshotAwaited`] if the open preview will restore it; [`git::Error::LocalChanges`] and similar
/// errors if other changes are in the way. In these cases nothing was changed.
pub fn restore_snapshot(project: &Project, view: &SnapView, dry_run: bool) -> Result<RestoreReport, Error> {
    operate(project, "snap restore", |op| restore_in_operation(op, view, dry_run))
}

/// Restores a snapshot as part of `op`; with `dry_run`, only forecasts the outcome.
fn restore_in_operation(op: &Operation<'_>, view: &SnapView, dry_run: bool) -> Result<RestoreReport, Error> {
    let project = op.project;
    let id = &view.record.id;
    if let SnapState::AwaitsPreviewExit(lane) = &view.state {
        return Err(Error::SnapshotAwaited { snapshot_id: id.clone(), lane: lane.clone() });
    }
    let dir = target_worktree(project, view, dry_run)?;
    let checkout = op.lock_worktree(&dir)?;
    let head = project.repo.head_commit(&dir)?.ok_or_else(|| Error::NoHead { snapshot_id: id.clone() })?;
    let unmerged = status_query::status(&project.repo, &dir, false)?.unmerged();
    if !unmerged.is_empty() {
        return Err(git::Error::Unmerged { dir, unmerged_paths: unmerged }.into());
    }
    let mut intent_to_add = project.repo.intent_to_add_paths(&dir, None)?;
    intent_to_add.retain(|path| !view.record.snapshot.intent_to_add.contains(path));
    if !intent_to_add.is_empty() {
        // Intent-to-add entries exist only in the index, and the snapshot replaces the index.
        return Err(staged_error(&project.repo, &dir, id, intent_to_add));
    }
    let outcome = if dry_run {
        let raw_index = project.saved_index_path(&dir, id);
        snapshot_store::parked_dir(&project.store, id).and_then(|parked_dir| {
            checkout.forecast_restore(&view.record.snapshot, head, &parked_dir, &raw_index)
        })
    } else {
        apply_snapshot(op, &dir, view, head)
    };
    let outcome = outcome.map_err(|e| match &e {
        Error::Git(git::Error::LocalChanges { overlapping_paths: paths, .. })
            if restore_forecast::foreign_staged_paths(&project.repo, &dir, head, &view.record.snapshot)
                .is_ok_and(|staged| staged == *paths) =>
        {
            staged_error(&project.repo, &dir, id, paths.clone())
        }
        _ => e,
    })?;
    let stash_method = match &outcome {
        RestoreOutcome::Conflict(paths) => choose_stash_method(&project.repo, Some(view.commit()), paths),
        RestoreOutcome::Exact | RestoreOutcome::Merged => StashMethod::Apply,
    };
    let mut blocked_ignored = Vec::new();
    if let Some(automatic) = view.record.automatic.as_ref().filter(|_| !dry_run)
        && !matches!(outcome, RestoreOutcome::Conflict(_))
    {
        let copies = project.store.layout().snapshot_ignored_files(id);
        blocked_ignored = ignored_files::restore_ignored(&dir, &copies, &automatic.copied_ignored_files)?;
    }
    let parked_dir = snapshot_store::parked_dir(&project.store, id)?;
    let ignored = view.record.snapshot.ignored.iter();
    let lost = ignored.filter(|file| !file.is_preserved(&project.repo, &dir, &parked_dir));
    let lost_ignored = lost.map(|file| file.path.clone()).collect();
    Ok(RestoreReport { outcome, dir, stash_method, blocked_ignored, lost_ignored })
}

/// Returns the error for an index that must not be replaced, because these paths are staged in it.
fn staged_error(repo: &Repo, dir: &Path, id: &str, paths: Vec<RepoPath>) -> Error {
    let remedy = local_changes_remedy::LocalChangesRemedy::detect(repo, dir, &paths);
    let remedy = Box::new(remedy);
    SnapshotError::Staged { id: id.to_owned(), dir: dir.to_owned(), paths, remedy }.into()
}

/// Returns the top folder of the worktree to which a snapshot is restored.
fn target_worktree(project: &Project, view: &SnapView, dry_run: bool) -> Result<PathBuf, Error> {
    let id = &view.record.id;
    let no_worktree = || Error::NoWorktree { snapshot_id: id.clone() };
    let Some(automatic) = &view.record.automatic else {
        return Ok(project.repo.current_worktree().ok_or_else(no_worktree)?.to_owned());
    };
    let Some(lane) = &automatic.lane else { return Ok(project.repo.require_main()?.to_owned()) };
    let lane = project.lane(lane).map_err(|e| match e {
        Error::UnknownLane { .. } => {
            SnapshotError::LaneRemoved { id: id.clone(), commit: view.commit(), lane: lane.clone() }.into()
        }
        other => other,
    })?;
    if !dry_run && lane.path.symlink_metadata().is_err() {
        recreate_worktree(project, &lane)?;
    }
    Ok(lane.path)
}

/// Creates the worktree of a lane again whose folder is gone, at the tip of the lane's branch. A failure
/// removes it.
fn recreate_worktree(project: &Project, lane: &LaneRecord) -> Result<(), Error> {
    let missing_branch = || Error::UnbornBranch { branch: lane.kind.branch.clone() };
    let tip = project.repo.branch_tip(&lane.kind.branch)?.ok_or_else(missing_branch)?;
    let _lock = project.store.locks().acquire(&LockName::WorktreeList)?;
    project.repo.forget_worktree(&lane.path)?;
    let added = project.repo.add_worktree(&lane.path, &Head::Branch(lane.kind.branch.clone()));
    let populated = added
        .map_err(Error::from)
        .and_then(|()| populate::populate_worktrees(project, &[lane.path.as_path()], tip).map(drop));
    if populated.is_err() {
        drop(remove_tree(&lane.path));
        drop(project.repo.forget_worktree(&lane.path));
    }
    populated
}

/// Saves the present changes, restores the snapshot of `view` to the worktree at `head`, and marks it as
/// restored.
///
/// # Errors
/// [`Error::RestoreConflict`]; the worktree is unchanged then.
fn apply_snapshot(
    op: &Operation<'_>,
    dir: &Path,
    view: &SnapView,
    head: CommitId,
) -> Result<RestoreOutcome, Error> {
    let id = &view.record.id;
    let result = op.attempt_or_revert(|| {
        let reason = format!("what was there before snapshot {id} came back");
        let mut before = op.snapshot_before_restore(dir, head, &reason, id)?;
        // The snapshot of the current contents does not list ignored files.
        let snapshot = &view.record.snapshot;
        let exists = |path: &&RepoPath| path.to_fs_path(dir).symlink_metadata().is_ok();
        let folders = snapshot.empty_dirs.iter().filter(|path| path.to_fs_path(dir).is_dir());
        before.empty_dirs.extend(folders.cloned());
        before.colliding_ignored =
            snapshot.ignored.iter().map(|file| &file.path).filter(exists).cloned().collect();
        op.mark_not_restored(id)?;
        let outcome = op.restore(dir, id, head, Some(before))?;
        if let RestoreOutcome::Conflict(paths) = outcome {
            // The error ends the attempt, so the snapshot is no longer marked as on its way to a worktree.
            let snapshot = view.record.snapshot.commit;
            return Err(Error::RestoreConflict { dir: dir.to_owned(), paths, snapshot });
        }
        op.mark_restored(id)?;
        if let SnapState::AwaitsNextPreview(lane) = &view.state {
            op.update_lane(lane, |lane| lane.preview_edit_snapshots.retain(|edit| edit != id))?;
        }
        Ok(outcome)
    });
    match result {
        Err(Error::RestoreConflict { paths, .. }) => Ok(RestoreOutcome::Conflict(paths)),
        other => other,
    }
}
