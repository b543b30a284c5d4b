//! User-facing side of errors: hints, suggestions for misspelled words, exit codes, and shell quoting for
//! hints.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub use proq_explain_derive::Explain;

pub use crate::hint::Hint;

/// Exit status of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Completed everything that was requested.
    Success,
    /// Refused or failed; no partial change was left.
    Refused,
    /// The command line was invalid.
    Usage,
    /// Captured conflicts.
    Conflicts,
    /// An agent, a check or a task failed.
    Agent,
    /// Could not acquire a lock in time.
    Locked,
    /// Hit a bug in git-proq.
    Bug,
    /// Ended by this signal.
    Signal(u8),
    /// Exit code of the program that this command ran in place of itself.
    PassThrough(u8),
}

impl Exit {
    /// Converts a process exit code.
    pub fn from_code(code: u8) -> Exit {
        match code {
            0 => Exit::Success,
            2 => Exit::Usage,
            3 => Exit::Conflicts,
            4 => Exit::Agent,
            5 => Exit::Locked,
            70 => Exit::Bug,
            n if n > 128 => Exit::Signal(n - 128),
            _ => Exit::Refused,
        }
    }

    /// Returns the process exit code: `70` for a bug, `128 + n` for a signal.
    pub fn code(self) -> u8 {
        match self {
            Exit::Success => 0,
            Exit::Refused => 1,
            Exit::Usage => 2,
            Exit::Conflicts => 3,
            Exit::Agent => 4,
            Exit::Locked => 5,
            Exit::Bug => 70,
            Exit::Signal(n) => 128u8.saturating_add(n),
            Exit::PassThrough(n) => n,
        }
    }
}

/// Information that an error adds to its one-line `Display`: commands that help, and the exit code.
pub trait Explain: std::error::Error {
    /// Returns next steps for the user, one line each, most useful first.
    fn hints(&self) -> Vec<Hint> {
        Vec::new()
    }

    /// Returns whether git-proq decided to refuse because of the state it found, rather than being unable to
    /// proceed.
    fn is_decision(&self) -> bool {
        false
    }

    /// Returns the exit status with which this error ends the command.
    fn exit(&self) -> Exit {
        Exit::Refused
    }
}

/// Formats an error and its causes on one line.
pub fn describe_with_causes(e: &dyn std::error::Error) -> String {
    let mut out = without_os_codes(&e.to_string());
    let mut next = e.source();
    while let Some(cause) = next {
        let text = without_os_codes(&cause.to_string());
        if !out.contains(&text) {
            out.push_str(&format!(": {text}"));
        }
        next = cause.source();
    }
    out
}

/// Returns a text for users without the numbers that the standard library adds to errors of the operating system:
/// `No such file or directory (os error 2)`.
pub fn without_os_codes(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((code, rest)) if code.parse::<i32>().is_ok() => out.push_str(rest),
            _ => out.extend([" (os error ", part]),
        }
    }
    out
}

/// Formats reasons for the end of a message behind a colon: a single one on the same line, several on lines
/// of their own, each indented.
pub fn list_lines(reasons: &[String]) -> String {
    match reasons {
        [reason] => format!(" {reason}"),
        _ => reasons.iter().flat_map(|reason| ["\n  ", reason.as_str()]).collect(),
    }
}

/// Quotes a word so that every shell, and git, reads it back byte for byte.
pub fn shell_quote_bytes(word: &[u8]) -> Vec<u8> {
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

/// Returns a word for a command line, quoted only where a shell would read it differently.
pub fn shell_quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+{}".contains(c);
    let is_brace_expansion = word.contains('{') && (word.contains(',') || word.contains(".."));
    if !word.is_empty() && word.chars().all(is_plain) && !is_brace_expansion {
        return word.to_owned();
    }
    shell_quote_path(Path::new(word))
}

/// Returns a path as a quoted word for a command in a hint.
pub fn shell_quote_path(path: &Path) -> String {
    String::from_utf8_lossy(&shell_quote_bytes(path.as_os_str().as_bytes())).into_owned()
}

