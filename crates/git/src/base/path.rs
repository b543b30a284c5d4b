//! Paths as git names them: bytes with `/`, relative to the top of a worktree.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Path inside a repository. Any bytes but NUL; never starts with `/`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RepoPath(Vec<u8>);

impl RepoPath {
    /// Creates a path from the bytes that git printed.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        RepoPath(bytes.into())
    }

    /// Returns the raw bytes of the path.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Converts a path relative to the top of a worktree; `None` for the empty path, which is the worktree
    /// itself.
    pub fn from_path(path: &Path) -> Option<RepoPath> {
        let bytes = path.as_os_str().as_bytes();
        (!bytes.is_empty()).then(|| RepoPath(bytes.to_vec()))
    }

    /// Parses a path from its displayed form, which escapes control characters.
    pub fn from_text(text: &str) -> Option<RepoPath> {
        unescape(text).map(RepoPath)
    }

    /// Returns the file system path of this path below `root`.
    pub fn to_fs_path(&self, root: &Path) -> PathBuf {
        root.join(OsStr::from_bytes(&self.0))
    }

    /// Returns the parent folders of the path, from the top down.
    pub fn parents(&self) -> impl Iterator<Item = RepoPath> + '_ {
        self.0.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(i, _)| RepoPath(self.0[..i].to_vec()))
    }

    /// Returns the path of `name` inside this folder.
    pub fn join(&self, name: &[u8]) -> RepoPath {
        let mut bytes = self.0.clone();
        bytes.push(b'/');
        bytes.extend_from_slice(name);
        RepoPath(bytes)
    }

    /// Returns whether the last component is exactly `name`.
    pub fn ends_with_name(&self, name: &[u8]) -> bool {
        self.0.rsplit(|b| *b == b'/').next() == Some(name)
    }
}

/// Encodes paths as git's `-z` input expects them.
pub(crate) fn nul_separated<'p>(paths: impl IntoIterator<Item = &'p RepoPath>) -> Vec<u8> {
    let mut out = Vec::new();
    for path in paths {
        out.extend_from_slice(path.as_bytes());
        out.push(0);
    }
    out
}

/// Escapes control characters and bytes that are not UTF-8, so that a path stays on one line.
impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\\' => f.write_str("\\\\")?,
                    c if c.is_control() => write!(f, "{}", c.escape_default())?,
                    c => write!(f, "{c}")?,
                }
            }
            for b in chunk.invalid() {
                write!(f, "\\x{b:02x}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl Serialize for RepoPath {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RepoPath {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        unescape(&text).map(RepoPath).ok_or_else(|| serde::de::Error::custom("a path with a broken escape"))
    }
}

/// Parses the escaped form that `Display` writes.
fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        match rest.next()? {
            '\\' => out.push(b'\\'),
            'n' => out.push(b'\n'),
            't' => out.push(b'\t'),
            'r' => out.push(b'\r'),
            'x' => {
                let hex: String = rest.by_ref().take(2).collect();
                out.push(u8::from_str_radix(&hex, 16).ok()?);
            }
            'u' => {
                let hex: String = rest.by_ref().skip(1).take_while(|c| *c != '}').collect();
                let c = char::from_u32(u32::from_str_radix(&hex, 16).ok()?)?;
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            _ => return None,
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displayed_path_parses_back() {
        for bytes in [
            &b"a/b c"[..],
            b"tab\there",
            b"nl\nx",
            b"\xff\xfe",
            b"back\\slash",
            b"\x01\x7f",
            "grün/\u{200b}".as_bytes(),
        ] {
            let path = RepoPath::new(bytes);
            assert_eq!(unescape(&path.to_string()).as_deref(), Some(bytes));
        }
    }

    /// Promise: operations/truncated-list
    #[test]
    fn parents_start_at_top() {
        let all: Vec<String> = RepoPath::new("a/b/c").parents().map(|p| p.to_string()).collect();
        assert_eq!(all, ["a", "a/b"]);
    }
}
