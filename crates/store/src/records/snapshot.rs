//! Record of a snapshot.

use proq_base::lane_name::LaneName;
use proq_git::RepoPath;
use proq_git::snapshots::snapshot::Snapshot;
use serde::{Deserialize, Serialize};

use crate::base::clock::{Moment, now};
use crate::base::id::new_id;
use crate::base::record::Record;

/// Snapshot, stored next to its raw index and its parked files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotRecord {
    /// Id of the snapshot: `refs/proq/snap/<id>`.
    pub id: String,
    /// Reason for the snapshot.
    #[serde(rename = "why")]
    pub reason: String,
    /// Time at which the snapshot was taken.
    pub at: Moment,
    /// Time at which the content was restored to a worktree; none while only the snapshot has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<Moment>,
    /// Whether the snapshot is only a copy: its content was never removed from the worktree.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "copy")]
    pub is_copy: bool,
    /// Details of an automatic snapshot, taken while agents ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automatic: Option<AutomaticSnapshotInfo>,
    /// Snapshot whose folder has the parked files, if this one is that snapshot with later changes to those
    /// files. None when the files are in this snapshot's own folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "files_in")]
    pub parked_files_snapshot: Option<String>,
    /// Snapshot that this one was derived from on another commit. A restore of that snapshot gets its
    /// original changes, unless the derived ones were edited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "stands_for")]
    pub derived_from: Option<String>,
    /// Content of the snapshot.
    pub snapshot: Snapshot,
}

/// Details of an automatic snapshot beyond its content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutomaticSnapshotInfo {
    /// Lane whose worktree the snapshot is of; none for the main checkout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<LaneName>,
    /// Whether an event names the snapshot. Such a snapshot expires as late as one that is not automatic.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "named")]
    pub is_in_event: bool,
    /// Ignored files whose copies are next to the record.
    #[serde(rename = "ignored", default)]
    pub copied_ignored_files: Vec<RepoPath>,
    /// Ignored files and folders that were too large to copy.
    #[serde(default)]
    pub too_large: Vec<RepoPath>,
}

impl Record for SnapshotRecord {
    const FORMAT: u32 = 1;
}

impl SnapshotRecord {
    /// Creates the record of a snapshot taken now that will hold the only copy of its content. The snapshot
    /// gets a new id.
    pub fn new(reason: &str, snapshot: Snapshot) -> SnapshotRecord {
        SnapshotRecord {
            id: new_id(),
            reason: reason.to_owned(),
            at: now(),
            restored: None,
            is_copy: false,
            automatic: None,
            parked_files_snapshot: None,
            derived_from: None,
            snapshot,
        }
    }

    /// Creates the record of a snapshot taken now whose content stays in its worktree. The snapshot gets a
    /// new id.
    pub fn new_copy(reason: &str, snapshot: Snapshot) -> SnapshotRecord {
        let record = SnapshotRecord::new(reason, snapshot);
        SnapshotRecord { restored: Some(record.at), is_copy: true, ..record }
    }

    /// Returns the ref that keeps the snapshot's objects.
    pub fn ref_name(id: &str) -> String {
        format!("refs/proq/snap/{id}")
    }
}
