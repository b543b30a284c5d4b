//! Kinds of steps: execution, inverse, and recovery of a step that a crashed process left open.

use std::path::Path;

use proq_base::fail_points;
use proq_git as git;
use proq_git::base::head::RefMove;
use proq_git::checkout::{ref_recovery, transition};
use proq_git::repository::worktree_context;
use proq_git::snapshots::recovery::RecoveredStep;
use proq_git::snapshots::restore_forecast::RestoreOutcome;
use proq_git::snapshots::{clear, recovery, restore};
use proq_git::worktrees::worktree::WorktreeList;
use proq_git::{CommitId, Repo};
use proq_store::base::id::new_id;
use proq_store::base::record::Record;
use proq_store::paths::layout::Layout;
use proq_store::records::preview::PreviewRecord;
use proq_store::records::snapshot::SnapshotRecord;
use proq_store::records::step::{PreRestoreState, Step};

use super::missing_worktree;
use crate::lane::context::symbolic_branch::refuse_symbolic_branch;
use crate::lane::operation::journaled_operation::{Operation, StepOutcome};
use crate::lane::operation::locked_worktree::LockedWorktree;
use crate::lane::operation::record_steps::{recover_record, write_record};
use crate::lane::parking::park_changes::preview_ignored_files;
use crate::lane::parking::snapshot_store;
use crate::lane::parking::undo_restore::restore_previous_state;
use crate::lane::state::in_place_guard::require_no_in_place_run;
use crate::lane::worktree::{pool, resolve_worktree, rollback_create};
use crate::lane::{Error, Project};

/// Refuses a step that changes the files of the main checkout while an agent runs there, or whose worktree is
/// missing.
pub fn require_step_allowed(op: &Operation<'_>, step: &Step) -> Result<(), Error> {
    require_step_not_in_place(op, step)?;
    missing_worktree::refuse_missing_worktree(&op.project.repo, step)
}

/// Refuses a step that changes the main checkout's files while an agent runs there, and locks that checkout.
fn require_step_not_in_place(op: &Operation<'_>, step: &Step) -> Result<(), Error> {
    match step {
        Step::Checkout { dir, .. } | Step::ClearWorktree { dir, .. } | Step::RestoreSnapshot { dir, .. }
            if op.project.repo.main_worktree() == Some(dir) =>
        {
            // The checkout's lock is held until the operation ends, so that no in-place run can start before
            // that.
            op.lock_worktree(dir)?;
            require_no_in_place_run(op.project)
        }
        _ => Ok(()),
    }
}

