//! A finding of a health check: severity, meaning, and the command that helps.

use proq_base::explain::{Explain, without_os_codes};
use proq_base::hint;
use proq_base::hint::Hint;
use serde::Serialize;

use super::repair::Repair;

/// Severity of a finding, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Data is lost or will be, or a feature does not work.
    Error,
    /// No damage yet, but it may follow.
    Warning,
    /// Information only.
    Info,
}

/// One result of a health check.
#[derive(Debug, Clone, Serialize)]
#[must_use]
pub struct Finding {
    /// Name of the check.
    pub check: &'static str,
    /// Severity of the problem, from mere information to data loss.
    pub severity: Severity,
    /// The item that the finding is about, such as `lane 'a'`.
    pub subject: String,
    /// What is wrong and what that means, in one line.
    pub message: String,
    /// The single most useful command, for the user to run; none where there is none.
    pub help: Option<String>,
    /// Whether a safe repair exists.
    pub fixable: bool,
    /// Whether git-proq has repaired the problem.
    pub fixed: bool,
    /// Reason why git-proq did not repair the problem.
    #[serde(rename = "left")]
    pub left_reason: Option<String>,
    #[serde(skip)]
    pub(super) repair: Option<Repair>,
}

/// Purposes of the commands that help, by their beginnings; the first that fits counts.
const PURPOSES: [(&str, &str); 35] = [
    ("chmod", "close it to other users"),
    ("git branch -d", "delete it, if it has no work"),
    ("git branch -m", "rename it"),
    ("git branch ", "restore the branch"),
    ("git branch", "list branches"),
    ("git config --unset", "remove the setting"),
    ("git config --get", "show the setting"),
    ("git config", "set it"),
    ("git fetch", "look for the object in your remotes"),
    ("git fsck", "check git's objects"),
    ("git log", "show its commits"),
    ("git proq agents", "list agents"),
    ("git proq batch resume", "resume it"),
    ("git proq cleanup", "remove what has landed"),
    ("git proq config", "show all settings"),
    ("git proq doctor --fix", "repair it"),
    ("git proq doctor", "check again"),
    ("git proq discard", "remove it"),
    ("git proq gc --dry-run", "show what is old enough to delete"),
    ("git proq gc", "delete what has expired"),
    ("git proq logs", "show its output"),
    ("git proq merge", "merge it"),
    ("git proq preview", "return from the preview"),
    ("git proq show", "show the lane"),
    ("git proq stop", "stop its agent"),
    ("git reflog", "find the commits"),
    ("git stash apply", "restore the changes"),
    ("git switch", "return to the branch"),
    ("git update-ref -d", "delete it"),
    ("git worktree unlock", "unlock it"),
    ("ls", "list its files"),
    ("mv", "move it away"),
    ("rm \"$(git", "restore the branch"),
    ("rm", "delete it"),
    ("sudo chown", "make it yours"),
];

impl Finding {
    fn new(
        check: &'static str,
        severity: Severity,
        subject: impl Into<String>,
        message: impl Into<String>,
    ) -> Finding {
        Finding {
            check,
            severity,
            subject: subject.into(),
            message: without_os_codes(&message.into()),
            help: None,
            fixable: false,
            fixed: false,
            left_reason: None,
            repair: None,
        }
    }

    /// Creates a finding about damage.
    pub(super) fn error(
        check: &'static str,
        subject: impl Into<String>,
        message: impl Into<String>,
    ) -> Finding {
        Finding::new(check, Severity::Error, subject, message)
    }

    /// Creates a finding about possible damage.
    pub(super) fn warning(
        check: &'static str,
        subject: impl Into<String>,
        message: impl Into<String>,
    ) -> Finding {
        Finding::new(check, Severity::Warning, subject, message)
    }

    /// Creates a finding that is information only.
    pub(super) fn info(
        check: &'static str,
        subject: impl Into<String>,
        message: impl Into<String>,
    ) -> Finding {
        Finding::new(check, Severity::Info, subject, message)
    }

    /// Creates a finding about something that could not be checked, with the causes and the first hint of the
    /// error.
    pub(super) fn from_error(
        check: &'static str,
        subject: impl Into<String>,
        error: &dyn Explain,
    ) -> Finding {
        let mut message = error.to_string();
        let mut next = error.source();
        while let Some(cause) = next {
            let text = without_os_codes(&cause.to_string());
            let line = text.lines().next().unwrap_or_default().trim();
            let line = match cause.is::<std::io::Error>() {
                true => line.to_lowercase(),
                false => line.to_owned(),
            };
            if !message.contains(&line) {
                message.push_str(&format!(" ({line})"));
            }
            next = cause.source();
        }
        let mut found = Finding::error(check, subject, message);
        found.help = error.hints().first().map(ToString::to_string);
        found
    }

    /// Adds the command that helps.
    pub(super) fn with_help(mut self, command: impl Into<String>) -> Finding {
        self.help = Some(command.into());
        self
    }

    /// Adds the reason why git-proq does not repair the problem.
    pub(super) fn with_left_reason(mut self, reason: impl Into<String>) -> Finding {
        self.left_reason = Some(reason.into());
        self
    }

    /// Adds a safe repair and marks the finding as fixable.
    pub(super) fn with_repair(mut self, repair: Repair) -> Finding {
        self.fixable = true;
        self.repair = Some(repair);
        self
    }

    /// Returns the command that helps behind its purpose; none where there is no command.
    pub fn hint(&self) -> Option<Hint> {
        let help = self.help.as_ref()?;
        if !is_command(help) {
            return Some(hint!("{help}"));
        }
        let purpose = PURPOSES.iter().find(|(begin, _)| help.starts_with(begin));
        Some(hint!("{}: {help}", purpose.map_or("repair it", |(_, purpose)| purpose)))
    }

    /// Returns whether the finding is an error or a warning.
    pub fn is_problem(&self) -> bool {
        self.severity != Severity::Info
    }
}

/// Returns whether a text is a command without its purpose.
fn is_command(text: &str) -> bool {
    ["chmod ", "echo ", "git ", "ls ", "mv ", "rm ", "sudo "].iter().any(|program| text.starts_with(program))
}
