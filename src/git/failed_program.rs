//! Owns errors of the user's own programs that git runs: clean filters, programs that sign, hooks that refuse.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::Error;
use super::error::first_line;
use super::refs::HEADS;
use crate::explain::quoted;

/// What git writes where the reference-transaction hook refuses.
const REFUSED_BY_HOOK: [&str; 2] = ["aborted by hook", "aborted by the reference-transaction hook"];

/// What git writes where a commit cannot be signed.
const NOT_SIGNED: [&str; 5] =
    ["failed to sign", "ssh signing", "igningkey", "load public key", "defaultKeyCommand failed"];

/// What git writes in the place of what a program that signs did not write.
const NO_OUTPUT: &str = "(no gpg output)";

/// A program of the user's that failed or refused, so that git did nothing.
#[derive(Debug, thiserror::Error)]
pub enum FailedProgram {
    /// A clean filter without which git may not save a file.
    #[error("cannot save {path} in {}: its clean filter '{filter}' fails: {why}; nothing was changed", dir.display())]
    CleanFilter {
        /// The worktree.
        dir: PathBuf,
        /// The file, as git writes its path.
        path: String,
        /// The filter's name in the settings.
        filter: String,
        /// What the filter wrote, or how it ended.
        why: String,
    },
    /// The program that signs commits.
    #[error("cannot sign a commit, which commit.gpgSign asks for: {why}; nothing was changed")]
    Signature {
        /// The last line that was written about it.
        why: String,
    },
    /// The repository's reference-transaction hook.
    #[error("cannot move '{name}': the reference-transaction hook refused it{}; nothing was changed", words(why.as_deref()))]
    RefHook {
        /// The ref, a branch without `refs/heads/`.
        name: String,
        /// The last line that the hook wrote.
        why: Option<String>,
    },
}

/// The words of a hook, behind what it did.
fn words(why: Option<&str>) -> String {
    why.map(|why| format!(": {why}")).unwrap_or_default()
}

/// The last line with something on it.
fn last_line<'t>(mut lines: impl DoubleEndedIterator<Item = &'t str>) -> Option<String> {
    lines.rfind(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned())
}

/// Whether a line is one of git's own about a signature. A hook may write of anything.
fn is_about_signing(line: &str) -> bool {
    let own = ["error: ", "fatal: ", "warning: "].iter().find_map(|start| line.strip_prefix(start));
    own.is_some_and(|own| NOT_SIGNED.iter().any(|text| own.contains(text)))
}

impl FailedProgram {
    /// Names the clean filter that a call in `dir` failed for, by what git wrote: `fatal: <path>: clean filter '<name>' failed`.
    pub(super) fn clean_filter(dir: &Path, stderr: &str) -> Option<FailedProgram> {
        let named = |line: &str| {
            let (path, rest) = line.strip_prefix("fatal: ")?.rsplit_once(": clean filter '")?;
            Some((path.to_owned(), rest.strip_suffix("' failed")?.to_owned()))
        };
        let (path, filter) = stderr.lines().find_map(named)?;
        Some(FailedProgram::CleanFilter { dir: dir.to_owned(), path, filter, why: filter_line(stderr) })
    }

    /// The error of a call that writes a signed commit, in plain words where it is about the signature.
    pub(super) fn signature(error: Error) -> Error {
        match &error {
            Error::Command { stderr, .. } if stderr.lines().any(is_about_signing) => {
                let why = last_line(stderr.lines().filter(|line| *line != NO_OUTPUT)).unwrap_or_default();
                Error::Program(FailedProgram::Signature { why: why.trim_start_matches("error: ").to_owned() })
            }
            _ => error,
        }
    }

    /// Tells by what git wrote about a ref whether a hook refused to have it moved.
    pub(super) fn ref_hook(name: &str, stderr: &str) -> Option<FailedProgram> {
        let is_gits = |line: &&str| REFUSED_BY_HOOK.iter().any(|text| line.contains(text));
        stderr.lines().find(is_gits)?;
        let why = last_line(stderr.lines().filter(|line| !is_gits(line)));
        let name = name.strip_prefix(HEADS).unwrap_or(name).to_owned();
        Some(FailedProgram::RefHook { name, why })
    }

    /// The commands that help.
    pub(super) fn hints(&self) -> Vec<Cow<'static, str>> {
        match self {
            FailedProgram::CleanFilter { filter, .. } => {
                let key = format!("filter.{filter}.required");
                let plain = key.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
                let key = if plain { key.into_bytes() } else { quoted(key.as_bytes()) };
                let key = String::from_utf8_lossy(&key).into_owned();
                vec![format!("have git keep such files as they are: git config {key} false").into()]
            }
            FailedProgram::Signature { .. } => vec![
                "name the key to sign with: git config user.signingKey KEY".into(),
                "or have commits made without a signature: git config commit.gpgSign false".into(),
            ],
            FailedProgram::RefHook { .. } => {
                vec!["read the hook: cat \"$(git rev-parse --git-path hooks/reference-transaction)\"".into()]
            }
        }
    }
}

/// The line that says why a filter failed, out of what git and the filter wrote to standard error: the filter's first that speaks of an
/// error, else its first, else git's.
pub(super) fn filter_line(stderr: &str) -> String {
    let is_gits = |line: &&str| line.starts_with("fatal:") || line.starts_with("error:");
    let tells = |line: &&str| ["rror", "not found", "ailed", "enied"].iter().any(|word| line.contains(word));
    let own = || stderr.lines().filter(|line| !line.trim().is_empty() && !is_gits(line));
    match own().find(tells).or_else(|| own().next()) {
        Some(line) => line.trim().to_owned(),
        None => first_line(stderr, "it said nothing"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_and_its_filter_are_read_from_what_git_writes() {
        let stderr = "error: external filter 'x %f' failed 1\nfatal: a: b: clean filter 'my f' failed\n";
        let found = FailedProgram::clean_filter(Path::new("/w"), stderr).unwrap();
        assert_eq!(
            found.to_string(),
            "cannot save a: b in /w: its clean filter 'my f' fails: external filter 'x %f' failed 1; nothing was changed"
        );
        assert_eq!(
            found.hints(),
            ["have git keep such files as they are: git config 'filter.my f.required' false"]
        );
        assert!(FailedProgram::clean_filter(Path::new("/w"), "fatal: a: smudge filter f failed").is_none());
    }

    #[test]
    fn a_hook_is_known_by_the_words_of_each_git() {
        for words in [
            "ref updates aborted by hook",
            "in 'prepared' phase, update aborted by the reference-transaction hook",
        ] {
            let refused =
                FailedProgram::ref_hook("refs/heads/x", &format!("no\nnever\n\nfatal: prepare: {words}\n"));
            assert_eq!(
                refused.unwrap().to_string(),
                "cannot move 'x': the reference-transaction hook refused it: never; nothing was changed"
            );
            let silent = FailedProgram::ref_hook("refs/proq/x", &format!("fatal: {words}")).unwrap();
            assert!(
                silent
                    .to_string()
                    .starts_with("cannot move 'refs/proq/x': the reference-transaction hook refused it;")
            );
        }
        assert!(FailedProgram::ref_hook("x", "fatal: cannot lock ref").is_none());
    }
}
