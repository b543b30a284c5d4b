//! Record of the commands that the user has approved.

use serde::{Deserialize, Serialize};

use crate::store::base::clock::Moment;
use crate::store::base::record::Record;

/// Command of the repository that the user has read and approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ApprovedCommand {
    /// Hash of kind and command line.
    pub(crate) id: String,
    /// Use of the command: `verify`, `conflict-agent`, `hook run.ended`.
    pub(crate) kind: String,
    /// Command line.
    pub(crate) command: String,
    /// Time of the approval.
    pub(crate) at: Moment,
}

/// All approved commands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ApprovalsRecord {
    /// Approved commands, oldest first.
    #[serde(default)]
    pub(crate) approved: Vec<ApprovedCommand>,
}

impl Record for ApprovalsRecord {
    const FORMAT: u32 = 1;
}
