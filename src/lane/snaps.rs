//! Owns snapshots as they are kept: objects under a ref, the raw index and the set-aside files in a folder.

use super::{Error, Project};
use crate::git::{self, Oid, RepoPath, Snapshot, Tree};
use crate::store::records::SnapRecord;
use crate::store::{self, LockName, Record, make_private, new_id, now, sync_dir};

/// Takes a snapshot of a worktree and keeps it. None when nothing differs from HEAD but untracked files in `spare`.
pub(super) fn take(
    project: &Project,
    tree: &Tree<'_>,
    base: Oid,
    why: &str,
    spare: &[RepoPath],
) -> Result<Option<SnapRecord>, Error> {
    let message = format!("git-proq: {why}");
    let Some(snapshot) = git::take_snapshot(tree, base, &message, spare)? else { return Ok(None) };
    let id = new_id();
    let dir = project.store.layout().snapshot(&id);
    make_private(&dir)?;
    let (raw, kept) = (tree.scratch.join("raw-index"), dir.join("index"));
    std::fs::rename(&raw, &kept).map_err(Error::io("move a file to", &kept))?;
    std::fs::File::open(&kept).and_then(|f| f.sync_all()).map_err(Error::io("sync", &kept))?;
    sync_dir(&dir)?;
    let commit = snapshot.commit;
    let record = SnapRecord { id, why: why.to_owned(), at: now(), restored: None, snapshot };
    record.save(&dir.join("snap.toml"))?;
    // Last: a snapshot whose ref exists is whole.
    project.repo.create_ref(&SnapRecord::ref_name(&record.id), commit, &message)?;
    Ok(Some(record))
}

/// Replaces what a snapshot holds by something newer: first the ref, then the record that names the commit.
pub(super) fn replace(project: &Project, snap: &mut SnapRecord, new: Snapshot) -> Result<(), Error> {
    let name = SnapRecord::ref_name(&snap.id);
    project.repo.swap_ref(&name, new.commit, snap.snapshot.commit, "git-proq: written to while set aside")?;
    snap.snapshot = new;
    snap.save(&project.store.layout().snapshot(&snap.id).join("snap.toml"))?;
    Ok(())
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

    /// A snapshot that waits to come back, by its id; none when neither record nor ref is left of it, or when it came
    /// back already. One that cannot be read is an error: it holds somebody's changes.
    pub(crate) fn find_snap(&self, id: &str) -> Result<Option<SnapRecord>, Error> {
        let found = SnapRecord::find(&self.store.layout().snapshot(id).join("snap.toml"))?;
        if found.is_none() && self.repo.ref_tip(&SnapRecord::ref_name(id))?.is_some() {
            return self.snap(id).map(Some);
        }
        Ok(found.filter(|snap| snap.restored.is_none()))
    }

    /// Notes that a snapshot's content is back in a worktree. It is kept for a time all the same: whoever overwrites by
    /// mistake what has just come back still has it.
    pub(crate) fn drop_snap(&self, snap: &SnapRecord) -> Result<(), Error> {
        let dir = self.store.layout().snapshot(&snap.id);
        let marked = SnapRecord { restored: Some(now()), ..snap.clone() };
        let _lock = self.store.locks().take(&LockName::Store)?;
        match marked.save(&dir.join("snap.toml")) {
            // The content is back. What is lost is only that the snapshot goes by itself one day.
            Err(store::Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::StorageFull => {
                self.listener
                    .warn(format!("snapshot {} is back but could not be marked so: {source}", snap.id));
            }
            other => other?,
        }
        git::prune_folders(&dir.join("files"));
        Ok(())
    }
}

/// Deletes snapshots whose content came back to a worktree longer ago than the setting `op.keep`. Returns how many.
/// One that never came back does not go by itself.
pub(crate) fn expire_snaps(project: &Project) -> Result<usize, Error> {
    let keep = project.settings.op_keep;
    // An id begins with its time, so that of many snapshots only the old ones are read.
    let oldest = now().before(keep).compact();
    let mut expired = 0;
    for id in project.snap_ids()?.into_iter().filter(|id| *id < oldest) {
        let _lock = project.store.locks().take(&LockName::Store)?;
        // What cannot be read is left for a person to look at.
        let Ok(snap) = project.snap(&id) else { continue };
        if snap.restored.is_none_or(|at| now().since(at) < keep) {
            continue;
        }
        let name = SnapRecord::ref_name(&id);
        if let Some(tip) = project.repo.ref_tip(&name)? {
            project.repo.delete_ref(&name, tip, "git-proq: restored long ago")?;
        }
        let dir = project.store.layout().snapshot(&id);
        std::fs::remove_dir_all(&dir).map_err(Error::io("remove", &dir))?;
        expired += 1;
    }
    Ok(expired)
}
