//! Definition of one setting, and its names in git's configuration and the environment.

use super::value_format::ValueFormat;

/// Definition of one setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Name of the setting, `group.name`.
    pub name: &'static str,
    /// Format that its value must have.
    pub format: ValueFormat,
    /// Value that applies when the setting is not set.
    pub default: &'static str,
    /// Whether a `proq.toml` in a repository may set it. The others are for the user only.
    pub settable_by_repository: bool,
    /// One-line description for `git proq config`.
    pub summary: &'static str,
}

impl Key {
    /// Returns the camel-case name for `git config`, without the prefix `proq.`: git's keys cannot contain
    /// `_`.
    pub fn git_name(&self) -> String {
        let mut words = self.name.split('_');
        let mut out = words.next().unwrap_or_default().to_owned();
        for word in words {
            let (initial, tail) = word.split_at(word.len().min(1));
            out.push_str(&initial.to_uppercase());
            out.push_str(tail);
        }
        out
    }

    /// Returns the name of the environment variable that sets this key, such as `PROQ_LOCK_TIMEOUT`.
    pub fn env_var_name(&self) -> String {
        format!("PROQ_{}", self.name.replace('.', "_").to_uppercase())
    }
}
