//! Start of a preview: from the user's own branch, or from another lane's preview.

use std::path::Path;

use proq_base::lane_name::LaneName;
use proq_git::base::head::{Head, RefMove};
use proq_git::snapshots::restore_forecast::RestoreOutcome;
use proq_git::status::local_state::LocalState;
use proq_git::{CommitId, Repo, RepoPath};
use proq_store::base::clock::now;
use proq_store::base::id::new_id;
use proq_store::records::lane::{AnyLane, LaneRecord};
use proq_store::records::preview::PreviewRecord;

use super::main_checkout::{MainCheckoutHead, PreviewState};
use super::{Error, leave, main_checkout};
use crate::event::log;
use crate::lane;
use crate::lane::Project;
use crate::lane::state::in_place_guard;
use crate::lane::steps::preview_return;
use crate::operation::journaled_operation::Operation;
use crate::operation::locked_worktree::LockedWorktree;
use crate::operation::run_operation::operate;
use crate::project::repository_file;
use crate::snapshot::snap_restore;

/// Result of entering a preview.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct EnterResult {
    /// Commit of the lane that is shown.
    pub tip: CommitId,
    /// Branch or commit that the preview was entered from.
    pub previous_head: Head,
    /// Whether the user's own changes were parked.
    pub changes_parked: bool,
    /// Number of edits of earlier previews of this lane that were restored.
    pub restored_edits: usize,
    /// Whether the lane was shown before; nothing was done then.
    pub was_shown: bool,
}

/// Shows a lane in the main checkout.
pub fn enter_preview(project: &Project, name: &LaneName) -> Result<EnterResult, Error> {
    let main = project.repo.require_main()?.to_owned();
    project.lane(name)?;
    operate(project, "preview", |op| {
        let checkout = op.lock_worktree(&main)?;
        in_place_guard::require_no_in_place_run(project)?;
        // The record is read again under the lock.
        let lane = project.lane(name)?;
        let current = MainCheckoutHead::read(project, &main)?;
        project.repo.require_index(&main)?;
        let tip = require_lane_tip(&project.repo, &lane)?;
        PreviewEntry { op, main: &main, checkout: &checkout, lane: &lane, tip }.show_lane(&current)
    })
}

/// Returns the tip of a lane's branch.
///
/// # Errors
/// [`Error::LaneBranchGone`].
pub(super) fn require_lane_tip(repo: &Repo, lane: &LaneRecord) -> Result<CommitId, Error> {
    repo.branch_tip(&lane.kind.branch)?.ok_or_else(|| Error::LaneBranchGone { lane: lane.name.clone() })
}

/// Entering the preview of one lane, as part of an operation.
struct PreviewEntry<'a, 'p> {
    op: &'a Operation<'p>,
    main: &'a Path,
    checkout: &'a LockedWorktree<'p>,
    lane: &'a LaneRecord,
    /// Tip of the lane's branch, which is shown.
    tip: CommitId,
}

impl PreviewEntry<'_, '_> {
    /// Shows the lane, from whatever the main checkout is on: the user's branch, or another preview.
    fn show_lane(&self, current: &MainCheckoutHead) -> Result<EnterResult, Error> {
        let Some(preview) = main_checkout::load_preview(&self.op.project.store)? else {
            return self.enter_from_own_branch(current);
        };
        match main_checkout::preview_state(&preview, current) {
            PreviewState::Shown if preview.lane == self.lane.name => Ok(EnterResult {
                tip: preview.tip,
                previous_head: preview.previous_head,
                changes_parked: preview.parked_snapshot.is_some(),
                restored_edits: 0,
                was_shown: true,
            }),
            PreviewState::Shown => self.enter_from_preview(&preview, current),
            PreviewState::AtOrigin => {
                leave::finish_at_origin(self.op, self.checkout, &preview, current)?
                    .warn_conflict(self.op.project);
                // Commits made in that preview may just have been moved to the lane.
                let tip = require_lane_tip(&self.op.project.repo, self.lane)?;
                PreviewEntry { tip, ..*self }.enter_from_own_branch(current)
            }
            PreviewState::Elsewhere => {
                Err(main_checkout::switched_error(&self.op.project.repo, &preview, current))
            }
        }
    }

