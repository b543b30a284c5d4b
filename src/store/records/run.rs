//! Owns the form of a run's record.

use serde::{Deserialize, Serialize};

use super::LaneState;
use crate::git::Oid;
use crate::store::{Moment, Record};

/// One execution of an agent in a lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunRecord {
    /// Its number in the lane, from 1.
    pub(crate) attempt: u32,
    /// The profile's name.
    pub(crate) agent: String,
    /// The command as it is started, the prompt left out where it is passed as a file.
    pub(crate) command: Vec<String>,
    /// Whether what it is told is its standard input.
    pub(crate) prompt_on_stdin: bool,
    /// What its output is written in: the name of a dialect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dialect: Option<String>,
    /// What the agent may do: the name of a permission level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) permission: Option<String>,
    /// The model that it was asked to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// The agent's session, as it was chosen before; the agent's own output says which it really is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    /// Whether it goes on in an earlier session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) resumed: bool,
    /// Whether a person sits in front of it, who can be asked for consent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) interactive: bool,
    /// Whether processes that it leaves behind outside of its process group are left alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) keeps_strays: bool,
    /// Whether it resolves a conflict, in a worktree of its own and with a prompt of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) resolves: bool,
    /// The lane's tip before.
    pub(crate) tip_before: Oid,
    /// When it started.
    pub(crate) started: Moment,
    /// The agent's process, which is also its process group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pid: Option<u32>,
    /// What tells that process from a later one of the same number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) birth: Option<String>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended: Option<Moment>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<LaneState>,
    /// The agent's exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signal: Option<i32>,
    /// The lane's tip after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tip_after: Option<Oid>,
}

impl Record for RunRecord {
    const FORMAT: u32 = 1;
}
