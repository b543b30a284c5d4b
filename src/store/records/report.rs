//! Record of a report by a lane's agent.

use serde::{Deserialize, Serialize};

use crate::store::{Moment, Record};

/// Last report of a lane's agent about its task. It is informational: git-proq decides nothing by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReportRecord {
    /// Run of the lane that reported; zero before the first.
    pub(crate) run: u32,
    /// Time of the report.
    pub(crate) at: Moment,
    /// Status of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<String>,
    /// Findings of the agent.
    #[serde(default)]
    pub(crate) findings: Vec<String>,
    /// Steps that only the user can do.
    #[serde(default)]
    pub(crate) human_steps: Vec<String>,
}

impl Record for ReportRecord {
    const FORMAT: u32 = 1;
}
