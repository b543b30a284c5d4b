//! Owns the one question every error answers: what helps now, which word was probably meant, and which exit code it is.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

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

/// A word in quotes that every shell, and git, reads back byte for byte.
pub(crate) fn quoted(word: &[u8]) -> Vec<u8> {
    let mut out = vec![b'\''];
    for byte in word {
        match byte {
            b'\'' | b'!' => out.extend([b'\'', b'\\', *byte, b'\'']),
            _ => out.push(*byte),
        }
    }
    out.push(b'\'');
    out
}

/// A word as a command line needs it: in quotes only where a shell would read something else.
pub(crate) fn word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+{}".contains(c);
    let expands = word.contains('{') && (word.contains(',') || word.contains(".."));
    if !word.is_empty() && word.chars().all(plain) && !expands {
        return word.to_owned();
    }
    quoted_path(Path::new(word))
}

/// A path as a word of a command line, in a hint.
pub(crate) fn quoted_path(path: &Path) -> String {
    String::from_utf8_lossy(&quoted(path.as_os_str().as_bytes())).into_owned()
}

/// The command that gives a file another name beside the old one, which ends with `.ending`.
pub(crate) fn set_aside(path: &Path, ending: &str) -> String {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".");
    aside.push(ending);
    format!("mv {} {}", quoted_path(path), quoted_path(Path::new(&aside)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_where_a_shell_needs_it() {
        assert_eq!(word("--flag=x"), "--flag=x");
        assert_eq!(word("a b"), "'a b'");
        assert_eq!(word("it's"), "'it'\\''s'");
        assert_eq!(word(""), "''");
    }
}
