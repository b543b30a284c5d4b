//! Recovery of an interrupted reversal: steps that are already reverted, and snapshots that it left.

use std::path::PathBuf;

use proq_git::RepoPath;
use proq_git::index::index_flags;
use proq_git::snapshots::snapshot::Snapshot;
use proq_store::operations::operation_entry::{JournalLine, StepStatus};
use proq_store::records::snapshot::SnapshotRecord;
use proq_store::records::step::{PreRestoreState, Step};

use super::steps;
use crate::lane::Error;
use crate::lane::operation::journaled_operation::Operation;

impl Operation<'_> {
    /// Returns whether snapshot `id` is redundant. It was taken while the restore of another snapshot was
    /// reverted. It is redundant if it holds no file and no flag beyond that snapshot and the state before
    /// it, and nothing waits for it.
    fn is_redundant_snapshot(&self, id: &str, reverted_step: &Step) -> Result<bool, Error> {
        let Step::RestoreSnapshot { dir, snapshot_id: snap, state_before: before, .. } = reverted_step else {
            return Ok(false);
        };
        let (Some(new), Some(old)) = (self.project.find_any_snap(id)?, self.project.find_any_snap(snap)?)
        else {
            return Ok(false);
        };
        if new.id == old.id || !new.snapshot.ignored.is_empty() || self.awaited_restore_command(id)?.is_some()
        {
            return Ok(false);
        }
        let mut known = vec![old];
        if let Some(before) = before.as_ref().and_then(|before| before.snapshot_id.as_deref()) {
            known.extend(self.project.find_any_snap(before)?);
        }
        let index = |snap: &SnapshotRecord| self.project.saved_index_path(dir, &snap.id);
        let indexes: Vec<PathBuf> = known.iter().map(index).collect();
        let known: Vec<Snapshot> = known.into_iter().map(|snap| snap.snapshot).collect();
        let is_known_intent = |path| known.iter().any(|snapshot| snapshot.intent_to_add.contains(path));
        // If a folder was removed together with its parents, the upper ones may have stayed.
        let is_same_or_above =
            |folder: &RepoPath, path: &RepoPath| folder == path || folder.parents().any(|up| up == *path);
        let is_known_empty_dir =
            |path| known.iter().any(|s| s.empty_dirs.iter().any(|folder| is_same_or_above(folder, path)));
        let snapshot = &new.snapshot;
        let repo = &self.project.repo;
        Ok(snapshot.stages.is_none()
            && snapshot.empty_dirs.iter().all(is_known_empty_dir)
            && snapshot.intent_to_add.iter().all(is_known_intent)
            && snapshot.paths_not_in_others(repo, &known)?.is_empty()
            // Flags that cannot be read prove nothing.
            && index_flags::has_only_flags_of(repo, dir, &index(&new), &indexes).unwrap_or(false))
    }
}

/// Marks each step as reverted whose inverse has happened, even if a killed process did not record that.
pub(crate) fn mark_reverted_steps(op: &Operation<'_>) -> Result<(), Error> {
    let Some(entry) = op.journal_entry() else { return Ok(()) };
    for planned in entry.steps.iter().filter(|p| p.status == StepStatus::Done) {
        if let Some(target) = planned.reverted_step
            && entry.steps[target].status == StepStatus::Done
            && completes_inverse(&planned.step, &entry.steps[target].step)
        {
            steps::finish_inverse(op, &entry.steps[target].step)?;
            let _ = op.record_line(JournalLine::Undone(target));
        }
    }
    Ok(())
}

/// Returns whether `step` is the last step of the inverse of `target`. The inverse of a restore takes a
/// snapshot of the current contents, clears the worktree, and then restores the previous contents.
fn completes_inverse(step: &Step, target: &Step) -> bool {
    match (target, step) {
        (
            Step::RestoreSnapshot {
                state_before: Some(PreRestoreState { snapshot_id: Some(before), .. }),
                ..
            },
            step,
        ) => {
            matches!(step, Step::RestoreSnapshot { snapshot_id, .. } if snapshot_id == before)
        }
        (Step::RestoreSnapshot { .. }, Step::ClearWorktree { .. }) => true,
        // An incomplete worktree is completed before it is moved back.
        (Step::MovePath { .. }, Step::RecreateTrash { .. })
        | (Step::RestoreSnapshot { .. }, _)
        | (_, Step::TakeSnapshot { .. } | Step::KeepRef { .. }) => false,
        _ => true,
    }
}

/// Deletes the snapshots that only hold leftovers of an earlier, killed attempt to revert. None of them holds
/// a change of the user.
pub(crate) fn delete_redundant_snapshots(op: &Operation<'_>) -> Result<(), Error> {
    let Some(entry) = op.journal_entry() else { return Ok(()) };
    for planned in entry.steps.iter().filter(|p| p.status == StepStatus::Done) {
        let (Step::TakeSnapshot { id, .. }, Some(target)) = (&planned.step, planned.reverted_step) else {
            continue;
        };
        if op.is_redundant_snapshot(id, &entry.steps[target].step)? {
            op.run_as_inverse_of(target, || steps::delete_snapshot(op, id))?;
        }
    }
    Ok(())
}
