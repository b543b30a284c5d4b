//! End of a preview: commits and edits made in it are moved to its lane, and the user's own changes are
//! restored.

use std::path::PathBuf;

use proq_base::explain::shell_quote_path;
use proq_base::lane_name::LaneName;
use proq_git as git;
use proq_git::base::head::{Head, RefMove};
use proq_git::snapshots::restore_forecast::RestoreOutcome;
use proq_git::status::local_state::LocalState;
use proq_git::{CommitId, Repo, RepoPath};
use proq_store::base::id::new_id;
use proq_store::paths::layout::Layout;
use proq_store::records::lane::LaneRecord;
use proq_store::records::preview::PreviewRecord;
use proq_store::records::snapshot::SnapshotRecord;

use super::main_checkout::{MainCheckoutHead, PreviewState};
use super::{Error, main_checkout};
use crate::event::log;
use crate::lane;
use crate::lane::Project;
use crate::lane::parking::pre_restore_state::PreRestoreState;
use crate::lane::state::lane_state::effective_state;
use crate::lane::steps::preview_return;
use crate::operation::journaled_operation::Operation;
use crate::operation::locked_worktree::LockedWorktree;
use crate::operation::run_operation::operate;
use crate::snapshot::snap_restore;

/// Result of leaving a preview.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct LeaveResult {
    /// Lane that was shown.
    pub lane: LaneName,
    /// Branch or commit that the checkout is on now.
    pub head: Head,
    /// Outcome of restoring the user's own changes; none if there were none.
    pub restore_outcome: Option<RestoreOutcome>,
    /// Commit of the snapshot that still has the user's changes, if they conflicted.
    pub conflicting_snapshot: Option<CommitId>,
    /// Edits made during the preview, parked for the next one, as a commit that `git stash apply` reads.
    pub saved_edits: Option<CommitId>,
}

impl LeaveResult {
    /// Warns the user where the parked changes are if they could not be restored.
    pub fn warn_conflict(&self, project: &Project) {
        if let Some(commit) = self.conflicting_snapshot {
            project.listener.warn(format!(
                "your changes from before the preview conflict with {}; they are saved: {} {}",
                self.head,
                snap_restore::choose_stash_method(&project.repo, self.conflicting_snapshot, self.conflicts())
                    .command(),
                commit.short_in_command()
            ));
        }
    }

    /// Returns the paths that kept the user's changes from being restored.
    pub fn conflicts(&self) -> &[RepoPath] {
        match &self.restore_outcome {
            Some(RestoreOutcome::Conflict(paths)) => paths,
            _ => &[],
        }
    }
}

/// Leaves the open preview.
///
/// # Errors
/// [`Error::NoOpenPreview`], [`Error::SwitchedByHand`], [`Error::OriginGone`]; nothing was changed then.
pub fn leave_preview(project: &Project) -> Result<LeaveResult, Error> {
    operate(project, "preview --back", |op| leave_matching(op, |_| true)?.ok_or(Error::NoOpenPreview))
}

/// Leaves the open preview if `is_match` accepts it. Returns none if no such preview is open.
fn leave_matching(
    op: &Operation<'_>,
    is_match: impl Fn(&PreviewRecord) -> bool,
) -> Result<Option<LeaveResult>, Error> {
    let project = op.project;
    let main = project.repo.require_main()?.to_owned();
    let checkout = op.lock_worktree(&main)?;
    // Read under the lock: another process may have left the preview since, or opened another one.
    let Some(preview) = main_checkout::load_preview(&project.store)?.filter(is_match) else {
        return Ok(None);
    };
    let current = MainCheckoutHead::read(project, &main)?;
    match main_checkout::preview_state(&preview, &current) {
        PreviewState::Shown => leave_shown(op, &checkout, &preview, &current).map(Some),
        PreviewState::AtOrigin => finish_at_origin(op, &checkout, &preview, &current).map(Some),
        PreviewState::Elsewhere => Err(main_checkout::switched_error(&project.repo, &preview, &current)),
    }
}

