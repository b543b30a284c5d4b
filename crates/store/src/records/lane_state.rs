//! Status of a lane: the state of its last run and of its landing, and the one word that is shown for both.

use std::fmt;

use serde::{Deserialize, Serialize};

/// State of the last run of a lane. The claimed states (see [`RunState::is_claimed`]) are claims of a process
/// and are true only while its lock is held. Readers of a record must also check the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// The lane has had no run yet.
    Idle,
    /// A run is being started.
    Starting,
    /// A run is active.
    Running,
    /// A run is active, and its agent waits for a person: for an approval or the next prompt.
    Waiting,
    /// The last try failed, and the supervisor waits for the time of the next one, for instance until a rate
    /// limit is lifted.
    Retrying,
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
}

impl RunState {
    /// Returns whether a process claims this state. Such a state is true only while that process holds the
    /// run lock.
    pub fn is_claimed(self) -> bool {
        matches!(self, RunState::Starting | RunState::Running | RunState::Waiting | RunState::Retrying)
    }

    /// Returns the word for a lane that nothing has landed and nothing kept from landing.
    fn word(self) -> LaneState {
        match self {
            RunState::Idle => LaneState::Idle,
            RunState::Starting => LaneState::Starting,
            RunState::Running | RunState::Waiting | RunState::Retrying => LaneState::Running,
            RunState::Done => LaneState::Done,
            RunState::NoChange => LaneState::NoChange,
            RunState::Failed => LaneState::Failed,
            RunState::Stalled => LaneState::Stalled,
            RunState::Stopped => LaneState::Stopped,
            RunState::Orphaned => LaneState::Orphaned,
        }
    }
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunState::Waiting => f.pad("waiting"),
            RunState::Retrying => f.pad("retrying"),
            state => state.word().fmt(f),
        }
    }
}

/// State of a lane's landing, as the last landing left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LandingState {
    /// The lane has not landed, and nothing is known that keeps it from landing.
    Open,
    /// The last landing captured a conflict.
    Conflict,
    /// Checks fail with the lane that succeed without it.
    CheckFailed,
    /// The lane has landed on its base.
    Landed,
    /// The lane was discarded.
    Discarded,
}

impl LandingState {
    /// Returns whether the lane has landed or was discarded, so that it has nothing left to land.
    pub fn is_closed(self) -> bool {
        matches!(self, LandingState::Landed | LandingState::Discarded)
    }
}

/// Status of a lane: its last run and its landing. In a record it is `run` and `landing`, and `state`, the word
/// for both, for programs that know only that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "LaneStatusForm", into = "LaneStatusForm")]
pub struct LaneStatus {
    /// State of the last run.
    pub run: RunState,
    /// State of the landing.
    pub landing: LandingState,
}

/// Keys of a lane's status in its record.
#[derive(Serialize, Deserialize)]
struct LaneStatusForm {
    /// Word for both.
    state: LaneState,
    /// State of the last run; none in a record that an older version wrote.
    #[serde(default)]
    run: Option<RunState>,
    /// State of the landing; none in a record that an older version wrote.
    #[serde(default)]
    landing: Option<LandingState>,
}

impl From<LaneStatus> for LaneStatusForm {
    fn from(status: LaneStatus) -> LaneStatusForm {
        let LaneStatus { run, landing } = status;
        LaneStatusForm { state: status.state(), run: Some(run), landing: Some(landing) }
    }
}

impl From<LaneStatusForm> for LaneStatus {
    fn from(form: LaneStatusForm) -> LaneStatus {
        let both = form.run.zip(form.landing).map(|(run, landing)| LaneStatus { run, landing });
        // An older version, which an undo may have merged with this one, changes only the word.
        both.filter(|status| status.state() == form.state)
            .unwrap_or_else(|| LaneStatus::from_word(form.state))
    }
}

impl LaneStatus {
    /// Returns the status of a lane whose last run is in this state and that has no landing.
    pub fn of_run(run: RunState) -> LaneStatus {
        LaneStatus { run, landing: LandingState::Open }
    }

