//! Record of a lane that is being created: its ports and its set-up process.

use serde::{Deserialize, Serialize};

use super::Ports;
use crate::store::Record;

/// Lane that is being created and has no lane record yet: its ports and its set-up process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SetUpRecord {
    /// Ports reserved for the lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "port")]
    pub(crate) ports: Option<Ports>,
    /// Process mark of all processes that the set-up commands start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mark: Option<String>,
    /// Process id of the current set-up command, which is also the id of its process group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pid: Option<u32>,
    /// Value that distinguishes the process from a later one with the same id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "birth")]
    pub(crate) start_time: Option<String>,
}

impl Record for SetUpRecord {
    const FORMAT: u32 = 1;
}
