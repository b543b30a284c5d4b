//! Owns paths as git names them: bytes with `/`, relative to the top of a worktree.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A path inside a repository. Any bytes but NUL; never starts with `/`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RepoPath(Vec<u8>);

impl RepoPath {
    /// Takes the bytes as git printed them.
    pub(crate) fn new(bytes: impl Into<Vec<u8>>) -> Self {
        RepoPath(bytes.into())
    }

    /// The raw bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path of something inside a worktree; none for the worktree itself.
    pub(crate) fn of(path: &Path) -> Option<RepoPath> {
        let bytes = path.as_os_str().as_bytes();
        (!bytes.is_empty()).then(|| RepoPath(bytes.to_vec()))
    }

    /// Reads back what is shown of a path.
    pub(crate) fn from_text(text: &str) -> Option<RepoPath> {
        unescape(text).map(RepoPath)
    }

    /// The path below `root`.
    pub(crate) fn under(&self, root: &Path) -> PathBuf {
        root.join(OsStr::from_bytes(&self.0))
    }

    /// The folders above it, nearest the top first.
    pub(crate) fn parents(&self) -> impl Iterator<Item = RepoPath> + '_ {
        self.0.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(i, _)| RepoPath(self.0[..i].to_vec()))
    }

    /// The path of `name` below this folder.
    pub(crate) fn join(&self, name: &[u8]) -> RepoPath {
        let mut bytes = self.0.clone();
        bytes.push(b'/');
        bytes.extend_from_slice(name);
        RepoPath(bytes)
    }

    /// Whether the last component is exactly `name`.
    pub(crate) fn ends_with_name(&self, name: &[u8]) -> bool {
        self.0.rsplit(|b| *b == b'/').next() == Some(name)
    }
}

/// The paths as git's `-z` input wants them.
pub(super) fn nul_separated<'p>(paths: impl IntoIterator<Item = &'p RepoPath>) -> Vec<u8> {
    let mut out = Vec::new();
    for path in paths {
        out.extend_from_slice(path.as_bytes());
        out.push(0);
    }
    out
}

/// Notes paths in a file, for whoever comes after a crash or a power cut: it is on disk before anything happens to them. Where there
/// are none, no file is needed.
pub(super) fn note(list: &Path, paths: &[RepoPath]) -> Result<(), super::Error> {
    if paths.is_empty() && !list.exists() {
        return Ok(());
    }
    let written = File::create(list).and_then(|mut file| {
        file.write_all(&nul_separated(paths))?;
        file.sync_all()
    });
    written.map_err(super::Error::io("write", list))
}

/// The paths that were noted in a file; none when there is no such file. What has no end may be the beginning of a name, as a full disk
/// leaves it: nothing has happened to that path.
pub(super) fn noted(list: &Path) -> Result<Vec<RepoPath>, super::Error> {
    match std::fs::read(list) {
        Ok(text) => {
            let whole = text.split_inclusive(|b| *b == 0).filter_map(|path| path.strip_suffix(&[0]));
            Ok(whole.filter(|path| !path.is_empty()).map(RepoPath::new).collect())
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(super::Error::io("read", list)(e)),
    }
}

/// Control characters and bytes that are not UTF-8 are escaped, so that a name stays on one line.
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

/// The inverse of `Display`.
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
    fn what_is_shown_reads_back() {
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

    #[test]
    fn a_name_without_its_end_was_not_noted() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("list");
        for (text, paths) in
            [(&b"a\0b/c\0a.js"[..], &["a", "b/c"][..]), (b"a.js", &[]), (b"a\0", &["a"]), (b"", &[])]
        {
            std::fs::write(&list, text).unwrap();
            let noted: Vec<String> = noted(&list).unwrap().iter().map(ToString::to_string).collect();
            assert_eq!(noted, paths);
        }
    }

    #[test]
    fn parents_come_from_the_top_down() {
        let all: Vec<String> = RepoPath::new("a/b/c").parents().map(|p| p.to_string()).collect();
        assert_eq!(all, ["a", "a/b"]);
    }
}
