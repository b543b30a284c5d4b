//! Owns the form of what a lane's agent reported.

use serde::{Deserialize, Serialize};

use crate::store::{Moment, Record};

/// What a lane's agent said last about its task. Nothing is decided by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReportRecord {
    /// The lane's run that said it; zero before the first.
    pub(crate) run: u32,
    /// When.
    pub(crate) at: Moment,
    /// Where it is with its task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<String>,
    /// What it found.
    #[serde(default)]
    pub(crate) findings: Vec<String>,
    /// What only a person can do.
    #[serde(default)]
    pub(crate) human_steps: Vec<String>,
}

impl Record for ReportRecord {
    const FORMAT: u32 = 1;
}
