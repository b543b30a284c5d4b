//! Owns snapshots as they are kept: objects under a ref, the raw index and the set-aside files in a folder.

use std::path::{Path, PathBuf};

use super::expire::{Old, Spare, Stays, What};
use super::in_place::needs_snap;
use super::{Error, Project};
use crate::fault;
use crate::git::{self, Oid};
use crate::store::records::SnapRecord;
use crate::store::{LockName, Record, made_at, make_private, sync_dir};

/// Keeps a snapshot under an id that no other has: what an id holds never changes.
pub(super) fn put(project: &Project, record: &SnapRecord, raw: &Path) -> Result<(), Error> {
    let dir = project.store.layout().snapshot(&record.id);
    make_private(&dir)?;
    let kept = dir.join("index");
    std::fs::rename(raw, &kept).map_err(Error::io("move a file to", &kept))?;
    std::fs::File::open(&kept).and_then(|f| f.sync_all()).map_err(Error::io("sync", &kept))?;
    sync_dir(&dir)?;
    record.save(&dir.join("snap.toml"))?;
    fault::point("snap.put");
    // Last: a snapshot whose ref exists is whole.
    let (name, commit) = (SnapRecord::ref_name(&record.id), record.snapshot.commit);
    Ok(project.repo.create_ref(&name, commit, &format!("git-proq: {}", record.why))?)
}

/// The folder with the files that were set aside with a snapshot, below `files`.
pub(super) fn aside(project: &Project, id: &str) -> Result<PathBuf, Error> {
    let layout = project.store.layout();
    let record = SnapRecord::find(&layout.snapshot(id).join("snap.toml"))?;
    Ok(layout.snapshot(record.and_then(|snap| snap.files_in).as_deref().unwrap_or(id)))
}

/// Judges a snapshot whose taking was cut short: one with its ref is whole; of another nothing is needed, since nothing
/// was moved yet.
pub(super) fn settle(project: &Project, id: &str) -> Result<bool, Error> {
    if project.repo.ref_tip(&SnapRecord::ref_name(id))?.is_some() {
        return Ok(true);
    }
    let dir = project.store.layout().snapshot(id);
    if dir.exists() {
        std::fs::remove_dir_all(&dir).map_err(Error::io("remove", &dir))?;
    }
    Ok(false)
}

/// Removes the empty folders that set-aside files have left.
pub(super) fn prune(project: &Project, id: &str) {
    if let Ok(dir) = aside(project, id) {
        git::prune_folders(&dir.join("files"));
    }
}

impl Project {
    /// The ids of all snapshots that have a folder, oldest first.
    pub(crate) fn snap_ids(&self) -> Result<Vec<String>, Error> {
        let dir = self.store.layout().snapshots();
        let entries = match std::fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::io("read", &dir)(e)),
        };
        let mut ids: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// A snapshot by its id.
    pub(crate) fn snap(&self, id: &str) -> Result<SnapRecord, Error> {
        Ok(SnapRecord::load(&self.store.layout().snapshot(id).join("snap.toml"))?)
    }

    /// A snapshot that waits to come back, by its id; none when its record is gone, or when it came back already. One that cannot be
    /// read is an error: it holds somebody's changes.
    pub(crate) fn find_snap(&self, id: &str) -> Result<Option<SnapRecord>, Error> {
        Ok(self.find_any_snap(id)?.filter(|snap| snap.restored.is_none()))
    }

    /// The same also of one that came back already.
    pub(super) fn find_any_snap(&self, id: &str) -> Result<Option<SnapRecord>, Error> {
        Ok(SnapRecord::find(&self.store.layout().snapshot(id).join("snap.toml"))?)
    }

    /// Where the index lies that was kept with a snapshot of the worktree at `dir`. One that is broken, as a power cut may leave it,
    /// gets another name there, so that the snapshot comes back as it does where its index is gone.
    pub(crate) fn kept_index(&self, dir: &Path, id: &str) -> PathBuf {
        let kept = self.store.layout().snapshot(id).join("index");
        if self.repo.is_broken_index(dir, &kept) {
            // What cannot be renamed is as broken as before.
            drop(std::fs::rename(&kept, kept.with_extension("broken")));
        }
        kept
    }

    /// Whether git has lost the commit of a snapshot, which its ref did not keep any more.
    pub(crate) fn is_lost(&self, snap: &SnapRecord) -> bool {
        !self.repo.has_object(snap.snapshot.commit)
    }

    /// The commit of a snapshot whose record is gone, as somebody may have deleted its folder: what it holds can come back by
    /// `git stash apply` alone. None where its record is there, or its ref is gone, too.
    ///
    /// # Errors
    /// When one of the two cannot be read.
    pub(crate) fn snap_without_record(&self, id: &str) -> Result<Option<Oid>, Error> {
        match SnapRecord::find(&self.store.layout().snapshot(id).join("snap.toml"))? {
            Some(_) => Ok(None),
            None => Ok(self.repo.ref_tip(&SnapRecord::ref_name(id))?),
        }
    }
}

