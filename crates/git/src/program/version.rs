//! Version of the git program, and the features that depend on it.

use super::command::Program;
use crate::Error;

/// Oldest supported git version.
pub(crate) const MINIMUM_VERSION: Version = Version(2, 39);
const MINIMUM_VERSION_TEXT: &str = "2.39";

/// git version, major and minor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32);

impl Version {
    /// Runs `git --version` and parses the output.
    pub fn detect(program: &Program, dir: &std::path::Path) -> Result<Version, Error> {
        let text = program.command_in(dir).arg("--version").run()?.trimmed_stdout();
        Version::parse(&text)
            .ok_or_else(|| Error::UnexpectedOutput { args: "--version".into(), fault_or_output: text })
    }

    /// Parses `git version 2.47.3 (Apple Git-1)` and a bare `2.47`.
    pub fn parse(text: &str) -> Option<Version> {
        let number = text.split_whitespace().find(|w| w.starts_with(|c: char| c.is_ascii_digit()))?;
        let mut parts = number.split('.').map(|p| p.parse().ok());
        Some(Version(parts.next()??, parts.next()??))
    }

    /// Refuses a version older than [`MINIMUM_VERSION`].
    pub(crate) fn require_supported(self) -> Result<Version, Error> {
        if self >= MINIMUM_VERSION {
            return Ok(self);
        }
        Err(Error::TooOld { found_version: self.to_string(), minimum_version: MINIMUM_VERSION_TEXT })
    }

    /// Returns whether `update-ref --stdin` supports `symref-update`.
    pub(crate) fn has_symref_verbs(self) -> bool {
        self >= Version(2, 46)
    }

    /// Returns whether `git --attr-source=<tree>` is supported.
    pub(crate) fn has_attr_source(self) -> bool {
        self >= Version(2, 41)
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_versions_of_vendors() {
        for (text, expected) in [
            ("git version 2.47.3", Version(2, 47)),
            ("git version 2.39.5 (Apple Git-154)", Version(2, 39)),
            ("git version 2.50.0.windows.1", Version(2, 50)),
            ("git version 3.0.0-rc1", Version(3, 0)),
        ] {
            assert_eq!(Version::parse(text), Some(expected), "{text}");
        }
        assert_eq!(Version::parse("nonsense"), None);
    }

    #[test]
    fn refuses_old_git_with_both_versions() {
        let error = Version(2, 38).require_supported().unwrap_err().to_string();
        assert_eq!(error, "git 2.38 is too old; git-proq needs 2.39 or newer");
        assert!(MINIMUM_VERSION.require_supported().is_ok());
    }
}
