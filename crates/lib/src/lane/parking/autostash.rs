//! Uncommitted changes that are carried over the move of a branch: a landing with `--autostash` saves them, moves
//! the branch and restores them, and so does its undo.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proq_git::CommitId;
use proq_git::snapshots::late_writes;
use proq_git::snapshots::restore_forecast::RestoreOutcome;
use proq_git::snapshots::snapshot::Snapshot;
use proq_store::base::clock::now;
use proq_store::base::record::Record;
use proq_store::records::snapshot::SnapshotRecord;

use super::clear_worktree::ClearWorktree;
use super::restore_snapshot::RestoreSnapshot;
use super::snapshot_store;
use crate::errors::snapshot_error::SnapshotError;
use crate::lane::Error;
use crate::operation::journaled_operation::Operation;
use crate::operation::journaled_operation::step::BoxedStep;

/// Outcomes of the restores of this process, by the id of the snapshot.
#[derive(Default)]
struct RestoreOutcomes(BTreeMap<String, RestoreOutcome>);

/// Snapshots that this process restores as planned: the planner reports what could not be restored.
#[derive(Default)]
struct OwnSnapshots(BTreeSet<String>);

/// Changes that an undo has taken from worktrees, by their top folders.
#[derive(Default)]
struct CarriedChanges(BTreeMap<PathBuf, Carried>);

/// Worktrees whose changes an undo would take from them before it moves their branch.
#[derive(Default)]
struct ForecastWorktrees(BTreeSet<PathBuf>);

/// Changes that an undo has taken from a worktree.
struct Carried {
    /// Id of the snapshot that has them; none if there were none.
    snapshot_id: Option<String>,
    /// Whether they are still what the undone restore made of its snapshot. Then that snapshot returns, which has
    /// the files as they were before they were merged.
    is_untouched: bool,
}

/// Returns the step that restores snapshot `id` to the worktree at `dir`, which is then clean at `head`.
pub(crate) fn restore_step(dir: &Path, id: &str, head: CommitId) -> BoxedStep {
    BoxedStep::from(RestoreSnapshot {
        dir: dir.to_owned(),
        snapshot_id: id.to_owned(),
        head,
        state_before: None,
        is_autostash: true,
    })
}

