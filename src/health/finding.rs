//! Owns one thing that was found: how bad it is, what it means, and what helps.

use serde::Serialize;

use super::repair::Repair;
use crate::explain::Explain;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Severity {
    /// Something is lost, or will be, or does not work.
    Error,
    /// Nothing is wrong yet.
    Warning,
    /// Good to know.
    Info,
}

/// One thing that was found.
#[derive(Debug, Clone, Serialize)]
#[must_use]
pub(crate) struct Finding {
    /// Which check found it.
    pub(crate) check: &'static str,
    /// How bad it is.
    pub(crate) severity: Severity,
    /// What it is about.
    pub(crate) subject: String,
    /// What is wrong and what that means, in one line.
    pub(crate) message: String,
    /// The one command that helps.
    pub(crate) help: Option<String>,
    /// Whether a repair is safe.
    pub(crate) fixable: bool,
    /// Whether it was repaired.
    pub(crate) fixed: bool,
    /// Why it is left as it is by a repair.
    pub(crate) left: Option<String>,
    #[serde(skip)]
    pub(super) repair: Option<Repair>,
}

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
            message: message.into(),
            help: None,
            fixable: false,
            fixed: false,
            left: None,
            repair: None,
        }
    }

    /// Something that is wrong.
    pub(super) fn error(
        check: &'static str,
        subject: impl Into<String>,
        message: impl Into<String>,
    ) -> Finding {
        Finding::new(check, Severity::Error, subject, message)
    }

    /// Something that may become wrong.
    pub(super) fn warning(
        check: &'static str,
        subject: impl Into<String>,
        message: impl Into<String>,
    ) -> Finding {
        Finding::new(check, Severity::Warning, subject, message)
    }

    /// Something good to know.
    pub(super) fn info(
        check: &'static str,
        subject: impl Into<String>,
        message: impl Into<String>,
    ) -> Finding {
        Finding::new(check, Severity::Info, subject, message)
    }

    /// Something that could not even be looked at.
    pub(super) fn of_error(check: &'static str, subject: impl Into<String>, error: &dyn Explain) -> Finding {
        let mut message = error.to_string();
        let mut next = error.source();
        while let Some(cause) = next {
            let text = cause.to_string();
            let line = text.lines().next().unwrap_or_default().trim();
            if !message.contains(line) {
                message.push_str(&format!(" ({line})"));
            }
            next = cause.source();
        }
        let mut found = Finding::error(check, subject, message);
        found.help = error.hints().first().map(ToString::to_string);
        found
    }

    /// The command that helps.
    pub(super) fn help(mut self, command: impl Into<String>) -> Finding {
        self.help = Some(command.into());
        self
    }

    /// Why no repair touches it.
    pub(super) fn left(mut self, why: impl Into<String>) -> Finding {
        self.left = Some(why.into());
        self
    }

    /// What repairs it.
    pub(super) fn repair(mut self, repair: Repair) -> Finding {
        self.fixable = true;
        self.repair = Some(repair);
        self
    }

    /// Whether it calls for something.
    pub(crate) fn is_problem(&self) -> bool {
        self.severity != Severity::Info
    }
}
