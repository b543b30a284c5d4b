//! Owns the error about a snapshot whose commit git has lost, in the user's words.

use std::borrow::Cow;
use std::path::PathBuf;

use super::Project;
use crate::explain::Explain;
use crate::git::Oid;
use crate::store::records::SnapRecord;

/// A snapshot of which only its record and the files beside it are left: somebody deleted its ref, and git removed its objects.
#[derive(Debug, thiserror::Error)]
#[error("cannot read snapshot {id}: git has lost its commit {}, which no ref keeps; nothing was changed", commit.short())]
pub struct LostSnapshot {
    id: String,
    commit: Oid,
    folder: PathBuf,
}

impl LostSnapshot {
    /// Refuses a snapshot whose commit is gone.
    pub(super) fn refuse(project: &Project, snap: &SnapRecord) -> Result<(), LostSnapshot> {
        let (id, commit) = (snap.id.clone(), snap.snapshot.commit);
        if project.repo.has_object(commit) {
            return Ok(());
        }
        Err(LostSnapshot { folder: project.store.layout().snapshot(&id), id, commit })
    }
}

impl Explain for LostSnapshot {
    fn hints(&self) -> Vec<Cow<'static, str>> {
        vec![format!("see which of its files are left: ls -R '{}'", self.folder.display()).into()]
    }
}