/// Leaves the preview if it shows this lane, before the lane lands or is removed.
pub fn leave_preview_of(op: &Operation<'_>, lane: &LaneName) -> Result<Option<LeaveResult>, Error> {
    let shows_lane = |preview: &PreviewRecord| preview.lane == *lane;
    if main_checkout::load_preview(&op.project.store)?.is_some_and(|preview| shows_lane(&preview)) {
        leave_matching(op, shows_lane)
    } else {
        Ok(None)
    }
}

/// Leaves a preview that the checkout shows: returns to where it was entered from, with the parked changes.
fn leave_shown(
    op: &Operation<'_>,
    checkout: &LockedWorktree<'_>,
    preview: &PreviewRecord,
    current: &MainCheckoutHead,
) -> Result<LeaveResult, Error> {
    let origin = main_checkout::origin_commit(&op.project.repo, preview)?;
    require_origin_free(&op.project.repo, preview)?;
    let edits = park_edits(op, preview, current)?;
    let ref_move = RefMove::Switch { from: current.head.clone(), to: preview.previous_head.clone() };
    let local_state = state_to_restore(op.project, checkout, preview)?;
    op.revert_transition(
        checkout.dir(),
        (current.commit, origin),
        ref_move,
        &local_state,
        &edits.empty_folders,
    )?;
    delete_preview_branch(op, preview, current.commit)?;
    let mut result = restore_user_changes(op, checkout, preview, origin, None)?;
    result.saved_edits = edits.commit;
    let (main, from) = (checkout.dir().to_owned(), current.commit);
    op.defer(move |project| main_checkout::run_post_checkout_hook(project, &main, from, origin));
    Ok(result)
}

/// Returns the permission bits for files that replace those of the preview, and the flags of index entries
/// from before the preview. Flags that were set since belong to the preview alone.
pub(super) fn state_to_restore(
    project: &Project,
    checkout: &LockedWorktree<'_>,
    preview: &PreviewRecord,
) -> Result<LocalState, Error> {
    let saved_index = preview.parked_snapshot.as_ref().map(|id| project.saved_index_path(checkout.dir(), id));
    let flags = match saved_index {
        // Without a snapshot there were no flags and no changes.
        None => LocalState::default(),
        Some(index) => {
            checkout.user_flags(Some(&index).filter(|index| index.exists()).map(PathBuf::as_path))?
        }
    };
    Ok(preview.dropped_state.clone().with_flags(flags))
}

/// Finishes a preview whose checkout is back where it was entered from: only the parked changes are restored.
pub(super) fn finish_at_origin(
    op: &Operation<'_>,
    checkout: &LockedWorktree<'_>,
    preview: &PreviewRecord,
    current: &MainCheckoutHead,
) -> Result<LeaveResult, Error> {
    if let Some(tip) = op.project.repo.branch_tip(&preview.branch)? {
        if tip != preview.tip {
            carry_or_save_commits(op, preview, tip)?;
        }
        delete_preview_branch(op, preview, tip)?;
    }
    let before = state_before_return(op, checkout, preview, current.commit)?;
    restore_user_changes(op, checkout, preview, current.commit, before)
}

/// Saves what the user has changed in the checkout since switching back by hand, so that an undo can separate it
/// from the parked changes. None if there is nothing of the one or the other.
fn state_before_return(
    op: &Operation<'_>,
    checkout: &LockedWorktree<'_>,
    preview: &PreviewRecord,
    origin: CommitId,
) -> Result<Option<PreRestoreState>, Error> {
    let Some(id) = &preview.parked_snapshot else { return Ok(None) };
    let parked = op.project.find_unrestored_snap(id)?.filter(|snap| !op.project.is_snap_lost(snap));
    let Some(parked) = parked else { return Ok(None) };
    let reason = format!("what was there before snapshot {id} came back");
    let before = op.snapshot_before_restore(checkout.dir(), origin, &reason, &parked.id)?;
    Ok(Some(before).filter(|before| before.snapshot_id.is_some()))
}

