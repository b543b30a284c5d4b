//! Owns the form of what the user has approved.

use serde::{Deserialize, Serialize};

use crate::store::{Moment, Record};

/// One command that came with the repository and that the user has read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Approved {
    /// The hash of kind and text.
    pub(crate) id: String,
    /// What it is for: `verify`, `conflict-agent`, `hook run.ended`.
    pub(crate) kind: String,
    /// The command line.
    pub(crate) command: String,
    /// When.
    pub(crate) at: Moment,
}

/// All of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ApprovalsRecord {
    /// Oldest first.
    #[serde(default)]
    pub(crate) approved: Vec<Approved>,
}

impl Record for ApprovalsRecord {
    const FORMAT: u32 = 1;
}