/// Applies a step. If it fails, nothing has changed.
pub fn apply(op: &Operation<'_>, step: &Step, scratch: &Path) -> Result<StepOutcome, Error> {
    let project = op.project;
    refuse_step_on_symbolic_branch(project, step)?;
    match step {
        Step::MoveRef { name, old, new } => {
            let Some(null) = old.or(*new).map(CommitId::null) else { return Ok(StepOutcome::Done) };
            if new.is_none() {
                refuse_checked_out_branch(&project.repo, name)?;
            }
            project.repo.swap_ref(name, new.unwrap_or(null), old.unwrap_or(null), &op.reflog_message())?;
        }
        Step::KeepRef { name, new } => project.repo.create_ref(name, *new, &op.reflog_message())?,
        Step::Checkout { dir, from, to, ref_move: mv, dropped_state: drops, restored_state: local_state } => {
            let message = match mv {
                // `git switch -` reads this message.
                RefMove::Switch { from, to } => format!("checkout: moving from {from} to {to}"),
                _ => op.reflog_message(),
            };
            let checkout = op.lock_worktree(dir)?;
            let local_state = local_state.with_modes(drops);
            checkout
                .with_context(scratch, |tree| {
                    Ok(transition::transition(tree, (*from, *to), mv, &message, &local_state)?)
                })
                .inspect_err(|_| checkout.create_folders(&drops.empty_dirs))?;
            restore_empty_folders(&checkout, step, true);
        }
        Step::ClearWorktree { dir, snapshot_id: snap } => {
            let snapshot = op.load_snapshot(snap)?;
            let parked_dir = snapshot_store::parked_dir(&project.store, snap)?;
            let checkout = op.lock_worktree(dir)?;
            let save_files = |saved| anchor_saved_files(project, saved, "written meanwhile");
            checkout.with_context(scratch, |tree| {
                Ok(clear::clear_worktree(tree, &snapshot, &parked_dir, &save_files)?)
            })?;
        }
        Step::RestoreSnapshot { dir, snapshot_id: snap, head, state_before: before } => {
            let restored = apply_restore(op, dir, snap, *head, before.as_ref(), scratch)?;
            return Ok(StepOutcome::Restored(restored));
        }
        Step::WriteRecord { .. } => {
            let _lock = op.lock_store()?;
            write_record(&project.store, step)?;
        }
        Step::MovePath { from, to } => rename_no_replace(from, to)?,
        Step::RecreateTrash { trash_entry: entry, tip } => {
            pool::recreate_folder(&project.repo, entry, *tip, scratch)?;
        }
        // The data of these steps does not describe all of their work. The planner of the step does it, or it
        // has already been done.
        Step::TakeSnapshot { .. }
        | Step::CreateWorktree { .. }
        | Step::ReuseTrash { .. }
        | Step::CreateResolveWorktree { .. }
        | Step::RecordAgentCommits { .. } => {}
    }
    Ok(StepOutcome::Done)
}

/// Restores a snapshot, given by its id, to the worktree at `dir`, which is at `head`. If that fails, the
/// empty folders of the state `before` are created again.
fn apply_restore(
    op: &Operation<'_>,
    dir: &Path,
    snapshot_id: &str,
    head: CommitId,
    before: Option<&PreRestoreState>,
    scratch: &Path,
) -> Result<RestoreOutcome, Error> {
    let project = op.project;
    let snapshot = op.load_snapshot(snapshot_id)?;
    let raw_index = project.saved_index_path(dir, snapshot_id);
    let parked_dir = snapshot_store::parked_dir(&project.store, snapshot_id)?;
    let checkout = op.lock_worktree(dir)?;
    let empty_dirs = before.map_or(&[][..], |before| &before.empty_dirs);
    let restored = checkout
        .with_context(scratch, |tree| Ok(restore::restore(tree, &snapshot, head, &parked_dir, &raw_index)?))
        .inspect_err(|_| checkout.create_folders(empty_dirs))?;
    // Empty folders would block files that are parked under this name again.
    snapshot_store::prune_parked_folders(&project.store, snapshot_id);
    Ok(restored)
}

/// Restores the empty folders of a worktree after a transition: those of its new commit if the step has
/// happened, otherwise the previous ones. A switch of HEAD removes the empty folders of the branch that it
/// leaves. A moving branch only drops those that files have replaced.
fn restore_empty_folders(checkout: &LockedWorktree<'_>, step: &Step, has_happened: bool) {
    let Step::Checkout { ref_move: mv, dropped_state: drops, restored_state: local_state, .. } = step else {
        return;
    };
    if !has_happened {
        return checkout.create_folders(&drops.empty_dirs);
    }
    if matches!(mv, RefMove::Switch { .. }) {
        checkout.remove_empty_folders(&drops.empty_dirs, &local_state.empty_dirs);
    }
    checkout.create_folders(&local_state.empty_dirs);
}

/// Refuses a step that would move or delete a branch that is a symbolic ref. A checked-out branch of the user
/// may be one: its target moves, as with git. A lane's branch belongs to git-proq, and another program made
/// it symbolic.
fn refuse_step_on_symbolic_branch(project: &Project, step: &Step) -> Result<(), Error> {
    let branch = match step {
        Step::MoveRef { name, old: Some(_), .. } => name.strip_prefix("refs/heads/"),
        Step::Checkout { ref_move: RefMove::Branch(branch), .. } => {
            Some(branch.as_str()).filter(|name| project.is_managed_branch(name))
        }
        _ => None,
    };
    branch.map_or(Ok(()), |branch| refuse_symbolic_branch(&project.repo, branch))
}

