//! Owns the form of what the hooks of a run know of it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::git::Oid;
use crate::store::Record;

/// A run, as its hooks know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FenceRecord {
    /// The lane.
    pub(crate) lane: String,
    /// Its branch, without `refs/heads/`; none when it only looks, and may write no branch at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) branch: Option<String>,
    /// Whether that is the branch of the main checkout, which is others' too.
    #[serde(default)]
    pub(crate) in_place: bool,
    /// Whether it may look and change nothing, and so write no ref.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) read_only: bool,
    /// The git directory of the worktree that the run works in.
    #[serde(with = "crate::store::path_form")]
    pub(crate) git_dir: PathBuf,
    /// The hooks that the repository had when the run began.
    #[serde(default)]
    pub(crate) own_hooks: Vec<String>,
    /// The entries of the stash when the run began.
    #[serde(default)]
    pub(crate) stash: Vec<Oid>,
}

impl Record for FenceRecord {
    const FORMAT: u32 = 1;
}
