//! Records of checks: a lane's failed check, states that passed, and the process in a check worktree.

use std::path::PathBuf;

use proq_base::lane_name::LaneName;
use proq_git::{CommitId, TreeId};
use serde::{Deserialize, Serialize};

use crate::base::clock::Moment;
use crate::base::record::Record;

/// Reason why a lane was left out of a landing: a command fails with the lane and succeeds without it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCheckRecord {
    /// Name of the lane.
    pub lane: LaneName,
    /// Branch that the lane would have landed on.
    pub onto: String,
    /// Command that failed.
    pub command: String,
    /// Lane whose task the command belongs to; none for a command of every landing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "task_of")]
    pub command_lane: Option<LaneName>,
    /// Description of how the command exited.
    #[serde(rename = "ended")]
    pub exit_text: String,
    /// Lanes below this one in the stack, which pass without it.
    #[serde(rename = "with")]
    pub lanes_below: Vec<LaneName>,
    /// Tree on which the command failed.
    pub tree: TreeId,
    /// Tip of the base after the landing that left this lane out.
    #[serde(rename = "base_tip")]
    pub base_tip_after_landing: CommitId,
    /// Tip of the lane.
    #[serde(rename = "theirs")]
    pub lane_tip: CommitId,
    /// Time of the failure.
    #[serde(rename = "at")]
    pub failed_at: Moment,
    /// Output of the command, as a file next to this record.
    #[serde(with = "crate::paths::path_form")]
    pub log: PathBuf,
}

impl Record for FailedCheckRecord {
    const FORMAT: u32 = 1;
}

/// Entry of the verify cache: a state that passed all commands. The file name is a hash of all that
/// identifies the state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyCacheRecord {
    /// Tree of the state.
    pub tree: TreeId,
    /// Commands, in order.
    pub commands: Vec<String>,
    /// Time of the success.
    #[serde(rename = "at")]
    pub passed_at: Moment,
}

impl Record for VerifyCacheRecord {
    const FORMAT: u32 = 1;
}

/// Set-up of a check worktree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckSetUpRecord {
    /// Set-up commands, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Whether all of them succeeded.
    #[serde(default)]
    pub is_complete: bool,
}

impl Record for CheckSetUpRecord {
    const FORMAT: u32 = 1;
}

/// Process that was started last in a check worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckWorktreeRecord {
    /// Process id, which is also the id of its process group.
    pub pid: u32,
    /// Value that distinguishes the process from a later one with the same id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "birth")]
    pub process_start_time: Option<String>,
}

impl Record for CheckWorktreeRecord {
    const FORMAT: u32 = 1;
}
