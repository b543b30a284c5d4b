//! The step that restores the content of a snapshot.

use std::path::{Path, PathBuf};

use proq_git::CommitId;
use proq_git::snapshots::restore_forecast::RestoreOutcome;
use proq_git::snapshots::truncated_files::WorktreeStep;
use proq_git::snapshots::{recovery, restore};
use serde::{Deserialize, Serialize};

use super::clear_worktree::ClearWorktree;
use super::pre_restore_state::PreRestoreState;
use super::snapshot_store::{self, anchor_recovered_files};
use super::undo_forecast::check_parking_undo;
use crate::lane::Error;
use crate::lane::state::in_place_guard::require_free_checkout;
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::missing_worktree;
use crate::operation::journaled_operation::step::effects::{Effect, SummarizedSteps};
use crate::operation::journaled_operation::step::undo::{StepUndo, UndoForecast};
use crate::operation::journaled_operation::step::{Step, StepOutcome};

/// Restore of the content of a snapshot to a worktree.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename = "restore")]
pub struct RestoreSnapshot {
    /// Top folder of the worktree.
    #[serde(with = "proq_store::paths::path_form")]
    pub dir: PathBuf,
    /// Id of the snapshot.
    #[serde(rename = "snap")]
    pub snapshot_id: String,
    /// Commit that the worktree has checked out.
    pub head: CommitId,
    /// State of the worktree before the restore, where it was not certainly clean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "before")]
    pub state_before: Option<PreRestoreState>,
    /// Whether a landing or its undo took the snapshot to move the branch (`--autostash`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "autostash")]
    pub is_autostash: bool,
}

/// Returns whether a step restores a snapshot to the worktree at `dir`.
pub(crate) fn is_restore_to(step: &dyn Step, dir: &Path) -> bool {
    step.downcast_ref().is_some_and(|restore: &RestoreSnapshot| restore.dir == dir)
}

impl Step for RestoreSnapshot {
    fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        vec![&mut self.dir]
    }

    fn changed_worktree(&self) -> Option<&Path> {
        Some(&self.dir)
    }

    fn parked_worktree(&self) -> Option<&Path> {
        Some(&self.dir)
    }

    fn effect(&self, _summarized: &SummarizedSteps<'_>) -> Option<Effect> {
        Some(Effect::Clause("changes restored".to_owned()))
    }

    fn log_line(&self) -> Option<String> {
        Some(format!("{}: changes of {} restored", self.dir.display(), self.snapshot_id))
    }

    fn require_startable(&self, op: &Operation<'_>) -> Result<(), Error> {
        require_free_checkout(op, &self.dir)
    }

    /// Returns a [`RestoreOutcome`] as the result. A conflict changes nothing. If the restore fails, the empty
    /// folders of the state before are created again.
    fn apply(&self, op: &Operation<'_>, scratch: &Path) -> Result<StepOutcome, Error> {
        let RestoreSnapshot { dir, snapshot_id, head, state_before, is_autostash } = self;
        let project = op.project;
        let snapshot = op.load_snapshot(snapshot_id)?;
        let raw_index = project.saved_index_path(dir, snapshot_id);
        let parked_dir = snapshot_store::parked_dir(&project.store, snapshot_id)?;
        let checkout = op.lock_worktree(dir)?;
        let empty_dirs = state_before.as_ref().map_or(&[][..], |before| &before.empty_dirs);
        let restored = checkout
            .with_context(scratch, |tree| {
                Ok(restore::restore(tree, &snapshot, *head, &parked_dir, &raw_index)?)
            })
            .inspect_err(|_| checkout.create_folders(empty_dirs));
        let restored = match restored {
            Err(e) if *is_autostash => return Err(op.explain_kept_changes(self, &snapshot, e)),
            restored => restored?,
        };
        if *is_autostash {
            op.save_late_writes(dir, snapshot_id, Some(scratch));
        }
        // Empty folders would block files that are parked under this name again.
        snapshot_store::prune_parked_folders(&project.store, snapshot_id);
        let has_happened = !matches!(restored, RestoreOutcome::Conflict(_));
        if *is_autostash {
            op.note_autostash_outcome(self, &snapshot, &restored);
        }
        Ok(StepOutcome::with_result(has_happened, restored))
    }

    fn invert(&self, op: &Operation<'_>) -> Result<(), Error> {
        let RestoreSnapshot { dir, snapshot_id, state_before, is_autostash, .. } = self;
        if *is_autostash && !op.is_reverting() {
            return op.take_carried_changes(dir, snapshot_id);
        }
        let ignored_files = op.project.preview_ignored_files(dir)?;
        let taken_snap = op.undo_restore(dir, snapshot_id, state_before.as_ref(), &ignored_files)?;
        if *is_autostash {
            op.mark_returned(snapshot_id, false);
        }
        state_before.as_ref().map_or(Ok(()), |before| op.restore_previous_state(dir, before, taken_snap))
    }

    /// The inverse takes a snapshot of the current contents, clears the worktree, and then restores the previous
    /// contents.
    fn is_reverted_by(&self, inverse: &dyn Step) -> bool {
        match self.state_before.as_ref().and_then(|before| before.snapshot_id.as_ref()) {
            Some(before) => inverse.downcast_ref().is_some_and(|step: &Self| step.snapshot_id == *before),
            None => inverse.downcast_ref::<ClearWorktree>().is_some(),
        }
    }

    fn finish_inverse(&self, op: &Operation<'_>) -> Result<(), Error> {
        let RestoreSnapshot { dir, snapshot_id, state_before: Some(before), .. } = self else {
            return Ok(());
        };
        if missing_worktree::is_missing_or_replaced(op, self)? {
            return Ok(());
        }
        op.remove_restored_folders(dir, snapshot_id, before)?;
        op.lock_worktree(dir)?.create_folders(&before.empty_dirs);
        Ok(())
    }

    fn check_undo(&self, undo: &StepUndo<'_, '_>, forecast: &mut UndoForecast) -> Result<(), Error> {
        if self.is_autostash {
            undo.op.forecast_carried_changes(&self.dir, true);
            return Ok(());
        }
        check_parking_undo(self, undo, forecast, None)
    }

    fn recover(&self, op: &Operation<'_>, scratch: &Path) -> Result<bool, Error> {
        let RestoreSnapshot { dir, snapshot_id, head, .. } = self;
        let project = op.project;
        let snapshot = op.load_snapshot(snapshot_id)?;
        let parked_dir = snapshot_store::parked_dir(&project.store, snapshot_id)?;
        let raw_index = project.saved_index_path(dir, snapshot_id);
        let recovered = op.lock_worktree(dir)?.with_context(scratch, |tree| {
            Ok(recovery::recover_restore(tree, &snapshot, *head, &parked_dir, &raw_index)?)
        })?;
        snapshot_store::prune_parked_folders(&project.store, snapshot_id);
        let has_happened = anchor_recovered_files(project, recovered)?;
        if has_happened && self.is_autostash {
            op.mark_returned(snapshot_id, true);
        }
        Ok(has_happened)
    }

    fn written_files(&self, op: &Operation<'_>) -> Option<WorktreeStep> {
        let snapshot = op.load_snapshot(&self.snapshot_id).ok()?;
        Some(WorktreeStep::Restored { snapshot, onto: self.head })
    }
}
