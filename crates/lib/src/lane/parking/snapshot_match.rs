//! Matching of a worktree's current contents with existing snapshots, so that an equal snapshot is used
//! again.

use std::path::Path;

use proq_git::CommitId;
use proq_git::merge::tree_merge::merge_trees;
use proq_git::snapshots::restored_stamps;
use proq_git::snapshots::snapshot::Snapshot;
use proq_store::operations::operation_entry::StepStatus;
use proq_store::paths::layout::Layout;
use proq_store::records::snapshot::SnapshotRecord;

use super::snapshot_store;
use super::take_snapshot::TakeSnapshot;
use crate::lane::Error;
use crate::operation::journaled_operation::Operation;

impl Operation<'_> {
    /// Returns whether the index of a worktree has the flags that it had when snapshot `id` was taken. Only
    /// flags set by hand count.
    pub(crate) fn has_snapshot_flags(&self, dir: &Path, id: &str) -> Result<bool, Error> {
        self.lock_worktree(dir)?.has_same_user_flags(&self.project.saved_index_path(dir, id))
    }

    /// Returns the id of a snapshot that already holds the current contents of a worktree: `old`, or one that
    /// an earlier attempt to revert took.
    pub(crate) fn find_matching_snapshot(
        &self,
        dir: &Path,
        old: &SnapshotRecord,
        current: &Snapshot,
        raw_index: &Path,
    ) -> Result<Option<String>, Error> {
        let project = self.project;
        let mut ids = vec![old.id.clone()];
        if let Some(entry) = self.journal_entry().filter(|_| self.is_reverting()) {
            let taken = entry.steps.iter().filter(|p| p.reverted_step.is_some());
            let taken = taken.filter(|p| p.status == StepStatus::Done);
            ids.extend(taken.filter_map(|p| Some(p.step.downcast_ref::<TakeSnapshot>()?.id.clone())));
        }
        for id in ids {
            let Ok(snap) = project.load_snap(&id) else { continue };
            snapshot_store::prune_parked_folders(&project.store, &id);
            let index = project.saved_index_path(dir, &id);
            if snap.snapshot.has_same_content(current)
                && !Layout::parked_files_in(&snapshot_store::parked_dir(&project.store, &id)?).exists()
                && self.lock_worktree(dir)?.has_same_flags(&index, raw_index)?
            {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// Returns whether the current contents are exactly the result of merging snapshot `old` onto `head`,
    /// without a later change.
    pub(crate) fn is_merged_restore(
        &self,
        old: &Snapshot,
        head: CommitId,
        current: &Snapshot,
    ) -> Result<bool, Error> {
        let repo = &self.project.repo;
        let (base_tree, head_tree) = (repo.tree_of(old.head_commit)?, repo.tree_of(head)?);
        if base_tree == head_tree || current.ignored != old.ignored {
            return Ok(false);
        }
        let scratch = self.project.store.layout().create_scratch()?;
        let merge_onto_head = |tree| merge_trees(repo, (base_tree, head_tree, tree), scratch.path(), None);
        let (index, work_tree) = (merge_onto_head(old.index_tree)?, merge_onto_head(old.work_tree)?);
        if !index.is_clean || index.tree != current.index_tree || !work_tree.is_clean {
            return Ok(false);
        }
        Ok(old.matches_merge(repo, work_tree.tree, current)?)
    }

    /// Returns whether neither the files that a snapshot restored to a worktree nor the index flags from it
    /// were changed since.
    pub(crate) fn is_restore_untouched(&self, dir: &Path, snap: &SnapshotRecord) -> Result<bool, Error> {
        Ok(restored_stamps::is_unchanged_since_restore(
            dir,
            &snapshot_store::parked_dir(&self.project.store, &snap.id)?,
        ) && self
            .lock_worktree(dir)?
            .has_same_flags_of_present_entries(&self.project.saved_index_path(dir, &snap.id))?)
    }
}
