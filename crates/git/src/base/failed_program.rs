//! Errors of the user's programs that git runs: clean filters, signing programs, and hooks that refuse.

use std::path::{Path, PathBuf};

use proq_base::explain::{Explain, shell_quote_bytes};

use super::head::BRANCH_PREFIX;

/// Texts in git's output when the reference-transaction hook refuses.
const HOOK_REFUSAL_TEXTS: [&str; 2] = ["aborted by hook", "aborted by the reference-transaction hook"];

/// Texts in git's output when a commit cannot be signed.
const SIGNING_ERROR_TEXTS: [&str; 5] =
    ["failed to sign", "ssh signing", "igningkey", "load public key", "defaultKeyCommand failed"];

/// Texts in git's output when it has no name or email for a commit.
const IDENTITY_ERROR_TEXTS: [&str; 3] =
    ["*** Please tell me who you are.", "Author identity unknown", "Committer identity unknown"];

/// Placeholder that git prints when the signing program has printed nothing.
const NO_GPG_OUTPUT: &str = "(no gpg output)";

/// Failure or refusal of one of the user's programs, after which git did nothing.
#[derive(Debug, thiserror::Error, Explain)]
pub enum FailedProgram {
    /// A required clean filter failed, so git may not save a file.
    #[error("cannot save {path} in {}: its clean filter '{filter}' fails: {reason}; nothing was changed", dir.display())]
    #[hint("let git keep such files unfiltered: git config {} false", required_filter_setting(filter))]
    CleanFilter {
        /// Worktree of the file.
        dir: PathBuf,
        /// Path of the file as git prints it.
        path: String,
        /// Name of the filter in git's settings.
        filter: String,
        /// Message of the filter, or its exit status.
        reason: String,
    },
    /// The program that signs commits failed.
    #[error("cannot sign a commit, which commit.gpgSign asks for: {reason}; nothing was changed")]
    #[hint("create commits without a signature: git config commit.gpgSign false")]
    Signature {
        /// Last line of output about the signature.
        reason: String,
    },
    /// Git has no name and email for the author or committer of a commit.
    #[error("cannot create a commit: git has no name and email for it; nothing was changed")]
    #[hint("set both: git config user.name 'Your Name' && git config user.email you@example.com")]
    NoIdentity,
    /// The repository's reference-transaction hook refused.
    #[error("cannot move '{ref_name}': the reference-transaction hook refused it{}; nothing was changed", reason_suffix(reason.as_deref()))]
    #[hint("read the hook: cat \"$(git rev-parse --git-path hooks/reference-transaction)\"")]
    RefHook {
        /// Name of the ref; a branch without `refs/heads/`.
        ref_name: String,
        /// Last line that the hook printed.
        reason: Option<String>,
    },
}

/// Formats the reason of a hook as the end of a message.
fn reason_suffix(reason: Option<&str>) -> String {
    reason.map(|why| format!(": {why}")).unwrap_or_default()
}

/// Returns the setting that makes git fail where a filter does, quoted for a shell.
fn required_filter_setting(filter: &str) -> String {
    let key = format!("filter.{filter}.required");
    let needs_no_quotes = key.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    let key = if needs_no_quotes { key.into_bytes() } else { shell_quote_bytes(key.as_bytes()) };
    String::from_utf8_lossy(&key).into_owned()
}

/// Returns the last line that is not blank, trimmed.
fn last_line<'t>(mut lines: impl DoubleEndedIterator<Item = &'t str>) -> Option<String> {
    lines.rfind(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned())
}

/// Returns whether a line is git's own message about a signature. A hook may mention signatures too.
fn is_signing_error(line: &str) -> bool {
    let message = ["error: ", "fatal: ", "warning: "].iter().find_map(|start| line.strip_prefix(start));
    message.is_some_and(|text_of_git| SIGNING_ERROR_TEXTS.iter().any(|text| text_of_git.contains(text)))
}

impl FailedProgram {
    /// Identifies the clean filter that failed for a command in `dir` by git's output: `fatal: <path>: clean
    /// filter '<name>' failed`.
    pub(crate) fn from_clean_filter(dir: &Path, stderr: &str) -> Option<FailedProgram> {
        let parse_line = |line: &str| {
            let (path, quoted_filter) = line.strip_prefix("fatal: ")?.rsplit_once(": clean filter '")?;
            Some((path.to_owned(), quoted_filter.strip_suffix("' failed")?.to_owned()))
        };
        let (path, filter) = stderr.lines().find_map(parse_line)?;
        Some(FailedProgram::CleanFilter {
            dir: dir.to_owned(),
            path,
            filter,
            reason: filter_error_line(stderr),
        })
    }

