//! Owns setting a worktree's changes aside and bringing them back, as steps of an operation.

use std::path::Path;

use super::operation::Operation;
use super::steps::spared;
use super::{Error, SnapshotError, snaps};
use crate::fault;
use crate::git::{Oid, RepoPath, Restored, Seen, Snapshot};
use crate::store::records::{Before, PreviewRecord, SnapRecord, Step};
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
        let keep = |snapshot: Snapshot, raw: &Path| self.put(why, snapshot, raw);
        self.checkout(dir)?.describe_seen(base, why, spare, seen, keep)
    }

    /// Takes the snapshot of [`Operation::snapshot_of_seen`], or, where no file differs, one of the files that a sparse checkout shows
    /// against its patterns. None where there are no such files either.
    pub(crate) fn snapshot_of_all(
        &self,
        dir: &Path,
        base: Oid,
        why: &str,
        spare: &[RepoPath],
        seen: &Seen,
    ) -> Result<Option<SnapRecord>, Error> {
        if let Some(snap) = self.snapshot_of_seen(dir, base, why, spare, seen)? {
            return Ok(Some(snap));
        }
        if !self.checkout(dir)?.is_odd()? {
            return Ok(None);
        }
        self.snapshot_of_index(dir, base, why, spare, seen).map(Some)
    }

    /// Takes a snapshot of a worktree in which no file differs: of its index, which may say more than what files there are.
    pub(crate) fn snapshot_of_index(
        &self,
        dir: &Path,
        base: Oid,
        why: &str,
        spare: &[RepoPath],
        seen: &Seen,
    ) -> Result<SnapRecord, Error> {
        let keep = |snapshot: Snapshot, raw: &Path| self.put(why, snapshot, raw);
        self.checkout(dir)?.describe_always(base, why, spare, seen, keep)
    }

    fn put(&self, why: &str, snapshot: Snapshot, raw: &Path) -> Result<SnapRecord, Error> {
        let record = SnapRecord::new(why, snapshot);
        self.put_snap(record.clone(), raw)?;
        Ok(record)
    }

    /// Clears the worktree of what a restore brought and of what was made since: the inverse of bringing snapshot `id` back.
    /// What the snapshot does not hold becomes another one, and whoever waits for `id` waits for that one then.
    pub(super) fn set_aside_again(
        &self,
        dir: &Path,
        id: &str,
        before: Option<&Before>,
        spare: &[RepoPath],
    ) -> Result<Option<String>, Error> {
        let old = self.project.snap(id)?;
        // Held before HEAD is read: what lands until then is nobody's edit.
        let checkout = self.checkout(dir)?;
        let base = self.project.repo.head_of(dir)?.unwrap_or(old.snapshot.base);
        let keep = |snapshot: Snapshot, raw: &Path| {
            let waiting = self.awaited_as(&old)?.map(|(id, _)| id);
            // What was merged, and what came of that, only another one can take up where it is not the same any more.
            let is_other = |snap: &Option<String>| waiting.is_some() && waiting == *snap;
            if is_other(&old.stands_for) && !self.is_untouched(dir, &old)? {
                return self.put_other(&old, before, snapshot, raw);
            }
            let is_renewed = is_other(&old.files_in);
            if self.is_what_came_back(&old.snapshot, base, &snapshot)? && self.is_untouched(dir, &old)? {
                return self.put_what_came(dir, &old, waiting.as_deref(), snapshot, raw);
            }
            if !is_renewed && let Some(same) = self.same_as(dir, &old, &snapshot, raw)? {
                let snapshot = snapshot.named(&self.project.snap(&same)?.snapshot);
                self.taken.borrow_mut().insert(same.clone(), snapshot);
                return Ok(same);
            }
            self.put_other(&old, before, snapshot, raw)
        };
        let seen = checkout.seen().with_brought(&old.snapshot.ignored);
        // Flags that were set since, or that go with what was there before.
        let has_flags_of = |id: &str| self.has_flags_of(dir, id);
        let former = before.and_then(|before| before.snap.as_deref());
        let flags_go = !has_flags_of(id)? || former.is_some_and(|id| !has_flags_of(id).unwrap_or(false));
        let taken = match checkout.describe_seen(base, &old.why, spare, &seen, keep)? {
            // Without a change, too: the way back of this must show again what a sparse checkout showed, and set the same flags.
            None if flags_go || !old.snapshot.ignored.is_empty() || checkout.is_odd()? => {
                Some(checkout.describe_always(base, &old.why, spare, &seen, keep)?)
            }
            taken => taken,
        };
        // Without one there is nothing to set aside any more but empty folders.
        if let Some(id) = &taken {
            self.clear(dir, id)?;
            fault::point("aside.cleared");
        }
        before.map_or(Ok(()), |before| self.remove_restored_folders(dir, id, before))?;
        Ok(taken)
    }

    /// Keeps what the merge of a snapshot had made for a time; the snapshot is as good as before.
    fn put_what_came(
        &self,
        dir: &Path,
        old: &SnapRecord,
        waiting: Option<&str>,
        snapshot: Snapshot,
        raw: &Path,
    ) -> Result<String, Error> {
        let record = SnapRecord {
            id: new_id(),
            at: now(),
            restored: Some(now()),
            stands_for: Some(waiting.unwrap_or(&old.id).to_owned()),
            ..again(old, snapshot)
        };
        let aside = snaps::aside(self.project, &old.id)?;
        let checkout = self.checkout(dir)?;
        let id = self.put_snap_with(record, raw, |_| checkout.copy_untracked(&old.snapshot, &aside))?;
        if old.files_in.is_some() {
            self.renew_again(dir, old, waiting)?;
        }
        Ok(id)
    }

    /// Puts a snapshot again that had renewed another one and goes with the way back of that: whoever waits for the other one waits for
    /// this one then.
    fn renew_again(&self, dir: &Path, old: &SnapRecord, waiting: Option<&str>) -> Result<(), Error> {
        let files_in = old.files_in.clone();
        let record = SnapRecord {
            id: new_id(),
            at: now(),
            restored: None,
            files_in,
            ..again(old, old.snapshot.clone())
        };
        let index = self.project.kept_index(dir, &old.id);
        let id = self.checkout(dir)?.copy_of(&index, |raw| self.put_snap(record, raw))?;
        waiting.map_or(Ok(()), |waiting| self.wait_for(waiting, &id))
    }

    /// Removes the empty folders that came with a snapshot and were not there `before`.
    pub(super) fn remove_restored_folders(&self, dir: &Path, id: &str, before: &Before) -> Result<(), Error> {
        let old = self.project.snap(id)?;
        self.checkout(dir)?.remove_folders(&old.snapshot.empty_dirs, &before.empty_dirs);
        Ok(())
    }

    /// Brings a snapshot back that was cleared away from a worktree at `head`: the inverse of [`Operation::clear`]. Where that brings
    /// other flags or folders, or shows other files of a sparse checkout, its own inverse has to bring those that are there now.
    pub(super) fn restore_cleared(&self, dir: &Path, id: &str, head: Oid) -> Result<Restored, Error> {
        let is_sparse = self.project.repo.cut_of(dir).is_some();
        let before = if self.is_going_back() {
            None
        } else if is_sparse || !self.has_flags_of(dir, id)? {
            Some(self.copy_of(dir, head, &format!("what was there before snapshot {id} came back"), id)?)
        } else {
            // Its empty folders go with it again.
            let folders = self.snapshot_of(id)?.empty_dirs;
            let is_there = |folder: &RepoPath| folder.under(dir).is_dir();
            let empty_dirs: Vec<RepoPath> = folders.iter().filter(|f| is_there(f)).cloned().collect();
            (!folders.is_empty()).then_some(Before { snap: None, empty_dirs, ignored: Vec::new() })
        };
        self.restore(dir, id, head, before)
    }

    /// Keeps what is there as a snapshot of its own. Where it has more than `old` and what was there before that came back,
    /// it waits in the place of `old`.
    fn put_other(
        &self,
        old: &SnapRecord,
        before: Option<&Before>,
        snapshot: Snapshot,
        raw: &Path,
    ) -> Result<String, Error> {
        let mut known = vec![old.snapshot.clone()];
        if let Some(before) = before.and_then(|before| before.snap.as_deref()) {
            known.push(self.snapshot_of(before)?);
        }
        let new = snapshot.added_to(&self.project.repo, &known)?;
        let awaited = self.awaited_as(old)?;
        // No object has an ignored file, so no other snapshot may have it any more.
        let is_needed = !new.is_empty() || !snapshot.ignored.is_empty() || awaited.is_some();
        let restored = match awaited {
            Some(_) => None,
            None if is_needed => old.restored,
            None => Some(now()),
        };
        let commit = snapshot.commit;
        let record = SnapRecord { id: new_id(), at: now(), restored, ..again(old, snapshot) };
        let id = self.put_snap(record, raw)?;
        if let Some((waiting, _)) = &awaited {
            self.wait_for(waiting, &id)?;
        }
        if new.is_empty() {
            return Ok(id);
        }
        if let Some((_, way_back)) = awaited {
            self.report_set_aside(&new, &way_back);
        } else if before.is_some() {
            self.project.listener.warn(format!(
                "what was edited since is kept as snapshot {id}: git stash apply {}",
                commit.short()
            ));
        }
        Ok(id)
    }

    /// Reports which files were set aside beside what an operation had brought, and how they come back.
    fn report_set_aside(&self, paths: &[RepoPath], way_back: &str) {
        let names = crate::git::names(paths);
        let text = format!("what was changed since is set aside: {names}; it comes back with: {way_back}");
        match self.is_going_back() {
            true => self.project.listener.warn(text),
            // It may be taken back yet.
            false => self.after(move |project| project.listener.step(text)),
        }
    }

    /// The id by which an open preview or a lane waits for a snapshot, its own or that of the one that it renews, and the command that
    /// brings it back; none where nobody does.
    fn awaited_as(&self, snap: &SnapRecord) -> Result<Option<(String, String)>, Error> {
        for id in std::iter::once(&snap.id).chain(&snap.files_in).chain(&snap.stands_for) {
            if let Some(way_back) = self.awaited_by(id)? {
                return Ok(Some((id.clone(), way_back)));
            }
        }
        Ok(None)
    }

    /// The command that brings a snapshot back which an open preview or a lane waits for; none where nobody does.
    pub(super) fn awaited_by(&self, id: &str) -> Result<Option<String>, Error> {
        let open = PreviewRecord::find(&self.project.store.layout().preview())?;
        if open.is_some_and(|open| open.snapshot.as_deref() == Some(id)) {
            return Ok(Some("git proq preview --back".to_owned()));
        }
        let lanes = self.project.lanes()?;
        let lane = lanes.iter().find(|lane| lane.preview_edits.iter().any(|edit| edit == id));
        Ok(lane.map(|lane| format!("git proq preview {}", lane.name)))
    }

    /// Has whoever waits for a snapshot wait for another one.
    fn wait_for(&self, old: &str, new: &str) -> Result<(), Error> {
        let path = self.project.store.layout().preview();
        if let Some(mut open) = PreviewRecord::find(&path)?
            && open.snapshot.as_deref() == Some(old)
        {
            open.snapshot = Some(new.to_owned());
            self.save(&open, &path)?;
        }
        for lane in self.project.lanes()? {
            if lane.preview_edits.iter().any(|edit| edit == old) {
                self.update_lane(&lane.name, |lane| {
                    lane.preview_edits
                        .iter_mut()
                        .filter(|edit| *edit == old)
                        .for_each(|edit| new.clone_into(edit));
                })?;
            }
        }
        self.retire(old)
    }

    fn put_snap(&self, record: SnapRecord, raw: &Path) -> Result<String, Error> {
        self.put_snap_with(record, raw, |_| Ok(()))
    }

    /// The same, with files that `copy` puts into the snapshot's folder: what is there before the step began is nobody's.
    fn put_snap_with(
        &self,
        record: SnapRecord,
        raw: &Path,
        copy: impl FnOnce(&SnapRecord) -> Result<(), Error>,
    ) -> Result<String, Error> {
        let step = Step::Snap { id: record.id.clone(), anew: false };
        self.perform_by(step, |_| copy(&record).and_then(|()| snaps::put(self.project, &record, raw)))?;
        self.taken.borrow_mut().insert(record.id.clone(), record.snapshot);
        Ok(record.id)
    }

    /// What a snapshot holds.
    pub(super) fn snapshot_of(&self, id: &str) -> Result<Snapshot, Error> {
        if let Some(snapshot) = self.taken.borrow().get(id) {
            return Ok(snapshot.clone());
        }
        let snap = self.project.snap(id)?;
        SnapshotError::refuse_lost(self.project, &snap)?;
        Ok(snap.snapshot)
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
    /// comes back too. With a conflict nothing has changed. `before` is how the worktree is now.
    pub(crate) fn restore(
        &self,
        dir: &Path,
        id: &str,
        head: Oid,
        before: Option<Before>,
    ) -> Result<Restored, Error> {
        let newest = self.renew(dir, id)?;
        let step = Step::Restore { dir: dir.to_owned(), snap: newest.clone(), head, before };
        let how = self.perform(step)?.how();
        self.tell_ignored(&newest, &how);
        if newest != id && !matches!(how, Restored::Conflict(_)) {
            self.retire(&newest)?;
        }
        Ok(how)
    }

    /// The same, after which the snapshot has done its work and `rest` follows. Where HEAD has moved and the changes had to
    /// be merged there is no way back from that: the worktree is not what it was before. Returns also the commit that holds
    /// what came back, or did not.
    pub(crate) fn restore_for_good(
        &self,
        dir: &Path,
        id: &str,
        head: Oid,
        rest: Vec<Step>,
    ) -> Result<(Restored, Oid), Error> {
        let repo = &self.project.repo;
        let exact = repo.tree_of(head)? == repo.tree_of(self.snapshot_of(id)?.base)?;
        let newest = self.renew(dir, id)?;
        let mut all = vec![Step::Restore { dir: dir.to_owned(), snap: newest.clone(), head, before: None }];
        all.extend(self.retire_step(&newest)?);
        if newest != id {
            all.extend(self.retire_step(id)?);
        }
        all.extend(rest);
        let how = if exact { self.perform_all(all)? } else { self.forward(all)?.how() };
        snaps::prune(self.project, id);
        self.tell_ignored(&newest, &how);
        Ok((how, self.snapshot_of(&newest)?.commit))
    }

    /// Says where ignored files are that could not come back: no commit has them.
    fn tell_ignored(&self, id: &str, how: &Restored) {
        if !matches!(how, Restored::Conflict(_)) {
            return;
        }
        let Ok(SnapRecord { snapshot, .. }) = self.project.snap(id) else { return };
        if let Ok(aside) = snaps::aside(self.project, id)
            && !snapshot.ignored.is_empty()
        {
            let paths: Vec<RepoPath> = snapshot.ignored.into_iter().map(|file| file.path).collect();
            let place = aside.join("files");
            let names = crate::git::names(&paths);
            self.project.listener.warn(format!("ignored files are kept in {}: {names}", place.display()));
        }
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

    /// The id of the snapshot to bring back in the place of `id`: a new one where something was written into the set-aside
    /// files, else that one.
    fn renew(&self, dir: &Path, id: &str) -> Result<String, Error> {
        let old = self.project.snap(id)?;
        let checkout = self.checkout(dir)?;
        let Some(snapshot) = checkout.renewed(&old.snapshot, id)? else { return Ok(id.to_owned()) };
        let files_in = Some(old.files_in.clone().unwrap_or_else(|| id.to_owned()));
        let record = SnapRecord { id: new_id(), at: now(), files_in, ..again(&old, snapshot) };
        checkout.copy_of(&self.project.kept_index(dir, id), |raw| self.put_snap(record, raw))
    }

    /// What differs from HEAD in a worktree before snapshot `coming` comes back to it, as a snapshot that only keeps it: nothing leaves
    /// its place. None when nothing differs, nor the flags of its index from those that come.
    pub(super) fn copy_of(&self, dir: &Path, base: Oid, why: &str, coming: &str) -> Result<Before, Error> {
        let checkout = self.checkout(dir)?;
        let seen = checkout.seen();
        let spare = spared(self.project, dir)?;
        let keep = |snapshot: Snapshot, raw: &Path| {
            self.put_snap_with(SnapRecord::copy(why, snapshot), raw, |record| {
                let folder = self.project.store.layout().snapshot(&record.id);
                checkout.copy_files(&record.snapshot, &folder)?;
                fault::point("snap.copied");
                Ok(())
            })
        };
        // What a sparse checkout shows is known by its index alone, and so are flags.
        let snap = if self.project.repo.cut_of(dir).is_some() || !self.has_flags_of(dir, coming)? {
            Some(checkout.describe_always(base, why, &spare, &seen, keep)?)
        } else {
            checkout.describe_seen(base, why, &spare, &seen, keep)?
        };
        Ok(Before { snap, empty_dirs: checkout.empty_folders(&seen)?, ignored: Vec::new() })
    }
}

/// A record like `old` of another snapshot; its id and time are to be set.
fn again(old: &SnapRecord, snapshot: Snapshot) -> SnapRecord {
    SnapRecord { files_in: None, stands_for: None, copy: false, snapshot, ..old.clone() }
}
