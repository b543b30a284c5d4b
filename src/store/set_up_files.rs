//! Owns where it lies what a new lane was given, and the list of it.

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::{Error, Layout, write_cache};
use crate::copy::Stamp;
use crate::git::RepoPath;

impl Layout {
    /// What is known of a lane that is being made.
    pub(crate) fn set_up(&self, name: &str) -> PathBuf {
        self.lane(name).join("set-up.toml")
    }

    /// What the commands wrote that got a lane ready.
    pub(crate) fn set_up_log(&self, name: &str) -> PathBuf {
        self.lane(name).join(Layout::SET_UP_LOG)
    }

    /// Its name in a lane's folder, which may be that of a removed one.
    pub(crate) const SET_UP_LOG: &str = "set-up.log";

    /// The same of a lane that they failed for, so that it was not made.
    pub(crate) fn failed_set_up_log(&self, name: &str) -> PathBuf {
        self.root().join(format!("set-up/{name}.log"))
    }

    /// A lane's names and ports, a line each.
    pub(crate) fn lane_env(&self, name: &str) -> PathBuf {
        self.lane(name).join("env")
    }

    /// Which files a lane was given a copy of.
    pub(crate) fn copies(&self, name: &str) -> PathBuf {
        self.lane(name).join("copies")
    }

    /// Notes which files a lane was given a copy of, and what each was like. Without it none is taken for unchanged.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn note_copies(&self, name: &str, all: &[(RepoPath, Stamp)]) -> Result<(), Error> {
        let mut text = Vec::new();
        for (path, Stamp { size, seconds, nanos }) in all {
            let _in_memory = write!(text, "{size} {seconds} {nanos} ");
            text.extend_from_slice(path.as_bytes());
            text.push(0);
        }
        write_cache(&self.copies(name), &text)
    }

    /// The files that a lane was given a copy of.
    pub(crate) fn copies_of(&self, name: &str) -> Vec<(RepoPath, Stamp)> {
        let text = crate::regular_file::record(self.copies(name)).unwrap_or_default();
        text.split(|b| *b == 0).filter_map(read_copy).collect()
    }
}

fn read_copy(line: &[u8]) -> Option<(RepoPath, Stamp)> {
    let mut parts = line.splitn(4, |b| *b == b' ');
    let mut number = || OsStr::from_bytes(parts.next()?).to_str()?.parse::<i64>().ok();
    let (size, seconds, nanos) = (number()?, number()?, number()?);
    let stamp = Stamp { size: u64::try_from(size).ok()?, seconds, nanos };
    Some((RepoPath::new(parts.next()?), stamp))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_reads_back() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        let stamp = Stamp { size: 3, seconds: -1, nanos: 999_999_999 };
        let all = [(RepoPath::new("a b/\nc \u{fc}"), stamp), (RepoPath::new(b"\xff".to_vec()), stamp)];
        assert_eq!(layout.copies_of("x"), []);
        layout.note_copies("x", &all).unwrap();
        assert_eq!(layout.copies_of("x"), all);
    }
}
