//! Expiry of data that is kept for a limited time: finding items that are old enough, and deleting them.
//!
//! The age of an item is what its own record states. An item that cannot be read is left for the user, and
//! one dated in the future counts as young.

use proq_git::checkout::ref_recovery;
use proq_store::Store;
use proq_store::base::file_tree::size_on_disk;
use proq_store::records::snapshot::SnapshotRecord;

use super::{op_log_expiry, saved_refs, temp_cleanup, verify_cache_expiry};
use crate::lane::context::expiry_item::{ExpiredItem, ExpiryKind, ExpiryScan, ItemSource};
use crate::lane::parking::snapshot_store;
use crate::lane::worktree::trash;
use crate::lane::{Error, Project};

/// Finds the items of one kind that are old enough to delete. Changes nothing.
pub fn find_expired(project: &Project, kind: ExpiryKind) -> Result<ExpiryScan, Error> {
    match kind {
        ExpiryKind::Trash => trash::find_expired(project),
        ExpiryKind::Snapshots => snapshot_store::find_expired(project),
        ExpiryKind::Operations => Ok(op_log_expiry::expired_operations(project)),
        ExpiryKind::SavedRefs => saved_refs::find_expired(project),
        ExpiryKind::OrphanOperationRefs => {
            Ok(ExpiryScan { expired: op_log_expiry::expired_orphan_refs(project)?, retained: Vec::new() })
        }
        ExpiryKind::VerifyCache => Ok(verify_cache_expiry::find_expired(&project.store)),
        ExpiryKind::TempFiles => Ok(temp_cleanup::find_expired(project)),
    }
}

impl ExpiredItem {
    /// Returns the disk space of the item, in bytes. Git objects count as zero: git frees them once no ref
    /// keeps them.
    pub fn disk_size(&self, store: &Store) -> u64 {
        let layout = store.layout();
        match &self.source {
            ItemSource::Trash { dir, other_disk_dir: beside } => {
                size_on_disk(dir) + beside.as_deref().map_or(0, size_on_disk)
            }
            ItemSource::Snapshot => size_on_disk(&layout.snapshot(&self.name)),
            ItemSource::Operation(number) => {
                size_on_disk(&layout.operation(*number))
                    + size_on_disk(&layout.operation_trace(Some(*number)))
            }
            ItemSource::SavedRef(_) | ItemSource::OrphanOperationRef(_) => 0,
            ItemSource::StorePath(path) => size_on_disk(path),
        }
    }

    /// Deletes the item after checking it again. Returns false when it no longer exists or is no longer old.
    pub fn delete(&self, project: &Project) -> Result<bool, Error> {
        let refs = self.refs_to_delete(&project.store)?;
        if refs.is_empty() {
            return self.delete_item(project);
        }
        // If git is killed with this process, this folder identifies its leftover locks.
        let scratch = project.store.layout().create_scratch()?;
        ref_recovery::record_ref_deletions(scratch.path(), &refs);
        project.repo.forget_killed_git();
        let deleted = self.delete_item(project);
        if deleted.is_err() {
            let release = || ref_recovery::recover_ref_deletion_locks(&project.repo, scratch.path());
            project.repo.clean_up_failure(release)?;
        }
        deleted
    }

    /// Returns the refs that are deleted with the item.
    fn refs_to_delete(&self, store: &Store) -> Result<Vec<String>, Error> {
        Ok(match &self.source {
            ItemSource::Snapshot => vec![SnapshotRecord::ref_name(&self.name)],
            ItemSource::Operation(number) => op_log_expiry::operation_refs(store, *number)?,
            ItemSource::SavedRef(_) | ItemSource::OrphanOperationRef(_) => vec![self.name.clone()],
            ItemSource::Trash { .. } | ItemSource::StorePath(_) => Vec::new(),
        })
    }

    /// Deletes the item by the rules of its kind. Returns false when it no longer exists or is no longer old.
    fn delete_item(&self, project: &Project) -> Result<bool, Error> {
        match &self.source {
            ItemSource::Trash { dir, other_disk_dir: beside } => {
                trash::delete_expired(project, dir, beside.as_deref())
            }
            ItemSource::Snapshot => snapshot_store::delete_expired(project, &self.name),
            ItemSource::Operation(number) => op_log_expiry::delete_operation(project, *number),
            ItemSource::SavedRef(tip) => saved_refs::delete_if_redundant(&project.repo, &self.name, *tip),
            ItemSource::OrphanOperationRef(tip) => {
                op_log_expiry::delete_orphan_ref(project, &self.name, *tip)
            }
            ItemSource::StorePath(path) => Ok(project.store.layout().delete(path).map(|()| true)?),
        }
    }
}

/// Deletes expired items that commands create in normal use. Reads only three folders when nothing is old. A
/// failure does not stop the deletion of other items; the first error is returned.
pub fn delete_expired(project: &Project) -> Result<(), Error> {
    let mut first_error = None;
    for kind in [ExpiryKind::Trash, ExpiryKind::Snapshots, ExpiryKind::Operations] {
        match find_expired(project, kind) {
            Ok(found) => {
                for item in found.expired {
                    first_error = first_error.or(item.delete(project).err());
                }
            }
            Err(e) => first_error = first_error.or(Some(e)),
        }
    }
    first_error.map_or(Ok(()), Err)
}
