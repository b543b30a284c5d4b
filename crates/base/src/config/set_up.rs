//! Settings of a new lane's set-up: `lane.copy`, `lane.link`, `lane.env` and `lane.setup`.

use std::time::Duration;

use super::value_format::{non_empty_lines, parse_duration};

/// Files and commands that set up a new lane, in addition to the files of its commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetUpSettings {
    /// `.gitignore` patterns of files that are copied from the main checkout.
    pub copy_patterns: Vec<String>,
    /// `.gitignore` patterns of files and folders that are linked from the main checkout.
    pub link_patterns: Vec<String>,
    /// Path, in the lane, of the file that git-proq writes with the lane's names and ports (setting
    /// `lane.env`).
    pub env_file: Option<String>,
    /// Shell commands that run in the new lane.
    pub commands: Vec<String>,
    /// Maximum total run time of the set-up commands; none for no limit.
    pub time_limit: Option<Duration>,
    /// Name of the lock under which lanes run their set-up commands one after the other; none if they need
    /// not wait.
    pub lock_name: Option<String>,
}

impl SetUpSettings {
    /// Creates the settings from `value_of`, which returns the text of a setting by name.
    pub(super) fn from_values(value_of: &dyn Fn(&str) -> String) -> SetUpSettings {
        let non_empty = |name: &str| Some(value_of(name)).filter(|value| !value.is_empty());
        // A pattern may begin or end with white space.
        let patterns = |name: &str| {
            let text = value_of(name);
            text.lines().filter(|line| !line.trim().is_empty()).map(ToOwned::to_owned).collect()
        };
        SetUpSettings {
            copy_patterns: patterns("lane.copy"),
            link_patterns: patterns("lane.link"),
            env_file: non_empty("lane.env"),
            commands: non_empty_lines(&value_of("lane.setup")),
            time_limit: parse_duration(&value_of("lane.setup_limit")).filter(|limit| !limit.is_zero()),
            lock_name: non_empty("lane.setup_lock"),
        }
    }
}
