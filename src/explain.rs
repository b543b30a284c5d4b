//! Owns the one question every error answers: what helps now, which word was probably meant, and which exit code it is.

use std::borrow::Cow;

/// How a command ended, as the shell sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything asked for was done.
    Done,
    /// Refused or failed; nothing was half-made.
    Refused,
    /// The command line was wrong.
    Usage,
    /// Conflicts were captured.
    Conflicts,
    /// An agent, a check or a task failed.
    Agent,
    /// A lock could not be had in time.
    Locked,
    /// A mistake in git-proq itself.
    Bug,
    /// Ended by this signal.
    Signal(u8),
    /// As the program ended in whose place this one runs.
    As(u8),
}

impl Exit {
    /// What a process exit code says.
    pub(crate) fn of_code(code: u8) -> Exit {
        match code {
            0 => Exit::Done,
            2 => Exit::Usage,
            3 => Exit::Conflicts,
            4 => Exit::Agent,
            5 => Exit::Locked,
            70 => Exit::Bug,
            n if n > 128 => Exit::Signal(n - 128),
            _ => Exit::Refused,
        }
    }

    /// The process exit code: `70` for a bug, `128 + n` for a signal.
    pub fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Refused => 1,
            Exit::Usage => 2,
            Exit::Conflicts => 3,
            Exit::Agent => 4,
            Exit::Locked => 5,
            Exit::Bug => 70,
            Exit::Signal(n) => 128u8.saturating_add(n),
            Exit::As(n) => n,
        }
    }
}

/// What an error adds to its one-line `Display`: the commands that help, and the exit code.
pub trait Explain: std::error::Error {
    /// Next steps for the user, each one line, most useful first.
    fn hints(&self) -> Vec<Cow<'static, str>> {
        Vec::new()
    }

    /// Whether this is a decision about what was found, rather than something that could not be done.
    fn is_decision(&self) -> bool {
        false
    }

    /// The exit code this error ends the command with.
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

/// An error and its causes on one line.
pub(crate) fn with_causes(e: &dyn std::error::Error) -> String {
    let mut out = e.to_string();
    let mut next = e.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !out.contains(&text) {
            out.push_str(&format!(": {text}"));
        }
        next = cause.source();
    }
    out
}

/// How much two words have in common when one is offered for the other.
const ALIKE: f64 = 0.75;

/// The word that was probably meant.
pub(crate) fn nearest<'w>(word: &str, known: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    nearest_from(ALIKE, word, known)
}

/// The same, where they have to have so much in common.
pub(crate) fn nearest_from<'w>(
    least: f64,
    word: &str,
    known: impl Iterator<Item = &'w str>,
) -> Option<&'w str> {
    let word = word.to_lowercase();
    let score = |known: &'w str| (strsim::jaro_winkler(&known.to_lowercase(), &word), known);
    let alike = known.map(score).filter(|(score, _)| *score >= least);
    // Of two that are as near, the one that comes first.
    alike.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, known)| known)
}
