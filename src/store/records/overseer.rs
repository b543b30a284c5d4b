//! Record of the agent that supervises all lanes.

use serde::{Deserialize, Serialize};

use crate::store::{Moment, Record};

/// Supervising agent that was started last, and its session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OverseerRecord {
    /// Kind of agent.
    pub(crate) agent: String,
    /// Session id.
    pub(crate) session: String,
    /// Time of the start.
    pub(crate) started: Moment,
}

impl Record for OverseerRecord {
    const FORMAT: u32 = 1;
}
