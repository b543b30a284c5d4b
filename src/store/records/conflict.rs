//! Owns the form of a captured conflict.

use serde::{Deserialize, Serialize};

use crate::git::{Oid, RepoPath};
use crate::store::{Moment, Record};

/// One side of a conflicted path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConflictStage {
    /// The path.
    pub(crate) path: RepoPath,
    /// 1 is the common base, 2 the branch it was to land on, 3 the lane.
    pub(crate) stage: u8,
    /// Its mode, in octal as git writes it.
    pub(crate) mode: String,
    /// Its blob.
    pub(crate) oid: Oid,
}

/// What a landing kept of a conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConflictRecord {
    /// The lane.
    pub(crate) lane: String,
    /// The branch it was to land on.
    pub(crate) onto: String,
    /// The commit it was merged into: the base, or the stack on top of it.
    pub(crate) ours: Oid,
    /// The base's tip once that was written down.
    pub(crate) base_tip: Oid,
    /// The lane's tip.
    pub(crate) theirs: Oid,
    /// The merged tree, with markers.
    pub(crate) tree: Oid,
    /// When.
    pub(crate) at: Moment,
    /// How often it was tried.
    pub(crate) attempts: u32,
    /// The conflicted paths.
    pub(crate) paths: Vec<RepoPath>,
    /// What git said.
    pub(crate) messages: Vec<String>,
    /// Every side of every conflicted path.
    pub(crate) stages: Vec<ConflictStage>,
}

impl Record for ConflictRecord {
    const FORMAT: u32 = 1;
}
