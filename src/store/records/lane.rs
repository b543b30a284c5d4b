//! Owns the form of a lane's record.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::git::Oid;
use crate::store::{Moment, Record};

/// What a lane is doing, or how it ended. What a process claims (`starting`, `running`) is true only while its lock
/// is held; who reads a record looks at the lock too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LaneState {
    /// No run yet.
    Idle,
    /// A run is being started.
    Starting,
    /// A run is under way.
    Running,
    /// The agent ended well and there is something to show.
    Done,
    /// The agent ended well and changed nothing.
    NoChange,
    /// The agent failed, or its supervisor died.
    Failed,
    /// Nothing came of it for too long, and it was ended.
    Stalled,
    /// Somebody stopped it.
    Stopped,
    /// Its supervisor is gone and its agent lives on.
    Orphaned,
    /// The last landing captured a conflict.
    Conflict,
    /// With it, checks failed that succeed without it.
    CheckFailed,
    /// It is on its base.
    Landed,
    /// It was thrown away.
    Discarded,
}

impl LaneState {
    /// Whether a process claims this state: it is true only while that process holds the run lock.
    pub(crate) fn is_claimed(self) -> bool {
        matches!(self, LaneState::Starting | LaneState::Running)
    }

    /// Whether something runs in a lane of this state.
    pub(crate) fn is_busy(self) -> bool {
        self.is_claimed() || self == LaneState::Orphaned
    }

    /// Whether nothing of the lane is left to land.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, LaneState::Landed | LaneState::Discarded)
    }
}

impl fmt::Display for LaneState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            LaneState::Idle => "idle",
            LaneState::Starting => "starting",
            LaneState::Running => "running",
            LaneState::Done => "done",
            LaneState::NoChange => "no-change",
            LaneState::Failed => "failed",
            LaneState::Stalled => "stalled",
            LaneState::Stopped => "stopped",
            LaneState::Orphaned => "orphaned",
            LaneState::Conflict => "conflict",
            LaneState::CheckFailed => "check-failed",
            LaneState::Landed => "landed",
            LaneState::Discarded => "discarded",
        })
    }
}

/// How a lane's commits come to its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Strategy {
    /// As they are, with a merge commit.
    Merge,
    /// Each anew on top of the base, without a merge commit.
    Rebase,
    /// As one commit.
    Squash,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Strategy::Merge => "merge",
            Strategy::Rebase => "rebase",
            Strategy::Squash => "squash",
        })
    }
}

impl Strategy {
    /// The strategy of this name.
    pub(crate) fn named(name: &str) -> Option<Strategy> {
        match name {
            "merge" => Some(Strategy::Merge),
            "rebase" => Some(Strategy::Rebase),
            "squash" => Some(Strategy::Squash),
            _ => None,
        }
    }
}

/// How a lane landed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Landed {
    /// The commit with which all of it was there.
    pub(crate) commit: Oid,
    /// The branch.
    pub(crate) onto: String,
    /// The tip that landed.
    pub(crate) tip: Oid,
    /// When.
    pub(crate) at: Moment,
    /// How its commits came there.
    #[serde(default = "by_merge")]
    pub(crate) method: Strategy,
}

/// How all lanes landed when records did not say.
fn by_merge() -> Strategy {
    Strategy::Merge
}

/// Why a lane that was to land by itself did not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    /// When.
    pub(crate) at: Moment,
    /// Why.
    pub(crate) message: String,
    /// The exit code of the landing.
    pub(crate) exit: u8,
}

/// A lane, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LaneRecord {
    /// Its name.
    pub(crate) name: String,
    /// The first line of its task; the name when it has none.
    pub(crate) title: String,
    /// Its branch, without `refs/heads/`.
    pub(crate) branch: String,
    /// The top of its worktree.
    #[serde(with = "crate::store::path_form")]
    pub(crate) path: PathBuf,
    /// The name of git's admin folder for that worktree.
    pub(crate) worktree_id: String,
    /// The branch it lands on.
    pub(crate) base: String,
    /// The commit it was cut from.
    pub(crate) start: Oid,
    /// What it is doing.
    pub(crate) state: LaneState,
    /// More about the state, for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    /// The agent of its last run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    /// The number of its last run; zero before the first.
    pub(crate) attempt: u32,
    /// When it was made.
    pub(crate) created: Moment,
    /// When its state changed last.
    pub(crate) updated: Moment,
    /// Shell command lines that must succeed with it before it lands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) checks: Vec<String>,
    /// The files that it is expected to touch, as globs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) scope: Vec<String>,
    /// Edits made while it was previewed: the snapshots that hold them, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) preview_edits: Vec<String>,
    /// Whether its run changed nothing because its task had been done before; it is `done` then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) already: bool,
    /// Whether it lands by itself when its run is done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) auto_merge: bool,
    /// The group that it is one attempt of, by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<String>,
    /// How it landed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) landed: Option<Landed>,
    /// Why it did not land by itself, when it was last tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refused: Option<Refusal>,
}

impl Record for LaneRecord {
    const FORMAT: u32 = 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_show_as_they_are_written() {
        let all = [LaneState::Idle, LaneState::NoChange, LaneState::CheckFailed, LaneState::Orphaned];
        for state in all {
            assert_eq!(serde_json::to_string(&state).unwrap(), format!("\"{state}\""));
        }
    }
}
