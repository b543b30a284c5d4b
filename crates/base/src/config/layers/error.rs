//! Errors of loading the configuration.

use std::path::{Path, PathBuf};

use super::{Origin, USER_TABLES};
use crate::config::key::Key;
use crate::explain::{Explain, rename_command};
use crate::hint;
use crate::hint::Hint;

/// Error of loading the configuration.
#[derive(Debug, thiserror::Error, Explain)]
pub enum Error {
    /// A settings file cannot be read.
    #[error("cannot read {}", path.display())]
    #[hint(with = [repair_hint(path)])]
    UnreadableFile {
        /// Path of the settings file.
        path: PathBuf,
        /// I/O error of the read.
        #[source]
        source: std::io::Error,
    },
    /// A settings file is not TOML.
    #[error("cannot read {}: it is not valid TOML:\n{}", path.display(), toml_excerpt(source))]
    #[hint(with = [repair_hint(path)])]
    InvalidToml {
        /// Path of the settings file.
        path: PathBuf,
        /// Parse error of the TOML reader.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// A value does not have the format of its key.
    #[error("cannot use {key} = '{value}' of {origin}: expected {format}")]
    #[hint(with = invalid_value_hints(key, origin, default))]
    InvalidValue {
        /// Name of the setting.
        key: String,
        /// Rejected value, hidden if it is a secret.
        value: String,
        /// Layer that set the value, as text.
        origin: Box<Origin>,
        /// Description of the accepted format.
        format: String,
        /// Value that applies when the setting is not set.
        default: &'static str,
    },
    /// A key that must be a table, such as `agents`, has another type.
    #[error("cannot use {key} of {}: it is not a table", path.display())]
    #[hint("write it as [{key}.my-name], with its settings on the lines below")]
    NotATable {
        /// Path of the settings file.
        path: PathBuf,
        /// Name of the table.
        key: String,
    },
    /// The repository's `proq.toml` sets a key that only the user may set.
    #[error("cannot use {}: a repository may not set {key}", path.display())]
    #[hint(
        if USER_TABLES.contains(&key.as_str()),
        "remove it there; set it in ~/.config/git-proq/config.toml instead"
    )]
    #[hint(
        else,
        "remove it there; you may set it yourself with: git config proq.{} VALUE",
        Key::find(key).map_or_else(|| key.clone(), Key::git_name)
    )]
    NotForRepository {
        /// Path of the repository's file.
        path: PathBuf,
        /// Name of the setting or table.
        key: String,
    },
}

/// Maximum length of a line of a file that a message shows, in bytes.
const MAX_EXCERPT_LINE_LEN: usize = 200;

/// Returns the parser's message with the line that it is about. Without that line if it contains an address,
/// which may hold a secret, or is very long.
fn toml_excerpt(error: &toml::de::Error) -> String {
    let text = error.to_string();
    let is_shown = !text.contains("://") && text.lines().all(|line| line.len() <= MAX_EXCERPT_LINE_LEN);
    let text = if is_shown { &text } else { error.message() };
    text.trim_end().to_owned()
}

/// Returns the hints for an invalid value: where it is set, and how to go back to the default.
fn invalid_value_hints(key: &str, origin: &Origin, default: &str) -> Vec<Hint> {
    let default = if default.is_empty() { "nothing" } else { default };
    match origin {
        Origin::Git => {
            let name = format!("proq.{}", Key::find(key).map_or_else(|| key.to_owned(), Key::git_name));
            vec![
                hint!("show where it is set: git config --show-origin --get-all {name}"),
                hint!("or use the default, '{default}': git config --unset-all {name}"),
            ]
        }
        Origin::Environment(name) => vec![hint!("use the default, '{default}': unset {name}")],
        Origin::Repository(path) | Origin::User(path) => {
            vec![hint!("correct it in {}; the default is '{default}'", path.display())]
        }
        Origin::Default => Vec::new(),
    }
}

/// Returns the hint for a settings file that cannot be read or parsed. A relative path is that of a file in a
/// commit.
fn repair_hint(path: &Path) -> Hint {
    if path.is_relative() {
        return hint!("see the file, and correct it on its branch: git show '{}'", path.display());
    }
    hint!("correct it, or move it away: {}", rename_command(path, "broken"))
}

impl Error {
    /// Returns the error on one line. Of a file that is not TOML, it names the position and the reason.
    #[must_use]
    pub fn summary(&self) -> String {
        let Error::InvalidToml { path, source } = self else { return self.to_string() };
        let text = source.to_string();
        let position = text.lines().next().and_then(|line| line.strip_prefix("TOML parse error at "));
        let position = position.map_or_else(String::new, |position| format!("{position}: "));
        let reason = source.message().lines().next().unwrap_or_default();
        format!("cannot read {}: it is not valid TOML: {position}{reason}", path.display())
    }
}
