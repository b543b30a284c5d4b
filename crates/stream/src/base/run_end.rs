//! End of a run: the exit status of its process, its exit class, and what the agent reported about it.

use serde::{Deserialize, Serialize};

use super::failure_kind::FailureKind;
use super::json::{MAX_MESSAGE_BYTES, truncate};

/// Exit status of a process.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Exit code of the process.
    pub code: Option<i32>,
    /// Signal that ended the process.
    pub signal: Option<i32>,
}

impl Exit {
    /// Returns whether the process exited with code 0.
    pub fn is_clean(self) -> bool {
        self.code == Some(0) && self.signal.is_none()
    }

    /// Returns the signal that ended the process. By an old custom of shells, programs that catch a signal
    /// exit with 128 plus its number. Only signals that users send and that crashes raise count, since some
    /// agents use such codes for other purposes.
    pub(crate) fn terminating_signal(self) -> Option<i32> {
        self.signal.or_else(|| self.code.map(|code| code - 128).filter(|s| [1, 2, 6, 9, 11, 15].contains(s)))
    }

    /// Describes how the process ended, for users.
    pub fn describe(self) -> String {
        match (self.terminating_signal(), self.code) {
            (Some(signal), _) => format!("ended by signal {signal}"),
            (None, Some(code)) => format!("exit code {code}"),
            (None, None) => "unknown exit status".to_owned(),
        }
    }
}

/// Exit class of a run, as far as its agent and its process reveal it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExitClass {
    /// The agent reported that it finished.
    Done,
    /// The agent gave up, did not start, or failed for a reason that no other class covers.
    Failed,
    /// The agent reached a limit that resets with time.
    RateLimited,
    /// The service could not be reached, broke off, or had an internal error.
    Unavailable,
    /// The context is full, or the answer was too long.
    TokenLimit,
    /// The key or login is missing or refused.
    Auth,
    /// The limit of turns was reached.
    MaxTurns,
    /// The budget was used up, or the account has no money left.
    Budget,
    /// The turn ended because permission to use a tool was refused.
    Refused,
    /// The run was stopped before it had finished.
    Interrupted,
    /// The process ended before the run had finished, and reported no reason.
    Crashed,
}

impl FailureKind {
    /// Returns the class of a run that ended with this kind of failure.
    fn exit_class(self) -> ExitClass {
        match self {
            FailureKind::RateLimit => ExitClass::RateLimited,
            FailureKind::TokenLimit => ExitClass::TokenLimit,
            FailureKind::Auth => ExitClass::Auth,
            FailureKind::Money => ExitClass::Budget,
            FailureKind::Turns => ExitClass::MaxTurns,
            FailureKind::Provider => ExitClass::Unavailable,
            FailureKind::Other => ExitClass::Failed,
        }
    }
}

/// End of a run, as the agent reported it or as concluded from other evidence. It is provisional until the
/// process has exited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEnd {
    /// Exit class of the run.
    pub class: ExitClass,
    /// Kind of failure; none for a success, or where only the class describes the failure.
    pub failure: Option<FailureKind>,
    /// Message about the end, such as that of an error; none where no such text exists.
    pub text: Option<String>,
}

impl RunEnd {
    /// Creates the end of a successful run.
    pub fn done() -> RunEnd {
        RunEnd { class: ExitClass::Done, failure: None, text: None }
    }

    /// Creates the end of a failed run; the kind of failure determines the class.
    pub fn failed(failure: FailureKind, text: &str) -> RunEnd {
        RunEnd { failure: Some(failure), ..RunEnd::with_class(failure.exit_class(), text) }
    }

    /// Creates an end with this class; a blank text counts as none.
    pub(crate) fn with_class(class: ExitClass, text: &str) -> RunEnd {
        let text = Some(text).filter(|t| !t.trim().is_empty()).map(|t| truncate(t, MAX_MESSAGE_BYTES));
        RunEnd { class, failure: None, text }
    }
}
