//! Owns setting a worktree's changes aside and bringing them back, as steps of an operation.

use std::path::Path;

use super::operation::Operation;
use super::steps::Applied;
use super::{Error, snaps};
use crate::git::{Oid, RepoPath, Restored, Seen, Snapshot, merge_trees};
use crate::store::records::{SnapRecord, Step};
use crate::store::{Record, new_id, now};

impl Operation<'_> {
    /// Moves what a snapshot holds out of a worktree.
    pub(crate) fn clear(&self, dir: &Path, snap: &str) -> Result<(), Error> {
        self.perform(Step::Clear { dir: dir.to_owned(), snap: snap.to_owned() }).map(drop)
    }

    /// Keeps everything that differs from HEAD of a worktree, which is at `base`. None when nothing does. Untracked files
    /// at or below `spare` are nobody's change and stay where they are.
    pub(crate) fn snapshot(
        &self,
        dir: &Path,
        base: Oid,
        why: &str,
        spare: &[RepoPath],
    ) -> Result<Option<SnapRecord>, Error> {
        let seen = self.checkout(dir)?.seen();
        self.snapshot_of_seen(dir, base, why, spare, &seen)
    }

    /// The same by what was seen in that worktree just now.
    pub(crate) fn snapshot_of_seen(
        &self,
        dir: &Path,
        base: Oid,
        why: &str,
        spare: &[RepoPath],
        seen: &Seen,
    ) -> Result<Option<SnapRecord>, Error> {
        let keep = |snapshot: Snapshot, raw: &Path| {
            let (id, at) = (new_id(), now());
            let record = SnapRecord { id, why: why.to_owned(), at, restored: None, copy: false, snapshot };
            self.put_snap(record.clone(), raw, false)?;
            Ok(record)
        };
        self.checkout(dir)?.describe_seen(base, why, spare, seen, keep)
    }

    /// Takes a snapshot anew, under its id, and clears the worktree: the inverse of bringing it back.
    pub(super) fn set_aside_again(&self, dir: &Path, id: &str, spare: &[RepoPath]) -> Result<(), Error> {
        let old = self.project.snap(id)?;
        let base = self.project.repo.head_of(dir)?.unwrap_or(old.snapshot.base);
        let taken = self.checkout(dir)?.describe(base, &old.why, spare, |snapshot, raw| {
            if self.is_what_came_back(&old.snapshot, base, &snapshot)? {
                // The snapshot is as good as before; what its merge had made is kept for a time.
                let (id, at) = (new_id(), now());
                let record = SnapRecord { id, at, restored: Some(at), snapshot, ..old.clone() };
                return self.put_snap(record, raw, false);
            }
            self.make_room(&old)?;
            // Whether it waits is its record's to say: some only keep for a time what a merge had made.
            self.put_snap(SnapRecord { snapshot, ..old.clone() }, raw, true)
        })?;
        match taken {
            Some(id) => self.clear(dir, &id),
            // There is nothing to set aside any more.
            None => Ok(()),
        }
    }

    fn put_snap(&self, record: SnapRecord, raw: &Path, anew: bool) -> Result<String, Error> {
        let step = Step::Snap { id: record.id.clone(), anew };
        self.perform_by(step, |_| snaps::put(self.project, &record, raw))?;
        self.taken.borrow_mut().insert(record.id.clone(), record.snapshot);
        Ok(record.id)
    }

    /// Where a snapshot came back by a merge its own files stayed behind; what is set aside now has its own.
    fn make_room(&self, old: &SnapRecord) -> Result<(), Error> {
        let aside = self.project.store.layout().snapshot(&old.id);
        snaps::prune(self.project, &old.id);
        if aside.join("files").exists() {
            self.rename(&aside.join("files"), &aside.join(format!("files-{}", new_id())))?;
        }
        self.keep(old.snapshot.commit)
    }

    /// Whether what is there now is what a snapshot became when it was merged onto `head`, and nothing was changed since.
    fn is_what_came_back(&self, old: &Snapshot, head: Oid, there: &Snapshot) -> Result<bool, Error> {
        let repo = &self.project.repo;
        let (before, now) = (repo.tree_of(old.base)?, repo.tree_of(head)?);
        if before == now || there.untracked_tree != old.untracked_tree {
            return Ok(false);
        }
        let scratch = self.project.store.layout().scratch()?;
        for (then, is) in [(old.work_tree, there.work_tree), (old.index_tree, there.index_tree)] {
            let merged = merge_trees(repo, (before, now, then), scratch.path(), None)?;
            if !merged.clean || merged.tree != is {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What a snapshot holds.
    pub(super) fn snapshot_of(&self, id: &str) -> Result<Snapshot, Error> {
        match self.taken.borrow().get(id) {
            Some(snapshot) => Ok(snapshot.clone()),
            None => Ok(self.project.snap(id)?.snapshot),
        }
    }

    /// Notes that a snapshot's content is back where it came from.
    pub(crate) fn retire(&self, id: &str) -> Result<(), Error> {
        if let Some(step) = self.retire_step(id)? {
            drop(self.perform(step)?);
            snaps::prune(self.project, id);
        }
        Ok(())
    }

    fn retire_step(&self, id: &str) -> Result<Option<Step>, Error> {
        let path = self.project.store.layout().snapshot(id).join("snap.toml");
        let Some(snap) = SnapRecord::find(&path)? else { return Ok(None) };
        let text = SnapRecord { restored: Some(now()), ..snap }.text(&path)?;
        self.record_step(&path, Some(text)).map(Some)
    }

    /// Notes that a snapshot is on its way to a worktree again, so that it is not deleted meanwhile.
    pub(super) fn wake(&self, id: &str) -> Result<(), Error> {
        let path = self.project.store.layout().snapshot(id).join("snap.toml");
        let snap = SnapRecord::load(&path)?;
        self.save(&SnapRecord { restored: None, copy: false, ..snap }, &path)
    }

    /// Brings a snapshot back onto a worktree that is at `head`. What was written into its files while they were set aside
    /// becomes a part of it first. With a conflict nothing has changed.
    pub(crate) fn restore(&self, dir: &Path, id: &str, head: Oid) -> Result<Restored, Error> {
        self.renew(dir, id)?;
        let step = Step::Restore { dir: dir.to_owned(), snap: id.to_owned(), head };
        self.perform(step).map(Applied::how)
    }

    /// The same, after which the snapshot has done its work and `rest` follows. Where HEAD has moved and the changes had to
    /// be merged there is no way back from that: the worktree is not what it was before.
    pub(crate) fn restore_for_good(
        &self,
        dir: &Path,
        id: &str,
        head: Oid,
        rest: Vec<Step>,
    ) -> Result<Restored, Error> {
        let repo = &self.project.repo;
        let exact = repo.tree_of(head)? == repo.tree_of(self.snapshot_of(id)?.base)?;
        self.renew(dir, id)?;
        let mut all = vec![Step::Restore { dir: dir.to_owned(), snap: id.to_owned(), head }];
        all.extend(self.retire_step(id)?);
        all.extend(rest);
        let how = if exact { self.perform_all(all)? } else { self.forward(all)?.how() };
        snaps::prune(self.project, id);
        Ok(how)
    }

    /// Takes the steps, the first of which may find that it cannot be taken.
    fn perform_all(&self, steps: Vec<Step>) -> Result<Restored, Error> {
        let mut how = Restored::Exactly;
        for (n, step) in steps.into_iter().enumerate() {
            let applied = self.perform(step)?.how();
            if n == 0 {
                how = applied;
                if matches!(how, Restored::Conflict(_)) {
                    break;
                }
            }
        }
        Ok(how)
    }

    fn renew(&self, dir: &Path, id: &str) -> Result<(), Error> {
        let mut snap = self.project.snap(id)?;
        if let Some(new) = self.checkout(dir)?.renewed(&snap.snapshot, id)? {
            self.perform_by(Step::Snap { id: id.to_owned(), anew: true }, |_| {
                snaps::replace(self.project, &mut snap, new.clone())
            })?;
            self.taken.borrow_mut().insert(id.to_owned(), new);
        }
        Ok(())
    }
}
