//! Syncing of new objects and refs to disk before something relies on them: git syncs refs when configured
//! to, but never loose objects of its own commands.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::base::fsync::{sync_file_system, sync_paths};
use crate::{CommitId, Error, Oid, Repo};

/// Age at which a file counts as synced: systems write everything to disk within a minute, or within ten when
/// at rest.
const ASSUMED_SYNCED_AFTER: Duration = Duration::from_hours(1);

/// Maximum number of objects synced one by one; for more, git-proq syncs the entire file system.
const MAX_OBJECTS_SYNCED_SINGLY: usize = 256;

impl Repo {
    /// Syncs the objects reachable from `to` and not from `from`. New commits may be in files that git did
    /// not sync, and a ref that reaches the disk before them points to nothing after a power cut.
    ///
    /// # Errors
    /// Fails when a file cannot be written to disk.
    pub(crate) fn sync_new_objects(&self, to: Oid, from: Oid) -> Result<(), Error> {
        // A commit is written after everything it references, and git syncs packs.
        if to == from || !self.may_be_unsynced(to) {
            return Ok(());
        }
        let new_objects = match self.list_new_objects(CommitId(to.0), CommitId(from.0)) {
            Ok(Some(objects)) => Some(objects.into_iter().map(Oid).collect()),
            _ => self.list_new_objects_by_git(to, from),
        };
        let files = new_objects.map(|ids| {
            let unsynced = ids.into_iter().filter(|id| self.may_be_unsynced(*id));
            unsynced.map(|id| self.loose_object_path(id)).collect::<Vec<PathBuf>>()
        });
        match files.filter(|files| files.len() <= MAX_OBJECTS_SYNCED_SINGLY) {
            Some(files) => sync_paths(&files),
            None => sync_file_system(&self.common_dir().join("objects")),
        }
    }

    /// Returns the ids of all objects that `to` has and `from` lacks; none if git cannot list them.
    fn list_new_objects_by_git(&self, to: Oid, from: Oid) -> Option<Vec<Oid>> {
        let command = self.git().args(["rev-list", "--objects", "--no-object-names", "--missing=allow-any"]);
        let out = command.arg(to.to_string()).arg(format!("^{from}")).run().ok()?;
        Some(out.stdout.split(|b| *b == b'\n').filter_map(Oid::from_hex).collect())
    }

    /// Returns whether an object is in a loose file that may not be on disk yet.
    fn may_be_unsynced(&self, id: Oid) -> bool {
        let modified = self.loose_object_path(id).metadata().and_then(|meta| meta.modified());
        // A modification time in the future proves nothing.
        modified.is_ok_and(|at| at.elapsed().map_or(true, |age| age < ASSUMED_SYNCED_AFTER))
    }

    /// Syncs the reftable files: git syncs a table and then writes its last bytes. The refs have moved
    /// already, so an error here is not a failure of the move.
    pub(crate) fn sync_reftables(&self, git_dir: &Path) {
        if !self.is_reftable() {
            return;
        }
        for folder in [self.common_dir(), git_dir].map(|dir| dir.join("reftable")) {
            let tables = folder.read_dir().into_iter().flatten().flatten().map(|table| table.path());
            drop(sync_paths(&tables.chain([folder.clone()]).collect::<Vec<_>>()));
        }
    }
}