/// Returns the `mv` command that renames a file to its name plus `.extension`.
pub fn rename_command(path: &Path, extension: &str) -> String {
    let mut new_path = path.as_os_str().to_owned();
    new_path.push(".");
    new_path.push(extension);
    format!("mv {} {}", shell_quote_path(path), shell_quote_path(Path::new(&new_path)))
}

/// Minimum similarity (0 to 1) at which a word is suggested.
const DEFAULT_MIN_SIMILARITY: f64 = 0.75;

/// Returns the known word that is most similar to a misspelled one, at least `DEFAULT_MIN_SIMILARITY`.
pub fn closest_match<'w>(word: &str, known: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    closest_match_above(DEFAULT_MIN_SIMILARITY, word, known)
}

/// Returns the known word that is most similar to `word` by Jaro-Winkler similarity, at least
/// `min_similarity`.
pub(crate) fn closest_match_above<'w>(
    min_similarity: f64,
    word: &str,
    known: impl Iterator<Item = &'w str>,
) -> Option<&'w str> {
    let word = word.to_lowercase();
    let score = |known: &'w str| (strsim::jaro_winkler(&known.to_lowercase(), &word), known);
    let similar = known.map(score).filter(|(score, _)| *score >= min_similarity);
    // Of equally similar words, the first one wins.
    similar.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hint;

    #[derive(Debug, thiserror::Error, Explain)]
    #[error("{count} of {name}")]
    #[decision]
    #[exit(Locked)]
    #[hint("plain")]
    #[hint(if *count > 1, "{count}: {}", shell_quote(name))]
    #[hint(else if let Some(rest) = name.strip_prefix("one "), "one of {rest}")]
    #[hint(else, "{{}}, {name}")]
    #[hint(with = (*count > 2).then(|| hint!("many")))]
    struct Sample {
        name: String,
        count: u32,
    }

    #[derive(Debug, thiserror::Error, Explain)]
    #[exit(Usage)]
    enum Outer {
        #[error(transparent)]
        Wrapped(Sample),
        #[error("outer")]
        #[exit(with = _0.exit())]
        #[decision(_0.is_decision())]
        Tuple(Sample),
        #[error("unit")]
        Unit,
    }

    #[test]
    fn derives_hints_exit_and_decision_from_attributes() {
        let sample = |name: &str, count| Sample { name: name.to_owned(), count };
        assert_eq!(sample("a b", 3).hints(), ["plain", "3: 'a b'", "many"]);
        assert_eq!(sample("one b", 1).hints(), ["plain", "one of b"]);
        assert_eq!(sample("b", 1).hints(), ["plain", "{}, b"]);
        assert_eq!(sample("b", 1).hints()[1].template(), "{{}}, {name}");
        assert!(sample("b", 1).is_decision() && sample("b", 1).exit() == Exit::Locked);
        let wrapped = Outer::Wrapped(sample("b", 1));
        assert_eq!(wrapped.hints(), sample("b", 1).hints());
        assert!(wrapped.exit() == Exit::Locked && !wrapped.is_decision());
        let tuple = Outer::Tuple(sample("b", 1));
        assert!(tuple.hints().is_empty() && tuple.exit() == Exit::Locked && tuple.is_decision());
        assert!(Outer::Unit.exit() == Exit::Usage && Outer::Unit.hints().is_empty());
    }

    #[test]
    fn codes_of_the_system_are_left_out() {
        let missing = std::io::Error::from_raw_os_error(2);
        assert_eq!(
            without_os_codes(&format!("a: {missing}; b: {missing}")),
            "a: No such file or directory; b: No such file or directory"
        );
        assert_eq!(without_os_codes("a (os error x) b (os error 3"), "a (os error x) b (os error 3");
        assert_eq!(describe_with_causes(&missing), "No such file or directory");
    }

    #[test]
    fn quotes_words_only_where_shell_needs_it() {
        assert_eq!(shell_quote("--flag=x"), "--flag=x");
        assert_eq!(shell_quote("a b"), "'a b'");
        assert_eq!(shell_quote("it's"), "'it'\\''s'");
        assert_eq!(shell_quote(""), "''");
    }
}
