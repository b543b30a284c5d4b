//! Owns the form of what an agent's own hooks said last.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::store::{Moment, Record};

/// What an agent does while its run is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Activity {
    /// It is at work.
    Working,
    /// It waits for a person's consent.
    NeedsApproval,
    /// It has ended its turn.
    Idle,
    /// It does not tell.
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

/// What an agent's own hooks said last, in one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ActivityRecord {
    /// What it does.
    pub(crate) activity: Activity,
    /// Since when.
    pub(crate) since: Moment,
    /// What it waits for, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// How often its turn's end was refused since a person last said something, because checks failed.
    #[serde(default)]
    pub(crate) sent_back: u32,
    /// The session that it is in, where its hooks are the only ones to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
}

impl Record for ActivityRecord {
    const FORMAT: u32 = 1;
}
