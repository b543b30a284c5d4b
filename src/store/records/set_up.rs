//! Owns the form of what is known of a lane while it is being made: its ports, and who is at work in it.

use serde::{Deserialize, Serialize};

use super::Ports;
use crate::store::Record;

/// A lane that has no record yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SetUpRecord {
    /// The ports that it will have: nobody else gets them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) port: Option<Ports>,
    /// What all have in their environment that a command of its set-up has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mark: Option<String>,
    /// The number of that command's process, and of its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pid: Option<u32>,
    /// What tells it from a later process of the same number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) birth: Option<String>,
}

impl Record for SetUpRecord {
    const FORMAT: u32 = 1;
}