/// Refuses to delete a branch that is checked out, since that worktree's HEAD would be invalid.
fn refuse_checked_out_branch(repo: &Repo, name: &str) -> Result<(), Error> {
    let Some(branch) = name.strip_prefix("refs/heads/") else { return Ok(()) };
    match WorktreeList::read(repo)?.on_branch(branch).next() {
        None => Ok(()),
        Some(worktree) => {
            let reason = format!("{} is on it", worktree.path.display());
            Err(git::Error::RefNotMoved { ref_name: branch.to_owned(), reason }.into())
        }
    }
}

/// Reverts a step that has happened, by new steps.
pub fn invert(op: &Operation<'_>, step: &Step) -> Result<(), Error> {
    missing_worktree::refuse_missing_or_replaced(op, step)?;
    match step {
        Step::MoveRef { name, old, new } => {
            op.perform(Step::MoveRef { name: name.clone(), old: *new, new: *old }).map(drop)
        }
        // A reused folder belongs to the new lane and is removed with it. A folder that was created again is
        // complete in its trash entry.
        Step::KeepRef { .. }
        | Step::TakeSnapshot { is_retaken: true, .. }
        | Step::RecordAgentCommits { .. }
        | Step::ReuseTrash { .. }
        | Step::RecreateTrash { .. } => Ok(()),
        Step::Checkout { dir, from, to, ref_move: mv, dropped_state: drops, restored_state: local_state } => {
            op.revert_transition(dir, (*to, *from), mv.inverse(), drops, &local_state.empty_dirs)
        }
        Step::TakeSnapshot { id, .. } if op.is_reverting() => delete_snapshot(op, id),
        Step::TakeSnapshot { id, .. } => op.mark_restored(id),
        Step::ClearWorktree { dir, snapshot_id: snap } => {
            let snapshot = op.load_snapshot(snap)?;
            let head = op.project.repo.head_commit(dir)?.unwrap_or(snapshot.head_commit);
            match op.unpark_snapshot_files(dir, snap, head)? {
                RestoreOutcome::Exact | RestoreOutcome::Merged => {
                    // Older files may have been moved out of the way, and return to this place.
                    snapshot_store::prune_parked_folders(&op.project.store, snap);
                    Ok(())
                }
                RestoreOutcome::Conflict(paths) => {
                    Err(Error::RestoreConflict { dir: dir.clone(), paths, snapshot: snapshot.commit })
                }
            }
        }
        Step::RestoreSnapshot { dir, snapshot_id: snap, state_before: before, .. } => {
            let taken_snap =
                op.undo_restore(dir, snap, before.as_ref(), &preview_ignored_files(op.project, dir)?)?;
            before.as_ref().map_or(Ok(()), |before| restore_previous_state(op, dir, before, taken_snap))
        }
        Step::WriteRecord { path, old, new } => {
            let inverse = Step::WriteRecord { path: path.clone(), old: new.clone(), new: old.clone() };
            op.perform(inverse).map(drop)?;
            restore_preview_empty_folders(op, step)
        }
        Step::MovePath { from, to } => pool::with_recreated_folder(op, to, || op.move_path(to, from)),
        Step::CreateWorktree { dir, lane, start } => {
            rollback_create::roll_back_worktree(op.project, dir, lane, *start)
        }
        Step::CreateResolveWorktree { dir, lane, start } if op.is_reverting() => {
            rollback_create::roll_back_worktree(op.project, dir, lane, *start)
        }
        // Work may have been done in it since.
        Step::CreateResolveWorktree { dir, lane, start } => {
            resolve_worktree::undo_open_resolution(op, lane, dir, *start)
        }
    }
}

