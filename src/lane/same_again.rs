//! Owns knowing which snapshot can take up what is in a worktree, so that it is as good as before.

use std::path::Path;

use super::operation::Operation;
use super::{Error, snaps};
use crate::git::{self, Oid, Snapshot, merge_trees};
use crate::store::Status;
use crate::store::records::{SnapRecord, Step};

impl Operation<'_> {
    /// Whether the index of a worktree has the flags, as far as somebody set them by hand, that it had when a snapshot was taken.
    pub(super) fn has_flags_of(&self, dir: &Path, id: &str) -> Result<bool, Error> {
        self.checkout(dir)?.has_flags_like(&self.project.kept_index(dir, id))
    }

    /// The id of a snapshot that can take up what is there: `old`, or one that an earlier try to go back took.
    pub(super) fn same_as(
        &self,
        dir: &Path,
        old: &SnapRecord,
        there: &Snapshot,
        raw: &Path,
    ) -> Result<Option<String>, Error> {
        let project = self.project;
        let mut ids = vec![old.id.clone()];
        if let Some(entry) = self.entry().filter(|_| self.is_going_back()) {
            ids.extend(entry.steps.iter().filter(|p| p.of.is_some()).filter_map(|p| match &p.step {
                Step::Snap { id, .. } if p.status == Status::Done => Some(id.clone()),
                _ => None,
            }));
        }
        for id in ids {
            let Ok(snap) = project.snap(&id) else { continue };
            snaps::prune(project, &id);
            let index = project.kept_index(dir, &id);
            if snap.snapshot.holds_what(there)
                && !snaps::aside(project, &id)?.join("files").exists()
                && self.checkout(dir)?.has_same_flags(&index, raw)?
            {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// Whether what is there now is what a snapshot became when it was merged onto `head`, and nothing was changed since.
    pub(super) fn is_what_came_back(
        &self,
        old: &Snapshot,
        head: Oid,
        there: &Snapshot,
    ) -> Result<bool, Error> {
        let repo = &self.project.repo;
        let (before, now) = (repo.tree_of(old.base)?, repo.tree_of(head)?);
        if before == now || there.ignored != old.ignored {
            return Ok(false);
        }
        let scratch = self.project.store.layout().scratch()?;
        let merged = |then| merge_trees(repo, (before, now, then), scratch.path(), None);
        let (index, work) = (merged(old.index_tree)?, merged(old.work_tree)?);
        if !index.clean || index.tree != there.index_tree || !work.clean {
            return Ok(false);
        }
        Ok(old.has_become(repo, work.tree, there)?)
    }

    /// Whether nobody has touched what came back to a worktree with a snapshot, nor the flags that its index can have of it.
    pub(super) fn is_untouched(&self, dir: &Path, snap: &SnapRecord) -> Result<bool, Error> {
        Ok(git::is_untouched(dir, &snaps::aside(self.project, &snap.id)?)
            && self.checkout(dir)?.has_flags_left_of(&self.project.kept_index(dir, &snap.id))?)
    }
}
