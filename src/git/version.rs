//! Owns which git this is, and what can be relied on.

use super::{Error, Program};

/// The oldest git that everything works with.
pub(crate) const OLDEST: Version = Version(2, 39);
const OLDEST_TEXT: &str = "2.39";

/// A git version, major and minor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(pub(crate) u32, pub(crate) u32);

impl Version {
    /// Asks the program.
    pub(super) fn of(program: &Program, dir: &std::path::Path) -> Result<Version, Error> {
        let text = program.in_dir(dir).arg("--version").run()?.line();
        Version::parse(&text).ok_or_else(|| Error::Answer { args: "--version".into(), what: text })
    }

    /// Reads `git version 2.47.3 (Apple Git-1)` and a bare `2.47`.
    pub(super) fn parse(text: &str) -> Option<Version> {
        let number = text.split_whitespace().find(|w| w.starts_with(|c: char| c.is_ascii_digit()))?;
        let mut parts = number.split('.').map(|p| p.parse().ok());
        Some(Version(parts.next()??, parts.next()??))
    }

    /// Refuses what is too old.
    pub(super) fn require(self) -> Result<Version, Error> {
        if self >= OLDEST {
            return Ok(self);
        }
        Err(Error::TooOld { found: self.to_string(), needed: OLDEST_TEXT })
    }

    /// `update-ref --stdin` knows `symref-update`.
    pub(super) fn has_symref_verbs(self) -> bool {
        self >= Version(2, 46)
    }

    /// `git --attr-source=<tree>` exists.
    pub(super) fn has_attr_source(self) -> bool {
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
    fn versions_of_many_vendors_are_read() {
        for (text, want) in [
            ("git version 2.47.3", Version(2, 47)),
            ("git version 2.39.5 (Apple Git-154)", Version(2, 39)),
            ("git version 2.50.0.windows.1", Version(2, 50)),
            ("git version 3.0.0-rc1", Version(3, 0)),
        ] {
            assert_eq!(Version::parse(text), Some(want), "{text}");
        }
        assert_eq!(Version::parse("nonsense"), None);
    }

    #[test]
    fn an_old_git_is_refused_with_both_numbers() {
        let error = Version(2, 38).require().unwrap_err().to_string();
        assert_eq!(error, "git 2.38 is too old; git-proq needs 2.39 or newer");
        assert!(OLDEST.require().is_ok());
    }
}
