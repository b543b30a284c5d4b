//! Syncing of files, folders and whole file systems to disk.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use proq_base::regular_file;

use super::parallel::parallel_map;
use crate::Error;

/// Syncs files and folders that exist and can be read.
pub(crate) fn sync_paths(paths: &[PathBuf]) -> Result<(), Error> {
    // A folder above a worktree may be unreadable, and another implementation of git may lack one of the
    // files.
    sync_opened(paths, |path| File::open(path), &[ErrorKind::NotFound, ErrorKind::PermissionDenied])
}

/// Syncs regular files that exist and can be read. A pipe or symlink in the place of one belongs to the user:
/// it is neither waited for nor followed.
pub fn sync_files(paths: &[PathBuf]) -> Result<(), Error> {
    let skipped_errors = [
        ErrorKind::NotFound,
        ErrorKind::PermissionDenied,
        ErrorKind::NotADirectory,
        // The path is not a regular file.
        ErrorKind::InvalidInput,
    ];
    sync_opened(paths, |path| regular_file::open_store_file(path), &skipped_errors)
}

/// Syncs every path that `open` opens, and skips those that fail with one of `skipped_errors`.
fn sync_opened(
    paths: &[PathBuf],
    open: impl Fn(&Path) -> std::io::Result<File> + Sync,
    skipped_errors: &[ErrorKind],
) -> Result<(), Error> {
    let sync = |path: &PathBuf| match open(path) {
        Err(e) if skipped_errors.contains(&e.kind()) => Ok(()),
        opened => opened.and_then(|file| file.sync_all()).map_err(Error::io("write", path)),
    };
    // A disk handles a few syncs at once in the time of one.
    parallel_map(paths, sync).into_iter().collect()
}

/// Syncs all files below a folder and everything else its file system has not written yet. For many files
/// this is faster than one after the other.
///
/// # Errors
/// Fails when the folder cannot be opened or the disk cannot be written to.
pub fn sync_file_system(dir: &Path) -> Result<(), Error> {
    #[cfg(target_os = "linux")]
    let synced = File::open(dir).and_then(|dir| Ok(rustix::fs::syncfs(dir)?));
    #[cfg(not(target_os = "linux"))]
    let synced = {
        rustix::fs::sync();
        Ok(())
    };
    synced.map_err(Error::io("write", dir))
}
