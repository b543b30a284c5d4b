//! Record of an agent's activity during a run, as its hooks reported it last.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::store::{Moment, Record};

/// Activity of an agent during its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Activity {
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
pub(crate) struct ActivityRecord {
    pub(crate) activity: Activity,
    /// Start of the activity.
    pub(crate) since: Moment,
    /// Description, by the agent, of what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// Number of times that failed checks prevented the end of the turn since the last message from the user.
    #[serde(default)]
    #[serde(rename = "sent_back")]
    pub(crate) refused_stops: u32,
    /// Current session, where only the agent's hooks report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
}

impl Record for ActivityRecord {
    const FORMAT: u32 = 1;
}