/// Refuses to return to a branch that is now checked out in another worktree.
pub(super) fn require_origin_free(repo: &Repo, preview: &PreviewRecord) -> Result<(), Error> {
    match (preview_return::origin_branch_elsewhere(repo, preview)?, &preview.previous_head) {
        (Some(dir), Head::Branch(branch)) => Err(Error::OriginTaken { branch: branch.clone(), dir }),
        _ => Ok(()),
    }
}

/// Restores the user's parked changes at the commit `origin`, and removes the preview's record. `before` is the
/// present state of the checkout; none if it is clean.
fn restore_user_changes(
    op: &Operation<'_>,
    checkout: &LockedWorktree<'_>,
    preview: &PreviewRecord,
    origin: CommitId,
    before: Option<PreRestoreState>,
) -> Result<LeaveResult, Error> {
    let mut result = LeaveResult {
        lane: preview.lane.clone(),
        head: preview.previous_head.clone(),
        restore_outcome: None,
        conflicting_snapshot: None,
        saved_edits: None,
    };
    // A missing snapshot was restored before by a process that was interrupted before it could close the
    // preview.
    let mut user_snapshot = match &preview.parked_snapshot {
        Some(id) => op.project.find_unrestored_snap(id)?,
        None => None,
    };
    warn_without_record(op, preview)?;
    if let Some(lost) = user_snapshot.take_if(|snap| op.project.is_snap_lost(snap)) {
        warn_lost(op, &lost);
    }
    if let Some(user_snapshot) = user_snapshot {
        let close_steps = vec![main_checkout::delete_preview_record_step(op)?];
        let (restored, commit) = op
            .restore_then(checkout.dir(), &user_snapshot.id, origin, before, close_steps)
            .map_err(changes_obstructed)?;
        if matches!(restored, RestoreOutcome::Conflict(_)) {
            result.conflicting_snapshot = Some(commit);
        }
        result.restore_outcome = Some(restored);
    }
    checkout.create_folders(&preview.empty_dirs);
    main_checkout::delete_preview_record(op, preview)?;
    let lane = op.project.lane(&preview.lane).ok();
    op.emit(
        log::EventName::PreviewLeft,
        lane.as_ref(),
        format!("the main checkout shows {} again", preview.previous_head),
    );
    Ok(result)
}

/// Warns, once the checkout has left the preview, how to restore the user's changes if the record of their
/// snapshot is missing.
fn warn_without_record(op: &Operation<'_>, preview: &PreviewRecord) -> Result<(), Error> {
    let Some(id) = &preview.parked_snapshot else { return Ok(()) };
    let (name, folder) = (SnapshotRecord::ref_name(id), op.project.store.layout().snapshot(id));
    let message = match op.project.orphaned_snap_commit(id)? {
        Some(commit) => format!(
            "the record of your changes from before the preview is missing; restore them: git stash apply {}; \
             {name} keeps them until you delete it",
            commit.short_in_command()
        ),
        None if !Layout::snapshot_record_in(&folder).exists() => {
            let list_hint = match folder.exists() {
                true => format!("; list the files that are left: ls -R {}", shell_quote_path(&folder)),
                false => String::new(),
            };
            format!(
                "your changes from before the preview are lost: another program deleted their record and {name}{list_hint}"
            )
        }
        None => return Ok(()),
    };
    op.defer(move |project| project.listener.warn(message));
    Ok(())
}

/// Warns, once the checkout has left the preview, that git has lost the user's changes, and names the folder
/// with files that may be left.
fn warn_lost(op: &Operation<'_>, lost: &SnapshotRecord) {
    let (commit, folder) = (lost.snapshot.commit, op.project.store.layout().snapshot(&lost.id));
    op.defer(move |project| {
        project.listener.warn(format!(
            "git has lost your changes from before the preview (commit {}, which no ref kept); list the files that are left: ls -R {}",
            commit.short(),
            shell_quote_path(&folder)
        ));
    });
}