    /// Returns the status that a record of an older version means. Where that names a landing, it lacks the end of
    /// the last run, which is taken for done: the lane had work to land.
    pub fn from_word(state: LaneState) -> LaneStatus {
        let landing = match state {
            LaneState::Conflict => LandingState::Conflict,
            LaneState::CheckFailed => LandingState::CheckFailed,
            LaneState::Landed => LandingState::Landed,
            LaneState::Discarded => LandingState::Discarded,
            _ => LandingState::Open,
        };
        let run = match state {
            LaneState::Idle => RunState::Idle,
            LaneState::Starting => RunState::Starting,
            LaneState::Running => RunState::Running,
            LaneState::NoChange => RunState::NoChange,
            LaneState::Failed => RunState::Failed,
            LaneState::Stalled => RunState::Stalled,
            LaneState::Stopped => RunState::Stopped,
            LaneState::Orphaned => RunState::Orphaned,
            _ => RunState::Done,
        };
        LaneStatus { run, landing }
    }

    /// Returns the one word for both: an orphaned run, else what closed the lane, else a run that is active, else what keeps the
    /// lane from landing, else the end of its last run.
    pub fn state(self) -> LaneState {
        if self.run == RunState::Orphaned {
            return LaneState::Orphaned;
        }
        match self.landing {
            LandingState::Landed => LaneState::Landed,
            LandingState::Discarded => LaneState::Discarded,
            LandingState::Conflict if !self.run.is_claimed() => LaneState::Conflict,
            LandingState::CheckFailed if !self.run.is_claimed() => LaneState::CheckFailed,
            _ => self.run.word(),
        }
    }
}

/// The word for a lane's status, for the user: [`LaneStatus::state`].
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
    /// All states, in the order in which counts of lanes are shown.
    pub const IN_DISPLAY_ORDER: [LaneState; 13] = [
        LaneState::Done,
        LaneState::Running,
        LaneState::Starting,
        LaneState::Conflict,
        LaneState::CheckFailed,
        LaneState::Failed,
        LaneState::Stalled,
        LaneState::Stopped,
        LaneState::Orphaned,
        LaneState::NoChange,
        LaneState::Idle,
        LaneState::Landed,
        LaneState::Discarded,
    ];

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

    const WORDS: [LaneState; 13] = [
        LaneState::Idle,
        LaneState::Starting,
        LaneState::Running,
        LaneState::Done,
        LaneState::NoChange,
        LaneState::Failed,
        LaneState::Stalled,
        LaneState::Stopped,
        LaneState::Orphaned,
        LaneState::Conflict,
        LaneState::CheckFailed,
        LaneState::Landed,
        LaneState::Discarded,
    ];

    #[test]
    fn states_display_as_serialized() {
        for state in WORDS {
            assert_eq!(serde_json::to_string(&state).unwrap(), format!("\"{state}\""));
        }
        for run in [RunState::Waiting, RunState::Retrying, RunState::NoChange, RunState::Idle] {
            assert_eq!(serde_json::to_string(&run).unwrap(), format!("\"{run}\""));
        }
    }

    #[test]
    fn reads_and_writes_the_word_of_older_versions() {
        for word in WORDS {
            let status: LaneStatus = toml::from_str(&format!("state = \"{word}\"")).unwrap();
            assert_eq!(status.state(), word);
            let text = toml::to_string(&status).unwrap();
            assert!(text.contains(&format!("state = \"{word}\"")), "{text}");
            assert_eq!(toml::from_str::<LaneStatus>(&text).unwrap(), status);
        }
        let read = |text: &str| toml::from_str::<LaneStatus>(text).unwrap();
        // What an older version wrote wins over what it left as it was.
        let landed = read("state = \"landed\"\nrun = \"retrying\"\nlanding = \"open\"");
        assert_eq!((landed.run, landed.landing), (RunState::Done, LandingState::Landed));
        let failed = read("state = \"landed\"\nrun = \"failed\"\nlanding = \"landed\"");
        assert_eq!((failed.run, failed.landing), (RunState::Failed, LandingState::Landed));
        assert!(toml::from_str::<LaneStatus>("run = \"idle\"\nlanding = \"open\"").is_err());
    }

    #[test]
    fn active_run_hides_conflict_and_landing_hides_run() {
        let word = |run, landing| LaneStatus { run, landing }.state();
        assert_eq!(word(RunState::Retrying, LandingState::Conflict), LaneState::Running);
        assert_eq!(word(RunState::Failed, LandingState::Conflict), LaneState::Conflict);
        assert_eq!(word(RunState::Failed, LandingState::Landed), LaneState::Landed);
        assert_eq!(word(RunState::Orphaned, LandingState::Landed), LaneState::Orphaned);
    }
}