/// Finishes the inverse of a step whose last inverse step has happened. Empty folders are restored here,
/// because no step records them.
pub(crate) fn finish_inverse(op: &Operation<'_>, step: &Step) -> Result<(), Error> {
    restore_preview_empty_folders(op, step)?;
    let Step::RestoreSnapshot { dir, snapshot_id: snap, state_before: Some(before), .. } = step else {
        return Ok(());
    };
    if missing_worktree::is_missing_or_replaced(op, step)? {
        return Ok(());
    }
    op.remove_restored_folders(dir, snap, before)?;
    op.lock_worktree(dir)?.create_folders(&before.empty_dirs);
    Ok(())
}

/// Restores the empty folders that the main checkout had before a preview whose record is deleted again. If
/// nothing else had to be parked, only that record names them.
fn restore_preview_empty_folders(op: &Operation<'_>, step: &Step) -> Result<(), Error> {
    let Step::WriteRecord { path, old: None, new: Some(text) } = step else { return Ok(()) };
    if op.store_relative_path(&op.project.store.layout().preview_record()) != *path {
        return Ok(());
    }
    let Ok(record) = toml::from_str::<PreviewRecord>(text) else { return Ok(()) };
    let Some(main) = op.project.repo.main_worktree().filter(|_| !record.empty_dirs.is_empty()) else {
        return Ok(());
    };
    op.lock_worktree(main)?.create_folders(&record.empty_dirs);
    Ok(())
}

/// Deletes a snapshot whose files never left their places, or were restored to them. A snapshot that still
/// holds parked files is only marked as restored.
pub(crate) fn delete_snapshot(op: &Operation<'_>, id: &str) -> Result<(), Error> {
    let name = SnapshotRecord::ref_name(id);
    snapshot_store::prune_parked_folders(&op.project.store, id);
    let dir = op.project.store.layout().snapshot(id);
    // Copied files never left their places, or are restored by now. An unreadable record does not show that
    // they are copies.
    let is_copy = || {
        SnapshotRecord::load_if_exists(&Layout::snapshot_record_in(&dir))
            .is_ok_and(|s| s.is_some_and(|snap| snap.is_copy))
    };
    let files = Layout::parked_files_in(&dir);
    if files.exists() {
        if !is_copy() {
            // The snapshot still holds parked files.
            return op.mark_restored(id);
        }
        // The files are deleted before the record: after a kill, recovery reads from the record that they are
        // copies.
        std::fs::remove_dir_all(&files).map_err(Error::io("remove", &files))?;
        fail_points::hit("snap.emptied");
    }
    if dir.exists() {
        std::fs::remove_dir_all(&dir).map_err(Error::io("remove", &dir))?;
    }
    match op.project.repo.ref_tip(&name)? {
        Some(tip) => op.delete_ref(&name, tip),
        None => Ok(()),
    }
}

