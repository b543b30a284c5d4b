//! The step that parks the content of a snapshot.

use std::path::{Path, PathBuf};

use proq_git::snapshots::restore_forecast::RestoreOutcome;
use proq_git::snapshots::truncated_files::WorktreeStep;
use proq_git::snapshots::{clear, recovery};
use serde::{Deserialize, Serialize};

use super::snapshot_store::{self, anchor_recovered_files, anchor_saved_files};
use super::undo_forecast::check_parking_undo;
use crate::lane::Error;
use crate::lane::state::in_place_guard::require_free_checkout;
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::effects::{Effect, SummarizedSteps};
use crate::operation::journaled_operation::step::undo::{StepUndo, UndoForecast};
use crate::operation::journaled_operation::step::{Step, StepOutcome};

/// Move of the content of a snapshot out of a worktree, which is clean afterwards.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename = "clear")]
pub struct ClearWorktree {
    /// Top folder of the worktree.
    #[serde(with = "proq_store::paths::path_form")]
    pub dir: PathBuf,
    /// Id of the snapshot.
    #[serde(rename = "snap")]
    pub snapshot_id: String,
    /// Whether a landing or its undo restores the changes again after it has moved the branch (`--autostash`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "autostash")]
    pub is_autostash: bool,
}

impl Step for ClearWorktree {
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
        Some(Effect::Minor("changes set aside".to_owned()))
    }

    fn log_line(&self) -> Option<String> {
        Some(format!("{}: changes set aside as {}", self.dir.display(), self.snapshot_id))
    }

    fn require_startable(&self, op: &Operation<'_>) -> Result<(), Error> {
        require_free_checkout(op, &self.dir)
    }

    fn apply(&self, op: &Operation<'_>, scratch: &Path) -> Result<StepOutcome, Error> {
        let snapshot = op.load_snapshot(&self.snapshot_id)?;
        let parked_dir = snapshot_store::parked_dir(&op.project.store, &self.snapshot_id)?;
        let checkout = op.lock_worktree(&self.dir)?;
        let save_files = |saved| anchor_saved_files(op.project, saved, "written meanwhile");
        checkout.with_context(scratch, |tree| {
            Ok(clear::clear_worktree(tree, &snapshot, &parked_dir, &save_files)?)
        })?;
        Ok(StepOutcome::done())
    }

    fn invert(&self, op: &Operation<'_>) -> Result<(), Error> {
        let ClearWorktree { dir, snapshot_id, is_autostash } = self;
        if *is_autostash && !op.is_reverting() {
            return op.return_carried_changes(dir, snapshot_id);
        }
        let snapshot = op.load_snapshot(snapshot_id)?;
        let head = op.project.repo.head_commit(dir)?.unwrap_or(snapshot.head_commit);
        let outcome = op.unpark_snapshot_files(dir, snapshot_id, head).map_err(|e| match is_autostash {
            true => op.explain_unreturned_changes(dir, snapshot_id, e),
            false => e,
        })?;
        match outcome {
            RestoreOutcome::Exact | RestoreOutcome::Merged => {
                // Older files may have been moved out of the way, and return to this place.
                snapshot_store::prune_parked_folders(&op.project.store, snapshot_id);
                Ok(())
            }
            RestoreOutcome::Conflict(paths) => {
                Err(Error::RestoreConflict { dir: dir.clone(), paths, snapshot: snapshot.commit })
            }
        }
    }

    fn check_undo(&self, undo: &StepUndo<'_, '_>, forecast: &mut UndoForecast) -> Result<(), Error> {
        if self.is_autostash {
            undo.op.forecast_carried_changes(&self.dir, false);
            return Ok(());
        }
        check_parking_undo(self, undo, forecast, Some(&self.snapshot_id))
    }

    fn recover(&self, op: &Operation<'_>, scratch: &Path) -> Result<bool, Error> {
        let snapshot = op.load_snapshot(&self.snapshot_id)?;
        let parked_dir = snapshot_store::parked_dir(&op.project.store, &self.snapshot_id)?;
        // A broken index of the snapshot is set aside.
        drop(op.project.saved_index_path(&self.dir, &self.snapshot_id));
        let recovered = op
            .lock_worktree(&self.dir)?
            .with_context(scratch, |tree| Ok(recovery::recover_clear(tree, &snapshot, &parked_dir)?))?;
        Ok(anchor_recovered_files(op.project, recovered)?)
    }

    fn recover_without_worktree(
        &self,
        _op: &Operation<'_>,
        admin: Option<PathBuf>,
        scratch: &Path,
    ) -> Result<bool, Error> {
        recovery::release_step_locks(admin.as_deref(), scratch)?;
        Ok(true)
    }

    fn written_files(&self, op: &Operation<'_>) -> Option<WorktreeStep> {
        op.load_snapshot(&self.snapshot_id).ok().map(WorktreeStep::Cleared)
    }
}