/// The snapshots whose content came back to a worktree longer ago than the setting `op.keep`. One that never came back does
/// not go by itself.
pub(super) fn old(project: &Project) -> Result<Old, Error> {
    // An id begins with its time, so that of many snapshots only the old ones are read.
    let keep = project.settings.op_keep;
    let mut old = Old::default();
    let is_old = |id: &String| made_at(id).is_none_or(|at| at.is_older_than(keep));
    for id in project.snap_ids()?.into_iter().filter(is_old) {
        match SnapRecord::find(&project.store.layout().snapshot(&id).join("snap.toml")) {
            Err(e) => old.stays.push(Stays::unreadable(id, &e)),
            Ok(Some(SnapRecord { restored: Some(at), .. }))
                if at.is_older_than(project.settings.op_keep) && !needs_snap(project, &id)? =>
            {
                old.spare.push(Spare { name: id, at, what: What::Snapshot });
            }
            Ok(_) => {}
        }
    }
    Ok(old)
}

/// Notes that an event names an automatic snapshot.
pub(super) fn name(project: &Project, id: &str) -> Result<(), Error> {
    let _lock = project.store.locks().take(&LockName::Store)?;
    let path = project.store.layout().snapshot(id).join("snap.toml");
    let Some(mut snap) = SnapRecord::find(&path)? else { return Ok(()) };
    if let Some(automatic) = &mut snap.automatic {
        automatic.named = true;
        snap.save(&path)?;
    }
    Ok(())
}

/// Deletes an automatic snapshot that no event names.
pub(super) fn delete_automatic(project: &Project, id: &str) -> Result<(), Error> {
    let lock = project.store.locks().take(&LockName::Store)?;
    let dir = project.store.layout().snapshot(id);
    let Some(snap) = SnapRecord::find(&dir.join("snap.toml"))? else { return Ok(()) };
    // It may have been restored, or be on its way to a worktree, since it was chosen.
    if !snap.copy || snap.automatic.is_none_or(|automatic| automatic.named) {
        return Ok(());
    }
    let name = SnapRecord::ref_name(id);
    if let Some(tip) = project.repo.ref_tip(&name)? {
        project.repo.delete_ref(&name, tip, "git-proq: a newer automatic snapshot stands for it")?;
    }
    let grave = project.store.layout().take_away(&dir)?;
    drop(lock);
    Ok(grave.finish()?)
}

/// Deletes one, unless it is on its way to a worktree again.
pub(super) fn free(project: &Project, id: &str) -> Result<bool, Error> {
    let lock = project.store.locks().take(&LockName::Store)?;
    let dir = project.store.layout().snapshot(id);
    let Some(snap) = SnapRecord::find(&dir.join("snap.toml"))? else { return Ok(false) };
    if !snap.restored.is_some_and(|at| at.is_older_than(project.settings.op_keep)) || needs_snap(project, id)?
    {
        return Ok(false);
    }
    // A later one that has not come back may have its set-aside files in this folder.
    for other in project.snap_ids()? {
        if project.find_snap(&other).ok().flatten().is_some_and(|snap| snap.files_in.as_deref() == Some(id)) {
            return Ok(false);
        }
    }
    let name = SnapRecord::ref_name(id);
    if let Some(tip) = project.repo.ref_tip(&name)? {
        project.repo.delete_ref(&name, tip, "git-proq: restored long ago")?;
    }
    let grave = project.store.layout().take_away(&dir)?;
    drop(lock);
    Ok(grave.finish().map(|()| true)?)
}
