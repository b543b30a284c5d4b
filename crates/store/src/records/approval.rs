//! Record of the commands that the user has approved.

use serde::{Deserialize, Serialize};

use crate::base::clock::Moment;
use crate::base::record::Record;

/// Command of the repository that the user has read and approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovedCommand {
    /// Hash of kind and command line.
    pub id: String,
    /// Use of the command: `verify`, `conflict-agent`, `hook run.ended`.
    pub kind: String,
    /// Command line.
    pub command: String,
    /// Time of the approval.
    pub at: Moment,
}

/// All approved commands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalsRecord {
    /// Approved commands, oldest first.
    #[serde(default)]
    pub approved: Vec<ApprovedCommand>,
}

impl Record for ApprovalsRecord {
    const FORMAT: u32 = 1;
}
