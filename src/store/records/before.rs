//! Owns the form of what is known of the main checkout from before a run worked there.

use serde::{Deserialize, Serialize};

use crate::git::RepoPath;
use crate::store::Record;

/// The main checkout before a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BeforeRecord {
    /// The ref that keeps the commit it was at.
    pub(crate) keeper: String,
    /// The snapshot of what was uncommitted; none when nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) snap: Option<String>,
    /// Files and folders that git ignored.
    #[serde(default)]
    pub(crate) ignored: Vec<RepoPath>,
    /// Submodules and nested repositories that were not as HEAD has them.
    #[serde(default)]
    pub(crate) apart: Vec<RepoPath>,
}

impl Record for BeforeRecord {
    const FORMAT: u32 = 1;
}