    /// Enters the preview from a branch or commit of the user, and parks uncommitted changes.
    fn enter_from_own_branch(&self, current: &MainCheckoutHead) -> Result<EnterResult, Error> {
        let reason = format!("changes on {} before the preview of {}", current.head, self.lane.name);
        let scan = self.checkout.scan();
        let ignored = self.checkout.ignored_and_nested(&scan)?;
        let snapshot =
            match self.op.snapshot_files_or_sparse(self.main, current.commit, &reason, &[], &scan)? {
                None if self.checkout.has_user_flags()? => {
                    Some(self.op.snapshot_index(self.main, current.commit, &reason, &[], &scan)?)
                }
                snap => snap,
            };
        let snapshot_id = snapshot.as_ref().map(|s| s.id.clone());
        let mut record = self.create_record(current.head.clone(), current.commit, snapshot_id, ignored);
        record.dropped_state.record_lost_modes(&self.op.project.repo, self.main, current.commit, self.tip)?;
        if let Head::Branch(branch) = &current.head {
            record.is_branch_shared =
                preview_return::existing_worktree_on_branch(&self.op.project.repo, branch, Some(self.main))?
                    .is_some();
        }
        if snapshot.is_none() {
            record.empty_dirs = self.checkout.find_empty_folders(&scan)?;
        }
        // The record is saved before anything moves, so that after a crash the changes can be found.
        main_checkout::save_preview_record(self.op, &record)?;
        if let Some(parked) = snapshot {
            self.op.park_snapshot_files(self.main, &parked.id)?;
        }
        let local_state = record.dropped_state.clone().with_flags(self.checkout.user_flags(None)?);
        self.switch_head(current, &local_state, &[])?;
        self.finish(record, current)
    }

    /// Enters the preview from that of another lane; the user's parked changes stay parked.
    fn enter_from_preview(
        &self,
        previous: &PreviewRecord,
        current: &MainCheckoutHead,
    ) -> Result<EnterResult, Error> {
        let edits = leave::park_edits(self.op, previous, current)?;
        let mut ignored = self.checkout.ignored_and_nested(&self.checkout.scan())?;
        ignored.extend(previous.ignored.iter().cloned());
        ignored.sort();
        ignored.dedup();
        let mut record = self.create_record(
            previous.previous_head.clone(),
            previous.previous_commit,
            previous.parked_snapshot.clone(),
            ignored,
        );
        record.empty_dirs.clone_from(&previous.empty_dirs);
        record.dropped_state.clone_from(&previous.dropped_state);
        record.is_branch_shared = previous.is_branch_shared;
        record.dropped_state.record_lost_modes(&self.op.project.repo, self.main, current.commit, self.tip)?;
        let local_state = leave::state_to_restore(self.op.project, self.checkout, &record)?;
        self.switch_head(current, &local_state, &edits.empty_folders)?;
        main_checkout::save_preview_record(self.op, &record)?;
        leave::delete_preview_branch(self.op, previous, current.commit)?;
        self.finish(record, current)
    }

    /// Creates the record of the preview, without local state. `commit` is that of `previous_head`,
    /// `snapshot` the id of the parked changes.
    fn create_record(
        &self,
        previous_head: Head,
        commit: CommitId,
        snapshot: Option<String>,
        ignored: Vec<RepoPath>,
    ) -> PreviewRecord {
        PreviewRecord {
            ignored,
            empty_dirs: Vec::new(),
            dropped_state: LocalState::default(),
            lane: self.lane.name.clone(),
            branch: self.op.project.preview_branch(&self.lane.name),
            tip: self.tip,
            since: now(),
            previous_head,
            previous_commit: commit,
            is_branch_shared: false,
            parked_snapshot: snapshot,
        }
    }

    /// Creates the preview branch and switches the checkout to it. Files get the permission bits and flags of
    /// `local_state`; the empty folders in `removed_folders` are removed.
    fn switch_head(
        &self,
        current: &MainCheckoutHead,
        local_state: &LocalState,
        removed_folders: &[RepoPath],
    ) -> Result<(), Error> {
        let branch = self.op.project.preview_branch(&self.lane.name);
        let ref_name = format!("refs/heads/{branch}");
        if let Some(old) = self.op.project.repo.branch_tip(&branch)? {
            self.delete_leftover_branch(&ref_name, old)?;
        }
        self.op.create_ref(&ref_name, self.tip)?;
        let ref_move = RefMove::Switch { from: current.head.clone(), to: Head::Branch(branch) };
        Ok(self.op.revert_transition(
            self.main,
            (current.commit, self.tip),
            ref_move,
            local_state,
            removed_folders,
        )?)
    }

