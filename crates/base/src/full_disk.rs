//! Recognizing that no file can grow any more: a full disk, a quota, or a limit on the size of files.

use std::io::{Error, ErrorKind};

use crate::hint;
use crate::hint::Hint;

/// Limit that keeps files from being written, and what helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteLimit {
    /// The disk or the user's quota is full.
    Space,
    /// The file would be larger than the file system or a limit of the process allows.
    FileSize,
}

impl WriteLimit {
    /// Returns the limit that an error of the operating system is about. [`ErrorKind::FileTooLarge`] without a code
    /// of the operating system is no such error: git-proq refuses to read large files with it.
    pub fn of_error(source: &Error) -> Option<WriteLimit> {
        match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some(WriteLimit::Space),
            ErrorKind::FileTooLarge if source.raw_os_error().is_some() => Some(WriteLimit::FileSize),
            _ => None,
        }
    }

    /// Returns the limit that git's standard error names. For the files of a checkout git prints no reason.
    pub fn of_git_output(stderr: &str) -> Option<WriteLimit> {
        let names = |texts: &[&str]| texts.iter().any(|text| stderr.contains(text));
        if names(&["No space left on device", "Disk quota exceeded"]) {
            return Some(WriteLimit::Space);
        }
        names(&["File too large", "unable to write file "]).then_some(WriteLimit::FileSize)
    }

    /// Returns the hint that helps.
    pub fn hint(self) -> Hint {
        match self {
            WriteLimit::Space => hint!("free some disk space, then run the command again: df -h"),
            WriteLimit::FileSize => hint!("check disk space and limits: df -h; ulimit -a"),
        }
    }
}
