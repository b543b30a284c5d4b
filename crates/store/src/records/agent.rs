//! Records about agents: activity and report of a lane's agent, and the session of the supervising agent.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::base::clock::Moment;
use crate::base::record::Record;
use crate::base::run_number::RunNumber;

/// Activity of an agent during its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// The agent is working.
    Working,
    /// The agent waits for the user's approval.
    NeedsApproval,
    /// The agent has finished its turn.
    Idle,
    /// The agent does not report its activity.
    Unknown,
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Activity::Working => "working",
            Activity::NeedsApproval => "needs-approval",
            Activity::Idle => "idle",
            Activity::Unknown => "unknown",
        })
    }
}

/// Last report of an agent's hooks in one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivityRecord {
    /// Activity that the hooks reported last.
    pub activity: Activity,
    /// Start of the activity.
    pub since: Moment,
    /// Description, by the agent, of what it waits for; none if it gave none.
    #[serde(rename = "message", default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// Number of times that failed checks prevented the end of the turn since the last message from the user.
    #[serde(default)]
    #[serde(rename = "sent_back")]
    pub refused_stops: u32,
    /// Current session, where only the agent's hooks report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

impl Record for ActivityRecord {
    const FORMAT: u32 = 1;
}

/// Last report of a lane's agent about its task. It is informational: git-proq decides nothing by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportRecord {
    /// Run of the lane that reported; zero before the first.
    pub run: RunNumber,
    /// Time of the report.
    pub at: Moment,
    /// Status of the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Findings of the agent.
    #[serde(default)]
    pub findings: Vec<String>,
    /// Steps that only the user can do.
    #[serde(default)]
    pub human_steps: Vec<String>,
}

impl Record for ReportRecord {
    const FORMAT: u32 = 1;
}

/// Supervising agent that was started last, and its session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverseerRecord {
    /// Kind of agent.
    pub agent: String,
    /// Session id.
    pub session: String,
    /// Time of the start.
    pub started: Moment,
}

impl Record for OverseerRecord {
    const FORMAT: u32 = 1;
}
