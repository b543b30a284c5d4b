//! Owns the form of a message that was sent to a lane's agent, and of the note which of them were told.

use serde::{Deserialize, Serialize};

use crate::store::{Moment, Record};

/// What somebody sent to a lane's agent, and to which conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MessageRecord {
    /// When it was sent.
    pub(crate) at: Moment,
    /// The agent that it is for.
    pub(crate) agent: String,
    /// The lane's last run when it was sent.
    pub(crate) run: u32,
    /// The conversation that it is for, by the run that began it.
    pub(crate) talk: u32,
    /// The session of that conversation, if the agent had named one by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    /// What it says.
    pub(crate) text: String,
}

impl Record for MessageRecord {
    const FORMAT: u32 = 1;
}

/// Messages that were told and whose files may be there still.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ToldRecord {
    /// Their names.
    pub(crate) messages: Vec<String>,
}

impl Record for ToldRecord {
    const FORMAT: u32 = 1;
}
