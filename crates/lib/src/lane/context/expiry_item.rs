//! Items that are kept for a limited time: their kinds, and those that a scan found to be old.

use std::path::PathBuf;

use proq_base::explain::Explain;
use proq_git::Oid;
use proq_store::base::clock::Moment;
use proq_store::base::operation_number::OperationNumber;
use serde::Serialize;

/// A kind of item that is kept for a limited time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExpiryKind {
    /// Folders of removed lanes.
    Trash,
    /// Snapshots that were restored.
    Snapshots,
    /// Operations in the log.
    Operations,
    /// Saved refs, whose commits other refs keep too.
    SavedRefs,
    /// Refs that keep objects for operations which no longer exist.
    #[serde(rename = "operation-refs")]
    OrphanOperationRefs,
    /// Cached results of passed checks.
    #[serde(rename = "checks")]
    VerifyCache,
    /// Files that crashed processes left half written.
    #[serde(rename = "drafts")]
    TempFiles,
}

impl ExpiryKind {
    /// All kinds, in the order in which they are scanned.
    pub const ALL: [ExpiryKind; 7] = [
        ExpiryKind::Trash,
        ExpiryKind::Snapshots,
        ExpiryKind::Operations,
        ExpiryKind::SavedRefs,
        ExpiryKind::OrphanOperationRefs,
        ExpiryKind::VerifyCache,
        ExpiryKind::TempFiles,
    ];
}

/// An item that is old enough to delete.
#[derive(Debug)]
pub struct ExpiredItem {
    /// Name of the item.
    pub name: String,
    /// Time from which the age of the item counts: when it was removed, restored, finished or written.
    pub age_start: Moment,
    /// Type of the item, with the data that deleting it needs.
    pub source: ItemSource,
}

/// Kind of an expired item, with the path, number or commit that deleting it needs.
#[derive(Debug)]
pub enum ItemSource {
    /// An entry of the trash, and the folder on another disk that belongs to it.
    Trash {
        /// Folder of the entry in the trash.
        dir: PathBuf,
        /// Folder on another disk that belongs to the entry; none for an entry without one.
        other_disk_dir: Option<PathBuf>,
    },
    /// A snapshot, by the item's name.
    Snapshot,
    /// An operation, by its number.
    Operation(OperationNumber),
    /// A saved ref, whose commits other refs keep too, with its tip.
    SavedRef(Oid),
    /// A ref of an operation that no longer exists, with its tip.
    OrphanOperationRef(Oid),
    /// A file or folder of the store, by its path: a cached check result, or what a crashed process left.
    StorePath(PathBuf),
}

/// An item that is old but is retained.
#[derive(Debug)]
pub struct RetainedItem {
    /// Name of the item: of a trash entry, snapshot, operation, ref or file.
    pub name: String,
    /// Reason why the item is retained.
    pub reason: String,
    /// Command that deletes the item or resolves the reason; none where there is none.
    pub remedy_command: Option<String>,
}

impl RetainedItem {
    /// Creates the entry for an item that cannot be read.
    pub fn unreadable(name: impl Into<String>, error: &dyn Explain) -> RetainedItem {
        let remedy_command = error.hints().first().map(ToString::to_string);
        RetainedItem { name: name.into(), reason: error.to_string(), remedy_command }
    }
}

/// Expired items of one kind, and the old ones that are retained nevertheless.
#[derive(Debug, Default)]
pub struct ExpiryScan {
    /// Items that can be deleted, oldest first.
    pub expired: Vec<ExpiredItem>,
    /// Items that are old enough but are retained, with the reason.
    pub retained: Vec<RetainedItem>,
}

/// Expired items of one kind.
#[derive(Debug, Serialize)]
pub struct ExpiredGroup {
    /// Kind of the items.
    pub kind: ExpiryKind,
    /// Number of the items.
    pub count: usize,
    /// Bytes that the items take on disk.
    pub bytes: u64,
    /// The items, oldest first.
    pub items: Vec<ExpiredRow>,
}

/// An expired item.
#[derive(Debug, Serialize)]
pub struct ExpiredRow {
    /// Name of the item.
    pub name: String,
    /// Time since which the item has been obsolete.
    #[serde(rename = "at")]
    pub obsolete_since: Moment,
    /// Bytes that the item takes on disk.
    pub bytes: u64,
}