    /// Creates the error of the program that signs commits, from git's output. Returns `None` if another reason
    /// made git fail.
    pub(crate) fn from_signing_program(stderr: &str) -> Option<FailedProgram> {
        stderr.lines().find(|line| is_signing_error(line))?;
        let reason = last_line(stderr.lines().filter(|line| *line != NO_GPG_OUTPUT)).unwrap_or_default();
        Some(FailedProgram::Signature { reason: reason.trim_start_matches("error: ").to_owned() })
    }

    /// Creates the error of a commit without a name and email, from git's output. Returns `None` if another reason made
    /// git fail.
    pub(crate) fn from_missing_identity(stderr: &str) -> Option<FailedProgram> {
        stderr.lines().find(|line| IDENTITY_ERROR_TEXTS.contains(line))?;
        Some(FailedProgram::NoIdentity)
    }

    /// Creates the error of a reference-transaction hook that refused to move the ref `name`, from git's
    /// output. Returns `None` if no hook refused.
    pub(crate) fn from_ref_hook(name: &str, stderr: &str) -> Option<FailedProgram> {
        let is_from_git = |line: &&str| HOOK_REFUSAL_TEXTS.iter().any(|text| line.contains(text));
        stderr.lines().find(is_from_git)?;
        let reason = last_line(stderr.lines().filter(|line| !is_from_git(line)));
        let name = name.strip_prefix(BRANCH_PREFIX).unwrap_or(name).to_owned();
        Some(FailedProgram::RefHook { ref_name: name, reason })
    }
}

/// Returns the line that gives the reason of a failed filter: the filter's first line that mentions an error,
/// else its first line, else git's.
pub(crate) fn filter_error_line(stderr: &str) -> String {
    let is_from_git = |line: &&str| line.starts_with("fatal:") || line.starts_with("error:");
    let mentions_error =
        |line: &&str| ["rror", "not found", "ailed", "enied"].iter().any(|word| line.contains(word));
    let filter_lines = || stderr.lines().filter(|line| !line.trim().is_empty() && !is_from_git(line));
    match filter_lines().find(mentions_error).or_else(|| filter_lines().next()) {
        Some(line) => line.trim().to_owned(),
        None => first_error_line(stderr, "it printed nothing"),
    }
}

/// Returns the line of `stderr` that gives the reason, or `status` when there is none.
pub fn first_error_line(stderr: &str, status: &str) -> String {
    let line = stderr
        .lines()
        .find(|l| l.starts_with("fatal:") || l.starts_with("error:"))
        .or_else(|| stderr.lines().find(|l| !l.trim().is_empty()));
    match line {
        Some(line) => line.trim_start_matches("fatal: ").trim_start_matches("error: ").to_owned(),
        None => status.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_path_and_name_of_failed_clean_filter() {
        let stderr = "error: external filter 'x %f' failed 1\nfatal: a: b: clean filter 'my f' failed\n";
        let found = FailedProgram::from_clean_filter(Path::new("/w"), stderr).unwrap();
        assert_eq!(
            found.to_string(),
            "cannot save a: b in /w: its clean filter 'my f' fails: external filter 'x %f' failed 1; nothing was changed"
        );
        assert_eq!(
            found.hints(),
            ["let git keep such files unfiltered: git config 'filter.my f.required' false"]
        );
        assert!(
            FailedProgram::from_clean_filter(Path::new("/w"), "fatal: a: smudge filter f failed").is_none()
        );
    }

    #[test]
    fn recognizes_hook_refusal_of_each_git_version() {
        for refusal in [
            "ref updates aborted by hook",
            "in 'prepared' phase, update aborted by the reference-transaction hook",
        ] {
            let refused = FailedProgram::from_ref_hook(
                "refs/heads/x",
                &format!("no\nnever\n\nfatal: prepare: {refusal}\n"),
            );
            assert_eq!(
                refused.unwrap().to_string(),
                "cannot move 'x': the reference-transaction hook refused it: never; nothing was changed"
            );
            let silent = FailedProgram::from_ref_hook("refs/proq/x", &format!("fatal: {refusal}")).unwrap();
            assert!(
                silent
                    .to_string()
                    .starts_with("cannot move 'refs/proq/x': the reference-transaction hook refused it;")
            );
        }
        assert!(FailedProgram::from_ref_hook("x", "fatal: cannot lock ref").is_none());
    }
}
