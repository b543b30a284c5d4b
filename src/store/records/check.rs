//! Owns the forms of what is kept of checks: a lane's failed one, what was found good, who is at work in a worktree.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::git::Oid;
use crate::store::{Moment, Record};

/// Why a lane was left out of a landing: with it a command failed that succeeds without it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CheckRecord {
    /// The lane.
    pub(crate) lane: String,
    /// The branch it was to land on.
    pub(crate) onto: String,
    /// The command that failed.
    pub(crate) command: String,
    /// The lane to whose task that belongs; none when it is for every landing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) task_of: Option<String>,
    /// How it ended, in words.
    pub(crate) ended: String,
    /// The lanes below it in the stack, which succeed without it.
    pub(crate) with: Vec<String>,
    /// The tree that failed.
    pub(crate) tree: Oid,
    /// Where the base was to be after that landing.
    pub(crate) base_tip: Oid,
    /// The lane's tip.
    pub(crate) theirs: Oid,
    /// When.
    pub(crate) at: Moment,
    /// What was written, as a file beside this record.
    #[serde(with = "crate::store::path_form")]
    pub(crate) log: PathBuf,
}

impl Record for CheckRecord {
    const FORMAT: u32 = 1;
}

/// A state on which all commands succeeded. What else is known of it is in the name of its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GreenRecord {
    /// Its tree.
    pub(crate) tree: Oid,
    /// The commands, in order.
    pub(crate) commands: Vec<String>,
    /// When.
    pub(crate) at: Moment,
}

impl Record for GreenRecord {
    const FORMAT: u32 = 1;
}

/// The process that was started last in a worktree for checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SlotRecord {
    /// Its number, which is also that of its group.
    pub(crate) pid: u32,
    /// What tells it from a later process of the same number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) birth: Option<String>,
}

impl Record for SlotRecord {
    const FORMAT: u32 = 1;
}
