//! Lock files like git's, recognizable by any process as a hard link to a mark.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Creates a lock file that must not exist, as a hard link to `mark` where the file system supports it.
pub(crate) fn create_linked_lock_file(lock: &Path, mark: &Path) -> std::io::Result<File> {
    drop(std::fs::remove_file(mark));
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(mark)?;
    file.write_all(format!("git-proq {}\n", std::process::id()).as_bytes())?;
    match std::fs::hard_link(mark, lock) {
        Ok(()) => Ok(file),
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Err(e),
        Err(_) => OpenOptions::new().write(true).create_new(true).open(lock),
    }
}

/// Device and inode number of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId(u64, u64);

impl FileId {
    /// Creates the id of the file with this device and inode number.
    pub fn new(device: u64, inode: u64) -> FileId {
        FileId(device, inode)
    }

    /// Returns the id of an open file; `None` if it cannot be determined.
    pub fn of(file: &File) -> Option<FileId> {
        file.metadata().ok().map(|m| FileId(m.dev(), m.ino()))
    }

    /// Reads the id of the file at a path; `None` if there is none.
    pub fn read(path: &Path) -> Option<FileId> {
        path.symlink_metadata().ok().map(|m| FileId(m.dev(), m.ino()))
    }
}

/// Returns whether two paths are the same file.
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    FileId::read(a).is_some_and(|id| Some(id) == FileId::read(b))
}
