//! Owns the form of what is known of the agent that supervises all lanes.

use serde::{Deserialize, Serialize};

use crate::store::{Moment, Record};

/// The agent that was started last to supervise, and its session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OverseerRecord {
    /// Which kind of agent.
    pub(crate) agent: String,
    /// The id of its session.
    pub(crate) session: String,
    /// When.
    pub(crate) started: Moment,
}

impl Record for OverseerRecord {
    const FORMAT: u32 = 1;
}