/// Converts an error about obstacles to [`Error::ChangesObstructed`]. The usual hint, to commit or stash the
/// obstacles, would be wrong while the user's changes are parked.
fn changes_obstructed(e: lane::Error) -> Error {
    match e {
        lane::Error::Git(
            git::Error::LocalChanges { overlapping_paths: paths, .. }
            | git::Error::Obstructed { obstructing_paths: paths, .. },
        ) => Error::ChangesObstructed { blocking_paths: paths },
        other => other.into(),
    }
}

/// Edits made in a preview that is left.
pub(super) struct ParkedEdits {
    /// Parked edits, as a commit that `git stash apply` reads; none if there were none.
    pub(super) commit: Option<CommitId>,
    /// Empty folders, if there were no other edits; they are still there and are removed with the preview.
    pub(super) empty_folders: Vec<RepoPath>,
}

/// Moves commits made in the preview to the lane, and parks uncommitted edits for the lane's next preview.
/// Afterwards the checkout is clean.
pub(super) fn park_edits(
    op: &Operation<'_>,
    preview: &PreviewRecord,
    current: &MainCheckoutHead,
) -> Result<ParkedEdits, Error> {
    if current.commit != preview.tip {
        carry_or_save_commits(op, preview, current.commit)?;
    }
    let main = op.project.repo.require_main()?;
    let reason = format!("edits made in the preview of {}", preview.lane);
    let initial_folders = initial_empty_folders(op.project, preview)?;
    let checkout = op.lock_worktree(main)?;
    let scan = checkout.scan();
    let Some(edit_snapshot) =
        op.snapshot_files_or_sparse(main, current.commit, &reason, &preview.excluded_paths(main), &scan)?
    else {
        // Git does not record empty folders, so an empty folder of the preview is no work for which a lane
        // would be kept.
        let mut folders = checkout.find_empty_folders(&scan)?;
        folders.retain(|folder| !initial_folders.contains(folder));
        return Ok(ParkedEdits { commit: None, empty_folders: folders });
    };
    if op.project.lane(&preview.lane).is_ok() {
        op.update_lane(&preview.lane, |lane| lane.preview_edit_snapshots.push(edit_snapshot.id.clone()))?;
    } else {
        op.project.listener.warn(format!(
            "lane '{}' no longer exists; the edits made in its preview are saved: git stash apply {}",
            preview.lane,
            edit_snapshot.snapshot.commit.short_in_command()
        ));
    }
    op.park_snapshot_files(main, &edit_snapshot.id)?;
    checkout.remove_empty_folders(&edit_snapshot.snapshot.empty_dirs, &initial_folders);
    Ok(ParkedEdits { commit: Some(edit_snapshot.snapshot.commit), empty_folders: Vec::new() })
}

/// Returns the empty folders that the checkout had before the preview.
fn initial_empty_folders(project: &Project, preview: &PreviewRecord) -> Result<Vec<RepoPath>, Error> {
    let snapshot =
        preview.parked_snapshot.as_ref().map(|id| project.find_unrestored_snap(id)).transpose()?.flatten();
    Ok([preview.empty_dirs.clone(), snapshot.map(|snap| snap.snapshot.empty_dirs).unwrap_or_default()]
        .concat())
}

/// Moves commits made in the preview to the lane if no agent works in it and it has not moved; otherwise
/// saves them to a ref.
fn carry_or_save_commits(
    op: &Operation<'_>,
    preview: &PreviewRecord,
    preview_tip: CommitId,
) -> Result<(), Error> {
    match decide_carry(op.project, preview, preview_tip)? {
        CommitCarry::NotNeeded => return Ok(()),
        CommitCarry::FastForward { lane, tip } if carry_commits(op, &lane, tip, preview_tip)? => {
            // The move is undone if the preview cannot be left, so the message waits for the end of the
            // operation.
            op.defer(move |project| {
                project
                    .listener
                    .step_done(format!("moved the commits made in the preview to lane '{}'", lane.name));
            });
            return Ok(());
        }
        CommitCarry::FastForward { .. } | CommitCarry::Impossible => {}
    }
    let saved_ref = format!("refs/proq/saved/{}-preview-{}", preview.lane, new_id());
    op.anchor(&saved_ref, preview_tip)?;
    op.project.listener.warn(format!(
        "cannot move the commits made in the preview to lane '{}'; they are saved as {saved_ref}",
        preview.lane
    ));
    Ok(())
}

