//! What a use case asks and tells its caller while it runs.

use crate::event::approval::ShellCommand;
use crate::merge::types::outcome::LandingPlan;

/// A decision that only a person can make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question<'a> {
    /// Whether to end the idle session of a lane that is done, and land the lane.
    EndSession {
        /// Name of the lane.
        lane: &'a str,
        /// How the session stands.
        detail: &'a str,
    },
}

/// Something that a caller may show while a use case runs.
#[derive(Debug, Clone, Copy)]
pub enum Progress<'a> {
    /// The lanes that a landing will try, before the first ref moves.
    Landing(&'a LandingPlan),
}

/// Caller of a use case: a command, a server or another program. Warnings and waits go to the listener of
/// the project instead.
///
/// Every method has a default for callers without a person: nothing is shown, no question is asked, and
/// what needs a person is refused by the use case.
pub trait Reporter {
    /// Shows progress.
    fn progress(&self, _progress: Progress<'_>) {}

    /// Returns whether a person can answer questions.
    fn has_person(&self) -> bool {
        false
    }

    /// Asks a question. No is the answer when nobody can be asked.
    fn confirm(&self, _question: Question<'_>) -> bool {
        false
    }

    /// Shows commands that the repository brings, and asks whether those that are not approved may run from
    /// now on. Called only if [`Reporter::has_person`].
    fn approve(&self, _commands: &[ShellCommand]) -> bool {
        false
    }
}

/// Reporter without a person and without output.
#[derive(Debug, Clone, Copy, Default)]
pub struct SilentReporter;

impl Reporter for SilentReporter {}
