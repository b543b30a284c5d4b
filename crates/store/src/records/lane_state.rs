//! State of a lane: its current activity, or its result.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Current activity of a lane, or its result. `starting` and `running` are claims of a process and are true
/// only while its lock is held. Readers of a record must also check the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LaneState {
    /// The lane has had no run yet.
    Idle,
    /// A run is being started.
    Starting,
    /// A run is active.
    Running,
    /// The agent succeeded and changed something.
    Done,
    /// The agent succeeded and changed nothing.
    NoChange,
    /// The agent failed, or its supervisor crashed.
    Failed,
    /// The run made no progress for too long and was stopped.
    Stalled,
    /// The run was stopped on request.
    Stopped,
    /// The supervisor has exited and the agent is still running.
    Orphaned,
    /// The last landing captured a conflict.
    Conflict,
    /// Checks fail with the lane that succeed without it.
    CheckFailed,
    /// The lane has landed on its base.
    Landed,
    /// The lane was discarded.
    Discarded,
}

impl LaneState {
    /// Returns whether a process claims this state. Such a state is true only while that process holds the
    /// run lock.
    pub fn is_claimed(self) -> bool {
        matches!(self, LaneState::Starting | LaneState::Running)
    }

    /// Returns whether a process runs in a lane of this state.
    pub fn is_busy(self) -> bool {
        self.is_claimed() || self == LaneState::Orphaned
    }

    /// Returns whether the lane has landed or was discarded, so that it has nothing left to land.
    pub fn is_closed(self) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_display_as_serialized() {
        let all = [LaneState::Idle, LaneState::NoChange, LaneState::CheckFailed, LaneState::Orphaned];
        for state in all {
            assert_eq!(serde_json::to_string(&state).unwrap(), format!("\"{state}\""));
        }
    }
}
