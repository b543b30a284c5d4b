//! Owns the form of a snapshot's record.

use serde::{Deserialize, Serialize};

use crate::git::{RepoPath, Snapshot};
use crate::store::{Moment, Record, new_id, now};

/// A snapshot, as it is kept beside its raw index and the files that were set aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SnapRecord {
    /// Its id: `refs/proq/snap/<id>`.
    pub(crate) id: String,
    /// What it is for.
    pub(crate) why: String,
    /// When it was taken.
    pub(crate) at: Moment,
    /// When its content came back to a worktree; none while it is the only place that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) restored: Option<Moment>,
    /// Whether it is only a copy: what it holds was never taken out of its worktree.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) copy: bool,
    /// Set where git-proq took it by itself while agents were at work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) automatic: Option<Automatic>,
    /// The snapshot in whose folder its set-aside files lie, where this one is that one with what was written into them
    /// since; none when they lie in its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) files_in: Option<String>,
    /// The snapshot of which this is what came of it on another commit: whoever waits for that one gets its changes as they were
    /// there, unless somebody touches these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stands_for: Option<String>,
    /// What it holds.
    pub(crate) snapshot: Snapshot,
}

/// What is on record of an automatic snapshot beyond its content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Automatic {
    /// The lane whose worktree it was taken of; none for the main checkout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lane: Option<String>,
    /// Whether an event names it: it is kept as long as other snapshots then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) named: bool,
    /// Ignored files whose copies lie beside it.
    #[serde(default)]
    pub(crate) ignored: Vec<RepoPath>,
    /// Ignored files and folders that were too large to be copied.
    #[serde(default)]
    pub(crate) too_large: Vec<RepoPath>,
}

impl Record for SnapRecord {
    const FORMAT: u32 = 1;
}

impl SnapRecord {
    /// A snapshot taken now that is to be the only place that has what it holds. It gets a new id.
    pub(crate) fn new(why: &str, snapshot: Snapshot) -> SnapRecord {
        SnapRecord {
            id: new_id(),
            why: why.to_owned(),
            at: now(),
            restored: None,
            copy: false,
            automatic: None,
            files_in: None,
            stands_for: None,
            snapshot,
        }
    }

    /// A snapshot taken now of what stays in its worktree. It gets a new id.
    pub(crate) fn copy(why: &str, snapshot: Snapshot) -> SnapRecord {
        let new = SnapRecord::new(why, snapshot);
        SnapRecord { restored: Some(new.at), copy: true, ..new }
    }

    /// The ref that keeps its objects.
    pub(crate) fn ref_name(id: &str) -> String {
        format!("refs/proq/snap/{id}")
    }
}