impl Operation<'_> {
    /// Marks a snapshot as restored, or no longer so when the restore is reverted. The step that restores it includes
    /// this, since a step of its own would follow a conflict too. If it fails, the snapshot only stays longer than
    /// necessary.
    pub(super) fn mark_returned(&self, id: &str, is_returned: bool) {
        let path = self.project.store.layout().snapshot_record(id);
        if let Ok(Some(record)) = SnapshotRecord::load_if_exists(&path)
            && record.restored.is_some() != is_returned
        {
            drop(SnapshotRecord { restored: is_returned.then(now), ..record }.save(&path));
        }
    }

    /// Records in the forecast of an undo whether the changes of the worktree at `dir` are out of it by then.
    pub(super) fn forecast_carried_changes(&self, dir: &Path, is_taken: bool) {
        self.with_memory(|forecast: &mut ForecastWorktrees| match is_taken {
            true => forecast.0.insert(dir.to_owned()),
            false => forecast.0.remove(dir),
        });
    }

    /// Returns whether an undo would have taken the changes from the worktree at `dir` by now.
    pub(crate) fn is_carried_in_forecast(&self, dir: &Path) -> bool {
        self.with_memory(|forecast: &mut ForecastWorktrees| forecast.0.contains(dir))
    }

    /// Parks the changes that snapshot `id` holds, to restore them after a branch has moved.
    pub(crate) fn park_autostash(&self, dir: &Path, id: &str) -> Result<(), Error> {
        self.with_memory(|own: &mut OwnSnapshots| own.0.insert(id.to_owned()));
        let step = ClearWorktree { dir: dir.to_owned(), snapshot_id: id.to_owned(), is_autostash: true };
        self.perform(step).map(drop)
    }

    /// Returns how this process restored snapshot `id`; none if it did not.
    pub(crate) fn autostash_outcome(&self, id: &str) -> Option<RestoreOutcome> {
        self.with_memory(|outcomes: &mut RestoreOutcomes| outcomes.0.get(id).cloned())
    }

    /// Notes the outcome of a restore, and marks a restored snapshot. Warns of a conflict if the process that
    /// parked the changes was killed.
    pub(super) fn note_autostash_outcome(
        &self,
        step: &RestoreSnapshot,
        snapshot: &Snapshot,
        outcome: &RestoreOutcome,
    ) {
        let RestoreSnapshot { dir, snapshot_id: id, .. } = step;
        self.with_memory(|outcomes: &mut RestoreOutcomes| outcomes.0.insert(id.clone(), outcome.clone()));
        let RestoreOutcome::Conflict(paths) = outcome else { return self.mark_returned(id, true) };
        if !self.with_memory(|own: &mut OwnSnapshots| own.0.contains(id)) {
            self.project.listener.warn(format!(
                "your changes in {} conflict with what was merged in {}; they are saved: git stash apply {}",
                dir.display(),
                proq_git::base::error::list_paths(paths),
                snapshot.commit.short_in_command()
            ));
        }
    }

    /// Returns the error of a restore that failed with `e`. It names the snapshot if the process that parked the
    /// changes was killed.
    pub(super) fn explain_kept_changes(
        &self,
        step: &RestoreSnapshot,
        snapshot: &Snapshot,
        e: Error,
    ) -> Error {
        if e.is_stuck() || self.with_memory(|own: &mut OwnSnapshots| own.0.contains(&step.snapshot_id)) {
            return e;
        }
        let (dir, commit) = (step.dir.clone(), snapshot.commit);
        SnapshotError::NotReturned { dir, commit, reason: e.without_assurance() }.into()
    }

    /// Returns the error of a revert that failed with `e` to return the changes of snapshot `id` to the worktree at
    /// `dir`: what a user wrote there since is in the way. It names the snapshot, which nothing else does then.
    pub(super) fn explain_unreturned_changes(&self, dir: &Path, id: &str, e: Error) -> Error {
        match self.load_snapshot(id) {
            Ok(Snapshot { commit, .. }) if e.is_refusal() => {
                SnapshotError::NotReturned { dir: dir.to_owned(), commit, reason: e.without_assurance() }
                    .into()
            }
            _ => e,
        }
    }

    /// Saves what programs wrote to the files of snapshot `id` while these were parked, through descriptors that
    /// were still open, and warns where it is: the restore has used the files as they were saved.
    pub(crate) fn save_late_writes(&self, dir: &Path, id: &str, scratch: Option<&Path>) {
        if let Err(e) = self.try_save_late_writes(dir, id, scratch) {
            self.project
                .listener
                .warn(format!("cannot save what was written to your changes meanwhile: {e}"));
        }
    }

    fn try_save_late_writes(&self, dir: &Path, id: &str, scratch: Option<&Path>) -> Result<(), Error> {
        let snapshot = self.load_snapshot(id)?;
        let parked_dir = snapshot_store::parked_dir(&self.project.store, id)?;
        let checkout = self.lock_worktree(dir)?;
        let renewed = match scratch {
            Some(scratch) => checkout.with_context(scratch, |tree| {
                Ok(late_writes::capture_late_writes(tree, &snapshot, &parked_dir)?)
            }),
            None => checkout.renew_snapshot(&snapshot, &parked_dir),
        };
        let Some(renewed) = renewed? else { return Ok(()) };
        snapshot_store::anchor_late_writes(self.project, dir, &snapshot, &renewed)
    }

    /// Takes the changes from a worktree, as they are now, to undo the move of its branch. `id` is the snapshot
    /// that was restored after that move.
    pub(super) fn take_carried_changes(&self, dir: &Path, id: &str) -> Result<(), Error> {
        let Some(head) = self.project.repo.head_commit(dir)? else { return Ok(()) };
        let excluded = self.project.preview_ignored_files(dir)?;
        let taken = self.take_snapshot(dir, head, "changes before an undo", &excluded)?;
        let mut is_untouched = false;
        if let Some(taken) = &taken {
            if let Some(old) = self.project.find_any_snap(id)? {
                is_untouched = self.is_merged_restore(&old.snapshot, head, &taken.snapshot)?
                    && self.is_restore_untouched(dir, &old)?;
            }
            self.park_autostash(dir, &taken.id)?;
        }
        let carried = Carried { snapshot_id: taken.map(|taken| taken.id), is_untouched };
        self.with_memory(|changes: &mut CarriedChanges| changes.0.insert(dir.to_owned(), carried));
        Ok(())
    }

    /// Returns changes to a worktree whose branch an undo has moved back. `id` is the snapshot that was parked
    /// before the branch moved: it returns if its changes are untouched, or never came back after the move.
    pub(super) fn return_carried_changes(&self, dir: &Path, id: &str) -> Result<(), Error> {
        let Some(carried) = self.with_memory(|changes: &mut CarriedChanges| changes.0.remove(dir)) else {
            return match self.project.find_unrestored_snap(id)? {
                Some(_) => self.restore_carried(dir, id),
                None => Ok(()),
            };
        };
        let Some(taken_id) = &carried.snapshot_id else { return Ok(()) };
        self.restore_carried(dir, if carried.is_untouched { id } else { taken_id })?;
        if carried.is_untouched { self.mark_restored(taken_id) } else { Ok(()) }
    }

    fn restore_carried(&self, dir: &Path, id: &str) -> Result<(), Error> {
        self.with_memory(|own: &mut OwnSnapshots| own.0.insert(id.to_owned()));
        let snapshot = self.load_snapshot(id)?;
        let head = self.project.repo.head_commit(dir)?.unwrap_or(snapshot.head_commit);
        let restored = self.perform(restore_step(dir, id, head))?.into_result();
        snapshot_store::prune_parked_folders(&self.project.store, id);
        match restored {
            Some(RestoreOutcome::Conflict(paths)) => {
                Err(SnapshotError::CarryConflict { dir: dir.to_owned(), paths }.into())
            }
            _ => Ok(()),
        }
    }
}
