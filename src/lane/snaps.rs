//! Owns snapshots as they are kept: objects under a ref, the raw index and the set-aside files in a folder.

use super::{Error, Project};
use crate::git::{self, Oid, RepoPath, Snapshot, Tree};
use crate::store::records::SnapRecord;
use crate::store::{Record, make_private, new_id, now, sync_dir};

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
    let record = SnapRecord { id, why: why.to_owned(), at: now(), snapshot };
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
    /// A snapshot by its id.
    pub(crate) fn snap(&self, id: &str) -> Result<SnapRecord, Error> {
        Ok(SnapRecord::load(&self.store.layout().snapshot(id).join("snap.toml"))?)
    }

    /// A snapshot by its id; none when neither record nor ref is left of it. One that cannot be read is an error: it
    /// holds somebody's changes.
    pub(crate) fn find_snap(&self, id: &str) -> Result<Option<SnapRecord>, Error> {
        let found = SnapRecord::find(&self.store.layout().snapshot(id).join("snap.toml"))?;
        if found.is_none() && self.repo.ref_tip(&SnapRecord::ref_name(id))?.is_some() {
            return self.snap(id).map(Some);
        }
        Ok(found)
    }

    /// Forgets a snapshot whose content is back where it came from.
    pub(crate) fn drop_snap(&self, snap: &SnapRecord) -> Result<(), Error> {
        let why = "git-proq: restored";
        let name = SnapRecord::ref_name(&snap.id);
        if let Some(tip) = self.repo.ref_tip(&name)? {
            self.repo.delete_ref(&name, tip, why)?;
        }
        let dir = self.store.layout().snapshot(&snap.id);
        std::fs::remove_dir_all(&dir).map_err(Error::io("remove", &dir))
    }
}