/// What happens to the commits of a preview that ends.
enum CommitCarry {
    /// The lane, or the branch that the preview was entered from, has all of the commits already.
    NotNeeded,
    /// The branch of this lane, which is at `tip`, can be fast-forwarded to them.
    FastForward { lane: Box<LaneRecord>, tip: CommitId },
    /// The commits cannot be moved: an agent works in the lane, or the lane has moved.
    Impossible,
}

/// Decides what happens to the commits made in a preview.
fn decide_carry(
    project: &Project,
    preview: &PreviewRecord,
    preview_tip: CommitId,
) -> Result<CommitCarry, Error> {
    if let Ok(origin) = main_checkout::origin_commit(&project.repo, preview)
        && project.repo.is_ancestor(preview_tip, origin)?
    {
        // The preview was reset by hand to a commit that the base has.
        return Ok(CommitCarry::NotNeeded);
    }
    let Ok(lane) = project.lane(&preview.lane) else { return Ok(CommitCarry::Impossible) };
    let (state, _) = effective_state(project, &lane)?;
    let is_busy = state.is_busy();
    let Some(tip) = project.repo.branch_tip(&lane.kind.branch)? else { return Ok(CommitCarry::Impossible) };
    if project.repo.is_ancestor(preview_tip, tip)? {
        // The lane lacks no commit; the preview may have been reset by hand.
        return Ok(CommitCarry::NotNeeded);
    }
    if is_busy || !lane.path.exists() || !project.repo.is_ancestor(tip, preview_tip)? {
        return Ok(CommitCarry::Impossible);
    }
    Ok(CommitCarry::FastForward { lane: Box::new(lane), tip })
}

/// Returns the tip that a lane will have once its open preview has been left; none if that does not move it.
///
/// # Errors
/// Fails when the preview, the lane or a branch cannot be read.
pub fn carried_tip(project: &Project, lane: &LaneName) -> Result<Option<CommitId>, Error> {
    let Some(preview) = main_checkout::load_preview(&project.store)?.filter(|p| p.lane == *lane) else {
        return Ok(None);
    };
    match project.repo.branch_tip(&preview.branch)?.filter(|tip| *tip != preview.tip) {
        Some(tip) => match decide_carry(project, &preview, tip)? {
            CommitCarry::FastForward { .. } => Ok(Some(tip)),
            CommitCarry::NotNeeded | CommitCarry::Impossible => Ok(None),
        },
        None => Ok(None),
    }
}

/// Moves a lane's branch and worktree forward to commits of its preview. Returns whether they are in the lane.
fn carry_commits(
    op: &Operation<'_>,
    lane: &LaneRecord,
    tip: CommitId,
    preview_tip: CommitId,
) -> Result<bool, Error> {
    let move_lane = || op.transition(&lane.path, tip, preview_tip, RefMove::Branch(lane.kind.branch.clone()));
    // A second attempt covers transient failures; a lasting obstacle fails again.
    match move_lane().or_else(|e| if e.is_stuck() { Err(e) } else { move_lane() }) {
        Ok(()) => Ok(true),
        Err(e) if e.is_stuck() => Err(e.into()),
        Err(_) => Ok(false),
    }
}

/// Deletes the preview branch; its commits have been moved or saved before.
pub(super) fn delete_preview_branch(
    op: &Operation<'_>,
    preview: &PreviewRecord,
    tip: CommitId,
) -> Result<(), Error> {
    Ok(op.delete_ref(&format!("refs/heads/{}", preview.branch), tip)?)
}
