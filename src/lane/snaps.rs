//! Owns snapshots as they are kept: objects under a ref, the raw index and the set-aside files in a folder.

use super::{Error, Project};
use crate::git::{self, Oid, RepoPath, Tree};
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

impl Project {
    /// A snapshot by its id.
    pub(crate) fn snap(&self, id: &str) -> Result<SnapRecord, Error> {
        Ok(SnapRecord::load(&self.store.layout().snapshot(id).join("snap.toml"))?)
    }

    /// Forgets a snapshot whose content is back where it came from.
    pub(crate) fn drop_snap(&self, snap: &SnapRecord) -> Result<(), Error> {
        let why = "git-proq: restored";
        self.repo.delete_ref(&SnapRecord::ref_name(&snap.id), snap.snapshot.commit, why)?;
        let dir = self.store.layout().snapshot(&snap.id);
        std::fs::remove_dir_all(&dir).map_err(Error::io("remove", &dir))
    }
}