/// Recovers a step that a crashed process left open. Afterwards the step has either happened, and this
/// returns true, or it has not.
pub(crate) fn recover_step(op: &Operation<'_>, step: &Step, scratch: &Path) -> Result<bool, Error> {
    let project = op.project;
    if !scratch.exists() {
        // A step creates its scratch folder before anything else, so it has not started.
        return Ok(false);
    }
    if missing_worktree::is_missing_or_replaced(op, step)? {
        return missing_worktree::recover_step_without_worktree(op, step, scratch);
    }
    let recovery = match step {
        Step::RecordAgentCommits { .. } => return Ok(true),
        Step::MoveRef { name, old, new } => {
            ref_recovery::recover_ref_locks(&project.repo, name, *new, scratch)?;
            return Ok(new != old && project.repo.ref_tip(name)? == *new);
        }
        Step::KeepRef { name, new } => {
            ref_recovery::recover_ref_locks(&project.repo, name, Some(*new), scratch)?;
            return Ok(project.repo.ref_tip(name)? == Some(*new));
        }
        Step::TakeSnapshot { id, .. } => {
            ref_recovery::recover_private_ref_lock(&project.repo, &SnapshotRecord::ref_name(id), scratch)?;
            return snapshot_store::recover_unfinished(project, id);
        }
        Step::WriteRecord { path, new, .. } => return recover_record(op, path, new.as_deref()),
        Step::MovePath { from, to } => {
            return Ok(from.symlink_metadata().is_err() && to.symlink_metadata().is_ok());
        }
        Step::ReuseTrash { trash_entry: entry, dir } => return pool::recover_reuse(entry, dir),
        Step::RecreateTrash { trash_entry: entry, .. } => return pool::recover_recreate(entry),
        Step::CreateWorktree { dir, lane, start } | Step::CreateResolveWorktree { dir, lane, start } => {
            rollback_create::roll_back_killed_creation(project, dir, lane, *start, scratch)?;
            return Ok(false);
        }
        Step::Checkout { dir, from, to, ref_move: mv, .. } => {
            let checkout = op.lock_worktree(dir)?;
            let recover = |tree: &worktree_context::WorktreeContext<'_>| {
                Ok(recovery::recover_transition(tree, *from, *to, mv)?)
            };
            let recovery = checkout.with_context(scratch, recover)?;
            restore_empty_folders(&checkout, step, recovery.is_done);
            recovery
        }
        Step::ClearWorktree { dir, snapshot_id: snap }
        | Step::RestoreSnapshot { dir, snapshot_id: snap, .. } => {
            recover_snapshot_step(op, step, dir, snap, scratch)?
        }
    };
    for saved in recovery.saved_commits {
        anchor_saved_files(project, saved, "written after the crash")?;
    }
    Ok(recovery.is_done)
}

/// Recovers a step that was parking the files of a snapshot, given by its id, or restoring them, in the
/// worktree at `dir`.
fn recover_snapshot_step(
    op: &Operation<'_>,
    step: &Step,
    dir: &Path,
    snapshot_id: &str,
    scratch: &Path,
) -> Result<RecoveredStep, Error> {
    let project = op.project;
    let snapshot = op.load_snapshot(snapshot_id)?;
    let parked_dir = snapshot_store::parked_dir(&project.store, snapshot_id)?;
    let raw_index = project.saved_index_path(dir, snapshot_id);
    let recovery = op.lock_worktree(dir)?.with_context(scratch, |tree| match step {
        Step::RestoreSnapshot { head, .. } => {
            Ok(recovery::recover_restore(tree, &snapshot, *head, &parked_dir, &raw_index)?)
        }
        _ => Ok(recovery::recover_clear(tree, &snapshot, &parked_dir)?),
    })?;
    if matches!(step, Step::RestoreSnapshot { .. }) {
        snapshot_store::prune_parked_folders(&project.store, snapshot_id);
    }
    Ok(recovery)
}

/// Creates a ref for a commit of files that would be overwritten, and warns about it.
fn anchor_saved_files(project: &Project, saved: CommitId, origin: &str) -> Result<(), git::Error> {
    let name = format!("refs/proq/saved/crash-{}", new_id());
    project.repo.create_ref(&name, saved, "git-proq: saved")?;
    project
        .listener
        .warn(format!("files that were {origin} are kept: git checkout {name} -- .  brings them here"));
    Ok(())
}

/// Renames a file or folder if the target does not exist.
fn rename_no_replace(from: &Path, to: &Path) -> Result<(), Error> {
    if from.symlink_metadata().is_err() {
        return Err(Error::PathMissing { path: from.to_owned() });
    }
    if to.symlink_metadata().is_ok() {
        return Err(Error::PathTaken { path: to.to_owned() });
    }
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
    }
    std::fs::rename(from, to).map_err(Error::io("move", from))?;
    // If a power cut undid only one side of the rename, the state of both paths would be unknown.
    for dir in [from.parent(), to.parent()].into_iter().flatten() {
        proq_store::base::atomic::sync_dir(dir)?;
    }
    Ok(())
}