    /// Deletes a leftover preview branch; commits that only it has are saved to a ref.
    fn delete_leftover_branch(&self, ref_name: &str, old: CommitId) -> Result<(), Error> {
        let project = self.op.project;
        if !project.repo.is_ancestor(old, self.tip)? {
            let saved_ref = format!("refs/proq/saved/{}-preview-{}", self.lane.name, new_id());
            self.op.anchor(&saved_ref, old)?;
            project.listener.warn(format!("saved commits of an earlier preview as {saved_ref}"));
        }
        Ok(self.op.delete_ref(ref_name, old)?)
    }

    /// Restores earlier edits, schedules hook and event, and returns the result.
    fn finish(&self, record: PreviewRecord, current: &MainCheckoutHead) -> Result<EnterResult, Error> {
        let edits = self.restore_edits()?;
        self.warn_invalid_settings()?;
        let (main, from, tip) = (self.main.to_owned(), current.commit, self.tip);
        self.op.defer(move |project| main_checkout::run_post_checkout_hook(project, &main, from, tip));
        self.op.emit(
            log::EventName::PreviewEntered,
            Some(self.lane),
            format!("the main checkout shows lane '{}'", self.lane.name),
        );
        Ok(EnterResult {
            tip: self.tip,
            previous_head: record.previous_head,
            changes_parked: record.parked_snapshot.is_some(),
            restored_edits: edits,
            was_shown: false,
        })
    }

    /// Warns of a settings file of the lane that is not valid. It does not count while it is shown.
    fn warn_invalid_settings(&self) -> Result<(), Error> {
        let project = self.op.project;
        let (base, tip) = (project.repo.tree_of(self.lane.start)?, project.repo.tree_of(self.tip)?);
        if let Some(error) = repository_file::new_settings_error(&project.repo, base, tip, None)? {
            let name = &self.lane.name;
            project.listener.warn(format!(
                "the proq.toml of '{name}' is not valid, so '{name}' cannot be merged: {error}"
            ));
        }
        Ok(())
    }

    /// Restores the edits made during earlier previews of this lane; edits that conflict stay in their
    /// snapshots.
    fn restore_edits(&self) -> Result<usize, Error> {
        let mut restored = 0;
        for id in &self.lane.preview_edit_snapshots {
            // A missing snapshot was restored before by a process that was interrupted before it could record
            // that.
            let Some(edit_snapshot) = self.op.project.find_unrestored_snap(id)? else {
                if let Some(commit) = self.op.project.orphaned_snap_commit(id)? {
                    self.op.project.listener.warn(format!(
                        "the record of edits of an earlier preview is missing; restore them: git stash apply {}",
                        commit.short_in_command()
                    ));
                }
                self.op.update_lane(&self.lane.name, |lane| {
                    lane.preview_edit_snapshots.retain(|edit| edit != id);
                })?;
                continue;
            };
            match self.restore_edit(id) {
                Ok((RestoreOutcome::Exact | RestoreOutcome::Merged, _)) => restored += 1,
                Ok((RestoreOutcome::Conflict(paths), commit)) => self.warn_edits_saved(commit, &paths),
                Err(_) => self.warn_edits_saved(edit_snapshot.snapshot.commit, &[]),
            }
        }
        Ok(restored)
    }

    /// Warns that edits of an earlier preview conflict, with the git command that restores `commit`.
    fn warn_edits_saved(&self, commit: CommitId, conflicts: &[RepoPath]) {
        self.op.project.listener.warn(format!(
            "edits of an earlier preview conflict now; they are saved: {} {}",
            snap_restore::choose_stash_method(&self.op.project.repo, Some(commit), conflicts).command(),
            commit.short_in_command()
        ));
    }

    /// Restores the edits in snapshot `id` and removes it from the lane's record. Returns the outcome, and
    /// the commit that holds the edits.
    fn restore_edit(&self, id: &String) -> Result<(RestoreOutcome, CommitId), lane::Error> {
        let forget_edit = |lane: &mut AnyLane| lane.preview_edit_snapshots.retain(|edit| edit != id);
        let record_steps = self.op.lane_record_step(&self.lane.name, forget_edit)?.into_iter().collect();
        self.op.restore_then(self.main, id, self.tip, None, record_steps)
    }
}
