//! Owns the settings of what a new lane is given: `lane.copy`, `lane.link`, `lane.env` and `lane.setup`.

use std::time::Duration;

use super::form::time;

/// What a new lane is given besides the files of its commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SetUp {
    /// Patterns of what is copied into it, as in `.gitignore`.
    pub(crate) copy: Vec<String>,
    /// Patterns of what is linked into it.
    pub(crate) link: Vec<String>,
    /// The file in it with its names and ports.
    pub(crate) env: Option<String>,
    /// The commands that get it ready.
    pub(crate) commands: Vec<String>,
    /// How long they may take together.
    pub(crate) limit: Option<Duration>,
    /// Under which name one lane at a time runs them.
    pub(crate) lock: Option<String>,
}

impl SetUp {
    /// Reads the values by their names.
    pub(super) fn of(text: &dyn Fn(&str) -> String) -> SetUp {
        let some = |name: &str| Some(text(name)).filter(|value| !value.is_empty());
        // White space may be part of a pattern.
        let patterns = |name: &str| {
            let text = text(name);
            text.lines().filter(|line| !line.trim().is_empty()).map(ToOwned::to_owned).collect()
        };
        SetUp {
            copy: patterns("lane.copy"),
            link: patterns("lane.link"),
            env: some("lane.env"),
            commands: super::settings::lines(&text("lane.setup")),
            limit: time(&text("lane.setup_limit")).filter(|limit| !limit.is_zero()),
            lock: some("lane.setup_lock"),
        }
    }
}
