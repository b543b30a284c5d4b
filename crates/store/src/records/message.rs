//! Records of messages to a lane's agent, and of those that were delivered.

use serde::{Deserialize, Serialize};

use crate::base::clock::Moment;
use crate::base::record::Record;
use crate::base::run_number::RunNumber;

/// Message to a lane's agent, with its conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageRecord {
    /// Time at which the message was sent.
    #[serde(rename = "at")]
    pub sent_at: Moment,
    /// Agent that the message is for.
    pub agent: String,
    /// Last run of the lane when the message was sent.
    #[serde(rename = "run")]
    pub last_run: RunNumber,
    /// Conversation that the message is for, by the number of its first run.
    #[serde(rename = "talk")]
    pub conversation: RunNumber,
    /// Session of the conversation that the message is for, if the agent had named one at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Text of the message.
    pub text: String,
}

impl Record for MessageRecord {
    const FORMAT: u32 = 1;
}

/// Messages that were delivered and whose files may still exist.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveredRecord {
    /// Names of the messages' files.
    #[serde(rename = "messages")]
    pub message_files: Vec<String>,
}

impl Record for DeliveredRecord {
    const FORMAT: u32 = 1;
}
